/* SPDX-License-Identifier: MIT */
/* The oracle: its inodes, and the table of functions for the operations. */
#include "support/oracle_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- inodes ---- */

static struct oracle_inode_list *bucket_of(struct oracle *oracle, uint64_t ino)
{
	return &oracle->buckets[ino % ORACLE_BUCKETS];
}

struct oracle_inode *oracle_find(struct oracle *oracle, uint64_t ino)
{
	struct oracle_inode *inode;

	LIST_FOREACH (inode, bucket_of(oracle, ino), link) {
		if (inode->ino == ino)
			return inode;
	}
	return NULL;
}

struct oracle_inode *oracle_add_inode(struct oracle *oracle, uint64_t ino, uint32_t mode)
{
	struct oracle_inode *inode = calloc(1, sizeof(*inode));

	assert(inode);
	inode->ino = ino;
	inode->mode = mode;
	inode->nlink = S_ISDIR(mode) ? 2 : 1;
	inode->atime = inode->mtime = inode->ctime = inode->btime = oracle->now;
	inode->ctime_min = oracle->now;
	oracle_data_init(&inode->data);
	if (oracle->count == oracle->room) {
		oracle->room = oracle->room * 2 + 16;
		oracle->all = realloc(oracle->all, oracle->room * sizeof(*oracle->all));
		assert(oracle->all);
	}
	inode->index = oracle->count;
	oracle->all[oracle->count++] = inode;
	LIST_INSERT_HEAD(bucket_of(oracle, ino), inode, link);
	if (ino > oracle->highest_ino)
		oracle->highest_ino = ino;
	return inode;
}

static void free_inode(struct oracle_inode *inode)
{
	oracle_data_deinit(&inode->data);
	free(inode->entries);
	free(inode);
}

static void remove_inode(struct oracle *oracle, struct oracle_inode *inode)
{
	struct oracle_inode *last = oracle->all[--oracle->count];

	oracle->all[inode->index] = last;
	last->index = inode->index;
	LIST_REMOVE(inode, link);
	free_inode(inode);
}

void oracle_drop_unused(struct oracle *oracle, struct oracle_inode *inode)
{
	if (inode->nlink == 0 && inode->held == 0)
		remove_inode(oracle, inode);
}

struct oracle *oracle_new(bool keep_old, int64_t now)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	struct oracle_inode *root;

	assert(oracle);
	oracle->keep_old = keep_old;
	oracle->now = now;
	for (unsigned int i = 0; i < ORACLE_BUCKETS; i++)
		LIST_INIT(&oracle->buckets[i]);
	root = oracle_add_inode(oracle, ZF_INO_ROOT, S_IFDIR | 0755);
	root->parent = ZF_INO_ROOT;
	return oracle;
}

void oracle_free(struct oracle *oracle)
{
	if (!oracle)
		return;
	for (unsigned int i = 0; i < oracle->count; i++)
		free_inode(oracle->all[i]);
	free(oracle->all);
	free(oracle);
}

void oracle_forget_all(struct oracle *oracle)
{
	for (unsigned int i = oracle->count; i-- > 0;) {
		oracle->all[i]->held = 0;
		oracle_drop_unused(oracle, oracle->all[i]);
	}
}

void oracle_settle_content(struct oracle_inode *inode)
{
	oracle_data_settle(&inode->data);
	inode->unsettled = inode->unsettled_data = 0;
}

void oracle_settle(struct oracle_inode *inode)
{
	oracle_settle_content(inode);
	inode->times_loose = inode->mtime_loose = false;
	inode->ctime_min = inode->ctime;
}

void oracle_settle_all(struct oracle *oracle)
{
	for (unsigned int i = 0; i < oracle->count; i++) {
		oracle_settle(oracle->all[i]);
		oracle->all[i]->atime_loose = false;
	}
}

/* ---- entries ---- */

const struct oracle_entry *oracle_entry(const struct oracle_inode *dir, const char *name)
{
	for (unsigned int i = 0; i < dir->entry_count; i++) {
		if (strcmp(dir->entries[i].name, name) == 0)
			return &dir->entries[i];
	}
	return NULL;
}
void oracle_change(struct oracle *oracle, struct oracle_inode *inode)
{
	inode->ctime = inode->ctime_min = oracle->now;
	inode->times_loose = false;
	inode->atime_loose = inode->atime_loose && oracle->keep_old;
	inode->mtime_loose = inode->mtime_loose && oracle->keep_old;
}

void oracle_change_content(struct oracle *oracle, struct oracle_inode *inode,
			   const struct zf_op *op, bool data)
{
	inode->mtime = inode->ctime = oracle->now;
	inode->times_loose = inode->mtime_loose = true;
	inode->unsettled++;
	inode->unsettled_data += data;
	inode->last_content = op->number;
}

void oracle_change_dir(struct oracle *oracle, struct oracle_inode *dir)
{
	oracle_change(oracle, dir);
	dir->mtime = oracle->now;
}

void oracle_access(struct oracle *oracle, struct oracle_inode *inode)
{
	if ((inode->flags & ZF_INODE_NOATIME) || inode->nlink == 0 ||
	    (inode->atime > inode->mtime && inode->atime > inode->ctime))
		return;
	inode->atime = oracle->now;
	inode->atime_loose = oracle->keep_old;
}

int64_t oracle_check_change(const struct oracle_inode *inode)
{
	return inode->flags & (ZF_INODE_IMMUTABLE | ZF_INODE_APPEND) ? -EPERM : 0;
}

/* ---- operations ---- */

static int64_t apply_nothing(struct oracle *oracle, const struct zf_op *op)
{
	return 0;
}

static int64_t (*const apply[OP_KIND_COUNT])(struct oracle *oracle, const struct zf_op *op) = {
	[OP_LOOKUP] = oracle_lookup,
	[OP_FORGET] = oracle_forget,
	[OP_MAKE] = oracle_make,
	[OP_TMPFILE] = oracle_tmpfile,
	[OP_LINK] = oracle_link,
	[OP_UNLINK] = oracle_unlink,
	[OP_RMDIR] = oracle_rmdir,
	[OP_RENAME] = oracle_rename,
	[OP_READLINK] = oracle_readlink,
	[OP_READDIR] = oracle_readdir,
	[OP_SETATTR] = oracle_setattr,
	[OP_SETFLAGS] = oracle_setflags,
	[OP_SETXATTR] = oracle_setxattr,
	[OP_GETXATTR] = oracle_getxattr,
	[OP_REMOVEXATTR] = oracle_removexattr,
	[OP_READ] = oracle_read,
	[OP_WRITE] = oracle_write,
	[OP_FALLOCATE] = oracle_fallocate,
	[OP_COPY] = oracle_copy,
	[OP_SEEK] = oracle_seek,
	[OP_FSYNC] = oracle_fsync,
	[OP_SYNCFS] = oracle_syncfs,
	[OP_STEP] = apply_nothing,
	[OP_RECLAIM] = apply_nothing,
	[OP_FREEZE] = oracle_freeze,
	[OP_COMMIT_WRITE] = apply_nothing,
	[OP_COMMIT_FINISH] = oracle_commit,
};

int64_t oracle_apply(struct oracle *oracle, const struct zf_op *op)
{
	oracle->now = workload_time(op->number);
	return apply[op->kind](oracle, op);
}

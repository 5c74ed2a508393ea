/* SPDX-License-Identifier: MIT */
/* The oracle's inodes, and each operation as Linux defines it. */
#include "support/oracle.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bits.h"
#include "support/workload.h"

/* ---- inodes ---- */

static struct oracle_inode_list *bucket_of(struct oracle *oracle, uint64_t ino)
{
	return &oracle->buckets[ino % ORACLE_BUCKETS];
}

struct oracle_inode *oracle_find(struct oracle *oracle, uint64_t ino)
{
	struct oracle_inode *inode;

	LIST_FOREACH(inode, bucket_of(oracle, ino), link)
	{
		if (inode->ino == ino)
			return inode;
	}
	return NULL;
}

static struct oracle_inode *add_inode(struct oracle *oracle, uint64_t ino, uint32_t mode)
{
	struct oracle_inode *inode = calloc(1, sizeof(*inode));

	assert(inode);
	inode->ino = ino;
	inode->mode = mode;
	inode->nlink = S_ISDIR(mode) ? 2 : 1;
	inode->atime = inode->mtime = inode->ctime = inode->btime = oracle->now;
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

static void remove_if_unused(struct oracle *oracle, struct oracle_inode *inode)
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
	root = add_inode(oracle, ZF_INO_ROOT, S_IFDIR | 0755);
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
		remove_if_unused(oracle, oracle->all[i]);
	}
}

static void settle(struct oracle_inode *inode)
{
	oracle_data_settle(&inode->data);
	inode->times_loose = false;
	inode->unsettled = 0;
}

void oracle_settle_all(struct oracle *oracle)
{
	for (unsigned int i = 0; i < oracle->count; i++)
		settle(oracle->all[i]);
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

static void add_entry(struct oracle_inode *dir, const char *name, uint64_t ino)
{
	if (dir->entry_count == dir->entry_room) {
		dir->entry_room = dir->entry_room * 2 + 8;
		dir->entries = realloc(dir->entries, dir->entry_room * sizeof(*dir->entries));
		assert(dir->entries);
	}
	dir->entries[dir->entry_count++] = (struct oracle_entry){.name = name, .ino = ino};
}

static void remove_entry(struct oracle_inode *dir, const char *name)
{
	const struct oracle_entry *entry = oracle_entry(dir, name);

	dir->entries[entry - dir->entries] = dir->entries[--dir->entry_count];
}

static void set_entry(struct oracle_inode *dir, const char *name, uint64_t ino)
{
	const struct oracle_entry *entry = oracle_entry(dir, name);

	dir->entries[entry - dir->entries].ino = ino;
}

/* ---- what many operations do ---- */

static void change(struct oracle *oracle, struct oracle_inode *inode)
{
	inode->ctime = oracle->now;
	inode->times_loose = false;
}

static void change_dir(struct oracle *oracle, struct oracle_inode *dir)
{
	change(oracle, dir);
	dir->mtime = oracle->now;
}

static int64_t check_name(const char *name)
{
	return strlen(name) > ZF_NAME_MAX ? -ENAMETOOLONG : 0;
}

static int64_t find_dir(struct oracle *oracle, uint64_t ino, struct oracle_inode **ret_dir)
{
	*ret_dir = oracle_find(oracle, ino);
	if (!*ret_dir)
		return -ESTALE;
	return S_ISDIR((*ret_dir)->mode) ? 0 : -ENOTDIR;
}

/* A directory and the inode that a name in it names: NULL if none. */
static int64_t find_child(struct oracle *oracle, uint64_t dir_ino, const char *name,
			  struct oracle_inode **ret_dir, struct oracle_inode **ret_child)
{
	const struct oracle_entry *entry;
	int64_t r = check_name(name);

	if (r == 0)
		r = find_dir(oracle, dir_ino, ret_dir);
	if (r < 0)
		return r;
	entry = oracle_entry(*ret_dir, name);
	*ret_child = entry ? oracle_find(oracle, entry->ino) : NULL;
	assert(!entry || *ret_child);
	return 0;
}

static void drop_link(struct oracle *oracle, struct oracle_inode *inode)
{
	change(oracle, inode);
	inode->nlink = S_ISDIR(inode->mode) ? 0 : inode->nlink - 1;
	remove_if_unused(oracle, inode);
}

static void kill_suidgid(struct oracle_inode *inode)
{
	if (S_ISDIR(inode->mode))
		return;
	inode->mode &= ~(uint32_t)S_ISUID;
	if (inode->mode & S_IXGRP)
		inode->mode &= ~(uint32_t)S_ISGID;
}

/* ---- names ---- */

static int64_t apply_lookup(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *child;
	int64_t r = find_child(oracle, op->dir, op->name, &dir, &child);

	if (r < 0)
		return r;
	if (!child)
		return -ENOENT;
	child->held += op->hold;
	return 0;
}

static int64_t apply_forget(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);

	inode->held--;
	remove_if_unused(oracle, inode);
	return 0;
}

static void inherit(const struct oracle_inode *dir, const struct zf_op *op,
		    struct oracle_inode *inode)
{
	inode->uid = op->uid;
	inode->gid = op->gid;
	if (dir->mode & S_ISGID) {
		inode->gid = dir->gid;
		if (S_ISDIR(inode->mode))
			inode->mode |= S_ISGID;
	}
}

static int64_t apply_make(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *inode;
	int64_t r = find_child(oracle, op->dir, op->name, &dir, &inode);

	if (r < 0)
		return r;
	if (inode)
		return -EEXIST;
	if (dir->nlink == 0)
		return -ENOENT;
	/* Never used twice. What went wrong is plain from a number that is not above all others. */
	if (op->result == 0 && op->attr.ino <= oracle->highest_ino)
		return -EUCLEAN;
	inode = add_inode(oracle, op->attr.ino, op->mode);
	inherit(dir, op, inode);
	inode->rdev = op->rdev;
	inode->target = op->target;
	if (op->target)
		oracle_data_truncate(&inode->data, strlen(op->target), false);
	inode->parent = dir->ino;
	inode->held = op->hold;
	add_entry(dir, op->name, inode->ino);
	dir->nlink += S_ISDIR(op->mode);
	change_dir(oracle, dir);
	return 0;
}

static int64_t apply_link(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir = oracle_find(oracle, op->dir),
			    *inode = oracle_find(oracle, op->ino);
	int64_t r = check_name(op->name);

	if (r < 0)
		return r;
	if (!dir || !inode)
		return -ESTALE;
	if (S_ISDIR(inode->mode))
		return -EPERM;
	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	if (dir->nlink == 0)
		return -ENOENT;
	if (oracle_entry(dir, op->name))
		return -EEXIST;
	/* From no name at all, too: that of a file that was removed, or made without one. */
	inode->nlink++;
	change(oracle, inode);
	inode->held += op->hold;
	add_entry(dir, op->name, inode->ino);
	change_dir(oracle, dir);
	return 0;
}

static int64_t apply_unlink(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *child;
	int64_t r = find_child(oracle, op->dir, op->name, &dir, &child);

	if (r < 0)
		return r;
	if (!child)
		return -ENOENT;
	if (S_ISDIR(child->mode))
		return -EISDIR;
	remove_entry(dir, op->name);
	change_dir(oracle, dir);
	drop_link(oracle, child);
	return 0;
}

static int64_t apply_rmdir(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *child;
	int64_t r = find_child(oracle, op->dir, op->name, &dir, &child);

	if (r < 0)
		return r;
	if (!child)
		return -ENOENT;
	if (!S_ISDIR(child->mode))
		return -ENOTDIR;
	if (child->entry_count > 0)
		return -ENOTEMPTY;
	remove_entry(dir, op->name);
	dir->nlink--;
	change_dir(oracle, dir);
	drop_link(oracle, child);
	return 0;
}

/* Is `below` the directory `above`, or anywhere below it? A removed directory hangs nowhere. */
static bool is_below(struct oracle *oracle, const struct oracle_inode *below,
		     const struct oracle_inode *above)
{
	while (below != above) {
		if (below->ino == ZF_INO_ROOT || below->nlink == 0)
			return false;
		below = oracle_find(oracle, below->parent);
	}
	return true;
}

/* A directory must not move below itself. */
static bool makes_loop(struct oracle *oracle, const struct zf_op *op,
		       const struct oracle_inode *dir, const struct oracle_inode *source,
		       const struct oracle_inode *dir2, const struct oracle_inode *target)
{
	if (S_ISDIR(source->mode) && is_below(oracle, dir2, source))
		return true;
	return target && S_ISDIR(target->mode) && (op->flags & RENAME_EXCHANGE) &&
	       is_below(oracle, dir, target);
}

static int64_t check_rename(struct oracle *oracle, const struct zf_op *op,
			    const struct oracle_inode *dir, const struct oracle_inode *source,
			    const struct oracle_inode *dir2, const struct oracle_inode *target)
{
	/* A directory that was removed is below no other any more. */
	if (dir2->nlink == 0)
		return -ENOENT;
	if (makes_loop(oracle, op, dir, source, dir2, target))
		return -EINVAL;
	if (!target && (op->flags & RENAME_EXCHANGE))
		return -ENOENT;
	if (target && (op->flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (!target || (op->flags & RENAME_EXCHANGE))
		return 0;
	if (S_ISDIR(source->mode) && !S_ISDIR(target->mode))
		return -ENOTDIR;
	if (!S_ISDIR(source->mode) && S_ISDIR(target->mode))
		return -EISDIR;
	return target->entry_count > 0 ? -ENOTEMPTY : 0;
}

/* The directories first, then what is in them: that is the order of the errors. */
static int64_t find_both(struct oracle *oracle, const struct zf_op *op, struct oracle_inode **dir,
			 struct oracle_inode **source, struct oracle_inode **dir2,
			 struct oracle_inode **target)
{
	int64_t r = check_name(op->name);

	if (op->flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	if (r == 0)
		r = check_name(op->name2);
	if (r == 0 && (!oracle_find(oracle, op->dir) || !oracle_find(oracle, op->dir2)))
		r = -ESTALE;
	if (r == 0)
		r = find_child(oracle, op->dir, op->name, dir, source);
	if (r == 0 && !*source)
		r = -ENOENT;
	return r < 0 ? r : find_child(oracle, op->dir2, op->name2, dir2, target);
}

static void move_dir(struct oracle_inode *inode, struct oracle_inode *from, struct oracle_inode *to)
{
	if (!S_ISDIR(inode->mode))
		return;
	from->nlink--;
	to->nlink++;
	inode->parent = to->ino;
}

static void exchange(const struct zf_op *op, struct oracle_inode *dir, struct oracle_inode *source,
		     struct oracle_inode *dir2, struct oracle_inode *target)
{
	set_entry(dir, op->name, target->ino);
	set_entry(dir2, op->name2, source->ino);
	move_dir(source, dir, dir2);
	move_dir(target, dir2, dir);
}

static int64_t apply_rename(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *dir2, *source, *target;
	int64_t r = find_both(oracle, op, &dir, &source, &dir2, &target);

	if (r == 0)
		r = check_rename(oracle, op, dir, source, dir2, target);
	if (r < 0 || source == target)
		return r;
	change(oracle, source);
	change_dir(oracle, dir);
	change_dir(oracle, dir2);
	if (op->flags & RENAME_EXCHANGE) {
		change(oracle, target);
		exchange(op, dir, source, dir2, target);
		return 0;
	}
	remove_entry(dir, op->name);
	move_dir(source, dir, dir2);
	if (!target) {
		add_entry(dir2, op->name2, source->ino);
		return 0;
	}
	set_entry(dir2, op->name2, source->ino);
	dir2->nlink -= S_ISDIR(target->mode);
	drop_link(oracle, target);
	settle(source); /* P2: a rename over a file is answered when its source's data are there */
	return 0;
}

static int64_t apply_readlink(struct oracle *oracle, const struct zf_op *op)
{
	const struct oracle_inode *inode = oracle_find(oracle, op->ino);

	if (!inode)
		return -ESTALE;
	return S_ISLNK(inode->mode) ? (int64_t)strlen(inode->target) : -EINVAL;
}

static int64_t apply_readdir(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir;
	int64_t r = find_dir(oracle, op->ino, &dir);

	if (r < 0)
		return r;
	return dir->nlink == 0 ? 0 : dir->entry_count + 2;
}

/* ---- attributes ---- */

static void set_times(struct oracle_inode *inode, const struct zf_setattr *set, int64_t now)
{
	if (set->valid & ZF_SET_ATIME)
		inode->atime = set->atime.seconds * 1000000000 + set->atime.nanoseconds;
	if (set->valid & ZF_SET_ATIME_NOW)
		inode->atime = now;
	if (set->valid & (ZF_SET_MTIME_NOW | ZF_SET_SIZE))
		inode->mtime = now;
	if (set->valid & ZF_SET_MTIME)
		inode->mtime = set->mtime.seconds * 1000000000 + set->mtime.nanoseconds;
}

static void truncate_file(struct oracle *oracle, struct oracle_inode *inode, uint64_t size)
{
	uint64_t old = inode->data.size;

	/* To grow, a file writes the zeroes behind its end into its last block: data on its way. */
	if (oracle->keep_old && size > old && old % ZF_BLOCK_SIZE != 0)
		inode->unsettled++;
	oracle_data_truncate(&inode->data, size, oracle->keep_old && inode->unsettled > 0);
}

static int64_t apply_setattr(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	const struct zf_setattr *set = &op->set;

	if ((set->valid & ZF_SET_SIZE) && set->size > ZF_FILE_SIZE_MAX)
		return -EFBIG;
	if (!inode)
		return -ESTALE;
	if (set->valid & ZF_SET_SIZE) {
		if (S_ISDIR(inode->mode))
			return -EISDIR;
		if (!S_ISREG(inode->mode))
			return -EINVAL;
		truncate_file(oracle, inode, set->size);
	}
	if (set->valid & (ZF_SET_UID | ZF_SET_GID | ZF_SET_KILL_SUIDGID))
		kill_suidgid(inode);
	if (set->valid & ZF_SET_MODE)
		inode->mode = (inode->mode & S_IFMT) | (set->mode & 07777);
	if (set->valid & ZF_SET_UID)
		inode->uid = set->uid;
	if (set->valid & ZF_SET_GID)
		inode->gid = set->gid;
	set_times(inode, set, oracle->now);
	change(oracle, inode);
	return 0;
}

static struct oracle_xattr *find_xattr(struct oracle_inode *inode, const char *name)
{
	for (unsigned int i = 0; i < inode->xattr_count; i++) {
		if (strcmp(inode->xattrs[i].name, name) == 0)
			return &inode->xattrs[i];
	}
	return NULL;
}

static int64_t apply_setxattr(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	struct oracle_xattr *xattr;

	if (!inode)
		return -ESTALE;
	if (op->len > ZF_XATTR_VALUE_MAX)
		return -E2BIG;
	xattr = find_xattr(inode, op->name);
	if (xattr && (op->flags & XATTR_CREATE))
		return -EEXIST;
	if (!xattr && (op->flags & XATTR_REPLACE))
		return -ENODATA;
	if (!xattr) {
		assert(inode->xattr_count < ORACLE_XATTRS_MAX);
		xattr = &inode->xattrs[inode->xattr_count++];
	}
	*xattr = (struct oracle_xattr){
		.name = op->name, .write = op->number, .len = (uint32_t)op->len};
	change(oracle, inode);
	return 0;
}

static int64_t apply_getxattr(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	const struct oracle_xattr *xattr;

	if (!inode)
		return -ESTALE;
	xattr = find_xattr(inode, op->name);
	if (!xattr)
		return -ENODATA;
	if (op->len > 0 && op->len < xattr->len)
		return -ERANGE;
	return xattr->len;
}

static int64_t apply_removexattr(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);
	struct oracle_xattr *xattr;

	if (!inode)
		return -ESTALE;
	xattr = find_xattr(inode, op->name);
	if (!xattr)
		return -ENODATA;
	*xattr = inode->xattrs[--inode->xattr_count];
	change(oracle, inode);
	return 0;
}

/* ---- data ---- */

static int64_t find_file(struct oracle *oracle, uint64_t ino, struct oracle_inode **ret_inode)
{
	*ret_inode = oracle_find(oracle, ino);
	if (!*ret_inode)
		return -ESTALE;
	if (S_ISDIR((*ret_inode)->mode))
		return -EISDIR;
	return S_ISREG((*ret_inode)->mode) ? 0 : -EINVAL;
}

static int64_t apply_read(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode;
	int64_t r = find_file(oracle, op->ino, &inode);

	if (r < 0)
		return r;
	if (op->offset >= inode->data.size)
		return 0;
	return (int64_t)(op->len < inode->data.size - op->offset ? op->len
								 : inode->data.size - op->offset);
}

static int64_t apply_write(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode;
	uint64_t offset, len = op->len;
	int64_t r = find_file(oracle, op->ino, &inode);

	if (r < 0 || len == 0)
		return r;
	offset = op->flags & ZF_WRITE_APPEND ? inode->data.size : op->offset;
	/* The kernel looks at the end first; where appends end it does not know. */
	if (offset >= ZF_FILE_SIZE_MAX ||
	    ((op->flags & ZF_WRITE_APPEND) && len > ZF_FILE_SIZE_MAX - offset))
		return -EFBIG;
	len = zf_min_u64(len, ZF_FILE_SIZE_MAX - offset);
	/* Out of room in the middle of a write: what was written counts. */
	if (op->result > 0 && (uint64_t)op->result < len)
		len = (uint64_t)op->result;
	oracle_data_write(&inode->data, offset, len, op->number, oracle->keep_old);
	inode->mtime = inode->ctime = oracle->now;
	inode->times_loose = true;
	inode->unsettled++;
	if (op->flags & ZF_WRITE_KILL_SUIDGID)
		kill_suidgid(inode);
	if (op->flags & ZF_WRITE_DSYNC)
		settle(inode);
	return (int64_t)len;
}

/* Where data is may be said in units of blocks; but no data may be called a hole. */
static bool seek_is_right(const struct oracle_data *data, const struct zf_op *op)
{
	uint64_t found = (uint64_t)op->result;

	if (op->result < 0)
		return op->result == -ENXIO && op->flags == SEEK_DATA &&
		       oracle_data_is_zero(data, op->offset, data->size);
	if (found < op->offset || found > data->size)
		return false;
	if (op->flags == SEEK_DATA)
		return found < data->size && oracle_data_is_zero(data, op->offset, found);
	return found == data->size || oracle_data_next(data, found) > found;
}

static int64_t apply_seek(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode;
	int64_t r = find_file(oracle, op->ino, &inode);

	if (r < 0)
		return r;
	if (op->offset >= inode->data.size)
		return -ENXIO;
	return seek_is_right(&inode->data, op) ? op->result : (int64_t)op->offset;
}

static int64_t apply_fsync(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);

	if (!inode)
		return -ESTALE;
	settle(inode);
	return 0;
}

static int64_t apply_syncfs(struct oracle *oracle, const struct zf_op *op)
{
	oracle_settle_all(oracle);
	return 0;
}

static int64_t apply_nothing(struct oracle *oracle, const struct zf_op *op)
{
	return 0;
}

static int64_t (*const apply[OP_KIND_COUNT])(struct oracle *oracle, const struct zf_op *op) = {
	[OP_LOOKUP] = apply_lookup,
	[OP_FORGET] = apply_forget,
	[OP_MAKE] = apply_make,
	[OP_LINK] = apply_link,
	[OP_UNLINK] = apply_unlink,
	[OP_RMDIR] = apply_rmdir,
	[OP_RENAME] = apply_rename,
	[OP_READLINK] = apply_readlink,
	[OP_READDIR] = apply_readdir,
	[OP_SETATTR] = apply_setattr,
	[OP_SETXATTR] = apply_setxattr,
	[OP_GETXATTR] = apply_getxattr,
	[OP_REMOVEXATTR] = apply_removexattr,
	[OP_READ] = apply_read,
	[OP_WRITE] = apply_write,
	[OP_SEEK] = apply_seek,
	[OP_FSYNC] = apply_fsync,
	[OP_SYNCFS] = apply_syncfs,
	[OP_STEP] = apply_nothing,
	[OP_FREEZE] = apply_nothing,
	[OP_COMMIT_WRITE] = apply_nothing,
	[OP_COMMIT_FINISH] = apply_nothing,
};

int64_t oracle_apply(struct oracle *oracle, const struct zf_op *op)
{
	oracle->now = workload_time(op->number);
	return apply[op->kind](oracle, op);
}

/* SPDX-License-Identifier: MIT */
/* Running operations on the real filesystem, and comparing the answers with the oracle's. */
#include "support/workload.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/map/extent.h"
#include "fs/space/reclaim.h"
#include "txn/txn.h"

void workload_init(struct workload *workload, uint64_t seed, const struct workload_profile *profile)
{
	*workload = (struct workload){.profile = profile};
	zf_rng_seed(&workload->rng, seed);
	workload->oracle = oracle_new(false, WORKLOAD_EPOCH_NS);
	workload->buf = malloc(WORKLOAD_IO_MAX);
	workload->expected = malloc(WORKLOAD_IO_MAX);
	assert(workload->buf && workload->expected);
}

void workload_deinit(struct workload *workload)
{
	oracle_free(workload->oracle);
	free(workload->buf);
	free(workload->expected);
}

int64_t workload_now(void *workload)
{
	return workload_time(((struct workload *)workload)->number);
}

/* ---- running ---- */

static void tell_within(const struct workload *w, bool in)
{
	if (w->within)
		w->within(in);
}

static struct zf_ctx ctx_of(const struct zf_op *op, bool may_wait)
{
	return (struct zf_ctx){
		.uid = op->uid, .gid = op->gid, .umask = op->umask, .may_wait = may_wait};
}

static void wrong(struct workload *w, const char *what, uint64_t at)
{
	snprintf(w->wrong, sizeof(w->wrong), "%s at %" PRIu64, what, at);
}

static int64_t run_read(struct workload *w, const struct zf_ctx *ctx, const struct zf_op *op)
{
	const struct oracle_inode *inode = oracle_find(w->oracle, op->ino);
	ssize_t r = zf_fs_read(w->fs, ctx, op->ino, op->offset, w->buf, op->len);
	size_t good;

	if (r <= 0 || !inode)
		return r;
	good = oracle_data_check(&inode->data, op->offset, w->buf, (size_t)r);
	if (good < (size_t)r)
		wrong(w, "a byte is not what was written", op->offset + good);
	return r;
}

static int64_t run_write(struct workload *w, const struct zf_ctx *ctx, const struct zf_op *op)
{
	const struct oracle_inode *inode = oracle_find(w->oracle, op->ino);
	uint64_t offset = op->offset;

	if (inode && (op->flags & ZF_WRITE_APPEND))
		offset = inode->data.size;
	oracle_fill(op->number, offset, w->buf, op->len);
	return zf_fs_write(w->fs, ctx, op->ino, op->offset, w->buf, op->len, op->flags);
}

static bool is_known_entry(struct workload *w, const struct oracle_inode *dir,
			   const struct zf_dirent *dirent)
{
	const struct oracle_entry *entry;

	if (dirent->cookie <= 2)
		return dirent->type == DT_DIR &&
		       dirent->ino == (dirent->cookie == 1 ? dir->ino : dir->parent);
	entry = oracle_entry(dir, dirent->name);
	return entry && entry->ino == dirent->ino && dirent->name_len == strlen(dirent->name) &&
	       dirent->type == IFTODT(oracle_find(w->oracle, entry->ino)->mode);
}

/*
 * Reads in pieces. Cookies ascend, so no entry comes twice: if each entry is right, and the number
 * of entries too, none is missing.
 */
static int64_t run_readdir(struct workload *w, const struct zf_ctx *ctx, const struct zf_op *op)
{
	const struct oracle_inode *dir = oracle_find(w->oracle, op->ino);
	struct zf_dirent entries[20];
	uint64_t cookie = 0;
	int64_t count = 0;

	for (;;) {
		int n = zf_fs_readdir(w->fs, ctx, op->ino, cookie, entries, (unsigned int)op->len);

		if (n <= 0)
			return n < 0 ? n : count;
		for (int i = 0; i < n; i++) {
			if (entries[i].cookie <= cookie || !is_known_entry(w, dir, &entries[i]))
				wrong(w, "an entry is not what was made", entries[i].cookie);
			cookie = entries[i].cookie;
		}
		count += n;
	}
}

static int64_t run_readlink(struct workload *w, const struct zf_ctx *ctx, const struct zf_op *op)
{
	const struct oracle_inode *inode = oracle_find(w->oracle, op->ino);
	ssize_t r = zf_fs_readlink(w->fs, ctx, op->ino, (char *)w->buf, WORKLOAD_IO_MAX);

	if (r > 0 && inode->target && memcmp(w->buf, inode->target, (size_t)r) != 0)
		wrong(w, "the link's target differs", 0);
	return r;
}

static const struct oracle_acl *acl_of(const struct oracle_inode *inode, const char *name)
{
	return strcmp(name, ORACLE_ACL_ACCESS) == 0 ? &inode->access : &inode->by_default;
}

static int64_t run_getxattr(struct workload *w, const struct zf_ctx *ctx, const struct zf_op *op)
{
	const struct oracle_inode *inode = oracle_find(w->oracle, op->ino);
	ssize_t r = zf_fs_getxattr(w->fs, ctx, op->ino, op->name, w->buf, op->len);

	if (r > 0 && op->len > 0 && oracle_acl_is_name(op->name)) {
		if (oracle_acl_encode(acl_of(inode, op->name), w->expected) != (size_t)r ||
		    memcmp(w->buf, w->expected, (size_t)r) != 0)
			wrong(w, "the access control list differs", 0);
		return r;
	}
	for (unsigned int i = 0; r > 0 && op->len > 0 && i < inode->xattr_count; i++) {
		if (strcmp(inode->xattrs[i].name, op->name) != 0)
			continue;
		oracle_fill(inode->xattrs[i].write, 0, w->expected, inode->xattrs[i].len);
		if (memcmp(w->buf, w->expected, inode->xattrs[i].len) != 0)
			wrong(w, "the attribute's value differs", 0);
	}
	return r;
}

static int64_t run_setxattr(struct workload *w, const struct zf_ctx *ctx, const struct zf_op *op)
{
	if (oracle_acl_is_name(op->name))
		oracle_acl_encode(&op->acl, w->buf);
	else
		oracle_fill(op->number, 0, w->buf, op->len);
	return zf_fs_setxattr(w->fs, ctx, op->ino, op->name, w->buf, op->len, (int)op->flags);
}

static int64_t run_seek(struct workload *w, const struct zf_ctx *ctx, const struct zf_op *op)
{
	uint64_t found;
	int r = zf_fs_seek(w->fs, ctx, op->ino, op->offset, (int)op->flags, &found);

	return r < 0 ? r : (int64_t)found;
}

/* ---- a commit in steps ---- */

static void keep(struct workload *w, uint64_t dir, const char *name)
{
	const struct zf_ctx ctx = {0};
	struct zf_attr attr;

	if (name && zf_fs_lookup(w->fs, &ctx, dir, name, &attr) == 0)
		w->kept[w->kept_count++] = attr.ino;
}

/* Holds the inodes that the operation may remove. */
static void keep_victims(struct workload *w, const struct zf_op *op)
{
	if (op->kind != OP_UNLINK && op->kind != OP_RMDIR && op->kind != OP_RENAME)
		return;
	keep(w, op->dir, op->name);
	keep(w, op->dir2, op->name2);
}

static void give_back_kept(struct workload *w)
{
	while (w->kept_count > 0)
		zf_fs_forget(w->fs, w->kept[--w->kept_count], 1);
}

static int64_t run_commit_step(struct workload *w, enum zf_op_kind kind)
{
	struct zf_txn *txn = zf_fs_txn(w->fs);
	int r;

	switch (kind) {
	case OP_FREEZE:
		r = zf_txn_freeze(txn);
		w->commit = r < 0 ? COMMIT_NONE : COMMIT_FROZEN;
		w->commit_generation = zf_txn_running(txn) - 1;
		return r;
	case OP_COMMIT_WRITE:
		r = zf_txn_write(txn);
		w->commit = r < 0 ? COMMIT_NONE : COMMIT_WRITTEN;
		return r;
	default:
		r = zf_txn_finish(txn);
		w->commit = COMMIT_NONE;
		give_back_kept(w);
		return r;
	}
}

int workload_finish_commit(struct workload *workload)
{
	int64_t r = 0;

	if (workload->commit == COMMIT_FROZEN)
		r = run_commit_step(workload, OP_COMMIT_WRITE);
	if (workload->commit == COMMIT_WRITTEN)
		r = run_commit_step(workload, OP_COMMIT_FINISH);
	return (int)r;
}

/* Gives back the kernel reference that the call has counted, unless the operation keeps it. */
static int64_t release(struct workload *w, const struct zf_op *op, int r)
{
	if (r == 0 && !op->hold)
		zf_fs_forget(w->fs, op->attr.ino, 1);
	return r;
}

/* Asks the filesystem for the number of the whiteout. */
static int64_t run_rename(struct workload *w, const struct zf_ctx *ctx, struct zf_op *op)
{
	int r = zf_fs_rename(w->fs, ctx, op->dir, op->name, op->dir2, op->name2, op->flags, NULL);

	if (r < 0 || !(op->flags & RENAME_WHITEOUT))
		return r;
	tell_within(w, false);
	r = zf_fs_lookup(w->fs, ctx, op->dir, op->name, &op->attr);
	return release(w, op, r);
}

static int64_t run_setflags(struct workload *w, const struct zf_ctx *ctx, const struct zf_op *op)
{
	const struct zf_set_flags set = {.mask = UINT32_MAX, .flags = op->flags};

	return zf_fs_set_flags(w->fs, ctx, op->ino, &set);
}

/* The zone of the file's data at or behind `offset`. -ENOENT: there is none. */
static int find_zone(struct workload *w, uint64_t ino, uint64_t offset, uint32_t *ret_zone_no)
{
	struct zf_extent_reader reader;
	struct zf_extent extent;
	struct zf_inode *inode;
	int r = zf_inode_get(w->fs, ino, &inode);

	if (r < 0)
		return r;
	zf_rwlock_rdlock(&inode->lock);
	zf_extent_reader_init(&reader, inode);
	do {
		r = zf_extent_find(&reader, offset, &extent);
		offset = zf_extent_end(&extent);
	} while (r == 0 && extent.type != ZF_EXTENT_DATA);
	zf_rwlock_unlock(&inode->lock);
	zf_inode_put(inode);
	if (r == 0)
		*ret_zone_no = zf_zone_of(zf_dev_geometry(w->fs->dev), extent.address);
	return r;
}

/* Other right answers: the file is gone, there is no victim, the zone cannot be a victim, or there
 * is no room to move data. */
static int64_t run_reclaim(struct workload *w, const struct zf_op *op)
{
	struct zf_reclaim *reclaim = w->fs->reclaim;
	uint32_t zone_no;
	int r;

	if (op->flags > 0) {
		reclaim->copied = w->beside;
		reclaim->copied_arg = w->beside_arg;
	}
	if (!op->ino) {
		r = zf_reclaim_one(w->fs, ZF_RECLAIM_URGENT);
	} else {
		r = find_zone(w, op->ino, op->offset, &zone_no);
		if (r == 0)
			r = zf_reclaim_zone(w->fs, zone_no);
	}
	reclaim->copied = NULL;
	return r > 0 || r == -ENOENT || r == -ESTALE || r == -EBUSY || r == -ENOSPC ? 0 : r;
}

static int64_t call(struct workload *w, struct zf_op *op, bool may_wait)
{
	const struct zf_ctx ctx = ctx_of(op, may_wait);
	struct zf_fs *fs = w->fs;
	int r;

	switch (op->kind) {
	case OP_LOOKUP:
		return release(w, op, zf_fs_lookup(fs, &ctx, op->dir, op->name, &op->attr));
	case OP_FORGET:
		zf_fs_forget(fs, op->ino, 1);
		return 0;
	case OP_MAKE:
		r = zf_fs_make(fs, &ctx, op->dir, op->name, op->mode | op->umask, op->rdev,
			       op->target, &op->attr);
		return release(w, op, r);
	case OP_TMPFILE:
		return zf_fs_tmpfile(fs, &ctx, op->dir, op->mode | op->umask, &op->attr);
	case OP_LINK:
		r = zf_fs_link(fs, &ctx, op->ino, op->dir, op->name, &op->attr);
		return release(w, op, r);
	case OP_UNLINK:
		return zf_fs_unlink(fs, &ctx, op->dir, op->name);
	case OP_RMDIR:
		return zf_fs_rmdir(fs, &ctx, op->dir, op->name);
	case OP_RENAME:
		return run_rename(w, &ctx, op);
	case OP_READLINK:
		return run_readlink(w, &ctx, op);
	case OP_READDIR:
		return run_readdir(w, &ctx, op);
	case OP_SETATTR:
		return zf_fs_setattr(fs, &ctx, op->ino, &op->set, &op->attr);
	case OP_SETFLAGS:
		return run_setflags(w, &ctx, op);
	case OP_SETXATTR:
		return run_setxattr(w, &ctx, op);
	case OP_GETXATTR:
		return run_getxattr(w, &ctx, op);
	case OP_REMOVEXATTR:
		return zf_fs_removexattr(fs, &ctx, op->ino, op->name);
	case OP_READ:
		return run_read(w, &ctx, op);
	case OP_WRITE:
		return run_write(w, &ctx, op);
	case OP_FALLOCATE:
		return zf_fs_fallocate(fs, &ctx, op->ino, (int)op->flags, op->offset, op->len);
	case OP_COPY:
		return zf_fs_copy_range(fs, &ctx, op->from_ino, op->from_offset, op->ino,
					op->offset, op->len);
	case OP_SEEK:
		return run_seek(w, &ctx, op);
	case OP_FSYNC:
		return zf_fs_fsync(fs, &ctx, op->ino, op->flags);
	case OP_SYNCFS:
		return zf_fs_syncfs(fs, &ctx);
	case OP_STEP:
		r = zf_fs_step(fs);
		return r < 0 ? r : 0;
	case OP_RECLAIM:
		return run_reclaim(w, op);
	default:
		return run_commit_step(w, op->kind);
	}
}

static int64_t run_once(struct workload *w, struct zf_op *op, bool may_wait)
{
	int64_t r;

	tell_within(w, true);
	r = call(w, op, may_wait);
	tell_within(w, false);
	return r;
}

static bool wants_sync(const struct oracle_inode *inode)
{
	return inode && (inode->flags & (ZF_INODE_SYNC | ZF_INODE_DIRSYNC));
}

static const struct oracle_inode *child_of(struct oracle *oracle, uint64_t dir, const char *name)
{
	const struct oracle_inode *inode = oracle_find(oracle, dir);
	const struct oracle_entry *entry = inode ? oracle_entry(inode, name) : NULL;

	return entry ? oracle_find(oracle, entry->ino) : NULL;
}

static bool has_acl(struct oracle *oracle, const struct zf_op *op)
{
	const struct oracle_inode *inode = oracle_find(oracle, op->ino);

	return inode && acl_of(inode, op->name)->count > 0;
}

/* Whether one of the inodes that the operation changes, if it succeeds, has a flag that makes it
 * durable. */
static bool is_durable(struct workload *w, const struct zf_op *op)
{
	const struct oracle_inode *child = NULL, *child2 = NULL;
	struct oracle *oracle = w->oracle;

	switch (op->kind) {
	case OP_UNLINK:
	case OP_RMDIR:
		child = child_of(oracle, op->dir, op->name);
		break;
	case OP_RENAME:
		child = child_of(oracle, op->dir, op->name);
		child2 = child_of(oracle, op->dir2, op->name2);
		if (child == child2)
			return false;
		break;
	case OP_WRITE:
	case OP_COPY:
		if (op->len == 0)
			return false;
		break;
	case OP_REMOVEXATTR:
		if (oracle_acl_is_name(op->name) && !has_acl(oracle, op))
			return false;
		break;
	case OP_MAKE:
	case OP_LINK:
	case OP_SETATTR:
	case OP_SETFLAGS:
	case OP_SETXATTR:
	case OP_FALLOCATE:
		break;
	default:
		return false;
	}
	return wants_sync(oracle_find(oracle, op->ino)) ||
	       wants_sync(oracle_find(oracle, op->dir)) ||
	       wants_sync(oracle_find(oracle, op->dir2)) || wants_sync(child) || wants_sync(child2);
}

/* The operation may have needed a commit, and so ended the one under way, with or without error. */
static void note_commit(struct workload *w)
{
	struct zf_txn *txn = zf_fs_txn(w->fs);

	if (w->commit == COMMIT_NONE ||
	    (zf_txn_durable(txn) < w->commit_generation && !zf_txn_error(txn)))
		return;
	w->commit = COMMIT_NONE;
	give_back_kept(w);
}

void workload_run(struct workload *workload, struct zf_op *op)
{
	workload->wrong[0] = '\0';
	op->durable = is_durable(workload, op);
	if (workload->commit != COMMIT_NONE)
		keep_victims(workload, op);
	op->result = run_once(workload, op, op->may_wait);
	if (op->result == -EAGAIN && !op->may_wait) {
		int r = workload_finish_commit(workload);

		op->result = r < 0 ? r : run_once(workload, op, true);
	}
	note_commit(workload);
	/* Nothing was copied. */
	if (op->kind == OP_COPY && op->result == 0)
		op->durable = false;
	if (workload->verbose)
		workload_print(stderr, op);
}

/* ---- comparing ---- */

static bool complain(const struct workload *w, const struct zf_op *op, const char *what)
{
	fprintf(stderr, "%s: ", what);
	workload_print(stderr, op);
	return false;
}

static bool has_attr(const struct zf_op *op)
{
	return op->kind == OP_LOOKUP || op->kind == OP_MAKE || op->kind == OP_TMPFILE ||
	       op->kind == OP_LINK || op->kind == OP_SETATTR;
}

/* Checks the attributes that the operation returned, and the present ones of its inode. */
static const char *check_attrs(struct workload *w, const struct zf_op *op)
{
	const struct zf_ctx ctx = ctx_of(op, true);
	const struct oracle_inode *inode;
	struct zf_attr attr;
	const char *what = NULL;

	if (op->result < 0)
		return NULL;
	if (has_attr(op)) {
		inode = oracle_find(w->oracle, op->attr.ino);
		/* NULL: the reference of the lookup or link itself was the last one. */
		if (inode)
			what = workload_compare_attr(inode, &op->attr);
	}
	inode = oracle_find(w->oracle, op->ino ? op->ino : op->dir);
	if (what || !inode)
		return what;
	if (zf_fs_getattr(w->fs, &ctx, inode->ino, &attr) < 0)
		return "getattr fails";
	return workload_compare_attr(inode, &attr);
}

static bool may_lack_space(const struct workload *w, const struct zf_op *op)
{
	switch (op->kind) {
	case OP_MAKE:
	case OP_TMPFILE:
	case OP_LINK:
	case OP_RENAME:
	case OP_SETXATTR:
	case OP_WRITE:
	case OP_FALLOCATE:
	case OP_COPY:
		return w->profile->nospace;
	case OP_SETATTR:
		return w->profile->nospace && op->set.size > 0; /* P5: size 0 always succeeds */
	default:
		return false;
	}
}

bool workload_check(struct workload *workload, const struct zf_op *op)
{
	char text[96];
	const char *what;
	int64_t expected;

	if (op->result == -ENOSPC && may_lack_space(workload, op)) {
		workload->nospace++;
		return true;
	}
	expected = oracle_apply(workload->oracle, op);
	workload->done[op->kind] += op->result >= 0;
	workload->failed[op->kind] += op->result < 0;
	if (expected != op->result) {
		snprintf(text, sizeof(text), "the oracle says %" PRId64 " (%s)", expected,
			 expected < 0 ? strerrorname_np((int)-expected) : "done");
		return complain(workload, op, text);
	}
	if (workload->wrong[0])
		return complain(workload, op, workload->wrong);
	what = check_attrs(workload, op);
	return what ? complain(workload, op, what) : true;
}

void workload_remounted(struct workload *workload, struct zf_fs *fs)
{
	oracle_forget_all(workload->oracle);
	workload->fs = fs;
	workload->commit = COMMIT_NONE;
	workload->kept_count = 0;
}

/* ---- printing ---- */

static const char *const op_names[OP_KIND_COUNT] = {
	[OP_LOOKUP] = "lookup",
	[OP_FORGET] = "forget",
	[OP_MAKE] = "make",
	[OP_TMPFILE] = "tmpfile",
	[OP_LINK] = "link",
	[OP_UNLINK] = "unlink",
	[OP_RMDIR] = "rmdir",
	[OP_RENAME] = "rename",
	[OP_READLINK] = "readlink",
	[OP_READDIR] = "readdir",
	[OP_SETATTR] = "setattr",
	[OP_SETFLAGS] = "setflags",
	[OP_SETXATTR] = "setxattr",
	[OP_GETXATTR] = "getxattr",
	[OP_REMOVEXATTR] = "removexattr",
	[OP_READ] = "read",
	[OP_WRITE] = "write",
	[OP_FALLOCATE] = "fallocate",
	[OP_COPY] = "copy",
	[OP_SEEK] = "seek",
	[OP_FSYNC] = "fsync",
	[OP_SYNCFS] = "syncfs",
	[OP_STEP] = "step",
	[OP_RECLAIM] = "reclaim",
	[OP_FREEZE] = "freeze",
	[OP_COMMIT_WRITE] = "commit-write",
	[OP_COMMIT_FINISH] = "commit-finish",
};

const char *workload_op_name(enum zf_op_kind kind)
{
	return op_names[kind];
}

void workload_print(FILE *out, const struct zf_op *op)
{
	fprintf(out, "op %u: %s", op->number, op_names[op->kind]);
	if (op->name && !op->dir)
		fprintf(out, " %.20s", op->name);
	if (op->dir)
		fprintf(out, " %" PRIu64 "/%.20s", op->dir, op->name ? op->name : "");
	if (op->dir2)
		fprintf(out, " to %" PRIu64 "/%.20s", op->dir2, op->name2);
	if (op->ino)
		fprintf(out, " inode %" PRIu64, op->ino);
	if (op->from_ino)
		fprintf(out, " from inode %" PRIu64 " at %" PRIu64, op->from_ino, op->from_offset);
	if (op->mode)
		fprintf(out, " mode 0%o", op->mode);
	if (op->offset || op->len)
		fprintf(out, " [%" PRIu64 ", +%" PRIu64 ")", op->offset, op->len);
	if (op->set.valid)
		fprintf(out, " valid 0x%x", op->set.valid);
	if (op->set.valid & ZF_SET_SIZE)
		fprintf(out, " size %" PRIu64, op->set.size);
	if (op->flags)
		fprintf(out, " flags 0x%x", op->flags);
	fprintf(out, " -> %" PRId64, op->result);
	if (op->result < 0 && op->result > -4096)
		fprintf(out, " %s", strerrorname_np((int)-op->result));
	if ((op->kind == OP_MAKE || op->kind == OP_TMPFILE) && op->result == 0)
		fprintf(out, " inode %" PRIu64, op->attr.ino);
	fprintf(out, "\n");
}

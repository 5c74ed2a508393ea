/* SPDX-License-Identifier: MIT */
/*
 * Attributes. The kernel checks permissions, except for ZF_SET_SAME_OWNER. The filesystem decides
 * which other attributes change with those that are set: times, setuid and setgid, file
 * capabilities, access control lists.
 */
#include <errno.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "fs/core/inode_flags.h"
#include "fs/data/durable.h"
#include "fs/ops/attr/acl.h"
#include "fs/ops/file/file.h"
#include "fs/ops/op.h"
#include "fs/space/room.h"

#define SET_OWNER  (ZF_SET_UID | ZF_SET_GID)
#define SET_ATIMES (ZF_SET_ATIME | ZF_SET_ATIME_NOW)
#define SET_MTIMES (ZF_SET_MTIME | ZF_SET_MTIME_NOW)

static int get_attr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		    struct zf_attr *ret_attr)
{
	struct zf_inode *inode;
	int r = zf_inode_get_read(fs, ino, &inode);

	if (r < 0)
		return r;
	zf_inode_to_attr(inode, ret_attr);
	zf_inode_put_read(inode);
	return 0;
}

int zf_fs_getattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		  struct zf_attr *ret_attr)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_GETATTR, ino, 0, 0);
	int r = get_attr(fs, ctx, ino, ret_attr);

	return (int)zf_trace_ended(began, ZF_OPERATION_GETATTR, ino, r);
}

/* Returns the mode that the inode has after setuid and setgid are dropped. */
static uint32_t mode_without_suidgid(const struct zf_inode *inode, const struct zf_ctx *ctx)
{
	uint32_t mode = inode->item.mode;

	if (S_ISDIR(mode))
		return mode;
	mode &= ~(uint32_t)S_ISUID;
	/*
	 * Without the group's execute bit, setgid grants nothing until that bit is set. So setgid
	 * stays if the caller is root or a member of the group. (Of the caller's groups only
	 * ctx->gid is known.)
	 */
	if ((mode & S_IXGRP) || (ctx->uid != 0 && ctx->gid != inode->item.gid))
		mode &= ~(uint32_t)S_ISGID;
	return mode;
}

bool zf_inode_kill_suidgid(struct zf_inode *inode, const struct zf_ctx *ctx)
{
	uint32_t mode = mode_without_suidgid(inode, ctx);

	if (mode == inode->item.mode)
		return false;
	inode->item.mode = mode;
	return true;
}

/* ---- setattr ---- */

static bool time_is_valid(const struct zf_setattr *set, unsigned int bit,
			  const struct zf_time *time)
{
	return !(set->valid & bit) || time->nanoseconds < 1000000000;
}

static int check_set(const struct zf_setattr *set)
{
	if (!time_is_valid(set, ZF_SET_ATIME, &set->atime) ||
	    !time_is_valid(set, ZF_SET_MTIME, &set->mtime) ||
	    !time_is_valid(set, ZF_SET_CTIME, &set->ctime))
		return -EINVAL;
	/* chown(2) reads -1 as "do not change", so no inode can have the owner -1. */
	if (((set->valid & ZF_SET_UID) && set->uid == UINT32_MAX) ||
	    ((set->valid & ZF_SET_GID) && set->gid == UINT32_MAX))
		return -EINVAL;
	return (set->valid & ZF_SET_SIZE) && set->size > ZF_FILE_SIZE_MAX ? -EFBIG : 0;
}

static int check_type(const struct zf_inode *inode, const struct zf_setattr *set)
{
	if (!(set->valid & ZF_SET_SIZE) || inode->type == S_IFREG)
		return 0;
	return inode->type == S_IFDIR ? -EISDIR : -EINVAL;
}

/* Sets all attributes but the size. */
static void apply(const struct zf_op *op, struct zf_inode *inode, const struct zf_setattr *set)
{
	struct zf_inode_item *item = &inode->item;
	struct zf_time now = op->now;

	if (set->valid & (SET_OWNER | ZF_SET_SAME_OWNER | ZF_SET_KILL_SUIDGID))
		zf_inode_kill_suidgid(inode, op->ctx);
	if (set->valid & ZF_SET_MODE)
		item->mode = (item->mode & S_IFMT) | (set->mode & 07777);
	if (set->valid & ZF_SET_UID)
		item->uid = set->uid;
	if (set->valid & ZF_SET_GID)
		item->gid = set->gid;
	if (set->valid & SET_ATIMES)
		item->atime = set->valid & ZF_SET_ATIME_NOW ? now : set->atime;
	if (set->valid & SET_MTIMES)
		item->mtime = set->valid & ZF_SET_MTIME_NOW ? now : set->mtime;
	item->ctime = set->valid & ZF_SET_CTIME ? set->ctime : now;
}

static int set_once(struct zf_op *op, uint64_t ino, const struct zf_setattr *set,
		    struct zf_attr *ret_attr)
{
	struct zf_acl_chmod chmod = {.edits = 0};
	struct zf_inode *inode;
	int r = zf_op_begin(op, ino, &inode);

	if (r < 0)
		return r;
	if (set->valid & ZF_SET_MODE)
		r = zf_acl_prepare_chmod(inode, set->mode, &chmod);
	/* The change takes almost no room, and chmod should work on a full filesystem. */
	if (r == 0)
		r = zf_op_join(op, ZF_RESERVE_FREEING, 1 + chmod.edits);
	if (r != 0)
		return r;
	apply(op, inode, set);
	r = zf_op_store(op, inode);
	if (r == 0)
		r = zf_acl_chmod(op, &chmod);
	if (r == 0)
		zf_inode_to_attr(inode, ret_attr);
	return zf_op_leave(op, r, "setting attributes");
}

static int set_attributes(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
			  const struct zf_setattr *set, struct zf_attr *ret_attr)
{
	struct zf_op op = ZF_OP(fs, ctx);
	int r;

	do {
		r = set_once(&op, ino, set, ret_attr);
	} while (zf_op_again(&op, &r));
	return r;
}

static int compare_times(const struct zf_time *a, const struct zf_time *b)
{
	if (a->seconds != b->seconds)
		return a->seconds < b->seconds ? -1 : 1;
	return (a->nanoseconds > b->nanoseconds) - (a->nanoseconds < b->nanoseconds);
}

/*
 * Returns whether both times are set to "now", which every process that may write the file may ask
 * for. A kernel that keeps the times of its writes (ZF_WRITE_CACHE) sends that time itself, as
 * mtime and as ctime.
 */
static bool is_touch(const struct zf_setattr *set)
{
	const unsigned int now = ZF_SET_ATIME_NOW | ZF_SET_MTIME_NOW;
	const unsigned int kept = ZF_SET_MTIME | ZF_SET_CTIME;

	return set->valid == now || ((set->valid & ~(unsigned int)ZF_SET_ATIME_NOW) == kept &&
				     compare_times(&set->mtime, &set->ctime) == 0);
}

/*
 * Returns whether a kernel that keeps the times of its writes (ZF_WRITE_CACHE) sends times that are
 * not newer than the inode's last change. Such writes were made before the inode's flags were set.
 */
static bool is_late(const struct zf_inode *inode, const struct zf_setattr *set)
{
	return set->valid == (ZF_SET_MTIME | ZF_SET_CTIME) &&
	       compare_times(&set->ctime, &inode->item.ctime) <= 0;
}

static int check_flags_locked(const struct zf_inode *inode, const struct zf_setattr *set)
{
	if (is_late(inode, set))
		return 0;
	return is_touch(set) ? zf_inode_check_write(inode, inode->item.size)
			     : zf_inode_check_change(inode);
}

static int check_owner_locked(const struct zf_inode *inode, const struct zf_ctx *ctx,
			      const struct zf_setattr *set)
{
	if (!(set->valid & ZF_SET_SAME_OWNER) || ctx->uid == 0 || ctx->uid == inode->item.uid ||
	    ctx->may_as_owner)
		return 0;
	return mode_without_suidgid(inode, ctx) == inode->item.mode ? 0 : -EPERM;
}

/*
 * Checks that the caller and the inode's flags permit the change. *ret_sync: the flags ask for a
 * sync.
 */
static int check_inode(struct zf_inode *inode, const struct zf_ctx *ctx,
		       const struct zf_setattr *set, bool *ret_sync)
{
	int r;

	zf_rwlock_rdlock(&inode->lock);
	r = check_owner_locked(inode, ctx, set);
	if (r == 0)
		r = check_flags_locked(inode, set);
	*ret_sync = zf_inode_is_sync(inode);
	zf_rwlock_unlock(&inode->lock);
	return r;
}

static int set_size(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t size,
		    struct zf_attr *ret_attr)
{
	struct zf_room_search search = {0};
	enum zf_reserve_class class;
	int r;

	do {
		zf_rwlock_wrlock(&inode->lock);
		class = size > inode->item.size ? ZF_RESERVE_NORMAL : ZF_RESERVE_FREEING;
		r = zf_file_set_size(inode, ctx, size);
		zf_inode_to_attr(inode, ret_attr);
		zf_rwlock_unlock(&inode->lock);
	} while (r == -ENOSPC && ctx->may_wait && zf_room_wait(inode->fs, class, &search));
	return r;
}

/*
 * Sets the parts one after the other. Parts that take privileges away come before the size. Given
 * times come after it, because a change of the size sets times of its own. The whole may end with
 * -EAGAIN and be repeated, so each part may be set more than once.
 */
static int set_in_turn(struct zf_inode *inode, const struct zf_ctx *ctx,
		       const struct zf_setattr *set, struct zf_attr *ret_attr)
{
	const unsigned int last = SET_ATIMES | SET_MTIMES | ZF_SET_CTIME;
	struct zf_setattr part = *set;
	int r = 0;

	if (set->valid & (SET_OWNER | ZF_SET_SIZE) && inode->type != S_IFDIR)
		r = zf_xattr_drop_capability(inode, ctx);
	if (r < 0 || !(set->valid & ZF_SET_SIZE))
		return r < 0 ? r : set_attributes(inode->fs, ctx, inode->ino, set, ret_attr);
	part.valid = set->valid & ~(last | ZF_SET_SIZE);
	if (part.valid)
		r = set_attributes(inode->fs, ctx, inode->ino, &part, ret_attr);
	if (r == 0)
		r = set_size(inode, ctx, set->size, ret_attr);
	part.valid = set->valid & last;
	if (r == 0 && part.valid)
		r = set_attributes(inode->fs, ctx, inode->ino, &part, ret_attr);
	return r;
}

static int set_attr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		    const struct zf_setattr *set, struct zf_attr *ret_attr)
{
	struct zf_inode *inode;
	bool sync;
	int r;

	if (set->valid == 0)
		return get_attr(fs, ctx, ino, ret_attr);
	if (fs->read_only)
		return -EROFS;
	r = check_set(set);
	if (r == 0)
		r = zf_inode_get(fs, ino, &inode);
	if (r < 0)
		return r;
	r = check_type(inode, set);
	if (r == 0)
		r = check_inode(inode, ctx, set, &sync);
	if (r == 0 && sync && !ctx->may_wait)
		r = -EAGAIN;
	if (r == 0)
		r = set_in_turn(inode, ctx, set, ret_attr);
	if (r == 0 && sync && (set->valid & ZF_SET_SIZE))
		r = zf_durable_inode(inode, ctx, false);
	zf_inode_put(inode);
	return r;
}

int zf_fs_setattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		  const struct zf_setattr *set, struct zf_attr *ret_attr)
{
	uint64_t size = set->valid & ZF_SET_SIZE ? set->size : 0;
	uint64_t began = zf_trace_began(ZF_OPERATION_SETATTR, ino, size, 0);
	int r = set_attr(fs, ctx, ino, set, ret_attr);

	return (int)zf_trace_ended(began, ZF_OPERATION_SETATTR, ino, r);
}

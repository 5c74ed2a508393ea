/* SPDX-License-Identifier: MIT */
/*
 * Attributes. Permission is the kernel's business; what is left to a filesystem is which other
 * attributes change with those that are set: times, setuid and setgid, file capabilities, access
 * control lists.
 */
#include <errno.h>
#include <sys/stat.h>

#include "fs/acl.h"
#include "fs/op.h"

#define SET_OWNER    (ZF_SET_UID | ZF_SET_GID)
#define SET_NON_SIZE (ZF_SET_MODE | SET_OWNER)

int zf_fs_getattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		  struct zf_attr *ret_attr)
{
	struct zf_inode *inode;
	int r = zf_inode_get(fs, ino, &inode);

	if (r < 0)
		return r;
	zf_rwlock_rdlock(&inode->lock);
	zf_inode_to_attr(inode, ret_attr);
	zf_rwlock_unlock(&inode->lock);
	zf_inode_put(inode);
	return 0;
}

bool zf_inode_kill_suidgid(struct zf_inode *inode)
{
	uint32_t mode = inode->item.mode;

	if (S_ISDIR(mode))
		return false;
	mode &= ~(uint32_t)S_ISUID;
	/* Without the group's x, setgid once meant mandatory locking: it grants nothing. */
	if (mode & S_IXGRP)
		mode &= ~(uint32_t)S_ISGID;
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
	/* -1 means "leave it" in chown(2): no inode can have it. */
	if (((set->valid & ZF_SET_UID) && set->uid == UINT32_MAX) ||
	    ((set->valid & ZF_SET_GID) && set->gid == UINT32_MAX))
		return -EINVAL;
	return (set->valid & ZF_SET_SIZE) && set->size > ZF_FILE_SIZE_MAX ? -EFBIG : 0;
}

static int check_type(const struct zf_inode *inode, const struct zf_setattr *set)
{
	if (!(set->valid & ZF_SET_SIZE) || S_ISREG(inode->item.mode))
		return 0;
	return S_ISDIR(inode->item.mode) ? -EISDIR : -EINVAL;
}

static void apply_times(struct zf_inode_item *item, const struct zf_setattr *set,
			struct zf_time now)
{
	if (set->valid & ZF_SET_ATIME_NOW)
		item->atime = now;
	else if (set->valid & ZF_SET_ATIME)
		item->atime = set->atime;
	if (set->valid & ZF_SET_MTIME)
		item->mtime = set->mtime;
	if (set->valid & (ZF_SET_MTIME_NOW | ZF_SET_SIZE) && !(set->valid & ZF_SET_MTIME))
		item->mtime = now;
	item->ctime = set->valid & ZF_SET_CTIME ? set->ctime : now;
}

/* Everything but the size. */
static void apply(struct zf_inode *inode, const struct zf_setattr *set, struct zf_time now)
{
	struct zf_inode_item *item = &inode->item;

	if (set->valid & (SET_OWNER | ZF_SET_KILL_SUIDGID))
		zf_inode_kill_suidgid(inode);
	if (set->valid & ZF_SET_MODE)
		item->mode = (item->mode & S_IFMT) | (set->mode & 07777);
	if (set->valid & ZF_SET_UID)
		item->uid = set->uid;
	if (set->valid & ZF_SET_GID)
		item->gid = set->gid;
	apply_times(item, set, now);
}

static int set_once(struct zf_op *op, uint64_t ino, const struct zf_setattr *set,
		    struct zf_attr *ret_attr)
{
	struct zf_acl_chmod chmod = {.edits = 0};
	struct zf_inode *inode;
	int r = zf_op_check_writable(op);

	if (r == 0)
		r = zf_op_get(op, ino, &inode);
	if (r < 0)
		return r;
	zf_op_lock(op);
	if (set->valid & ZF_SET_MODE)
		r = zf_acl_prepare_chmod(inode, set->mode, &chmod);
	/* It takes next to no room, and chmod on a full filesystem should work. */
	if (r == 0)
		r = zf_op_join(op, ZF_RESERVE_FREEING, 1 + chmod.edits);
	if (r != 0)
		return r;
	apply(inode, set, op->now);
	r = zf_op_store(op, inode);
	if (r == 0)
		r = zf_acl_chmod(op, &chmod);
	if (r == 0)
		zf_inode_to_attr(inode, ret_attr);
	return zf_op_leave(op, r, "setting attributes");
}

/* The size, and the times that change with it: in transactions of its own. Inode locked. */
static int set_size(struct zf_inode *inode, const struct zf_ctx *ctx, const struct zf_setattr *set)
{
	struct zf_inode_item before = inode->item;
	int r;

	apply(inode, set, zf_fs_now(inode->fs));
	r = zf_data_set_size(inode, ctx, set->size);
	if (r < 0) {
		before.size = inode->item.size;
		before.bytes = inode->item.bytes;
		inode->item = before;
	}
	return r;
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

/* Everything, one after the other: what takes privileges away comes first. */
static int set_all(struct zf_inode *inode, const struct zf_ctx *ctx, const struct zf_setattr *set,
		   struct zf_attr *ret_attr)
{
	struct zf_setattr rest = *set;
	int r = 0;

	if (set->valid & (SET_OWNER | ZF_SET_SIZE) && !S_ISDIR(inode->item.mode))
		r = zf_xattr_drop_capability(inode, ctx);
	if (r < 0)
		return r;
	if (!(set->valid & ZF_SET_SIZE))
		return set_attributes(inode->fs, ctx, inode->ino, set, ret_attr);
	if (set->valid & SET_NON_SIZE) {
		rest.valid &= ~(unsigned int)ZF_SET_SIZE;
		r = set_attributes(inode->fs, ctx, inode->ino, &rest, ret_attr);
		rest.valid = set->valid & ~(unsigned int)SET_NON_SIZE;
	}
	if (r < 0)
		return r;
	zf_rwlock_wrlock(&inode->lock);
	r = set_size(inode, ctx, &rest);
	zf_inode_to_attr(inode, ret_attr);
	zf_rwlock_unlock(&inode->lock);
	return r;
}

int zf_fs_setattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		  const struct zf_setattr *set, struct zf_attr *ret_attr)
{
	struct zf_inode *inode;
	int r;

	if (set->valid == 0)
		return zf_fs_getattr(fs, ctx, ino, ret_attr);
	if (fs->read_only)
		return -EROFS;
	r = check_set(set);
	if (r == 0)
		r = zf_inode_get(fs, ino, &inode);
	if (r < 0)
		return r;
	r = check_type(inode, set);
	if (r == 0)
		r = set_all(inode, ctx, set, ret_attr);
	zf_inode_put(inode);
	return r;
}

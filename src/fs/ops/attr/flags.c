/* SPDX-License-Identifier: MIT */
/* Opening a file, which its flags may forbid, and setting flags. */
#include <errno.h>

#include "alloc/reserve.h"
#include "fs/core/inode_flags.h"
#include "fs/ops/op.h"

int zf_fs_open(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, int flags,
	       struct zf_attr *ret_attr)
{
	struct zf_inode *inode;
	int r = zf_inode_get_read(fs, ino, &inode);

	if (r < 0)
		return r;
	r = zf_inode_check_open(inode, flags);
	if (r == 0)
		zf_inode_to_attr(inode, ret_attr);
	zf_inode_put_read(inode);
	return r;
}

/* ---- set ---- */

static int check_set(const struct zf_inode *inode, uint32_t flags, uint32_t project)
{
	const struct zf_inode_item *item = &inode->item;

	/* While an inode stays immutable, nothing else of it changes, not even its other flags. */
	if ((item->flags & flags & ZF_INODE_IMMUTABLE) == 0)
		return 0;
	return flags != item->flags || project != item->project ? -EPERM : 0;
}

static int set_once(struct zf_op *op, uint64_t ino, const struct zf_set_flags *set)
{
	struct zf_inode *inode;
	uint32_t flags, project;
	int r = zf_op_begin(op, ino, &inode);

	if (r < 0)
		return r;
	flags = (inode->item.flags & ~set->mask) | (set->flags & set->mask);
	flags &= zf_inode_flags_of_type(inode->item.mode);
	project = set->set_project ? set->project : inode->item.project;
	r = check_set(inode, flags, project);
	if (r == 0)
		r = zf_op_join(op, ZF_RESERVE_FREEING, 1);
	if (r != 0)
		return r;
	inode->item.flags = flags;
	inode->item.project = project;
	inode->item.ctime = op->now;
	r = zf_op_store(op, inode);
	return zf_op_leave(op, r, "setting flags");
}

static int set_flags(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		     const struct zf_set_flags *set)
{
	struct zf_op op = ZF_OP(fs, ctx);
	int r;

	if (set->flags & set->mask & ~(uint32_t)ZF_INODE_FLAGS_DIR)
		return -EOPNOTSUPP;
	if (set->set_project && set->project == UINT32_MAX)
		return -EINVAL;
	do {
		r = set_once(&op, ino, set);
	} while (zf_op_again(&op, &r));
	return r;
}

int zf_fs_set_flags(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		    const struct zf_set_flags *set)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_SET_FLAGS, ino, 0, 0);
	int r = set_flags(fs, ctx, ino, set);

	return (int)zf_trace_ended(began, ZF_OPERATION_SET_FLAGS, ino, r);
}

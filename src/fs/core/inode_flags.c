/* SPDX-License-Identifier: MIT */
#include "fs/core/inode_flags.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "fs/ops/op.h"

#define PROTECTED (ZF_INODE_IMMUTABLE | ZF_INODE_APPEND)
/* As on ext4: nobody wants every new file in a protected directory protected. */
#define INHERITED                                                                                  \
	(ZF_INODE_SYNC | ZF_INODE_NODUMP | ZF_INODE_NOATIME | ZF_INODE_DIRSYNC |                   \
	 ZF_INODE_PROJINHERIT)

uint32_t zf_inode_flags_of_type(uint32_t mode)
{
	if (S_ISDIR(mode))
		return ZF_INODE_FLAGS_DIR;
	return S_ISREG(mode) ? ZF_INODE_FLAGS_FILE : ZF_INODE_FLAGS_OTHER;
}

/* ---- what they forbid ---- */

static bool has(const struct zf_inode *inode, uint32_t flags)
{
	return (inode->item.flags & flags) != 0;
}

int zf_inode_check_write(const struct zf_inode *inode, uint64_t offset)
{
	if (has(inode, ZF_INODE_IMMUTABLE))
		return -EPERM;
	return has(inode, ZF_INODE_APPEND) && offset < inode->item.size ? -EPERM : 0;
}

int zf_inode_check_change(const struct zf_inode *inode)
{
	return has(inode, PROTECTED) ? -EPERM : 0;
}

int zf_inode_check_add(const struct zf_inode *dir)
{
	return has(dir, ZF_INODE_IMMUTABLE) ? -EPERM : 0;
}

int zf_inode_check_remove(const struct zf_inode *dir, const struct zf_inode *child)
{
	return has(dir, PROTECTED) || has(child, PROTECTED) ? -EPERM : 0;
}

int zf_inode_check_project(const struct zf_inode *dir, const struct zf_inode *inode)
{
	return has(dir, ZF_INODE_PROJINHERIT) && dir->item.project != inode->item.project ? -EXDEV
											  : 0;
}

/* ---- what they ask for ---- */

void zf_inode_inherit_flags(const struct zf_inode *dir, struct zf_inode *inode)
{
	inode->item.flags = dir->item.flags & INHERITED & zf_inode_flags_of_type(inode->item.mode);
	if (has(dir, ZF_INODE_PROJINHERIT))
		inode->item.project = dir->item.project;
}

bool zf_inode_is_sync(const struct zf_inode *inode)
{
	if (inode->fs->options.sync_names && inode->type == S_IFDIR)
		return true;
	return has(inode, ZF_INODE_SYNC | ZF_INODE_DIRSYNC);
}

/* ---- open ---- */

static int check_open(const struct zf_inode *inode, int flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	if (has(inode, ZF_INODE_IMMUTABLE) && (writes || (flags & O_TRUNC)))
		return -EPERM;
	if (has(inode, ZF_INODE_APPEND) && ((writes && !(flags & O_APPEND)) || (flags & O_TRUNC)))
		return -EPERM;
	return 0;
}

int zf_fs_open(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, int flags,
	       struct zf_attr *ret_attr)
{
	struct zf_inode *inode;
	int r = zf_inode_get(fs, ino, &inode);

	if (r < 0)
		return r;
	zf_rwlock_rdlock(&inode->lock);
	r = check_open(inode, flags);
	if (r == 0)
		zf_inode_to_attr(inode, ret_attr);
	zf_rwlock_unlock(&inode->lock);
	zf_inode_put(inode);
	return r;
}

/* ---- set ---- */

static int check_set(const struct zf_inode *inode, uint32_t flags, uint32_t project)
{
	const struct zf_inode_item *item = &inode->item;

	/* While it stays immutable nothing else changes, not even its other flags. */
	if ((item->flags & flags & ZF_INODE_IMMUTABLE) == 0)
		return 0;
	return flags != item->flags || project != item->project ? -EPERM : 0;
}

static int set_once(struct zf_op *op, uint64_t ino, const struct zf_set_flags *set)
{
	struct zf_inode *inode;
	uint32_t flags, project;
	int r = zf_op_check_writable(op);

	if (r == 0)
		r = zf_op_get(op, ino, &inode);
	if (r < 0)
		return r;
	zf_op_lock(op);
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

int zf_fs_set_flags(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
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

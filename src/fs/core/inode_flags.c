/* SPDX-License-Identifier: MIT */
#include "fs/core/inode_flags.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define PROTECTED (ZF_INODE_IMMUTABLE | ZF_INODE_APPEND)
/* As on ext4: IMMUTABLE and APPEND of a directory are not meant for every new file in it. */
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

int zf_inode_check_open(const struct zf_inode *inode, int flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	if (has(inode, ZF_INODE_IMMUTABLE) && (writes || (flags & O_TRUNC)))
		return -EPERM;
	if (has(inode, ZF_INODE_APPEND) && ((writes && !(flags & O_APPEND)) || (flags & O_TRUNC)))
		return -EPERM;
	return 0;
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

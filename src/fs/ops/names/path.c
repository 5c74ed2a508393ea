/* SPDX-License-Identifier: MIT */
#include "fs/core/path.h"

#include "fs/core/inode.h"

int zf_fs_path(struct zf_fs *fs, uint64_t ino, char *buf, size_t size)
{
	struct zf_item_check check;

	zf_fs_get_item_check(fs, &check);
	return zf_path_find(fs->forest, &check, ino, buf, size);
}

/* SPDX-License-Identifier: MIT */
/* The label of a mounted filesystem. */
#include <errno.h>
#include <string.h>

#include "fs/core/inode.h"
#include "fs/mount/change.h"

int zf_fs_set_label(struct zf_fs *fs, const char *label)
{
	char padded[ZF_SUPER_LABEL_SIZE] = "";
	size_t len = strnlen(label, sizeof(padded));
	int r;

	if (len == sizeof(padded))
		return -EINVAL;
	memcpy(padded, label, len);
	if (!zf_super_label_is_valid(padded))
		return -EINVAL;
	r = zf_change_begin(fs);
	if (r < 0)
		return r;
	r = zf_txn_set_label(fs->txn, padded);
	zf_change_end(fs);
	return r;
}

void zf_fs_get_label(struct zf_fs *fs, char ret_label[ZF_SUPER_LABEL_SIZE])
{
	zf_txn_get_label(fs->txn, ret_label);
}

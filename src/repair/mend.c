/* SPDX-License-Identifier: MIT */
#include "repair/mend.h"

#include <string.h>
#include <sys/stat.h>

#include "fs/core/inode_flags.h"

static struct zf_time fit_time(struct zf_time time)
{
	return time.nanoseconds > 999999999 ? (struct zf_time){.seconds = time.seconds} : time;
}

void zf_repair_fit_type(struct zf_inode_item *item)
{
	item->flags &= zf_inode_flags_of_type(item->mode);
	if (!S_ISCHR(item->mode) && !S_ISBLK(item->mode))
		item->rdev = 0;
	if (!S_ISDIR(item->mode))
		item->next_cookie = 0;
	if (!S_ISREG(item->mode))
		item->bytes = 0;
	if (!S_ISREG(item->mode) && !S_ISDIR(item->mode) && !S_ISLNK(item->mode))
		item->size = 0;
	if (S_ISLNK(item->mode))
		item->size = zf_max_u64(1, zf_min_u64(item->size, ZF_SYMLINK_MAX));
	if (S_ISDIR(item->mode)) {
		item->nlink = item->nlink == 1 ? 2 : item->nlink;
		item->next_cookie = zf_max_u64(ZF_COOKIE_FIRST,
					       zf_min_u64(item->next_cookie, ZF_REPAIR_COOKIE_MAX));
	} else {
		item->nlink = (uint32_t)zf_min_u64(item->nlink, ZF_LINK_MAX);
	}
}

bool zf_repair_mend_inode(const struct zf_repair *repair, const struct zf_key *key,
			  const void *value, size_t len, struct zf_disk_inode *ret_disk)
{
	uint64_t newest = repair->super.generation;
	struct zf_disk_inode disk;
	struct zf_inode_item item;

	if (len != sizeof(disk) || key->offset != 0 ||
	    (key->objectid != ZF_INO_ROOT && key->objectid < ZF_INO_FIRST))
		return false;
	memcpy(&disk, value, sizeof(disk));
	zf_item_decode_inode(&disk, &item);
	item.mode &= S_IFMT | 07777;
	if (!zf_item_has_type(item.mode) || (key->objectid == ZF_INO_ROOT && !S_ISDIR(item.mode)))
		return false;
	if (item.generation == 0 || item.generation > newest)
		item.generation = 1;
	item.change = zf_max_u64(item.generation, zf_min_u64(item.change, newest));
	item.size = zf_min_u64(item.size, ZF_FILE_SIZE_MAX);
	item.bytes = zf_min_u64(item.bytes, ZF_FILE_END_MAX);
	item.uid = item.uid == UINT32_MAX ? 0 : item.uid;
	item.gid = item.gid == UINT32_MAX ? 0 : item.gid;
	item.project = item.project == UINT32_MAX ? 0 : item.project;
	item.atime = fit_time(item.atime);
	item.mtime = fit_time(item.mtime);
	item.ctime = fit_time(item.ctime);
	item.btime = fit_time(item.btime);
	zf_repair_fit_type(&item);
	zf_item_encode_inode(&item, ret_disk);
	return true;
}

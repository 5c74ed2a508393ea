/* SPDX-License-Identifier: MIT */
/* The root directory, the only inode that no operation makes. */
#include "fs/core/inode.h"

#include <sys/stat.h>

#include "fs/core/item.h"

int zf_fs_make_root(struct zf_forest *forest, struct zf_writer *writer, uint64_t dir_hash_seed,
		    struct zf_time now, uid_t uid, gid_t gid)
{
	struct zf_inode_item item = {
		.generation = writer->generation,
		.change = writer->generation,
		.next_cookie = ZF_COOKIE_FIRST,
		.mode = S_IFDIR | 0755,
		.nlink = 2,
		.uid = uid,
		.gid = gid,
		.atime = now,
		.mtime = now,
		.ctime = now,
		.btime = now,
	};
	struct zf_disk_inode disk_inode;
	struct zf_disk_ref disk_ref = {.parent = zf_le64_from(ZF_INO_ROOT)};
	struct zf_key key = ZF_KEY(ZF_INO_ROOT, ZF_KEY_INODE, 0);
	int r;

	zf_item_encode_inode(&item, &disk_inode);
	r = zf_tree_insert(forest, writer, ZF_TREE_FS, &key, &disk_inode, sizeof(disk_inode));
	if (r < 0)
		return r;
	key = ZF_KEY(ZF_INO_ROOT, ZF_KEY_REF, zf_item_hash_ref(dir_hash_seed, ZF_INO_ROOT, "", 0));
	return zf_tree_insert(forest, writer, ZF_TREE_FS, &key, &disk_ref, sizeof(disk_ref));
}

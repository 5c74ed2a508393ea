/* SPDX-License-Identifier: MIT */
/*
 * Encoding and decoding items, and the hashes in their keys.
 *
 * Decoding trusts nothing: the caller has passed the bytes through zf_item_check()
 * (fs/core/item_check.h), which knows every field's range.
 */
#ifndef ZF_FS_ITEM_H
#define ZF_FS_ITEM_H

#include "base/bits.h"
#include "fs/core/fs_format.h"
#include "fs/core/inode.h"

void zf_item_encode_inode(const struct zf_inode_item *item, struct zf_disk_inode *ret_disk);
void zf_item_decode_inode(const struct zf_disk_inode *disk, struct zf_inode_item *ret_item);

/* Bytes of the file that an extent stands for. */
static inline uint64_t zf_item_extent_len(const struct zf_disk_extent *disk)
{
	uint64_t count = zf_le32_get(disk->count);

	return disk->type == ZF_EXTENT_INLINE ? count : count << ZF_BLOCK_SHIFT;
}

/*
 * Key offsets: _name for a name in a directory and for an attribute, _ref for a name of an inode,
 * _share for a shared extent.
 */
uint64_t zf_item_hash_name(uint64_t seed, const char *name, size_t len);
uint64_t zf_item_hash_ref(uint64_t seed, uint64_t parent, const char *name, size_t len);
uint64_t zf_item_hash_share(uint64_t seed, uint64_t ino, uint64_t offset);

#endif

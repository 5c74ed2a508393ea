/* SPDX-License-Identifier: MIT */
#include "fs/core/item.h"

#include <assert.h>

#include "base/hash.h"

static struct zf_disk_time encode_time(struct zf_time time)
{
	return (struct zf_disk_time){
		.seconds = zf_le64_from((uint64_t)time.seconds),
		.nanoseconds = zf_le32_from(time.nanoseconds),
	};
}

static struct zf_time decode_time(struct zf_disk_time disk)
{
	return (struct zf_time){
		.seconds = (int64_t)zf_le64_get(disk.seconds),
		.nanoseconds = zf_le32_get(disk.nanoseconds),
	};
}

void zf_item_encode_inode(const struct zf_inode_item *item, struct zf_disk_inode *ret_disk)
{
	*ret_disk = (struct zf_disk_inode){
		.generation = zf_le64_from(item->generation),
		.change = zf_le64_from(item->change),
		.size = zf_le64_from(item->size),
		.bytes = zf_le64_from(item->bytes),
		.rdev = zf_le64_from(item->rdev),
		.mode = zf_le32_from(item->mode),
		.nlink = zf_le32_from(item->nlink),
		.uid = zf_le32_from(item->uid),
		.gid = zf_le32_from(item->gid),
		.project = zf_le32_from(item->project),
		.flags = zf_le32_from(item->flags),
		.atime = encode_time(item->atime),
		.mtime = encode_time(item->mtime),
		.ctime = encode_time(item->ctime),
		.btime = encode_time(item->btime),
		.next_cookie = zf_le64_from(item->next_cookie),
		.tree = zf_le64_from(ZF_TREE_FS),
	};
}

void zf_item_decode_inode(const struct zf_disk_inode *disk, struct zf_inode_item *ret_item)
{
	*ret_item = (struct zf_inode_item){
		.generation = zf_le64_get(disk->generation),
		.change = zf_le64_get(disk->change),
		.size = zf_le64_get(disk->size),
		.bytes = zf_le64_get(disk->bytes),
		.rdev = zf_le64_get(disk->rdev),
		.next_cookie = zf_le64_get(disk->next_cookie),
		.mode = zf_le32_get(disk->mode),
		.nlink = zf_le32_get(disk->nlink),
		.uid = zf_le32_get(disk->uid),
		.gid = zf_le32_get(disk->gid),
		.project = zf_le32_get(disk->project),
		.flags = zf_le32_get(disk->flags),
		.atime = decode_time(disk->atime),
		.mtime = decode_time(disk->mtime),
		.ctime = decode_time(disk->ctime),
		.btime = decode_time(disk->btime),
	};
}

uint64_t zf_item_hash_name(uint64_t seed, const char *name, size_t len)
{
	return zf_hash64_seed(name, len, seed);
}

uint64_t zf_item_hash_ref(uint64_t seed, uint64_t parent, const char *name, size_t len)
{
	struct {
		struct zf_le64 parent;
		char name[ZF_NAME_MAX];
	} hashed = {.parent = zf_le64_from(parent)};

	assert(len <= ZF_NAME_MAX);
	memcpy(hashed.name, name, len);
	return zf_hash64_seed(&hashed, sizeof(hashed.parent) + len, seed);
}

uint64_t zf_item_hash_share(uint64_t seed, uint64_t ino, uint64_t offset)
{
	const struct zf_le64 hashed[] = {zf_le64_from(ino), zf_le64_from(offset)};

	return zf_hash64_seed(hashed, sizeof(hashed), seed);
}

/* SPDX-License-Identifier: MIT */
/* The names that an inode knows of itself; see fs/ops/names/dir.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fs/ops/names/dir.h"
#include "fs/core/item.h"

static size_t ref_name_len(const void *entry)
{
	const struct zf_disk_ref *ref = entry;

	return zf_le16_get(ref->name_len);
}

static size_t ref_len(const void *entry)
{
	return sizeof(struct zf_disk_ref) + ref_name_len(entry);
}

/* Names of two directories may have the same hash, so the parent is compared, too. */
static const struct zf_chain_kind ref_kind = {
	.fixed_size = sizeof(struct zf_disk_ref),
	.prefix_size = sizeof(struct zf_le64),
	.name_len = ref_name_len,
	.entry_len = ref_len,
};

void zf_dir_ref_of_new(struct zf_inode *inode, uint64_t parent, const struct zf_name *name,
		       struct zf_ref_place *ret_place)
{
	ret_place->inode = inode;
	ret_place->parent = parent;
	ret_place->name = *name;
	ret_place->exists = false;
	ret_place->chain.len = 0;
	ret_place->chain.key = ZF_KEY(
		inode->ino, ZF_KEY_REF,
		zf_item_hash_ref(inode->fs->super.dir_hash_seed, parent, name->bytes, name->len));
}

int zf_dir_ref_find(struct zf_inode *inode, uint64_t parent, const struct zf_name *name,
		    struct zf_ref_place *ret_place)
{
	struct zf_le64 prefix = zf_le64_from(parent);
	struct zf_key key;
	int r;

	zf_dir_ref_of_new(inode, parent, name, ret_place);
	key = ret_place->chain.key;
	r = zf_chain_load(inode->fs, &key, &ret_place->chain);
	if (r < 0)
		return r;
	r = zf_chain_find(&ret_place->chain, &ref_kind, &prefix, name->bytes, name->len,
			  &ret_place->at);
	ret_place->exists = r == 0;
	return 0;
}

int zf_dir_ref_check_room(const struct zf_ref_place *place)
{
	return zf_chain_has_room(place->inode->fs, &place->chain,
				 sizeof(struct zf_disk_ref) + place->name.len)
		       ? 0
		       : -ENOSPC;
}

int zf_dir_ref_add(struct zf_op *op, struct zf_ref_place *place, uint64_t cookie)
{
	struct zf_disk_ref ref = {
		.parent = zf_le64_from(place->parent),
		.cookie = zf_le64_from(cookie),
		.name_len = zf_le16_from((uint16_t)place->name.len),
	};
	uint8_t *entry;

	assert(!place->exists);
	place->at = place->chain.len;
	place->exists = true;
	entry = zf_chain_append(&place->chain, sizeof(ref) + place->name.len);
	memcpy(entry, &ref, sizeof(ref));
	memcpy(entry + sizeof(ref), place->name.bytes, place->name.len);
	return zf_chain_store(op, &place->chain);
}

int zf_dir_ref_remove(struct zf_op *op, struct zf_ref_place *place)
{
	assert(place->exists);
	place->exists = false;
	zf_chain_remove(&place->chain, place->at, sizeof(struct zf_disk_ref) + place->name.len);
	return zf_chain_store(op, &place->chain);
}

int zf_dir_ref_parent(struct zf_inode *dir, uint64_t *ret_parent)
{
	struct zf_key key = ZF_KEY(dir->ino, ZF_KEY_REF, 0);
	struct zf_chain chain;
	int r;

	r = zf_tree_lookup_ge(dir->fs->forest, ZF_TREE_FS, &key, NULL, 0, NULL);
	if (r == 0 && (key.objectid != dir->ino || key.type != ZF_KEY_REF))
		r = -ENOENT;
	if (r == 0)
		r = zf_chain_load(dir->fs, &key, &chain);
	if (r < 0)
		return r;
	*ret_parent = zf_le64_get(((const struct zf_disk_ref *)chain.bytes)->parent);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "fs/ops/attr/xattr.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "fs/core/item.h"
#include "fs/core/item_check.h"

int zf_xattr_check_name(const char *name, struct zf_name *ret_name)
{
	size_t len = strlen(name);

	if (len == 0 || len > ZF_NAME_MAX)
		return -ERANGE;
	*ret_name = (struct zf_name){.bytes = name, .len = len};
	return 0;
}

/* ---- the entry on disk ---- */

static size_t entry_name_len(const void *entry)
{
	const struct zf_disk_xattr *xattr = entry;

	return zf_le16_get(xattr->name_len);
}

size_t zf_xattr_entry_len(const void *entry)
{
	const struct zf_disk_xattr *xattr = entry;
	size_t len = sizeof(*xattr) + entry_name_len(entry);

	return zf_le32_get(xattr->value_id) == 0 ? len + zf_le32_get(xattr->value_len) : len;
}

static const struct zf_chain_kind xattr_kind = {
	.fixed_size = sizeof(struct zf_disk_xattr),
	.name_len = entry_name_len,
	.entry_len = zf_xattr_entry_len,
};

static uint32_t chunk_size(const struct zf_inode *inode)
{
	return zf_node_value_max(inode->fs->super.node_size);
}

static unsigned int chunk_count(const struct zf_inode *inode, uint32_t id, size_t len)
{
	return id == 0 ? 0 : (unsigned int)((len + chunk_size(inode) - 1) / chunk_size(inode));
}

static struct zf_key chunk_key(const struct zf_inode *inode, uint32_t id, unsigned int chunk)
{
	return ZF_KEY(inode->ino, ZF_KEY_XATTR_VALUE, (uint64_t)id << 16 | chunk);
}

/* ---- what an inode is known not to have ---- */

static unsigned int absent_bit(const struct zf_name *name)
{
	static const struct {
		const char *name;
		enum zf_absent bit;
	} known[] = {
		{"security.capability", ZF_ABSENT_CAPABILITY},
		{"system.posix_acl_access", ZF_ABSENT_ACL_ACCESS},
		{"system.posix_acl_default", ZF_ABSENT_ACL_DEFAULT},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(known); i++) {
		if (strlen(known[i].name) == name->len &&
		    memcmp(known[i].name, name->bytes, name->len) == 0)
			return known[i].bit;
	}
	return 0;
}

/* ---- find and read ---- */

static void init_place(struct zf_inode *inode, const struct zf_name *name,
		       struct zf_xattr_place *ret_place)
{
	ret_place->inode = inode;
	ret_place->name = *name;
	ret_place->exists = false;
	ret_place->value_len = ret_place->value_id = 0;
	ret_place->chain.len = 0;
	ret_place->chain.key =
		ZF_KEY(inode->ino, ZF_KEY_XATTR,
		       zf_item_hash_name(inode->fs->super.dir_hash_seed, name->bytes, name->len));
}

int zf_xattr_find(struct zf_inode *inode, const struct zf_name *name,
		  struct zf_xattr_place *ret_place)
{
	unsigned int bit = absent_bit(name);
	const struct zf_disk_xattr *xattr;
	struct zf_key key;
	int r;

	init_place(inode, name, ret_place);
	key = ret_place->chain.key;
	r = zf_chain_load(inode->fs, &key, &ret_place->chain);
	if (r < 0)
		return r;
	r = zf_chain_find(&ret_place->chain, &xattr_kind, "", name->bytes, name->len,
			  &ret_place->at);
	if (r == -ENOENT) {
		atomic_fetch_or(&inode->absent, bit);
		return 0;
	}
	xattr = (const struct zf_disk_xattr *)(ret_place->chain.bytes + ret_place->at);
	ret_place->exists = true;
	ret_place->value_len = zf_le32_get(xattr->value_len);
	ret_place->value_id = zf_le32_get(xattr->value_id);
	return 0;
}

static int read_chunk(const struct zf_xattr_place *place, unsigned int chunk, uint8_t *ret_value)
{
	const struct zf_inode *inode = place->inode;
	struct zf_key key = chunk_key(inode, place->value_id, chunk);
	size_t at = (size_t)chunk * chunk_size(inode);
	size_t expected = zf_min_u64(chunk_size(inode), place->value_len - at), len;
	int r = zf_tree_lookup(inode->fs->forest, ZF_TREE_FS, &key, ret_value + at, expected, &len);

	if (r == -ENOENT)
		len = 0;
	else if (r < 0)
		return r;
	if (len != expected)
		return zf_report_corrupt(&inode->fs->report, "attribute value of inode", inode->ino,
					 "chunk has %zu bytes, expected %zu (key offset %" PRIu64
					 ")",
					 len, expected, key.offset);
	return 0;
}

ssize_t zf_xattr_read(const struct zf_xattr_place *place, void *buf, size_t size)
{
	assert(place->exists);
	if (place->value_len > size)
		return -ERANGE;
	if (place->value_id == 0)
		memcpy(buf,
		       place->chain.bytes + place->at + sizeof(struct zf_disk_xattr) +
			       place->name.len,
		       place->value_len);
	for (unsigned int i = 0; i < chunk_count(place->inode, place->value_id, place->value_len);
	     i++) {
		int r = read_chunk(place, i, buf);

		if (r < 0)
			return r;
	}
	return place->value_len;
}

/* ---- edit ---- */

/* Finds the first id, from 1 on, that no value has. */
static int find_gap(const struct zf_inode *inode, uint32_t *ret_id)
{
	for (uint32_t id = 1;; id++) {
		struct zf_key key = chunk_key(inode, id, 0), found = key;
		int r = zf_tree_lookup_ge(inode->fs->forest, ZF_TREE_FS, &found, NULL, 0, NULL);

		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && found.objectid == key.objectid && found.type == key.type &&
		    found.offset >> 16 == id)
			continue;
		*ret_id = id;
		return 0;
	}
}

static int choose_id(const struct zf_inode *inode, uint32_t *ret_id)
{
	struct zf_key key = chunk_key(inode, UINT32_MAX, UINT16_MAX);
	uint64_t last = 0;
	int r = zf_tree_lookup_le(inode->fs->forest, ZF_TREE_FS, &key, NULL, 0, NULL);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && key.objectid == inode->ino && key.type == ZF_KEY_XATTR_VALUE)
		last = key.offset >> 16;
	if (last >= UINT32_MAX)
		return find_gap(inode, ret_id);
	*ret_id = (uint32_t)last + 1;
	return 0;
}

/* Bytes of the chain without the entry that the put replaces. */
static size_t chain_rest(const struct zf_xattr_place *place)
{
	return place->exists ? place->chain.len - zf_xattr_entry_len(place->chain.bytes + place->at)
			     : place->chain.len;
}

static bool fits_inline(const struct zf_xattr_place *place, size_t len)
{
	size_t entry = sizeof(struct zf_disk_xattr) + place->name.len + len;

	return entry <= chunk_size(place->inode) / 2 &&
	       chain_rest(place) + entry <= chunk_size(place->inode);
}

unsigned int zf_xattr_delete_edits(const struct zf_xattr_place *place)
{
	return 1 + chunk_count(place->inode, place->value_id, place->value_len);
}

int zf_xattr_prepare_put(struct zf_xattr_place *place, size_t len, unsigned int *ret_edits)
{
	unsigned int edits = zf_xattr_delete_edits(place);

	place->next_id = 0;
	if (!fits_inline(place, len)) {
		size_t entry = sizeof(struct zf_disk_xattr) + place->name.len;
		int r;

		if (chain_rest(place) + entry > chunk_size(place->inode))
			return -ENOSPC;
		r = choose_id(place->inode, &place->next_id);
		if (r < 0)
			return r;
		edits += chunk_count(place->inode, place->next_id, len);
	}
	*ret_edits = edits;
	return 0;
}

static int write_chunks(struct zf_op *op, const struct zf_xattr_place *place, const uint8_t *value,
			size_t len)
{
	for (unsigned int i = 0; i < chunk_count(place->inode, place->next_id, len); i++) {
		struct zf_key key = chunk_key(place->inode, place->next_id, i);
		size_t at = (size_t)i * chunk_size(place->inode);
		int r = zf_op_insert(op, &key, value + at,
				     zf_min_u64(chunk_size(place->inode), len - at));

		if (r < 0)
			return r;
	}
	return 0;
}

static int delete_chunks(struct zf_op *op, const struct zf_xattr_place *place)
{
	for (unsigned int i = 0; i < chunk_count(place->inode, place->value_id, place->value_len);
	     i++) {
		struct zf_key key = chunk_key(place->inode, place->value_id, i);
		int r = zf_op_delete(op, &key);

		/* A damaged value can be deleted, too. */
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

static void append_entry(struct zf_xattr_place *place, const void *value, size_t len)
{
	struct zf_disk_xattr xattr = {
		.value_len = zf_le32_from((uint32_t)len),
		.value_id = zf_le32_from(place->next_id),
		.name_len = zf_le16_from((uint16_t)place->name.len),
	};
	size_t inline_len = place->next_id == 0 ? len : 0;
	uint8_t *entry =
		zf_chain_append(&place->chain, sizeof(xattr) + place->name.len + inline_len);

	memcpy(entry, &xattr, sizeof(xattr));
	memcpy(entry + sizeof(xattr), place->name.bytes, place->name.len);
	if (inline_len > 0)
		memcpy(entry + sizeof(xattr) + place->name.len, value, inline_len);
}

int zf_xattr_put(struct zf_op *op, struct zf_xattr_place *place, const void *value, size_t len)
{
	int r = write_chunks(op, place, value, len);

	if (r < 0)
		return r;
	if (place->exists)
		zf_chain_remove(&place->chain, place->at,
				zf_xattr_entry_len(place->chain.bytes + place->at));
	append_entry(place, value, len);
	r = zf_chain_store(op, &place->chain);
	if (r == 0)
		r = delete_chunks(op, place);
	if (r == 0)
		atomic_fetch_and(&place->inode->absent, ~absent_bit(&place->name));
	return r;
}

int zf_xattr_delete(struct zf_op *op, struct zf_xattr_place *place)
{
	int r;

	assert(place->exists);
	zf_chain_remove(&place->chain, place->at,
			zf_xattr_entry_len(place->chain.bytes + place->at));
	r = zf_chain_store(op, &place->chain);
	return r < 0 ? r : delete_chunks(op, place);
}

/* SPDX-License-Identifier: MIT */
#include "btree/node.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "btree/packed.h"

#define HEADER_SIZE ((uint32_t)sizeof(struct zf_disk_node_header))

static struct zf_disk_item *items_of(void *node)
{
	return (void *)((char *)node + HEADER_SIZE);
}

static const struct zf_disk_item *items_of_const(const void *node)
{
	return (const void *)((const char *)node + HEADER_SIZE);
}

static struct zf_disk_child *children_of(void *node)
{
	return (void *)((char *)node + HEADER_SIZE);
}

static const struct zf_disk_child *children_of_const(const void *node)
{
	return (const void *)((const char *)node + HEADER_SIZE);
}

static void set_count(void *node, unsigned int count)
{
	((struct zf_disk_node_header *)node)->count = zf_le32_from(count);
}

/* Both kinds of entries begin with their key. */
static inline size_t entry_size(const void *node)
{
	return zf_node_level(node) == 0 ? sizeof(struct zf_disk_item)
					: sizeof(struct zf_disk_child);
}

static struct zf_disk_node_ptr ptr_put(const struct zf_node_ptr *ptr)
{
	return (struct zf_disk_node_ptr){
		.address = {zf_le64_from(ptr->address[0]), zf_le64_from(ptr->address[1])},
		.generation = zf_le64_from(ptr->generation),
		.csum = zf_le64_from(ptr->csum),
	};
}

/* Where the values of a leaf begin: free space ends there. */
static uint32_t values_start(const void *node, uint32_t node_size)
{
	unsigned int count = zf_node_count(node);

	return count > 0 ? zf_le16_get(items_of_const(node)[count - 1].offset) : node_size;
}

/* Where the value of `slot` ends, or would end if it were inserted. */
static uint32_t value_end(const void *node, uint32_t node_size, unsigned int slot)
{
	return slot > 0 ? zf_le16_get(items_of_const(node)[slot - 1].offset) : node_size;
}

static void shift_offsets(struct zf_disk_item *item, unsigned int n, int32_t by)
{
	for (unsigned int i = 0; i < n; i++) {
		int32_t offset = (int32_t)zf_le16_get(item[i].offset) + by;

		item[i].offset = zf_le16_from((uint16_t)offset);
	}
}

uint64_t zf_node_csum(const void *node, uint32_t node_size)
{
	uint64_t csum = zf_hash64((const char *)node + 8, node_size - 8);

	return csum != 0 ? csum : 1;
}

struct zf_key zf_node_key(const void *node, unsigned int slot)
{
	const char *entries = (const char *)node + HEADER_SIZE;

	if (zf_node_is_packed(node))
		return zf_packed_key(node, slot);
	return zf_disk_key_get((const void *)(entries + slot * entry_size(node)));
}

bool zf_node_search(const void *node, const struct zf_key *key, unsigned int *ret_slot)
{
	const char *entries = (const char *)node + HEADER_SIZE;
	size_t size = entry_size(node);
	unsigned int low = 0, high = zf_node_count(node);

	if (zf_node_is_packed(node))
		return zf_packed_search(node, key, ret_slot);
	while (low < high) {
		unsigned int middle = (low + high) / 2;
		struct zf_key at = zf_disk_key_get((const void *)(entries + middle * size));
		int c = zf_key_cmp(&at, key);

		if (c == 0) {
			*ret_slot = middle;
			return true;
		}
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_slot = low;
	return false;
}

unsigned int zf_node_search_child(const void *node, const struct zf_key *key)
{
	unsigned int slot;

	if (zf_node_search(node, key, &slot) || slot == 0)
		return slot;
	return slot - 1;
}

const void *zf_node_value(const void *node, unsigned int slot, size_t *ret_len, void *scratch)
{
	const struct zf_disk_item *item = items_of_const(node) + slot;

	if (zf_node_is_packed(node))
		return zf_packed_value(node, slot, ret_len, scratch);
	*ret_len = zf_le16_get(item->size);
	return (const char *)node + zf_le16_get(item->offset);
}

struct zf_node_ptr zf_node_child(const void *node, unsigned int slot)
{
	const struct zf_disk_node_ptr *disk = &children_of_const(node)[slot].ptr;

	return (struct zf_node_ptr){
		.address = {zf_le64_get(disk->address[0]), zf_le64_get(disk->address[1])},
		.generation = zf_le64_get(disk->generation),
		.csum = zf_le64_get(disk->csum),
	};
}

struct zf_node_expect zf_node_expect_child(const struct zf_node_expect *expect, const void *node,
					   unsigned int slot)
{
	struct zf_node_expect child = {
		.ptr = zf_node_child(node, slot),
		.owner = expect->owner,
		.level = (uint8_t)(expect->level - 1),
		.first_key = zf_node_key(node, slot),
		.check_first_key = true,
		.next_key = expect->next_key,
		.check_next_key = expect->check_next_key,
	};

	if (slot + 1 < zf_node_count(node)) {
		child.next_key = zf_node_key(node, slot + 1);
		child.check_next_key = true;
	}
	return child;
}

uint32_t zf_node_capacity(uint32_t node_size)
{
	return node_size - HEADER_SIZE;
}

uint32_t zf_node_used_by(const void *node, uint32_t node_size, unsigned int first, unsigned int n)
{
	uint32_t used = n * (uint32_t)entry_size(node);

	if (zf_node_is_packed(node))
		return zf_packed_used_by(node, n);
	if (zf_node_level(node) == 0 && n > 0)
		used += value_end(node, node_size, first) - value_end(node, node_size, first + n);
	return used;
}

uint32_t zf_node_used(const void *node, uint32_t node_size)
{
	if (zf_node_is_packed(node))
		return zf_packed_used(node);
	return zf_node_used_by(node, node_size, 0, zf_node_count(node));
}

unsigned int zf_node_children_max(uint32_t node_size)
{
	return zf_node_capacity(node_size) / (uint32_t)sizeof(struct zf_disk_child);
}

static void set_identity(struct zf_disk_node_header *header, const uint64_t address[ZF_COPIES_MAX],
			 uint64_t generation)
{
	header->csum = zf_le64_from(0);
	for (unsigned int i = 0; i < ZF_COPIES_MAX; i++)
		header->address[i] = zf_le64_from(address[i]);
	header->generation = zf_le64_from(generation);
}

void zf_node_init(void *node, const struct zf_node_shape *shape, enum zf_tree_id owner,
		  uint8_t level, const uint64_t address[ZF_COPIES_MAX], uint64_t generation)
{
	struct zf_disk_node_header *header = node;

	memset(node, 0, shape->node_size);
	memcpy(header->magic, ZF_NODE_MAGIC, sizeof(header->magic));
	memcpy(header->fsid, shape->fsid, sizeof(header->fsid));
	header->level = level;
	header->owner = zf_le64_from(owner);
	set_identity(header, address, generation);
}

void zf_node_copy(void *dst, const void *src, const struct zf_node_shape *shape,
		  const uint64_t address[ZF_COPIES_MAX], uint64_t generation)
{
	size_t skip = sizeof(((struct zf_disk_node_header *)0)->csum);

	/* The commit may be writing the csum of a frozen src at this moment. */
	memcpy((char *)dst + skip, (const char *)src + skip, shape->node_size - skip);
	set_identity(dst, address, generation);
}

void zf_node_set_csum(void *node, uint64_t csum)
{
	((struct zf_disk_node_header *)node)->csum = zf_le64_from(csum);
}

static void insert_plain(void *node, uint32_t node_size, unsigned int slot,
			 const struct zf_key *key, const void *value, size_t len)
{
	struct zf_disk_item *item = items_of(node) + slot;
	unsigned int count = zf_node_count(node);
	uint32_t start = values_start(node, node_size), end = value_end(node, node_size, slot);
	char *bytes = node;

	assert(slot <= count && len <= UINT16_MAX);
	assert(zf_node_used(node, node_size) + sizeof(*item) + len <= zf_node_capacity(node_size));
	memmove(bytes + start - len, bytes + start, end - start);
	shift_offsets(item, count - slot, -(int32_t)len);
	memmove(item + 1, item, (count - slot) * sizeof(*item));
	*item = (struct zf_disk_item){
		.offset = zf_le16_from((uint16_t)(end - len)),
		.size = zf_le16_from((uint16_t)len),
	};
	zf_disk_key_put(&item->key, key);
	if (len > 0)
		memcpy(bytes + end - len, value, len);
	set_count(node, count + 1);
}

static void set_plain(void *node, uint32_t node_size, unsigned int slot, const struct zf_key *key,
		      const void *value, size_t len)
{
	struct zf_disk_item *item = items_of(node) + slot;

	if (zf_le16_get(item->size) == len) {
		if (len > 0)
			memcpy((char *)node + zf_le16_get(item->offset), value, len);
		return;
	}
	zf_node_remove(node, node_size, slot, 1);
	insert_plain(node, node_size, slot, key, value, len);
}

/* ---- the form that a leaf takes for an item ---- */

/* Bytes of the leaf's items in plain form, whichever form the leaf has. */
static uint32_t used_plain(const void *leaf, uint32_t node_size)
{
	struct zf_packing packing;

	if (!zf_node_is_packed(leaf))
		return zf_node_used(leaf, node_size);
	zf_packed_get(leaf, &packing);
	return zf_node_count(leaf) * (uint32_t)(sizeof(struct zf_disk_item) + packing.value_size);
}

/* Bytes of the present value in this slot. */
static uint32_t value_size(const void *leaf, unsigned int slot)
{
	char scratch[ZF_PACKED_VALUE_MAX];
	size_t len;

	zf_node_value(leaf, slot, &len, scratch);
	return (uint32_t)len;
}

static bool fits_plain(const void *leaf, uint32_t node_size, unsigned int slot, bool found,
		       size_t len)
{
	uint32_t used = used_plain(leaf, node_size) + (uint32_t)len;

	used += found ? 0 : (uint32_t)sizeof(struct zf_disk_item);
	used -= found ? value_size(leaf, slot) : 0;
	return used <= zf_node_capacity(node_size);
}

static bool fits_packed(const void *leaf, uint32_t node_size, bool found, const struct zf_key *key,
			const void *value, size_t len, struct zf_packing *packing)
{
	unsigned int count = zf_node_count(leaf);
	uint32_t capacity = zf_node_capacity(node_size);

	if (count == 0)
		return false;
	if (zf_node_is_packed(leaf)) {
		zf_packed_get(leaf, packing);
		if (!zf_packing_add(packing, key, value, len))
			return false;
		if (zf_packing_bytes(packing, count + !found) <= capacity)
			return true;
	}
	/* Fewer bytes may differ now than when the columns were chosen. */
	return zf_packing_scan(leaf, 0, count, packing) &&
	       zf_packing_add(packing, key, value, len) &&
	       zf_packing_bytes(packing, count + !found) <= capacity;
}

enum form {
	FORM_NONE, /* no room in either form */
	FORM_PLAIN,
	FORM_PACKED,
};

/* The form in which the leaf has room for the item; its present form, if that has room. */
static enum form form_for(const void *leaf, uint32_t node_size, unsigned int slot, bool found,
			  const struct zf_key *key, const void *value, size_t len,
			  struct zf_packing *ret_packing)
{
	bool packed = zf_node_is_packed(leaf);

	if (!packed && fits_plain(leaf, node_size, slot, found, len))
		return FORM_PLAIN;
	if (fits_packed(leaf, node_size, found, key, value, len, ret_packing))
		return FORM_PACKED;
	if (!packed || used_plain(leaf, node_size) > zf_node_capacity(node_size))
		return FORM_NONE;
	return fits_plain(leaf, node_size, slot, found, len) ? FORM_PLAIN : FORM_NONE;
}

bool zf_node_has_room(const void *leaf, uint32_t node_size, unsigned int slot, bool found,
		      const struct zf_key *key, const void *value, size_t len)
{
	struct zf_packing packing;

	return form_for(leaf, node_size, slot, found, key, value, len, &packing) != FORM_NONE;
}

/* Gives the leaf a form that has room for the item. Returns whether this is the packed form. */
static bool take_form(void *leaf, uint32_t node_size, unsigned int slot, bool found,
		      const struct zf_key *key, const void *value, size_t len)
{
	struct zf_packing packing;
	enum form form = form_for(leaf, node_size, slot, found, key, value, len, &packing);

	assert(form != FORM_NONE);
	if (form == FORM_PACKED)
		zf_packed_form(leaf, node_size, &packing);
	else if (zf_node_is_packed(leaf))
		zf_packed_undo(leaf, node_size);
	return form == FORM_PACKED;
}

void zf_node_insert_item(void *node, uint32_t node_size, unsigned int slot,
			 const struct zf_key *key, const void *value, size_t len)
{
	if (take_form(node, node_size, slot, false, key, value, len))
		zf_packed_insert(node, slot, key, value);
	else
		insert_plain(node, node_size, slot, key, value, len);
}

void zf_node_set_value(void *node, uint32_t node_size, unsigned int slot, const void *value,
		       size_t len)
{
	struct zf_key key = zf_node_key(node, slot);

	if (take_form(node, node_size, slot, true, &key, value, len)) {
		zf_packed_set(node, slot, value);
		return;
	}
	set_plain(node, node_size, slot, &key, value, len);
}

void zf_node_insert_child(void *node, unsigned int slot, const struct zf_key *key,
			  const struct zf_node_ptr *ptr)
{
	struct zf_disk_child *child = children_of(node) + slot;
	unsigned int count = zf_node_count(node);

	assert(slot <= count);
	memmove(child + 1, child, (count - slot) * sizeof(*child));
	*child = (struct zf_disk_child){.ptr = ptr_put(ptr)};
	zf_disk_key_put(&child->key, key);
	set_count(node, count + 1);
}

void zf_node_set_key(void *node, unsigned int slot, const struct zf_key *key)
{
	zf_disk_key_put(&children_of(node)[slot].key, key);
}

void zf_node_set_child(void *node, unsigned int slot, const struct zf_node_ptr *ptr)
{
	children_of(node)[slot].ptr = ptr_put(ptr);
}

void zf_node_remove(void *node, uint32_t node_size, unsigned int first, unsigned int n)
{
	unsigned int count = zf_node_count(node), behind = count - first - n;
	size_t size = entry_size(node);
	char *bytes = node, *entry = bytes + HEADER_SIZE + first * size;

	assert(first + n <= count);
	if (zf_node_is_packed(node)) {
		zf_packed_remove(node, first, n);
		return;
	}
	if (n > 0 && zf_node_level(node) == 0) {
		uint32_t start = values_start(node, node_size);
		uint32_t low = value_end(node, node_size, first + n);
		uint32_t cut = value_end(node, node_size, first) - low;

		memmove(bytes + start + cut, bytes + start, low - start);
		memset(bytes + start, 0, cut);
		shift_offsets(items_of(node) + first + n, behind, (int32_t)cut);
	}
	memmove(entry, entry + n * size, behind * size);
	memset(entry + behind * size, 0, n * size);
	set_count(node, count - n);
}

static void absorb_plain(void *node, const void *src, uint32_t node_size, unsigned int first,
			 unsigned int n, bool before)
{
	unsigned int count = zf_node_count(node), at = before ? 0 : count;
	size_t size = entry_size(node);
	char *bytes = node, *entries = bytes + HEADER_SIZE;
	int32_t by = 0;

	assert(zf_node_level(src) == zf_node_level(node) && first + n <= zf_node_count(src));
	assert(zf_node_used(node, node_size) + zf_node_used_by(src, node_size, first, n) <=
	       zf_node_capacity(node_size));
	if (zf_node_level(node) == 0) {
		uint32_t start = values_start(node, node_size);
		uint32_t from = value_end(src, node_size, first + n);
		uint32_t to = value_end(src, node_size, first), len = to - from;
		uint32_t end = before ? node_size : start;

		memmove(bytes + start - len, bytes + start, end - start);
		memcpy(bytes + end - len, (const char *)src + from, len);
		shift_offsets(items_of(node) + at, count - at, -(int32_t)len);
		by = (int32_t)end - (int32_t)to;
	}
	memmove(entries + (at + n) * size, entries + at * size, (count - at) * size);
	memcpy(entries + at * size, (const char *)src + HEADER_SIZE + first * size, n * size);
	if (zf_node_level(node) == 0)
		shift_offsets(items_of(node) + at, n, by);
	set_count(node, count + n);
}

/* Do `left` of the node's items fit one packed leaf with items [first, first + n) of src? */
static bool pack_together(const void *node, unsigned int left, const void *src, uint32_t node_size,
			  unsigned int first, unsigned int n, struct zf_packing *ret_packing)
{
	unsigned int count = zf_node_count(node);
	struct zf_packing own;

	if (!zf_packing_scan(src, first, n, ret_packing))
		return false;
	if (count > 0 &&
	    (!zf_packing_scan(node, 0, count, &own) || !zf_packing_join(ret_packing, &own)))
		return false;
	return zf_packing_bytes(ret_packing, left + n) <= zf_node_capacity(node_size);
}

/* Bytes of items [first, first + n) in plain form, whichever form the leaf has. */
static uint32_t used_plain_by(const void *leaf, uint32_t node_size, unsigned int first,
			      unsigned int n)
{
	if (zf_node_is_packed(leaf))
		return n * (used_plain(leaf, node_size) / zf_node_count(leaf));
	return zf_node_used_by(leaf, node_size, first, n);
}

uint32_t zf_node_used_together(const void *node, uint32_t node_size, unsigned int first,
			       unsigned int n, const void *other)
{
	unsigned int left = zf_node_count(node) - n, others = zf_node_count(other);
	struct zf_packing packing;

	if (!zf_node_is_packed(node) && !zf_node_is_packed(other))
		return zf_node_used(node, node_size) - zf_node_used_by(node, node_size, first, n) +
		       zf_node_used(other, node_size);
	if (left > 0 && others > 0 &&
	    pack_together(node, left, other, node_size, 0, others, &packing))
		return zf_packing_bytes(&packing, left + others);
	return used_plain(node, node_size) - used_plain_by(node, node_size, first, n) +
	       used_plain(other, node_size);
}

/* Inserts items one by one. The node is a plain leaf; src may be packed. */
static void absorb_items(void *node, const void *src, uint32_t node_size, unsigned int first,
			 unsigned int n, unsigned int at)
{
	for (unsigned int i = 0; i < n; i++) {
		struct zf_key key = zf_node_key(src, first + i);
		char scratch[ZF_PACKED_VALUE_MAX];
		size_t len;
		const void *value = zf_node_value(src, first + i, &len, scratch);

		insert_plain(node, node_size, at + i, &key, value, len);
	}
}

void zf_node_absorb(void *node, const void *src, uint32_t node_size, unsigned int first,
		    unsigned int n, bool before)
{
	unsigned int at = before ? 0 : zf_node_count(node);
	struct zf_packing packing;

	if (!zf_node_is_packed(node) && !zf_node_is_packed(src)) {
		absorb_plain(node, src, node_size, first, n, before);
		return;
	}
	if (n == 0)
		return;
	if (pack_together(node, zf_node_count(node), src, node_size, first, n, &packing)) {
		zf_packed_form(node, node_size, &packing);
		zf_packed_absorb(node, at, src, first, n);
		return;
	}
	if (zf_node_is_packed(node))
		zf_packed_undo(node, node_size);
	absorb_items(node, src, node_size, first, n, at);
}

void zf_node_move(void *node, void *src, uint32_t node_size, unsigned int first, unsigned int n,
		  bool before)
{
	zf_node_absorb(node, src, node_size, first, n, before);
	zf_node_remove(src, node_size, first, n);
}

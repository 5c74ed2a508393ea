/* SPDX-License-Identifier: MIT */
/*
 * Access to the bytes of one node, and the one checker that guards every node read and written.
 *
 * Nodes in memory have the format on disk (node_format.h); only these functions know the offsets in
 * it. They do no I/O and no locking: the caller holds the lock that protects the buffer.
 */
#ifndef ZF_BTREE_NODE_H
#define ZF_BTREE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"
#include "btree/key.h"
#include "btree/node_format.h"
#include "superblock/super.h"

static inline struct zf_key zf_disk_key_get(const struct zf_disk_key *disk)
{
	return ZF_KEY(zf_le64_get(disk->objectid), disk->type, zf_le64_get(disk->offset));
}

static inline void zf_disk_key_put(struct zf_disk_key *disk, const struct zf_key *key)
{
	disk->objectid = zf_le64_from(key->objectid);
	disk->type = key->type;
	disk->offset = zf_le64_from(key->offset);
}

struct zf_node_shape {
	const struct zf_geometry *geometry; /* the device's: where nodes may lie */
	uint32_t node_size;
	uint8_t copies;
	uint8_t fsid[16];
};

/* Limits of the pointers in a node or superblock of generation_max. */
void zf_node_shape_limits(const struct zf_node_shape *shape, uint64_t generation_max,
			  struct zf_node_ptr_limits *ret_limits);

/* The properties that the parent, or the superblock, requires of the node. */
struct zf_node_expect {
	struct zf_node_ptr ptr;
	enum zf_tree_id owner;
	uint8_t level;
	struct zf_key first_key; /* the parent's key for it: no key is below; if check_first_key */
	struct zf_key next_key;	 /* the parent's next key: every key is below; if check_next_key */
	bool check_first_key;	 /* false for roots only: only a root may be an empty leaf */
	bool check_next_key;
};

/* The largest value of an item: four of them, with headers, fit a leaf, so one split always
 * suffices. */
static inline uint32_t zf_node_value_max(uint32_t node_size)
{
	return (node_size - (uint32_t)sizeof(struct zf_disk_node_header)) / 4 -
	       (uint32_t)sizeof(struct zf_disk_item);
}

/*
 * Checks every field: magic, filesystem, own addresses, owner, level, generation, count, key order,
 * item bounds and order, zero bytes, and (with check_csum) the checksum against header and pointer.
 * Every node is checked after it was read and before it is written. 0 or -EUCLEAN, reported.
 */
int zf_node_check(const struct zf_node_shape *shape, const void *node,
		  const struct zf_node_expect *expect, bool check_csum,
		  const struct zf_report *report);

/* The part of zf_node_check() that depends on the parent: the first and last key, and emptiness. */
int zf_node_check_bounds(const void *node, const struct zf_node_expect *expect,
			 const struct zf_report *report);

/*
 * Like zf_node_check() for a block without a parent, found by scanning a zone: is it a whole, valid
 * node at `address`, of this copy? 0 or -EUCLEAN, reported.
 */
int zf_node_check_at(const struct zf_node_shape *shape, const void *node, uint64_t address,
		     unsigned int copy, const struct zf_report *report);
bool zf_node_is_valid_at(const struct zf_node_shape *shape, const void *node, uint64_t address,
			 unsigned int copy);

/* XXH3 of bytes 8..node_size, never 0: a pointer with csum 0 waits for its child to be sealed. */
uint64_t zf_node_csum(const void *node, uint32_t node_size);

/* ---- reading; the node was checked, or made here ---- */

static inline const struct zf_disk_node_header *zf_node_header(const void *node)
{
	return node;
}

static inline unsigned int zf_node_count(const void *node)
{
	return zf_le32_get(zf_node_header(node)->count);
}

static inline uint8_t zf_node_level(const void *node)
{
	return zf_node_header(node)->level;
}

static inline uint64_t zf_node_generation(const void *node)
{
	return zf_le64_get(zf_node_header(node)->generation);
}

static inline uint64_t zf_node_owner(const void *node)
{
	return zf_le64_get(zf_node_header(node)->owner);
}

/* Is the node a packed leaf (btree/packed.h)? */
static inline bool zf_node_is_packed(const void *node)
{
	return zf_node_header(node)->packed != 0;
}

struct zf_key zf_node_key(const void *node, unsigned int slot);

/* The first slot whose key is >= *key (the count if none); true if it is equal. */
bool zf_node_search(const void *node, const struct zf_key *key, unsigned int *ret_slot);

/* The child to descend into: the last one whose key is <= *key, else the first. */
unsigned int zf_node_search_child(const void *node, const struct zf_key *key);

/*
 * A leaf's value. The pointer is into the node, or to scratch: ZF_PACKED_VALUE_MAX bytes, which may
 * be NULL for a leaf that is not packed.
 */
const void *zf_node_value(const void *node, unsigned int slot, size_t *ret_len, void *scratch);

struct zf_node_ptr zf_node_child(const void *node, unsigned int slot);
/* The properties required of the child in `slot` of an internal node; `expect` are the node's. */
struct zf_node_expect zf_node_expect_child(const struct zf_node_expect *expect, const void *node,
					   unsigned int slot);

/* Bytes of a node that entries can use, and bytes that they do use: headers and values. */
uint32_t zf_node_capacity(uint32_t node_size);
uint32_t zf_node_used(const void *node, uint32_t node_size);
/*
 * The same for entries [first, first + n). In a packed leaf this counts only their rows, so that all
 * entries together use less than zf_node_used().
 */
uint32_t zf_node_used_by(const void *node, uint32_t node_size, unsigned int first, unsigned int n);
/*
 * Bytes that the entries of both nodes will use in one node, after zf_node_absorb(), if the node's
 * entries [first, first + n) are removed.
 */
uint32_t zf_node_used_together(const void *node, uint32_t node_size, unsigned int first,
			       unsigned int n, const void *other);
unsigned int zf_node_children_max(uint32_t node_size);

/* Has a leaf room for this item in this slot: a new item, or (found) one that replaces its item? */
bool zf_node_has_room(const void *leaf, uint32_t node_size, unsigned int slot, bool found,
		      const struct zf_key *key, const void *value, size_t len);

/* ---- editing; the caller has made sure of room; a leaf changes its form if necessary ---- */

void zf_node_init(void *node, const struct zf_node_shape *shape, enum zf_tree_id owner,
		  uint8_t level, const uint64_t address[ZF_COPIES_MAX], uint64_t generation);
/* Makes dst a copy of src with another address and generation. src's csum field is not read. */
void zf_node_copy(void *dst, const void *src, const struct zf_node_shape *shape,
		  const uint64_t address[ZF_COPIES_MAX], uint64_t generation);
void zf_node_set_csum(void *node, uint64_t csum);

void zf_node_insert_item(void *node, uint32_t node_size, unsigned int slot,
			 const struct zf_key *key, const void *value, size_t len);
void zf_node_set_value(void *node, uint32_t node_size, unsigned int slot, const void *value,
		       size_t len);
void zf_node_insert_child(void *node, unsigned int slot, const struct zf_key *key,
			  const struct zf_node_ptr *ptr);
void zf_node_set_key(void *node, unsigned int slot, const struct zf_key *key);
void zf_node_set_child(void *node, unsigned int slot, const struct zf_node_ptr *ptr);
void zf_node_remove(void *node, uint32_t node_size, unsigned int first, unsigned int n);

/* Copies the entries [first, first + n) of src into the node, before or behind its own. */
void zf_node_absorb(void *node, const void *src, uint32_t node_size, unsigned int first,
		    unsigned int n, bool before);
/* The same, and removes the entries from src. */
void zf_node_move(void *node, void *src, uint32_t node_size, unsigned int first, unsigned int n,
		  bool before);

#endif

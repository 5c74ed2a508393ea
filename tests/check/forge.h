/* SPDX-License-Identifier: MIT */
/*
 * Forges a filesystem on a memory device: it changes items and nodes at their addresses and makes
 * every checksum above them right again, up to the superblock. So exactly one thing is wrong.
 */
#ifndef ZF_TESTS_CHECK_FORGE_H
#define ZF_TESTS_CHECK_FORGE_H

#include "btree/node.h"
#include "io/memory.h"
#include "superblock/super.h"

struct forge {
	struct zf_memory *memory;
	uint64_t zone_size;
	struct zf_super super;
};

/* Reads the newest superblock. No device may be open meanwhile. */
void forge_open(struct forge *forge, struct zf_memory *memory);

/* The bytes at a device address. */
uint8_t *forge_bytes(struct forge *forge, uint64_t address);

/* The first key >= *key in the tree: false if there is none. */
bool forge_find(struct forge *forge, enum zf_tree_id tree, struct zf_key *key);
/* Copies the item's value. */
size_t forge_get(struct forge *forge, enum zf_tree_id tree, struct zf_key key, void *buf,
		 size_t size);

/* The key must exist (insert: the item must fit into its leaf). */
void forge_set(struct forge *forge, enum zf_tree_id tree, struct zf_key key, const void *value,
	       size_t len);
void forge_delete(struct forge *forge, enum zf_tree_id tree, struct zf_key key);
void forge_insert(struct forge *forge, enum zf_tree_id tree, struct zf_key key, const void *value,
		  size_t len);
/* Overwrites `size` bytes of the value, at most 8, with a little-endian number. */
void forge_field(struct forge *forge, enum zf_tree_id tree, struct zf_key key, size_t offset,
		 size_t size, uint64_t number);

/* Where the nodes on the way to the key lie: [level] = address. Returns the root's level. */
unsigned int forge_path(struct forge *forge, enum zf_tree_id tree, struct zf_key key,
			uint64_t ret_address[ZF_TREE_LEVEL_MAX]);
/* Makes the checksums right after the node of this level on the way to the key was changed. */
void forge_seal(struct forge *forge, enum zf_tree_id tree, struct zf_key key, unsigned int level);

/* Writes forge->super back. */
void forge_write_super(struct forge *forge);

#endif

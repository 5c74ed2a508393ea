/* SPDX-License-Identifier: MIT */
/*
 * Pointers to B-tree nodes: in the superblock, in the items of the root tree, and in the nodes
 * above the leaves. A pointer that was read from a device is checked here before it is followed.
 */
#ifndef ZF_SUPERBLOCK_NODE_PTR_H
#define ZF_SUPERBLOCK_NODE_PTR_H

#include <stdbool.h>
#include <stdint.h>

#include "superblock/super_format.h"

#define ZF_COPIES_MAX 2

/* A pointer in memory; see struct zf_disk_node_ptr. */
struct zf_node_ptr {
	uint64_t address[ZF_COPIES_MAX];
	uint64_t generation;
	uint64_t csum; /* never 0 on disk: 0 marks a node in memory that has no checksum yet */
};

/* The bounds of a pointer's fields. */
struct zf_node_ptr_limits {
	uint64_t zone_size, zone_capacity; /* bytes */
	uint32_t zone_count;
	uint32_t node_size;
	uint8_t copies;
	uint64_t generation_max; /* that of the node or superblock that holds the pointer */
};

#define ZF_NODE_PTR_FAULT_SIZE 128

void zf_node_ptr_encode(const struct zf_node_ptr *ptr, struct zf_disk_node_ptr *ret_disk);
void zf_node_ptr_decode(const struct zf_disk_node_ptr *disk, struct zf_node_ptr *ret_ptr);

/*
 * Is any field of the pointer beyond its limits? Then `fault` says which, as "<field> has <value>,
 * expected <range>".
 */
bool zf_node_ptr_is_wrong(const struct zf_node_ptr *ptr, const struct zf_node_ptr_limits *limits,
			  char fault[ZF_NODE_PTR_FAULT_SIZE]);

#endif

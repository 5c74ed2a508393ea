/* SPDX-License-Identifier: MIT */
#include "superblock/node_ptr.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bits.h"

void zf_node_ptr_encode(const struct zf_node_ptr *ptr, struct zf_disk_node_ptr *ret_disk)
{
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		ret_disk->address[c] = zf_le64_from(ptr->address[c]);
	ret_disk->generation = zf_le64_from(ptr->generation);
	ret_disk->csum = zf_le64_from(ptr->csum);
}

void zf_node_ptr_decode(const struct zf_disk_node_ptr *disk, struct zf_node_ptr *ret_ptr)
{
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		ret_ptr->address[c] = zf_le64_get(disk->address[c]);
	ret_ptr->generation = zf_le64_get(disk->generation);
	ret_ptr->csum = zf_le64_get(disk->csum);
}

__attribute__((format(printf, 2, 3))) static bool wrong(char *fault, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fault, ZF_NODE_PTR_FAULT_SIZE, format, args);
	va_end(args);
	return true;
}

/*
 * Can a node lie at this address? The zone must not be the superblock ring's, and must have room.
 */
static bool is_place_of_node(uint64_t address, const struct zf_node_ptr_limits *limits)
{
	uint64_t zone_no = address / limits->zone_size;

	return zf_is_aligned(address, ZF_BLOCK_SIZE) && zone_no >= ZF_SUPER_ZONES &&
	       zone_no < limits->zone_count &&
	       address % limits->zone_size + limits->node_size <= limits->zone_capacity;
}

static bool is_address_wrong(const struct zf_node_ptr *ptr, const struct zf_node_ptr_limits *limits,
			     char *fault)
{
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++) {
		uint64_t address = ptr->address[c];

		if (c >= limits->copies && address != 0)
			return wrong(fault, "address[%u] has %" PRIu64 ", expected 0", c, address);
		if (c < limits->copies && !is_place_of_node(address, limits))
			return wrong(fault,
				     "address[%u] has %" PRIu64
				     ", expected a block in zones %u to %" PRIu32,
				     c, address, ZF_SUPER_ZONES, limits->zone_count - 1);
	}
	/* Two copies in one zone would be lost together. */
	if (limits->copies > 1 &&
	    ptr->address[0] / limits->zone_size == ptr->address[1] / limits->zone_size)
		return wrong(fault,
			     "address[1] has %" PRIu64 ", expected another zone than address[0]",
			     ptr->address[1]);
	return false;
}

bool zf_node_ptr_is_wrong(const struct zf_node_ptr *ptr, const struct zf_node_ptr_limits *limits,
			  char fault[ZF_NODE_PTR_FAULT_SIZE])
{
	if (is_address_wrong(ptr, limits, fault))
		return true;
	if (ptr->generation == 0 || ptr->generation > limits->generation_max)
		return wrong(fault, "generation has %" PRIu64 ", expected 1 to %" PRIu64,
			     ptr->generation, limits->generation_max);
	if (ptr->csum == 0)
		return wrong(fault, "csum has 0, expected another value");
	return false;
}

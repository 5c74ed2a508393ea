/* SPDX-License-Identifier: MIT */
/*
 * Carried block: the first data block of a record, compressed into the record's header block.
 *
 *      | struct zf_disk_log_header | bodies | packed block | zeroes |     one block of the device
 *
 * So a small durable write takes one block of the device, if its content can be compressed a
 * little. The address of the carried block is the address of the record. Extents, summary entries
 * and log ranges name that address as if the block lay there. The checksum is that of the content.
 * A reader compares it with what lies at the address, and so finds out that it must unpack the
 * block: zf_log_carry_verify().
 */
#ifndef ZF_LOG_CARRY_H
#define ZF_LOG_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/log_format.h"
#include "superblock/super.h"

/* The most that a packed block can take, bytes. */
#define ZF_LOG_CARRY_MAX (ZF_BLOCK_SIZE - (uint32_t)sizeof(struct zf_disk_log_header))

/* Packs a block into at most `room` bytes. Returns how many it takes; 0: it does not fit. */
uint32_t zf_log_carry_pack(const void *data, void *ret_packed, size_t room);

/* Unpacks the block that `header_block` carries. False: it carries none, or is damaged. */
bool zf_log_carry_unpack(const void *header_block, void *ret_data);

/*
 * Verifies `block`, which was read at the address of a data block. True: it was that data, or a
 * record that carries it, and `block` is the data afterwards. *ret_csum: the checksum of what was
 * read.
 */
bool zf_log_carry_verify(void *block, uint64_t expected, uint64_t *ret_csum);

#endif

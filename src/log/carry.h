/* SPDX-License-Identifier: MIT */
/*
 * A block of data that is packed into its record's header block.
 *
 *      | struct zf_disk_log_header | bodies | packed block | zeroes |     one block of the device
 *
 * So one block of the device is enough for a small durable write, if its content can be compressed
 * a little. The address of the data is the record's: whoever names it (extents, the summary, the
 * log) need not know that it is packed, and who reads it is told by the checksum, which is that of
 * the content: zf_log_carry_verify().
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

/* The block that `header_block` carries. False: it carries none, or is damaged. */
bool zf_log_carry_unpack(const void *header_block, void *ret_data);

/*
 * `block` is what was read at the address of a block of data. Is it that data, or a record that
 * carries it? Then `block` is the data afterwards. *ret_csum: of what was read.
 */
bool zf_log_carry_verify(void *block, uint64_t expected, uint64_t *ret_csum);

#endif

/* SPDX-License-Identifier: MIT */
#include "log/carry.h"

#include <lz4.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "log/record.h"

uint32_t zf_log_carry_pack(const void *data, void *ret_packed, size_t room)
{
	return (uint32_t)LZ4_compress_default(data, ret_packed, ZF_BLOCK_SIZE,
					      (int)zf_min_u64(room, ZF_LOG_CARRY_MAX));
}

bool zf_log_carry_unpack(const void *header_block, void *ret_data)
{
	struct zf_log_record record;

	if (!zf_log_record_peek(header_block, &record) || record.carried == 0)
		return false;
	return LZ4_decompress_safe((const char *)header_block + record.bytes, ret_data,
				   (int)record.carried, ZF_BLOCK_SIZE) == ZF_BLOCK_SIZE;
}

bool zf_log_carry_verify(void *block, uint64_t expected, uint64_t *ret_csum)
{
	uint8_t data[ZF_BLOCK_SIZE];

	*ret_csum = zf_hash64(block, ZF_BLOCK_SIZE);
	if (*ret_csum == expected)
		return true;
	if (!zf_log_carry_unpack(block, data) || zf_hash64(data, ZF_BLOCK_SIZE) != expected)
		return false;
	memcpy(block, data, ZF_BLOCK_SIZE);
	return true;
}

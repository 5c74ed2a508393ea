/* SPDX-License-Identifier: MIT */
#include "log_record.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "log/carry.h"

static struct zf_log_record measure(const struct zf_super *super, unsigned int which,
				    uint64_t sequence, const struct log_record_body *bodies,
				    unsigned int count)
{
	struct zf_log_record record = {
		.zone_address = super->log_zone[which] * super->zone_size,
		.epoch = super->log_epoch,
		.sequence = sequence,
		.zone_resets = super->log_zone_resets[which],
		.generation = super->generation + 1,
		.bytes = sizeof(struct zf_disk_log_header),
		.body_count = count,
	};

	for (unsigned int i = 0; i < count; i++) {
		record.bytes += (uint32_t)bodies[i].body->len;
		record.data_blocks += bodies[i].data_blocks;
	}
	return record;
}

static void put_bodies(uint8_t *blocks, const struct zf_log_record *record,
		       const struct log_record_body *bodies)
{
	uint8_t *at = blocks + sizeof(struct zf_disk_log_header);
	uint8_t *data = blocks + (zf_log_header_blocks(record->bytes) << ZF_BLOCK_SHIFT);
	uint32_t data_first = 0;

	for (unsigned int i = 0; i < record->body_count; i++) {
		struct zf_disk_log_body *body = (void *)at;
		size_t data_len = (size_t)bodies[i].data_blocks << ZF_BLOCK_SHIFT;

		memcpy(at, bodies[i].body->bytes, bodies[i].body->len);
		body->number = zf_le64_from(bodies[i].number);
		body->data_first = zf_le32_from(data_first);
		body->data_count = zf_le32_from(bodies[i].data_blocks);
		if (data_len > 0)
			memcpy(data, bodies[i].data, data_len);
		data_first += bodies[i].data_blocks;
		data += data_len;
		at += bodies[i].body->len;
	}
}

uint8_t *log_record_make(const struct zf_super *super, unsigned int which, uint64_t sequence,
			 const struct log_record_body *bodies, unsigned int count, size_t *ret_len)
{
	struct zf_log_record record = measure(super, which, sequence, bodies, count);
	struct zf_hash_key key;
	uint8_t *blocks;

	*ret_len = zf_log_record_len(&record);
	blocks = aligned_alloc(ZF_BLOCK_SIZE, *ret_len);
	assert_non_null(blocks);
	memset(blocks, 0, *ret_len);
	put_bodies(blocks, &record, bodies);
	zf_hash_key_init(&key, super->log_secret);
	zf_log_record_seal(&key, &record, super->fsid, blocks);
	return blocks;
}

void log_record_carry(const struct zf_super *super, uint8_t *record, size_t *len)
{
	struct zf_disk_log_header *header = (void *)record;
	uint32_t bytes = zf_le32_get(header->bytes), packed;

	assert_true(bytes < ZF_BLOCK_SIZE);
	packed = zf_log_carry_pack(record + ZF_BLOCK_SIZE, record + bytes, ZF_BLOCK_SIZE - bytes);
	assert_true(packed > 0);
	header->carried = zf_le32_from(packed);
	memmove(record + ZF_BLOCK_SIZE, record + 2 * ZF_BLOCK_SIZE, *len - 2 * ZF_BLOCK_SIZE);
	*len -= ZF_BLOCK_SIZE;
	log_record_seal_again(super, record);
}

void log_record_seal_again(const struct zf_super *super, uint8_t *record)
{
	struct zf_disk_log_header *header = (void *)record;
	size_t len = (size_t)zf_log_header_blocks(zf_le32_get(header->bytes)) << ZF_BLOCK_SHIFT;
	struct zf_hash_key key;

	zf_hash_key_init(&key, super->log_secret);
	zf_hash128_keyed(&key, record + ZF_LOG_HASH_SIZE, len - ZF_LOG_HASH_SIZE, header->hash);
}

uint64_t log_record_append_blocks(struct zf_dev *dev, const struct zf_super *super,
				  unsigned int which, const uint8_t *blocks, size_t len)
{
	struct iovec iov = {(void *)(uintptr_t)blocks, len};
	struct zf_io io = {
		.op = ZF_IO_APPEND,
		.fua = true,
		.addr = super->log_zone[which] * super->zone_size,
		.len = len,
		.iov = &iov,
		.iovcnt = 1,
	};

	assert_int_equal(zf_dev_run(dev, &io), 0);
	return io.addr;
}

uint64_t log_record_append(struct zf_dev *dev, const struct zf_super *super, unsigned int which,
			   uint64_t sequence, const struct log_record_body *bodies,
			   unsigned int count)
{
	size_t len;
	uint8_t *blocks = log_record_make(super, which, sequence, bodies, count, &len);
	uint64_t address = log_record_append_blocks(dev, super, which, blocks, len);

	free(blocks);
	return address;
}

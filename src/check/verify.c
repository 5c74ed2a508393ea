/* SPDX-License-Identifier: MIT */
/* Reads data and compares it with its checksums (P4). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/undumped.h"
#include "check/state.h"
#include "log/carry.h"

#define CHUNK ((uint64_t)1 << 20)

static void bad_block(struct zf_check *check, const struct zf_check_claim *claim, uint64_t address,
		      uint64_t has, uint64_t expected)
{
	check->counts.data_errors++;
	zf_check_corrupt(check, "data", address,
			 "checksum has %016" PRIx64 ", expected %016" PRIx64 " (inode %" PRIu64
			 ", offset %" PRIu64 ")",
			 has, expected, claim->ino, claim->offset + (address - claim->address));
}

static void cannot_read(struct zf_check *check, const struct zf_check_claim *claim,
			uint64_t address, uint64_t len, int error)
{
	check->counts.data_errors++;
	zf_check_corrupt(
		check, "data", address,
		"reading %" PRIu64 " bytes failed: %s (inode %" PRIu64 ", offset %" PRIu64 ")", len,
		strerror(-error), claim->ino, claim->offset + (address - claim->address));
}

static void verify_chunk(struct zf_check *check, const struct zf_check_claim *claim,
			 uint64_t address, uint64_t len, const struct zf_le64 *csums, uint8_t *buf)
{
	for (uint64_t at = 0; at < len; at += ZF_BLOCK_SIZE) {
		uint64_t expected = zf_le64_get(csums[at >> ZF_BLOCK_SHIFT]), has;

		if (!zf_log_carry_verify(buf + at, expected, &has))
			bad_block(check, claim, address + at, has, expected);
	}
	check->counts.verified_bytes += len;
	zf_check_progress(check);
}

/*
 * The pieces come in the order of their addresses and are often small, so up to CHUNK bytes are
 * read at once, for the next pieces.
 */
static int read_ahead(struct zf_check *check, uint64_t address, uint64_t len, uint8_t **ret_data)
{
	const struct zf_check_zone *zone = &check->zones[address / check->geometry->zone_size];
	struct zf_check_data *data = &check->data;
	uint64_t in_zone = address % check->geometry->zone_size;
	uint64_t written = zone->wp > in_zone ? zone->wp - in_zone : 0;
	int r;

	if (address >= data->start && address + len <= data->end) {
		*ret_data = data->buf + (address - data->start);
		return 0;
	}
	data->start = address;
	data->end = address + zf_max_u64(len, zf_min_u64(CHUNK, written));
	r = zf_dev_read_buf(check->dev, address, data->buf, data->end - address);
	if (r < 0 && data->end - address > len) {
		/* Perhaps only the bytes behind the piece cannot be read. */
		data->end = address + len;
		r = zf_dev_read_buf(check->dev, address, data->buf, len);
	}
	if (r < 0)
		data->end = address;
	*ret_data = data->buf;
	return r;
}

int zf_check_verify(struct zf_check *check, const struct zf_check_claim *claim, uint64_t address,
		    uint64_t len, const struct zf_le64 *csums)
{
	if (!check->data.buf)
		check->data.buf = zf_undumped_alloc(CHUNK);
	if (!check->data.buf)
		return -ENOMEM;
	for (uint64_t at = 0; at < len; at += CHUNK) {
		uint64_t n = zf_min_u64(CHUNK, len - at);
		uint8_t *data;
		int r = read_ahead(check, address + at, n, &data);

		if (r < 0)
			cannot_read(check, claim, address + at, n, r);
		else
			verify_chunk(check, claim, address + at, n, csums + (at >> ZF_BLOCK_SHIFT),
				     data);
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "log/scan.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/plant.h"
#include "base/undumped.h"

/* The size of one read; larger than any record. */
#define WINDOW_SIZE (UINT64_C(1) << 20)

_Static_assert(WINDOW_SIZE >= ZF_LOG_RECORD_MAX, "a record fits into the window");

/* A piece of the zone in memory. Positions are bytes in the zone. */
struct window {
	const struct zf_log_scan *scan;
	uint8_t *buf;
	uint64_t first, len;
};

static int read_zone(const struct zf_log_scan *scan, uint64_t pos, void *buf, uint64_t len)
{
	return zf_dev_read_buf(scan->dev, scan->place.zone_address + pos, buf, len);
}

/* `from` and `to`: positions in the window. */
static void note_unreadable(const struct window *window, uint64_t from, uint64_t to)
{
	const struct zf_log_scan *scan = window->scan;

	if (from == to)
		return;
	*scan->unreadable += (to - from) >> ZF_BLOCK_SHIFT;
	zf_report(scan->report, ZF_REPORT_WARNING,
		  "log: %" PRIu64 " bytes at %" PRIu64 " cannot be read", to - from,
		  scan->place.zone_address + window->first + from);
}

/*
 * Used when the whole read fails: one bad block must not hide its neighbours. Returns 1 if all
 * blocks are bad.
 */
static int load_one_by_one(struct window *window)
{
	const struct zf_log_scan *scan = window->scan;
	uint64_t good_end = 0;

	for (uint64_t at = 0; at < window->len; at += ZF_BLOCK_SIZE) {
		int r = read_zone(scan, window->first + at, window->buf + at, ZF_BLOCK_SIZE);

		if (r == -EIO) {
			memset(window->buf + at, 0, ZF_BLOCK_SIZE);
			continue;
		}
		if (r < 0)
			return r;
		note_unreadable(window, good_end, at);
		good_end = at + ZF_BLOCK_SIZE;
	}
	note_unreadable(window, good_end, window->len);
	return good_end == 0;
}

static int load(struct window *window, uint64_t pos)
{
	int r;

	window->first = pos;
	window->len = zf_min_u64(WINDOW_SIZE, window->scan->limit - pos);
	r = read_zone(window->scan, pos, window->buf, window->len);
	return r == -EIO ? load_one_by_one(window) : r;
}

/* Returns 1 if nothing can be read there. */
static int get(struct window *window, uint64_t pos, uint64_t len, const uint8_t **ret_bytes)
{
	int r;

	assert(len <= WINDOW_SIZE && pos + len <= window->scan->limit);
	if (pos < window->first || pos + len > window->first + window->len) {
		r = load(window, pos);
		if (r != 0)
			return r;
	}
	*ret_bytes = window->buf + (pos - window->first);
	return 0;
}

static int refuse_unknown(const struct zf_log_scan *scan, uint64_t pos,
			  const struct zf_log_record *record)
{
	if (record->sequence <= scan->sequence)
		return 0;
	zf_report(scan->report, ZF_REPORT_ERROR,
		  "the log record at %" PRIu64
		  " is of a kind that this version of zfuse does not know: mount with a newer "
		  "version",
		  scan->place.zone_address + pos);
	return -EPROTONOSUPPORT;
}

/* The record's hash is right, so it was written like this. It may have been acknowledged. */
static int note_malformed(const struct zf_log_scan *scan, uint64_t pos,
			  const struct zf_log_record *record)
{
	if (record->sequence <= scan->sequence)
		return 0;
	*scan->unreadable += zf_log_header_blocks(record->bytes);
	zf_report_corrupt(
		scan->report, "log record", scan->place.zone_address + pos,
		"some fields have impossible values, although the record's hash is right");
	return 0;
}

/*
 * Checks the record whose header seems to be at `pos`. *ret_len stays 0 if the record is not valid.
 * Returns 1 if nothing can be read there.
 */
static int look_closer(struct window *window, uint64_t pos, const struct zf_log_record *record,
		       uint64_t *ret_len)
{
	const struct zf_log_scan *scan = window->scan;
	uint32_t len = zf_log_record_len(record);
	const uint8_t *blocks;
	int r;

	if (len > scan->limit - pos)
		return 0;
	r = get(window, pos, len, &blocks);
	if (r != 0)
		return r;
	r = zf_log_record_open(blocks, &scan->place, scan->key);
	if (r == -EPROTONOSUPPORT)
		return refuse_unknown(scan, pos, record);
	if (r == -EUCLEAN)
		return note_malformed(scan, pos, record);
	if (r < 0)
		return 0;
	if (!ZF_PLANTED(ZF_BUG_TORN_PAYLOAD) &&
	    !zf_log_record_data_matches(
		    blocks, blocks + (zf_log_header_blocks(record->bytes) << ZF_BLOCK_SHIFT)))
		return 0;
	*ret_len = len;
	return scan->found(scan->arg, scan->place.zone_address + pos, record, blocks);
}

static int look_at(struct window *window, uint64_t pos, uint64_t *ret_len)
{
	struct zf_log_record record;
	const uint8_t *block;
	int r = get(window, pos, ZF_BLOCK_SIZE, &block);

	*ret_len = 0;
	if (r != 0 || !zf_log_record_peek(block, &record))
		return r;
	return look_closer(window, pos, &record, ret_len);
}

static int look_through(struct window *window, uint64_t *ret_end)
{
	const struct zf_log_scan *scan = window->scan;
	uint64_t pos = scan->from, end = 0, len;

	while (pos < scan->limit) {
		int r = look_at(window, pos, &len);

		if (r < 0)
			return r;
		if (r > 0) {
			*scan->unreadable +=
				(scan->limit - window->first - window->len) >> ZF_BLOCK_SHIFT;
			break;
		}
		pos += len > 0 ? len : ZF_BLOCK_SIZE;
		if (len > 0)
			end = pos;
	}
	*ret_end = end;
	return 0;
}

int zf_log_scan(const struct zf_log_scan *scan, uint64_t *ret_end)
{
	struct window window = {.scan = scan};
	int r;

	window.buf = zf_undumped_alloc(WINDOW_SIZE);
	if (!window.buf)
		return -ENOMEM;
	r = look_through(&window, ret_end);
	free(window.buf);
	return r;
}

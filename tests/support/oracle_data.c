/* SPDX-License-Identifier: MIT */
/* The possible content of a file: spans, each with the writes that may be seen there. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "support/oracle.h"

/* ---- which byte a write puts where ---- */

static uint64_t word_of(uint32_t write, uint64_t index)
{
	uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u ^ write * UINT64_C(0xd6e8feb86659fd93);

	z = (z ^ (z >> 32)) * 0xbf58476d1ce4e5b9u;
	return z ^ (z >> 29);
}

void oracle_fill(uint32_t write, uint64_t offset, void *buf, size_t len)
{
	uint8_t *p = buf;

	if (write == 0 || write == ORACLE_ZEROES) {
		memset(buf, 0, len);
		return;
	}
	while (len > 0) {
		/* Writes with even numbers can be packed (log/carry.h). */
		uint64_t index = offset / sizeof(uint64_t);
		uint64_t word = word_of(write, write % 2 ? index : index & ~UINT64_C(7));
		size_t skip = offset % sizeof(word), n = sizeof(word) - skip;

		if (n > len)
			n = len;
		memcpy(p, (const uint8_t *)&word + skip, n);
		p += n;
		offset += n;
		len -= n;
	}
}

/* ---- spans ---- */

static void reserve(struct oracle_data *data, unsigned int count)
{
	if (count <= data->room)
		return;
	data->room = count * 2;
	data->spans = realloc(data->spans, data->room * sizeof(*data->spans));
	assert(data->spans);
}

void oracle_data_init(struct oracle_data *data)
{
	*data = (struct oracle_data){0};
	reserve(data, 2);
	data->spans[0] = (struct oracle_span){.count = 1};
	data->count = 1;
}

void oracle_data_deinit(struct oracle_data *data)
{
	free(data->spans);
	data->spans = NULL;
}

/* The last span that starts at or before `offset`. */
static unsigned int index_of(const struct oracle_data *data, uint64_t offset)
{
	unsigned int low = 0, high = data->count;

	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		if (data->spans[middle].start <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Makes a span begin at `offset`, and returns its index. */
static unsigned int split(struct oracle_data *data, uint64_t offset)
{
	unsigned int i = index_of(data, offset);

	if (data->spans[i].start == offset)
		return i;
	reserve(data, data->count + 1);
	memmove(data->spans + i + 1, data->spans + i, (data->count - i) * sizeof(*data->spans));
	data->count++;
	data->spans[i + 1].start = offset;
	return i + 1;
}

static struct oracle_bytes newest(const struct oracle_span *span)
{
	return span->candidate[span->count - 1];
}

static bool are_equal(const struct oracle_span *a, const struct oracle_span *b)
{
	return a->count == b->count &&
	       memcmp(a->candidate, b->candidate, a->count * sizeof(*a->candidate)) == 0;
}

/* Joins neighbours with equal candidates, so that a simple file has a short list. */
static void join_equal(struct oracle_data *data)
{
	unsigned int n = 1;

	for (unsigned int i = 1; i < data->count; i++) {
		if (!are_equal(&data->spans[n - 1], &data->spans[i]))
			data->spans[n++] = data->spans[i];
	}
	data->count = n;
}

static void replace(struct oracle_data *data, unsigned int first, unsigned int end,
		    struct oracle_bytes bytes)
{
	data->spans[first].count = 1;
	data->spans[first].candidate[0] = bytes;
	memmove(data->spans + first + 1, data->spans + end,
		(data->count - end) * sizeof(*data->spans));
	data->count -= end - first - 1;
}

static void note_end(struct oracle_data *data, uint64_t end, bool keep_old)
{
	data->size = zf_max_u64(data->size, end);
	data->size_max = zf_max_u64(data->size_max, end);
	if (!keep_old)
		data->size_min = data->size_max = data->size;
}

static void put(struct oracle_data *data, uint64_t from, uint64_t to, struct oracle_bytes bytes,
		bool keep_old)
{
	unsigned int first, end;

	if (from >= to)
		return;
	first = split(data, from);
	end = split(data, to);
	if (!keep_old) {
		replace(data, first, end, bytes);
		return;
	}
	for (unsigned int i = first; i < end; i++) {
		struct oracle_span *span = &data->spans[i];

		assert(span->count < ORACLE_CANDIDATES_MAX);
		span->candidate[span->count++] = bytes;
	}
}

void oracle_data_write(struct oracle_data *data, uint64_t offset, uint64_t len, uint32_t write,
		       bool keep_old)
{
	if (len == 0)
		return;
	note_end(data, offset + len, keep_old);
	put(data, offset, offset + len, (struct oracle_bytes){.write = write}, keep_old);
}

void oracle_data_zero(struct oracle_data *data, uint64_t from, uint64_t to, uint32_t write,
		      bool keep_old)
{
	assert(write == 0 || write == ORACLE_ZEROES);
	put(data, from, to, (struct oracle_bytes){.write = write}, keep_old);
	if (!keep_old)
		join_equal(data);
}

void oracle_data_copy(struct oracle_data *data, uint64_t offset, const struct oracle_data *source,
		      uint64_t from, uint64_t len, bool keep_old)
{
	for (uint64_t at = 0, end; at < len; at = end) {
		struct oracle_bytes bytes = newest(oracle_data_find(source, from + at, &end));

		end = zf_min_u64(end - from, len);
		/* Sharing copies written zeroes as a hole. */
		if (bytes.write == ORACLE_ZEROES)
			bytes.write = 0;
		if (bytes.write != 0)
			bytes.shift += from - offset;
		note_end(data, offset + end, keep_old);
		put(data, offset + at, offset + end, bytes, keep_old);
	}
	if (!keep_old)
		join_equal(data);
}

void oracle_data_truncate(struct oracle_data *data, uint64_t size, bool unsettled)
{
	unsigned int first = split(data, size);

	replace(data, first, data->count, (struct oracle_bytes){0});
	/* The size on disk reaches only up to data that has landed, so it may be smaller while data
	 * is in flight. */
	data->size_min = unsettled ? zf_min_u64(data->size_min, size) : size;
	data->size_max = size;
	data->size = size;
	join_equal(data);
}

void oracle_data_maybe(struct oracle_data *data, uint64_t from, uint64_t to, uint32_t write)
{
	put(data, from, zf_min_u64(to, data->size_max), (struct oracle_bytes){.write = write},
	    true);
}

void oracle_data_maybe_copied(struct oracle_data *data, uint64_t offset,
			      const struct oracle_data *source, uint64_t from, uint64_t len)
{
	for (uint64_t at = 0, end; at < len && offset + at < data->size_max; at = end) {
		struct oracle_bytes bytes = newest(oracle_data_find(source, from + at, &end));

		end = zf_min_u64(end - from, len);
		if (bytes.write == ORACLE_ZEROES)
			bytes.write = 0;
		if (bytes.write != 0)
			bytes.shift += from - offset;
		put(data, offset + at, zf_min_u64(offset + end, data->size_max), bytes, true);
	}
}

void oracle_data_settle(struct oracle_data *data)
{
	for (unsigned int i = 0; i < data->count; i++) {
		data->spans[i].candidate[0] = newest(&data->spans[i]);
		data->spans[i].count = 1;
	}
	data->size_min = data->size_max = data->size;
	join_equal(data);
}

const struct oracle_span *oracle_data_find(const struct oracle_data *data, uint64_t offset,
					   uint64_t *ret_end)
{
	unsigned int i = index_of(data, offset);

	*ret_end = i + 1 < data->count ? data->spans[i + 1].start : UINT64_MAX;
	return &data->spans[i];
}

bool oracle_data_is_zero(const struct oracle_data *data, uint64_t from, uint64_t to)
{
	return oracle_data_next(data, from) >= to;
}

uint64_t oracle_data_next(const struct oracle_data *data, uint64_t from)
{
	for (unsigned int i = index_of(data, from); i < data->count; i++) {
		if (newest(&data->spans[i]).write != 0)
			return zf_max_u64(from, data->spans[i].start);
	}
	return UINT64_MAX;
}

/* ---- what was read ---- */

/* One candidate must explain the whole range: within a block, or for data in place a sector. */
static bool is_explained(const struct oracle_span *span, uint64_t offset, const uint8_t *buf,
			 size_t len)
{
	uint8_t expected[ZF_BLOCK_SIZE];

	for (uint32_t i = span->count; i > 0; i--) {
		const struct oracle_bytes *bytes = &span->candidate[i - 1];

		oracle_fill(bytes->write, offset + bytes->shift, expected, len);
		if (memcmp(expected, buf, len) == 0)
			return true;
	}
	return false;
}

size_t oracle_data_check(const struct oracle_data *data, uint64_t offset, const uint8_t *buf,
			 size_t len)
{
	uint64_t unit = data->in_place ? ORACLE_SECTOR : ZF_BLOCK_SIZE;

	for (size_t at = 0; at < len;) {
		uint64_t end;
		const struct oracle_span *span = oracle_data_find(data, offset + at, &end);
		uint64_t unit_end = zf_align_down(offset + at, unit) + unit;
		size_t n = zf_min_u64(zf_min_u64(end, unit_end) - (offset + at), len - at);

		if (!is_explained(span, offset + at, buf + at, n))
			return at;
		at += n;
	}
	return len;
}

/* SPDX-License-Identifier: MIT */
#include "transfer/copy_bytes.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/undumped.h"

#define CHUNK_MAX ((uint64_t)1 << 20)
#define CHUNKS	  8u

struct chunk {
	struct zf_io io;
	struct iovec iov;
	bool busy;
};

struct zf_copy_bytes {
	struct zf_dev *from, *to;
	uint64_t chunk_size;
	uint8_t *buf;
	struct chunk chunks[CHUNKS];
};

int zf_copy_bytes_new(struct zf_dev *from, struct zf_dev *to, struct zf_copy_bytes **ret_bytes)
{
	struct zf_copy_bytes *bytes = calloc(1, sizeof(*bytes));

	assert(!zf_dev_is_threaded(to));
	if (!bytes)
		return -ENOMEM;
	bytes->from = from;
	bytes->to = to;
	bytes->chunk_size = zf_min_u64(CHUNK_MAX, zf_dev_geometry(to)->append_limit);
	bytes->buf = zf_undumped_alloc(bytes->chunk_size * CHUNKS);
	if (!bytes->buf) {
		free(bytes);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < CHUNKS; i++)
		bytes->chunks[i].iov.iov_base = bytes->buf + i * bytes->chunk_size;
	*ret_bytes = bytes;
	return 0;
}

void zf_copy_bytes_free(struct zf_copy_bytes *bytes)
{
	if (!bytes)
		return;
	free(bytes->buf);
	free(bytes);
}

static void chunk_done(struct zf_io *io)
{
	ZF_CONTAINER_OF(io, struct chunk, io)->busy = false;
}

/* Waits for the chunk's last write, and returns its result. */
static int await(struct zf_copy_bytes *bytes, struct chunk *chunk, const struct zf_report *report)
{
	int r;

	while (chunk->busy)
		zf_dev_poll(bytes->to, true);
	r = chunk->io.result;
	chunk->io.result = 0;
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: cannot be written at %" PRIu64 ": %s",
			  zf_dev_path(bytes->to), chunk->io.addr, strerror(-r));
	return r;
}

static int await_all(struct zf_copy_bytes *bytes, const struct zf_report *report)
{
	int r = 0;

	for (unsigned int i = 0; i < CHUNKS; i++) {
		int error = await(bytes, &bytes->chunks[i], r < 0 ? NULL : report);

		r = r < 0 ? r : error;
	}
	return r;
}

static int read_chunk(struct zf_copy_bytes *bytes, struct chunk *chunk, uint64_t address,
		      uint64_t len, const struct zf_report *report)
{
	int r;

	chunk->iov.iov_len = len;
	r = zf_dev_read(bytes->from, address, &chunk->iov, 1);
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: cannot be read at %" PRIu64 ": %s",
			  zf_dev_path(bytes->from), address, strerror(-r));
	return r;
}

static void write_chunk(struct zf_copy_bytes *bytes, struct chunk *chunk, uint64_t address)
{
	chunk->io = (struct zf_io){
		.op = ZF_IO_WRITE,
		.addr = address,
		.len = chunk->iov.iov_len,
		.iov = &chunk->iov,
		.iovcnt = 1,
		.done = chunk_done,
	};
	chunk->busy = true;
	zf_dev_submit(bytes->to, &chunk->io);
}

int zf_copy_bytes_run(struct zf_copy_bytes *bytes, uint64_t address, uint64_t len,
		      const struct zf_report *report)
{
	uint64_t end = address + len;
	unsigned int next = 0;
	int r = 0, error;

	while (address < end && r == 0) {
		struct chunk *chunk = &bytes->chunks[next++ % CHUNKS];
		uint64_t n = zf_min_u64(bytes->chunk_size, end - address);

		r = await(bytes, chunk, report);
		if (r == 0)
			r = read_chunk(bytes, chunk, address, n, report);
		if (r == 0)
			write_chunk(bytes, chunk, address);
		address += n;
	}
	error = await_all(bytes, r < 0 ? NULL : report);
	return r < 0 ? r : error;
}

static int clear_chunk(struct zf_copy_bytes *bytes, uint64_t address, uint64_t len)
{
	struct zf_io io = {.op = ZF_IO_ZEROES, .addr = address, .len = len};

	if (zf_dev_read_buf(bytes->to, address, bytes->buf, len) == 0 &&
	    zf_is_zero(bytes->buf, len))
		return 0;
	return zf_dev_run(bytes->to, &io);
}

int zf_copy_bytes_clear(struct zf_copy_bytes *bytes, uint64_t address, uint64_t len)
{
	uint64_t end = address + len, n;
	int r = 0;

	for (; address < end && r == 0; address += n) {
		n = zf_min_u64(bytes->chunk_size, end - address);
		r = clear_chunk(bytes, address, n);
	}
	return r;
}

/* SPDX-License-Identifier: MIT */
#include "io_util.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"

static uint64_t word(uint64_t tag, uint64_t i)
{
	return (tag + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u;
}

void blocks_fill(void *buf, uint64_t len, uint64_t tag)
{
	for (uint64_t i = 0; i < len / 8; i++) {
		uint64_t v = word(tag, i);

		memcpy((char *)buf + 8 * i, &v, sizeof(v));
	}
}

void *blocks_new(uint64_t len, uint64_t tag)
{
	void *buf = aligned_alloc(ZF_BLOCK_SIZE, len);

	if (!buf)
		abort();
	blocks_fill(buf, len, tag);
	return buf;
}

bool blocks_are(const void *buf, uint64_t len, uint64_t tag)
{
	for (uint64_t i = 0; i < len / 8; i++) {
		uint64_t v = word(tag, i);

		if (memcmp((const char *)buf + 8 * i, &v, sizeof(v)) != 0)
			return false;
	}
	return true;
}

bool blocks_are_zero(const void *buf, uint64_t len)
{
	const unsigned char *p = buf;

	for (uint64_t i = 0; i < len; i++) {
		if (p[i] != 0)
			return false;
	}
	return true;
}

int run_write(struct zf_dev *dev, uint64_t addr, uint64_t len, uint64_t tag, bool fua)
{
	_zf_free_ void *buf = blocks_new(len, tag);

	return zf_dev_write_sync(dev, addr, buf, len, fua);
}

int run_append(struct zf_dev *dev, uint64_t zone_addr, uint64_t len, uint64_t tag,
	       uint64_t *ret_addr)
{
	_zf_free_ void *buf = blocks_new(len, tag);
	struct iovec iov = {.iov_base = buf, .iov_len = len};
	struct zf_io io = {
		.op = ZF_IO_APPEND, .addr = zone_addr, .len = len, .iov = &iov, .iovcnt = 1};
	int r = zf_dev_run(dev, &io);

	if (r == 0)
		*ret_addr = io.addr;
	return r;
}

int run_zeroes(struct zf_dev *dev, uint64_t addr, uint64_t len)
{
	struct zf_io io = {.op = ZF_IO_ZEROES, .addr = addr, .len = len};

	return zf_dev_run(dev, &io);
}

bool device_holds(struct zf_dev *dev, uint64_t addr, uint64_t len, uint64_t tag)
{
	_zf_free_ void *buf = blocks_new(len, ~tag);

	return zf_dev_read_buf(dev, addr, buf, len) == 0 && blocks_are(buf, len, tag);
}

bool device_holds_zeroes(struct zf_dev *dev, uint64_t addr, uint64_t len)
{
	_zf_free_ void *buf = blocks_new(len, 0);

	return zf_dev_read_buf(dev, addr, buf, len) == 0 && blocks_are_zero(buf, len);
}

struct zf_zone_info zone_of(struct zf_dev *dev, uint32_t zone_no)
{
	struct zf_zone_info info;

	if (zf_dev_report(dev, zone_no, 1, &info) < 0)
		abort();
	return info;
}

/* SPDX-License-Identifier: MIT */
/*
 * appends DEVICE native|emulated|locked WRITERS MILLISECONDS: each writer appends 4 KiB to one zone
 * that all writers share, and again as soon as its append completes. When the zone is full, the
 * writers go on to the next. There is no filesystem, only the device. All zones that are used must
 * be empty beforehand.
 *
 * Prints how many appends took how many seconds.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/open.h"

#define WRITERS_MAX  64u
#define APPEND_BYTES 4096u

static struct zf_dev *dev;
static uint64_t zone_addr, zone_room; /* bytes */
static uint64_t count, deadline_ns;
static unsigned int in_flight;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static _Noreturn void fail(const char *what, int error)
{
	fprintf(stderr, "appends: %s: %s\n", what, strerror(-error));
	exit(1);
}

static void append(struct zf_io *io)
{
	const struct zf_geometry *geometry = zf_dev_geometry(dev);

	if (zone_room < APPEND_BYTES) {
		zone_addr += geometry->zone_size;
		zone_room = geometry->zone_capacity;
		if (zone_addr / geometry->zone_size >= geometry->zone_count)
			fail("the device is full: fewer MILLISECONDS", 0);
	}
	zone_room -= APPEND_BYTES;
	io->addr = zone_addr;
	in_flight++;
	zf_dev_submit(dev, io);
}

static void appended(struct zf_io *io)
{
	in_flight--;
	if (io->result < 0)
		fail("append", io->result);
	count++;
	if (now_ns() < deadline_ns)
		append(io);
}

int main(int argc, char **argv)
{
	static char contents[APPEND_BYTES] __attribute__((aligned(APPEND_BYTES)));
	static const struct iovec iov = {contents, APPEND_BYTES};
	static struct zf_io ios[WRITERS_MAX];
	const struct zf_report report = {zf_report_stderr, argv[0]};
	struct zf_open_options options = {0};
	unsigned int writers = argc == 5 ? (unsigned int)atoi(argv[3]) : 0;
	uint64_t began;
	int r;

	if (writers == 0 || writers > WRITERS_MAX ||
	    zf_append_mode_parse(argv[2], &options.append) < 0) {
		fprintf(stderr,
			"usage: appends DEVICE native|emulated|locked WRITERS MILLISECONDS\n");
		return 2;
	}
	r = zf_dev_open(argv[1], &options, &report, &dev);
	if (r < 0)
		return 1;
	zone_room = zf_dev_geometry(dev)->zone_capacity;
	began = now_ns();
	deadline_ns = began + strtoull(argv[4], NULL, 10) * 1000000;
	for (unsigned int i = 0; i < writers; i++) {
		ios[i] = (struct zf_io){.op = ZF_IO_APPEND,
					.len = APPEND_BYTES,
					.iov = &iov,
					.iovcnt = 1,
					.done = appended};
		append(&ios[i]);
	}
	while (in_flight > 0)
		zf_dev_poll(dev, true);
	printf("%llu %.6f\n", (unsigned long long)count, (double)(now_ns() - began) / 1e9);
	zf_dev_close(dev);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * bench_data [MiB]: measures what the filesystem itself costs for file data, on the memory device
 * and with threads. Prints a table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fs/mount/format.h"
#include "fs/core/fs.h"
#include "io/memory.h"
#include "sim/rng.h"

static struct zf_fs *fs;
static struct zf_ctx ctx = {.may_wait = true};
static uint8_t *buf;

static double now_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct watch {
	double wall, caller, process; /* seconds; of processor time the latter two */
};

static struct watch watch_now(void)
{
	return (struct watch){now_s(CLOCK_MONOTONIC), now_s(CLOCK_THREAD_CPUTIME_ID),
			      now_s(CLOCK_PROCESS_CPUTIME_ID)};
}

static void must(int64_t ok, const char *what)
{
	if (ok < 0) {
		fprintf(stderr, "%s: error %ld\n", what, (long)ok);
		exit(1);
	}
}

static void row(const char *what, const struct watch *began, uint64_t bytes, uint64_t ops)
{
	struct watch now = watch_now();
	double wall = now.wall - began->wall, n = (double)ops;

	printf("%-44s %7.0f MiB/s %9.0f /s %8.2f us; cpu: caller %8.2f us, all %8.2f us\n", what,
	       (double)bytes / wall / 1048576, n / wall, wall / n * 1e6,
	       (now.caller - began->caller) / n * 1e6, (now.process - began->process) / n * 1e6);
}

static void each(const char *what, uint64_t ino, uint64_t size, uint64_t len, bool scattered,
		 bool is_write)
{
	struct zf_rng rng = {1};
	struct watch began = watch_now();
	uint64_t n = size / len;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = (scattered ? zf_rng_below(&rng, n) : i) * len;

		if (is_write)
			must(zf_fs_write(fs, &ctx, ino, at, buf, len, 0), what);
		else
			must(zf_fs_read(fs, &ctx, ino, at, buf, len), what);
	}
	row(what, &began, n * len, n);
}

static void sync_row(void)
{
	struct watch began = watch_now();

	must(zf_fs_syncfs(fs, &ctx), "syncfs");
	row("  syncfs after it", &began, 0, 1);
}

int main(int argc, char **argv)
{
	uint64_t size = (argc > 1 ? strtoull(argv[1], NULL, 0) : 512) << 20;
	const struct zf_geometry geometry = {
		.zone_size = 32 << 20,
		.zone_capacity = 32 << 20,
		.zone_count = (uint32_t)(size * 5 / 2 / (32 << 20) + 40),
		.append_limit = 1 << 20,
	};
	const struct zf_format_options format = {.fsid = {1}};
	const struct zf_mount_options options = {.threads = true};
	struct zf_memory *memory;
	struct zf_dev_stats stats;
	struct zf_dev *dev;
	struct zf_attr attr;
	struct watch began;

	buf = aligned_alloc(4096, 1 << 20);
	memset(buf, 0x5a, 1 << 20);
	must(zf_memory_new(&geometry, &memory), "memory");
	must(zf_memory_open(memory, NULL, NULL, &dev), "open");
	must(zf_fs_format(dev, &format, NULL), "format");
	must(zf_dev_start_thread(dev), "thread");
	must(zf_fs_mount(dev, &options, NULL, &fs), "mount");
	must(zf_fs_make(fs, &ctx, ZF_INO_ROOT, "file", S_IFREG | 0644, 0, NULL, &attr), "make");

	each("write 1 MiB, one behind the other", attr.ino, size, 1 << 20, false, true);
	sync_row();
	zf_dev_get_stats(dev, &stats);
	printf("  %lu appends of %lu KiB\n", (unsigned long)stats.appends,
	       (unsigned long)(stats.append_bytes / stats.appends / 1024));
	each("read 1 MiB, one behind the other", attr.ino, size, 1 << 20, false, false);
	each("read 4 KiB, one behind the other", attr.ino, size / 4, 4096, false, false);
	each("read 4 KiB, scattered", attr.ino, size / 4, 4096, true, false);
	each("overwrite 1 MiB, one behind the other", attr.ino, size, 1 << 20, false, true);
	sync_row();
	each("overwrite 4 KiB, scattered, within the bound", attr.ino, 16 << 20, 4096, true, true);
	sync_row();
	each("overwrite 4 KiB, scattered", attr.ino, size / 4, 4096, true, true);
	sync_row();
	each("read 4 KiB, scattered, after that", attr.ino, size / 4, 4096, true, false);
	each("read 1 MiB, after that", attr.ino, size / 4, 1 << 20, false, false);
	must(zf_fs_make(fs, &ctx, ZF_INO_ROOT, "log", S_IFREG | 0644, 0, NULL, &attr), "make");
	began = watch_now();
	for (unsigned int i = 0; i < 200000; i++)
		must(zf_fs_write(fs, &ctx, attr.ino, 0, buf, 100, ZF_WRITE_APPEND), "append");
	row("append 100 bytes", &began, 20000000, 200000);
	began = watch_now();
	for (unsigned int i = 0; i < 1000; i++)
		must(zf_fs_write(fs, &ctx, attr.ino, 0, buf, 4096,
				 ZF_WRITE_APPEND | ZF_WRITE_DSYNC),
		     "append");
	row("append 4 KiB, O_DSYNC", &began, 4096000, 1000);
	must(zf_fs_unmount(fs), "unmount");
	zf_dev_close(dev);
	zf_memory_free(memory);
	free(buf);
	return 0;
}

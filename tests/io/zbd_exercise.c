/* SPDX-License-Identifier: MIT */
/*
 * Puts the zbd backend through everything on a real zoned block device, whose contents are lost:
 *
 *	zbd_exercise DEVICE
 *
 * It uses emulated appends, then locked ones, and on an NVMe disk native commands in between. Names
 * the first error and exits with 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/nvme.h"
#include "io/nvme_name.h"
#include "io/zbd.h"
#include "io_util.h"

#define BLOCK	((uint64_t)ZF_BLOCK_SIZE)
#define THREADS 4
#define WINDOW	16 /* appends in flight, a thread */

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("# line %d: %s\n", __LINE__, #condition);                           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define CHECK_RESULT(call, expected)                                                               \
	do {                                                                                       \
		int result_ = (call);                                                              \
		if (result_ != (expected)) {                                                       \
			printf("# line %d: %s is %d, expected %d\n", __LINE__, #call, result_,     \
			       (expected));                                                        \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static const struct zf_report report = {zf_report_stderr, (void *)(uintptr_t)"zbd_exercise"};
static const char *path;
static enum zf_append_mode mode;
static struct zf_dev *dev;
static const struct zf_geometry *geometry;
static uint32_t first; /* sequential zone */

static void open_device(bool read_only)
{
	const struct zf_open_options options = {.read_only = read_only, .append = mode};

	CHECK_RESULT(zf_zbd_open(path, &options, &report, &dev), 0);
	CHECK_RESULT(zf_dev_start_thread(dev), 0);
	geometry = zf_dev_geometry(dev);
	first = geometry->conventional;
}

static uint64_t start_of(uint32_t zone_no)
{
	return zone_no * geometry->zone_size;
}

static uint64_t pointer_of(uint32_t zone_no)
{
	struct zf_zone_info info = zone_of(dev, zone_no);

	return info.wp - info.start;
}

static void ok(const char *what)
{
	printf("# ok: %s\n", what);
	fflush(stdout);
}

/* ---- what the device sees ---- */

static uint64_t queue_number(dev_t device, const char *name)
{
	char file[128];
	uint64_t value = 0;
	FILE *f;

	snprintf(file, sizeof(file), "/sys/dev/block/%u:%u/queue/%s", major(device), minor(device),
		 name);
	f = fopen(file, "re");
	CHECK(f && fscanf(f, "%" SCNu64, &value) == 1);
	fclose(f);
	return value;
}

static uint64_t read_counters(const char *file, uint64_t *ret_writes, uint64_t *ret_flushes)
{
	uint64_t in_flight = 0;
	FILE *f = fopen(file, "re");

	CHECK(f && fscanf(f,
			  "%*u %*u %*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64
			  " %*u %*u %*u %*u %*u %*u %" SCNu64,
			  ret_writes, &in_flight, ret_flushes) == 3);
	fclose(f);
	return in_flight;
}

/*
 * Writes and flushes that the kernel has sent to the device so far. The kernel answers a request
 * before it counts the request, which is in flight until then.
 */
static void count_commands(dev_t device, uint64_t *ret_writes, uint64_t *ret_flushes)
{
	char file[128];

	snprintf(file, sizeof(file), "/sys/dev/block/%u:%u/stat", major(device), minor(device));
	while (read_counters(file, ret_writes, ret_flushes) > 0)
		sched_yield();
}

/* ---- many appends at once ---- */

struct piece {
	struct zf_io io;
	struct iovec iov[2];
	struct worker *worker;
	uint64_t tag;
	void *buf;
	bool busy;
};

struct landed {
	uint64_t addr, len, tag;
	struct landed *next;
};

struct worker {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct piece pieces[WINDOW];
	struct landed *landed;
	uint64_t next_tag;
	unsigned int in_flight;
	bool full;
	int error;
};

static struct worker workers[THREADS];

static void piece_done(struct zf_io *io)
{
	struct piece *piece = ZF_CONTAINER_OF(io, struct piece, io);
	struct worker *worker = piece->worker;

	pthread_mutex_lock(&worker->lock);
	if (io->result == 0) {
		struct landed *landed = malloc(sizeof(*landed));

		*landed = (struct landed){io->addr, io->len, piece->tag, worker->landed};
		worker->landed = landed;
	} else if (io->result == -ENOSPC) {
		worker->full = true;
	} else {
		worker->error = io->result;
	}
	free(piece->buf);
	piece->busy = false;
	worker->in_flight--;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

static void start_piece(struct worker *worker, struct piece *piece)
{
	uint64_t tag = worker->next_tag++, max = geometry->append_limit / BLOCK;
	uint64_t blocks = 1 + tag * 0x9e3779b97f4a7c15u % (tag % 4 == 0 ? max : 3);
	uint64_t half = blocks / 2;

	piece->buf = blocks_new(blocks * BLOCK, tag);
	piece->tag = tag;
	piece->busy = true;
	piece->worker = worker;
	piece->iov[0] = (struct iovec){piece->buf, (blocks - half) * BLOCK};
	piece->iov[1] = (struct iovec){(char *)piece->buf + (blocks - half) * BLOCK, half * BLOCK};
	piece->io = (struct zf_io){
		.op = ZF_IO_APPEND,
		.fua = tag % 5 == 0,
		.addr = start_of(first + (uint32_t)(tag % 3)),
		.len = blocks * BLOCK,
		.iov = piece->iov,
		.iovcnt = half ? 2 : 1,
		.done = piece_done,
	};
	worker->in_flight++;
	pthread_mutex_unlock(&worker->lock);
	zf_dev_submit(dev, &piece->io);
	pthread_mutex_lock(&worker->lock);
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	pthread_mutex_lock(&worker->lock);
	while (!worker->full && worker->error == 0) {
		struct piece *piece = NULL;

		for (unsigned int i = 0; i < WINDOW; i++)
			piece = worker->pieces[i].busy ? piece : &worker->pieces[i];
		if (piece)
			start_piece(worker, piece);
		else
			pthread_cond_wait(&worker->changed, &worker->lock);
	}
	while (worker->in_flight > 0)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

/* Each append is at its reported address. The appends fill the zones up to their pointers, so none
 * overlaps another. */
static void check_landed(uint64_t writes)
{
	uint64_t bytes[3] = {0}, count = 0;

	for (unsigned int t = 0; t < THREADS; t++) {
		struct landed *landed, *next;

		CHECK_RESULT(workers[t].error, 0);
		for (landed = workers[t].landed; landed; landed = next) {
			next = landed->next;
			CHECK(device_holds(dev, landed->addr, landed->len, landed->tag));
			bytes[landed->addr / geometry->zone_size - first] += landed->len;
			count++;
			free(landed);
		}
	}
	for (uint32_t i = 0; i < 3; i++)
		CHECK(pointer_of(first + i) == bytes[i]);
	/* Waiting appends are merged, or, in the other mode, never. */
	CHECK(mode == ZF_APPEND_LOCKED ? writes == count : writes < count);
	printf("# %" PRIu64 " appends of %" PRIu64 " KiB in all, %" PRIu64 " writes\n", count,
	       (bytes[0] + bytes[1] + bytes[2]) >> 10, writes);
}

static void many_appends(void)
{
	uint64_t writes, writes_after, flushes;
	struct stat st;

	CHECK(stat(path, &st) == 0);
	count_commands(st.st_rdev, &writes, &flushes);
	for (unsigned int t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){.next_tag = (uint64_t)t << 32};
		pthread_mutex_init(&workers[t].lock, NULL);
		pthread_cond_init(&workers[t].changed, NULL);
		CHECK(pthread_create(&workers[t].thread, NULL, work, &workers[t]) == 0);
	}
	for (unsigned int t = 0; t < THREADS; t++)
		pthread_join(workers[t].thread, NULL);
	count_commands(st.st_rdev, &writes_after, &flushes);
	check_landed(writes_after - writes);
	ok("appends of several threads to three zones");
}

/* ---- one by one ---- */

static void reset_all(void)
{
	for (uint32_t z = first; z < geometry->zone_count; z++) {
		CHECK_RESULT(zf_dev_reset(dev, z), 0);
		CHECK(zone_of(dev, z).cond == ZF_ZONE_EMPTY && pointer_of(z) == 0);
	}
	ok("resets");
}

static void one_owner(void)
{
	const struct zf_open_options options = {.append = mode};
	struct zf_dev *other;

	CHECK_RESULT(zf_zbd_open(path, &options, NULL, &other), -EBUSY);
	ok("one owner at a time");
}

/* One write larger than the limit, zeroes, appends, each durable in its way. */
static void at_the_pointer(void)
{
	uint64_t start = start_of(first), large = 3 * geometry->append_limit + BLOCK, addr;

	CHECK_RESULT(zf_dev_reset(dev, first), 0);
	CHECK_RESULT(run_write(dev, start, large, 1, true), 0);
	CHECK_RESULT(run_zeroes(dev, start + large, large), 0);
	CHECK_RESULT(run_append(dev, start, BLOCK, 2, &addr), 0);
	CHECK(addr == start + 2 * large);
	CHECK_RESULT(run_write(dev, addr + BLOCK, BLOCK, 3, false), 0);
	CHECK_RESULT(zf_dev_flush(dev), 0);
	CHECK(device_holds(dev, start, large, 1));
	CHECK(device_holds_zeroes(dev, start + large, large));
	CHECK(device_holds(dev, addr, BLOCK, 2) && device_holds(dev, addr + BLOCK, BLOCK, 3));
	CHECK(pointer_of(first) == 2 * large + 2 * BLOCK);
	ok("writes, zeroes and appends at the pointer");
}

/* Where the device has FUA, a durable append is one write and no flush. */
static void durable_appends(void)
{
	uint64_t writes, flushes, writes_after, flushes_after;
	struct stat st;

	CHECK(stat(path, &st) == 0);
	CHECK_RESULT(zf_dev_reset(dev, first), 0);
	count_commands(st.st_rdev, &writes, &flushes);
	for (unsigned int i = 0; i < 20; i++) {
		_zf_free_ void *buf = blocks_new(BLOCK, i);
		struct iovec iov = {buf, BLOCK};
		struct zf_io io = {.op = ZF_IO_APPEND,
				   .fua = true,
				   .addr = start_of(first),
				   .len = BLOCK,
				   .iov = &iov,
				   .iovcnt = 1};

		CHECK_RESULT(zf_dev_run(dev, &io), 0);
		CHECK(io.addr == start_of(first) + i * BLOCK);
	}
	count_commands(st.st_rdev, &writes_after, &flushes_after);
	CHECK(writes_after - writes == 20);
	printf("# 20 durable appends: %" PRIu64 " writes, %" PRIu64 " flushes, FUA %d\n",
	       writes_after - writes, flushes_after - flushes,
	       (int)queue_number(st.st_rdev, "fua"));
	if (queue_number(st.st_rdev, "fua") || !geometry->volatile_cache)
		CHECK(flushes_after == flushes);
	else
		CHECK(flushes_after - flushes == 20);
	ok("durable appends");
}

static void rules(void)
{
	uint64_t start = start_of(first), addr;

	CHECK_RESULT(zf_dev_reset(dev, first), 0);
	CHECK_RESULT(run_write(dev, start + BLOCK, BLOCK, 1, false), -EIO);
	CHECK_RESULT(run_append(dev, start, geometry->append_limit + BLOCK, 1, &addr), -EINVAL);
	CHECK_RESULT(run_write(dev, start, geometry->zone_capacity + BLOCK, 1, false), -ENOSPC);
	CHECK_RESULT(run_zeroes(dev, start, geometry->zone_capacity - BLOCK), 0);
	CHECK_RESULT(run_append(dev, start, 2 * BLOCK, 1, &addr), -ENOSPC);
	CHECK_RESULT(run_append(dev, start, BLOCK, 1, &addr), 0);
	CHECK(zone_of(dev, first).cond == ZF_ZONE_FULL);
	CHECK_RESULT(run_append(dev, start, BLOCK, 1, &addr), -ENOSPC);
	CHECK(pointer_of(first + 1) == 0 || zone_of(dev, first + 1).cond != ZF_ZONE_EMPTY);
	ok("the rules of zones");
}

static void finishing(void)
{
	uint64_t addr;

	CHECK_RESULT(zf_dev_reset(dev, first), 0);
	CHECK_RESULT(run_append(dev, start_of(first), BLOCK, 1, &addr), 0);
	CHECK_RESULT(zf_dev_finish(dev, first), 0);
	CHECK(zone_of(dev, first).cond == ZF_ZONE_FULL);
	CHECK_RESULT(run_append(dev, start_of(first), BLOCK, 1, &addr), -ENOSPC);
	CHECK(device_holds(dev, addr, BLOCK, 1));
	CHECK_RESULT(zf_dev_reset(dev, first), 0);
	ok("finish");
}

/* ---- a pointer that moved behind its back ---- */

#define BEHIND 12

static unsigned int behind_left;

static void behind_done(struct zf_io *io)
{
	__atomic_fetch_sub(&behind_left, 1, __ATOMIC_SEQ_CST);
}

/* Moves the pointer, as a write that fails may do. The next write then fails in the kernel. */
static void move_pointer(uint64_t addr)
{
	_zf_free_ void *buf = blocks_new(BLOCK, 99);
	_zf_close_ int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(pwrite(fd, buf, BLOCK, (off_t)addr) == (ssize_t)BLOCK);
}

static void after_an_error(void)
{
	struct zf_io ios[BEHIND];
	struct iovec iov[BEHIND];
	uint64_t start = start_of(first), addr, last = 0;
	unsigned int failed = 0;

	CHECK_RESULT(zf_dev_reset(dev, first), 0);
	CHECK_RESULT(run_append(dev, start, BLOCK, 1, &addr), 0);
	move_pointer(start + BLOCK);
	behind_left = BEHIND;
	for (unsigned int i = 0; i < BEHIND; i++) {
		iov[i] = (struct iovec){blocks_new(2 * BLOCK, 100 + i), 2 * BLOCK};
		ios[i] = (struct zf_io){.op = ZF_IO_APPEND,
					.addr = start,
					.len = 2 * BLOCK,
					.iov = &iov[i],
					.iovcnt = 1,
					.done = behind_done};
		zf_dev_submit(dev, &ios[i]);
	}
	while (__atomic_load_n(&behind_left, __ATOMIC_SEQ_CST) > 0)
		usleep(1000);
	for (unsigned int i = 0; i < BEHIND; i++) {
		free(iov[i].iov_base);
		if (ios[i].result < 0) {
			CHECK_RESULT(ios[i].result, -EIO);
			failed++;
			continue;
		}
		CHECK(ios[i].addr > last);
		last = ios[i].addr;
		CHECK(device_holds(dev, last, 2 * BLOCK, 100 + i));
	}
	CHECK(failed >= 1 && failed < BEHIND);
	CHECK(device_holds(dev, start + BLOCK, BLOCK, 99));
	CHECK(pointer_of(first) == 2 * BLOCK + 2 * BLOCK * (BEHIND - failed));
	printf("# %u of %u appends failed\n", failed, BEHIND);
	ok("goes on after an error");
}

/* ---- limits ---- */

static void active_zones(void)
{
	uint32_t max = geometry->max_active, opened = 0;
	uint64_t addr;

	if (max == 0 || max >= geometry->zone_count - first) {
		printf("# no limit of active zones here\n");
		return;
	}
	for (uint32_t z = first; z < geometry->zone_count; z++)
		CHECK_RESULT(zf_dev_reset(dev, z), 0);
	while (opened < max) {
		CHECK_RESULT(run_append(dev, start_of(first + opened), BLOCK, opened, &addr), 0);
		opened++;
	}
	CHECK_RESULT(run_append(dev, start_of(first + max), BLOCK, 1, &addr), -EOVERFLOW);
	CHECK_RESULT(zf_dev_reset(dev, first), 0);
	CHECK_RESULT(run_append(dev, start_of(first + max), BLOCK, 1, &addr), 0);
	CHECK(addr == start_of(first + max));
	for (uint32_t z = first; z <= first + max; z++)
		CHECK_RESULT(zf_dev_reset(dev, z), 0);
	ok("too many active zones");
}

static void conventional_zones(void)
{
	uint64_t addr;

	if (first == 0) {
		printf("# no conventional zones here\n");
		return;
	}
	CHECK(zone_of(dev, 0).type == ZF_ZONE_CONVENTIONAL);
	CHECK_RESULT(run_write(dev, 40 * BLOCK, 30 * BLOCK, 1, true), 0);
	CHECK_RESULT(run_write(dev, 8 * BLOCK, 2 * BLOCK, 2, false), 0);
	CHECK_RESULT(run_zeroes(dev, 50 * BLOCK, 10 * BLOCK), 0);
	CHECK_RESULT(zf_dev_flush(dev), 0);
	CHECK(device_holds(dev, 40 * BLOCK, 10 * BLOCK, 1));
	CHECK(device_holds_zeroes(dev, 50 * BLOCK, 10 * BLOCK));
	CHECK(device_holds(dev, 8 * BLOCK, 2 * BLOCK, 2));
	CHECK_RESULT(run_append(dev, 0, BLOCK, 1, &addr), -EINVAL);
	CHECK_RESULT(zf_dev_reset(dev, 0), -EINVAL);
	CHECK_RESULT(run_write(dev, geometry->zone_capacity - BLOCK, 2 * BLOCK, 1, false), -ENOSPC);
	ok("conventional zones");
}

static void for_reading(void)
{
	uint64_t addr;

	CHECK_RESULT(zf_dev_reset(dev, first), 0);
	CHECK_RESULT(run_append(dev, start_of(first), BLOCK, 5, &addr), 0);
	zf_dev_close(dev);
	open_device(true);
	CHECK(pointer_of(first) == BLOCK);
	CHECK(device_holds(dev, addr, BLOCK, 5));
	CHECK_RESULT(run_append(dev, start_of(first), BLOCK, 6, &addr), -EROFS);
	CHECK_RESULT(zf_dev_reset(dev, first), -EROFS);
	CHECK_RESULT(zf_dev_grow(dev, 0), -EOPNOTSUPP);
	zf_dev_close(dev);
	open_device(false);
	CHECK_RESULT(run_append(dev, start_of(first), BLOCK, 6, &addr), 0);
	CHECK(addr == start_of(first) + BLOCK);
	ok("opening for reading, and again");
}

/* ---- zones that fail ---- */

/* null_blk makes a zone fail, or work again, when the zone's start is written to such a file. */
static bool toggle(const char *condition, uint32_t zone_no)
{
	const char *name = strrchr(path, '/');
	char file[256];
	FILE *f;

	snprintf(file, sizeof(file), "/sys/kernel/config/nullb%s/%s", name ? name : "", condition);
	f = fopen(file, "we");
	if (!f)
		return false;
	fprintf(f, "%" PRIu64, start_of(zone_no) / 512);
	CHECK(fclose(f) == 0);
	return true;
}

static void check_failing(uint32_t readonly, uint32_t offline, uint64_t addr)
{
	uint64_t none;

	CHECK_RESULT(run_append(dev, start_of(readonly), BLOCK, 2, &none), -EROFS);
	CHECK_RESULT(zf_dev_reset(dev, readonly), -EROFS);
	CHECK(zone_of(dev, readonly).cond == ZF_ZONE_READONLY);
	CHECK(device_holds(dev, addr, 2 * BLOCK, 1));
	CHECK_RESULT(run_append(dev, start_of(offline), BLOCK, 2, &none), -ENXIO);
	CHECK_RESULT(zf_dev_finish(dev, offline), -ENXIO);
	CHECK(zone_of(dev, offline).cond == ZF_ZONE_OFFLINE);
	CHECK(!device_holds(dev, start_of(offline), BLOCK, 1));
}

static void failing_zones(void)
{
	uint32_t readonly = first + 1, offline = first + 2;
	uint64_t addr, none;

	CHECK_RESULT(zf_dev_reset(dev, readonly), 0);
	CHECK_RESULT(zf_dev_reset(dev, offline), 0);
	CHECK_RESULT(run_append(dev, start_of(readonly), 2 * BLOCK, 1, &addr), 0);
	CHECK_RESULT(run_append(dev, start_of(offline), BLOCK, 1, &none), 0);
	if (!toggle("zone_readonly", readonly) || !toggle("zone_offline", offline)) {
		printf("# no zone can be made to fail here\n");
		return;
	}
	check_failing(readonly, offline, addr);
	zf_dev_close(dev);
	open_device(false);
	check_failing(readonly, offline, addr);
	CHECK(toggle("zone_readonly", readonly) && toggle("zone_offline", offline));
	CHECK_RESULT(zf_dev_reset(dev, readonly), 0);
	CHECK_RESULT(run_append(dev, start_of(offline), BLOCK, 3, &addr), 0);
	ok("zones that fail");
}

/* ---- native commands in between ---- */

#define MIXED_ZONES 5

/* Linux 6.10 to 6.18 does not tell its own pointer: see src/io/zbd_resync.c. */
static int result_where_the_kernel_is_wrong(void)
{
	unsigned int version, patch_level;
	struct utsname kernel;

	CHECK(uname(&kernel) == 0);
	CHECK(sscanf(kernel.release, "%u.%u", &version, &patch_level) == 2);
	return version == 6 && patch_level >= 10 && patch_level < 19 ? -EIO : 0;
}

/* Each session opens the disk exclusively. */
static void open_natively(const char *character_device)
{
	const struct zf_open_options options = {.append = ZF_APPEND_NATIVE};

	zf_dev_close(dev);
	CHECK_RESULT(zf_nvme_open(character_device, &options, &report, &dev), 0);
	CHECK_RESULT(zf_dev_start_thread(dev), 0);
	geometry = zf_dev_geometry(dev);
}

static void reopen(void)
{
	zf_dev_close(dev);
	open_device(false);
}

/* zbd writes through the kernel, which does not see the native commands. */
static void mixed_with_native(const char *character_device)
{
	const uint32_t reset = first, appended = first + 1, was_full = first + 2,
		       untouched = first + 3, finished = first + 4;
	uint64_t addr;

	for (uint32_t z = first; z < first + MIXED_ZONES; z++) {
		CHECK_RESULT(zf_dev_reset(dev, z), 0);
		if (z != untouched)
			CHECK_RESULT(run_append(dev, start_of(z), 2 * BLOCK, 1, &addr), 0);
	}
	CHECK_RESULT(run_zeroes(dev, start_of(was_full) + 2 * BLOCK,
				geometry->zone_capacity - 2 * BLOCK),
		     0);
	open_natively(character_device);
	CHECK_RESULT(zf_dev_reset(dev, reset), 0);
	CHECK_RESULT(run_append(dev, start_of(appended), 3 * BLOCK, 2, &addr), 0);
	CHECK_RESULT(zf_dev_reset(dev, was_full), 0);
	CHECK_RESULT(run_append(dev, start_of(was_full), BLOCK, 2, &addr), 0);
	CHECK_RESULT(run_append(dev, start_of(untouched), BLOCK, 2, &addr), 0);
	CHECK_RESULT(zf_dev_finish(dev, finished), 0);
	reopen();
	CHECK_RESULT(run_append(dev, start_of(reset), BLOCK, 3, &addr), 0);
	CHECK(addr == start_of(reset));
	CHECK_RESULT(run_append(dev, start_of(appended), BLOCK, 3, &addr),
		     result_where_the_kernel_is_wrong());
	if (result_where_the_kernel_is_wrong() == 0)
		CHECK(addr == start_of(appended) + 5 * BLOCK && device_holds(dev, addr, BLOCK, 3));
	CHECK(device_holds(dev, start_of(appended) + 2 * BLOCK, 3 * BLOCK, 2));
	CHECK_RESULT(run_append(dev, start_of(was_full), BLOCK, 3, &addr), 0);
	CHECK(addr == start_of(was_full) + BLOCK);
	CHECK_RESULT(run_append(dev, start_of(untouched), BLOCK, 3, &addr), 0);
	CHECK(addr == start_of(untouched) + BLOCK);
	CHECK_RESULT(run_append(dev, start_of(finished), BLOCK, 3, &addr), -ENOSPC);
	ok("native commands in between");
}

static void exercise(enum zf_append_mode way)
{
	char character_device[PATH_MAX];

	mode = way;
	open_device(false);
	printf("# %s, %s: %u zones of %" PRIu64 " KiB, capacity %" PRIu64
	       " KiB, %u conventional, %u open, %u active, append limit %u KiB, cache %d\n",
	       path, zf_append_mode_name(mode), (unsigned int)geometry->zone_count,
	       geometry->zone_size >> 10, geometry->zone_capacity >> 10, geometry->conventional,
	       geometry->max_open, geometry->max_active, geometry->append_limit >> 10,
	       geometry->volatile_cache);
	one_owner();
	reset_all();
	many_appends();
	at_the_pointer();
	durable_appends();
	rules();
	finishing();
	after_an_error();
	active_zones();
	conventional_zones();
	for_reading();
	failing_zones();
	if (zf_nvme_char_name(path, character_device, sizeof(character_device)) == 0)
		mixed_with_native(character_device);
	zf_dev_close(dev);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: zbd_exercise DEVICE\n");
		return 2;
	}
	path = argv[1];
	exercise(ZF_APPEND_EMULATED);
	exercise(ZF_APPEND_LOCKED);
	return 0;
}

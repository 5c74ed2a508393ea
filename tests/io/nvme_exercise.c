/* SPDX-License-Identifier: MIT */
/*
 * The nvme backend on a drive: nvme_exercise /dev/ngXnY. Everything on the drive is lost.
 *
 * Made for an emulated drive of some 64 small zones (scripts/vm); a large one takes long. Each test
 * leaves all zones empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/nvme.h"
#include "io/nvme_name.h"
#include "io_util.h"
#include "sim/rng.h"

#define BLOCK ((uint64_t)ZF_BLOCK_SIZE)

static const char *path;
static char block_path[256], messages[4096];
static struct zf_dev *dev;
static const struct zf_geometry *geometry;
static const struct zf_open_options no_wait = {};

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	size_t used = strlen(messages);

	snprintf(messages + used, sizeof(messages) - used, "%s\n", message);
}

static const struct zf_report report = {.fn = keep_message};

static void reset_all(void)
{
	for (uint32_t i = 0; i < geometry->zone_count; i++) {
		if (zone_of(dev, i).cond != ZF_ZONE_EMPTY)
			assert_int_equal(zf_dev_reset(dev, i), 0);
	}
}

static int open_again(void)
{
	int r = zf_nvme_open(path, &no_wait, &report, &dev);

	if (r == 0)
		geometry = zf_dev_geometry(dev);
	return r;
}

static int setup(void **state)
{
	messages[0] = '\0';
	if (open_again() < 0) {
		print_message("%s", messages);
		return -1;
	}
	reset_all();
	return 0;
}

static int teardown(void **state)
{
	reset_all();
	zf_dev_close(dev);
	dev = NULL;
	return 0;
}

static uint64_t start_of(uint32_t zone_no)
{
	return zone_no * geometry->zone_size;
}

/* ---- what it is ---- */

static uint64_t queue_limit(const char *name)
{
	char file_name[512], text[64] = "";
	FILE *file;

	snprintf(file_name, sizeof(file_name), "/sys/block/%s/queue/%s",
		 strrchr(block_path, '/') + 1, name);
	file = fopen(file_name, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return strtoull(text, NULL, 10);
}

static void its_geometry_is_what_the_kernel_says_of_its_block_device(void **state)
{
	assert_string_equal(zf_dev_kind(dev), "nvme");
	assert_int_equal(geometry->zone_size, queue_limit("chunk_sectors") * 512);
	assert_int_equal(geometry->zone_count, queue_limit("nr_zones"));
	assert_int_equal(geometry->max_open, queue_limit("max_open_zones"));
	assert_int_equal(geometry->max_active, queue_limit("max_active_zones"));
	assert_true(geometry->append_limit <= queue_limit("zone_append_max_bytes"));
	assert_true(geometry->append_limit >= 4 * BLOCK);
	assert_true(geometry->zone_capacity <= geometry->zone_size);
	assert_int_equal(geometry->conventional, 0);
	print_message("zones: %u of %" PRIu64 " KiB, capacity %" PRIu64 ", append %u KiB, open %u, "
		      "active %u, cache %d\n",
		      (unsigned int)geometry->zone_count, geometry->zone_size / 1024,
		      geometry->zone_capacity / 1024, geometry->append_limit / 1024,
		      geometry->max_open, geometry->max_active, geometry->volatile_cache);
}

/* ---- appends ---- */

#define DEPTH 32

struct append {
	struct zf_io io;
	struct iovec iov[4];
	uint8_t *buf;
	uint64_t tag;
	bool busy;
};

struct appender {
	struct zf_rng rng;
	struct append appends[DEPTH];
	uint32_t zone_no;
	atomic_uint busy;
	uint64_t sent, landed, below, count, last;
	struct {
		uint64_t addr, len, tag;
	} *log;
	unsigned int logged;
};

static struct appender *current; /* of the thread that calls done() */

static void append_done(struct zf_io *io)
{
	struct append *append = ZF_CONTAINER_OF(io, struct append, io);
	struct appender *a = current;

	assert_int_equal(io->result, 0);
	a->below += io->addr < a->last;
	a->last = io->addr;
	a->count++;
	a->landed += io->len;
	a->log[a->logged].addr = io->addr;
	a->log[a->logged].len = io->len;
	a->log[a->logged++].tag = append->tag;
	append->busy = false;
	atomic_fetch_sub(&a->busy, 1);
}

static void send_append(struct appender *a, struct append *append, uint64_t room)
{
	uint64_t blocks = 1 + zf_rng_below(&a->rng, geometry->append_limit / BLOCK), at = 0;
	unsigned int count = 0;

	if (zf_rng_chance(&a->rng, 60))
		blocks = 1 + blocks % 4;
	blocks = zf_min_u64(blocks, room / BLOCK);
	append->tag = ++a->sent;
	blocks_fill(append->buf, blocks * BLOCK, append->tag + a->zone_no * UINT64_C(1000000));
	while (at < blocks) {
		uint64_t n = count == 3 ? blocks - at : 1 + zf_rng_below(&a->rng, blocks - at);

		append->iov[count++] = (struct iovec){append->buf + at * BLOCK, n * BLOCK};
		at += n;
	}
	append->io = (struct zf_io){.op = ZF_IO_APPEND,
				    .fua = zf_rng_chance(&a->rng, 30),
				    .addr = start_of(a->zone_no),
				    .len = blocks * BLOCK,
				    .iov = append->iov,
				    .iovcnt = count,
				    .done = append_done};
	append->busy = true;
	atomic_fetch_add(&a->busy, 1);
	zf_dev_submit(dev, &append->io);
}

static void appender_init(struct appender *a, uint32_t zone_no)
{
	*a = (struct appender){.zone_no = zone_no};
	zf_rng_seed(&a->rng, 100 + zone_no);
	a->log = calloc(geometry->zone_capacity / BLOCK, sizeof(*a->log));
	assert_non_null(a->log);
	for (unsigned int i = 0; i < DEPTH; i++)
		a->appends[i].buf = blocks_new(geometry->append_limit, 0);
}

/* Every append is at its reported address, without gaps, and the pointer is behind the last. */
static void appender_check(struct appender *a)
{
	uint64_t capacity = geometry->zone_capacity, covered = 0;
	uint8_t *seen = calloc(capacity / BLOCK, 1);

	for (unsigned int i = 0; i < a->logged; i++) {
		uint64_t addr = a->log[i].addr, len = a->log[i].len;

		assert_true(addr >= start_of(a->zone_no));
		assert_true(addr + len <= start_of(a->zone_no) + capacity);
		assert_true(device_holds(dev, addr, len,
					 a->log[i].tag + a->zone_no * UINT64_C(1000000)));
		for (uint64_t at = addr; at < addr + len; at += BLOCK) {
			assert_int_equal(seen[(at - start_of(a->zone_no)) / BLOCK]++, 0);
			covered += BLOCK;
		}
	}
	assert_int_equal(covered, a->landed);
	assert_int_equal(zone_of(dev, a->zone_no).wp, start_of(a->zone_no) + a->landed);
	free(seen);
}

static void appender_deinit(struct appender *a)
{
	for (unsigned int i = 0; i < DEPTH; i++)
		free(a->appends[i].buf);
	free(a->log);
}

/* Until the zone is full to the last block. */
static void append_until_full(struct appender *a)
{
	uint64_t given = 0;

	current = a;
	while (given < geometry->zone_capacity || atomic_load(&a->busy) > 0) {
		for (unsigned int i = 0; i < DEPTH && given < geometry->zone_capacity; i++) {
			if (a->appends[i].busy)
				continue;
			send_append(a, &a->appends[i], geometry->zone_capacity - given);
			given += a->appends[i].io.len;
		}
		zf_dev_poll(dev, true);
	}
}

static void many_appends_in_one_zone_land_in_any_order(void **state)
{
	struct appender *a = calloc(1, sizeof(*a));
	struct zf_dev_stats stats;

	appender_init(a, 3);
	append_until_full(a);
	appender_check(a);
	assert_int_equal(a->landed, geometry->zone_capacity);
	assert_int_equal(zone_of(dev, 3).cond, ZF_ZONE_FULL);
	zf_dev_get_stats(dev, &stats);
	assert_int_equal(stats.appends, a->count);
	assert_int_equal(stats.append_bytes, a->landed);
	assert_true(stats.fua_writes > 0 && stats.fua_writes < stats.appends);
	print_message("%" PRIu64 " appends, %" PRIu64 " came back below the one before\n", a->count,
		      a->below);
	/* Without such appends the test has shown nothing. */
	assert_true(a->below > 0);
	appender_deinit(a);
	free(a);
}

/* ---- threads ---- */

#define THREADS	   4u
#define PER_THREAD 200u

struct worker {
	pthread_t thread;
	uint64_t addr[PER_THREAD];
	unsigned int number;
};

static uint64_t tag_of(unsigned int number, unsigned int i)
{
	return number * 1000 + i;
}

/* zf_dev_run() carries each append out on this thread. */
static void *append_one_by_one(void *arg)
{
	struct worker *worker = arg;

	for (unsigned int i = 0; i < PER_THREAD; i++) {
		int r = run_append(dev, start_of(5), BLOCK, tag_of(worker->number, i),
				   &worker->addr[i]);

		if (r < 0)
			worker->addr[i] = UINT64_MAX;
	}
	return NULL;
}

static void threads_append_to_one_zone_each_on_its_own(void **state)
{
	struct worker workers[THREADS];

	assert_int_equal(zf_dev_start_thread(dev), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		pthread_create(&workers[i].thread, NULL, append_one_by_one, &workers[i]);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned int i = 0; i < THREADS; i++) {
		for (unsigned int k = 0; k < PER_THREAD; k++)
			assert_true(device_holds(dev, workers[i].addr[k], BLOCK, tag_of(i, k)));
	}
	assert_int_equal(zone_of(dev, 5).wp, start_of(5) + THREADS * PER_THREAD * BLOCK);
}

struct leaver {
	struct zf_io io;
	struct iovec iov;
	atomic_int done;
};

static void leaver_done(struct zf_io *io)
{
	struct leaver *leaver = ZF_CONTAINER_OF(io, struct leaver, io);

	atomic_store(&leaver->done, io->result == 0 ? 1 : -1);
}

static void *submit_and_leave(void *arg)
{
	struct leaver *leavers = arg;

	for (unsigned int i = 0; i < DEPTH; i++)
		zf_dev_submit(dev, &leavers[i].io);
	return NULL;
}

static void what_a_thread_has_submitted_outlives_it(void **state)
{
	struct leaver *leavers = calloc(DEPTH, sizeof(*leavers));
	uint8_t *buf = blocks_new(DEPTH * 8 * BLOCK, 9);
	pthread_t thread;

	assert_int_equal(zf_dev_start_thread(dev), 0);
	for (unsigned int round = 0; round < 20; round++) {
		for (unsigned int i = 0; i < DEPTH; i++) {
			leavers[i].iov = (struct iovec){buf + i * 8 * BLOCK, 8 * BLOCK};
			leavers[i].io = (struct zf_io){.op = ZF_IO_APPEND,
						       .addr = start_of(round % 4),
						       .len = 8 * BLOCK,
						       .iov = &leavers[i].iov,
						       .iovcnt = 1,
						       .done = leaver_done};
			atomic_store(&leavers[i].done, 0);
		}
		pthread_create(&thread, NULL, submit_and_leave, leavers);
		pthread_join(thread, NULL);
		for (unsigned int i = 0; i < DEPTH; i++) {
			while (atomic_load(&leavers[i].done) == 0)
				usleep(1000);
			assert_int_equal(atomic_load(&leavers[i].done), 1);
		}
	}
	free(buf);
	free(leavers);
}

/* ---- writes at the pointer, zeroes, reads ---- */

static atomic_uint under_way;

static void count_down(struct zf_io *io)
{
	atomic_fetch_sub(&under_way, 1);
}

/* One block a segment, each somewhere else in memory, so that the kernel can join none of them. */
static void scatter(struct iovec *iov, uint8_t *buf, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		iov[i] = (struct iovec){buf + (uint64_t)(i * 7 % count) * 2 * BLOCK, BLOCK};
}

static void large_scattered_writes_follow_each_other(void **state)
{
	enum { N = 3, COUNT = ZF_IO_IOV_MAX };
	uint8_t *buf = blocks_new(2 * COUNT * BLOCK, 0), *back = blocks_new(COUNT * BLOCK, 0);
	uint64_t len = COUNT * BLOCK, room = geometry->zone_capacity / len;
	struct iovec *iov = calloc(COUNT, sizeof(*iov));
	struct zf_io io[N];
	unsigned int n = room < N ? (unsigned int)room : N;

	scatter(iov, buf, COUNT);
	for (unsigned int i = 0; i < COUNT; i++)
		blocks_fill(iov[i].iov_base, BLOCK, 500 + i);
	assert_true(n > 0);
	atomic_store(&under_way, n);
	for (unsigned int i = 0; i < n; i++) {
		io[i] = (struct zf_io){.op = ZF_IO_WRITE,
				       .fua = i == 1,
				       .addr = start_of(1) + i * len,
				       .len = len,
				       .iov = iov,
				       .iovcnt = COUNT,
				       .done = count_down};
		zf_dev_submit(dev, &io[i]);
	}
	while (atomic_load(&under_way) > 0)
		zf_dev_poll(dev, true);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(io[i].result, 0);
		for (unsigned int k = 0; k < COUNT; k++)
			assert_true(device_holds(dev, start_of(1) + i * len + k * BLOCK, BLOCK,
						 500 + k));
	}
	assert_int_equal(zone_of(dev, 1).wp, start_of(1) + n * len);
	/* Reads the bytes back, into scattered memory. */
	memset(buf, 0, 2 * COUNT * BLOCK);
	assert_int_equal(zf_dev_read(dev, start_of(1), iov, COUNT), 0);
	for (unsigned int i = 0; i < COUNT; i++)
		assert_true(blocks_are(iov[i].iov_base, BLOCK, 500 + i));
	free(iov);
	free(back);
	free(buf);
}

static void a_write_off_the_pointer_fails(void **state)
{
	assert_int_equal(run_write(dev, start_of(2), 2 * BLOCK, 1, false), 0);
	assert_int_equal(run_write(dev, start_of(2), BLOCK, 2, false), -EIO);
	assert_int_equal(run_write(dev, start_of(2) + 4 * BLOCK, BLOCK, 2, false), -EIO);
	assert_non_null(strstr(messages, "not at the zone's write pointer (NVMe status 0x"));
	assert_int_equal(run_write(dev, start_of(2) + 2 * BLOCK, BLOCK, 3, true), 0);
	assert_true(device_holds(dev, start_of(2) + 2 * BLOCK, BLOCK, 3));
	assert_int_equal(zone_of(dev, 2).wp, start_of(2) + 3 * BLOCK);
}

static void zeroes_move_the_pointer_and_read_as_zeroes(void **state)
{
	uint64_t len = zf_min_u64(geometry->zone_capacity - BLOCK, 5 * 1024 * 1024);

	assert_int_equal(run_write(dev, start_of(0), len, 1, false), 0);
	assert_int_equal(zf_dev_reset(dev, 0), 0);
	assert_int_equal(run_write(dev, start_of(0), BLOCK, 2, false), 0);
	assert_int_equal(run_zeroes(dev, start_of(0) + BLOCK, len), 0);
	assert_int_equal(zone_of(dev, 0).wp, start_of(0) + BLOCK + len);
	assert_true(device_holds(dev, start_of(0), BLOCK, 2));
	assert_true(device_holds_zeroes(dev, start_of(0) + BLOCK, len));
}

static void a_read_goes_over_the_end_of_a_zone(void **state)
{
	uint64_t gap = geometry->zone_size - geometry->zone_capacity, len = 4 * BLOCK + gap;
	uint8_t *buf = blocks_new(len, 0);
	struct appender *a = calloc(1, sizeof(*a));

	appender_init(a, 0);
	append_until_full(a);
	assert_int_equal(run_write(dev, start_of(1), 2 * BLOCK, 8, false), 0);
	assert_int_equal(zf_dev_read_buf(dev, start_of(1) - gap - 2 * BLOCK, buf, len), 0);
	assert_true(blocks_are(buf + len - 2 * BLOCK, 2 * BLOCK, 8));
	assert_true(device_holds(dev, start_of(1), 2 * BLOCK, 8));
	free(buf);
	appender_deinit(a);
	free(a);
}

/* ---- limits ---- */

static void an_append_at_the_limit_lands_and_one_above_is_not_sent(void **state)
{
	uint64_t addr;

	assert_int_equal(run_append(dev, start_of(4), geometry->append_limit, 1, &addr), 0);
	assert_int_equal(addr, start_of(4));
	assert_true(device_holds(dev, addr, geometry->append_limit, 1));
	assert_int_equal(run_append(dev, start_of(4), geometry->append_limit + BLOCK, 1, &addr),
			 -EINVAL);
	assert_int_equal(zone_of(dev, 4).wp, start_of(4) + geometry->append_limit);
	assert_string_equal(messages, "");
}

static void a_full_zone_takes_nothing_more(void **state)
{
	uint64_t capacity = zone_of(dev, 6).capacity, addr;

	assert_int_equal(run_write(dev, start_of(6), capacity - BLOCK, 1, false), 0);
	assert_int_equal(run_append(dev, start_of(6), 2 * BLOCK, 2, &addr), -ENOSPC);
	assert_non_null(strstr(messages, "zone boundary error"));
	assert_int_equal(zone_of(dev, 6).wp, start_of(6) + capacity - BLOCK);
	assert_int_equal(run_append(dev, start_of(6), BLOCK, 3, &addr), 0);
	assert_int_equal(addr, start_of(6) + capacity - BLOCK);
	assert_int_equal(zone_of(dev, 6).cond, ZF_ZONE_FULL);
	assert_int_equal(run_append(dev, start_of(6), BLOCK, 4, &addr), -ENOSPC);
	assert_non_null(strstr(messages, "zone is full"));
	assert_int_equal(run_write(dev, start_of(6) + capacity - BLOCK, 2 * BLOCK, 4, false),
			 -ENOSPC);
}

static void one_active_zone_too_many_is_refused(void **state)
{
	uint64_t addr;

	if (geometry->max_active == 0 || geometry->max_active >= geometry->zone_count)
		skip();
	for (uint32_t i = 0; i < geometry->max_active; i++)
		assert_int_equal(run_append(dev, start_of(i), BLOCK, i, &addr), 0);
	assert_int_equal(run_append(dev, start_of(geometry->max_active), BLOCK, 1, &addr),
			 -EOVERFLOW);
	assert_non_null(strstr(messages, "too many active zones"));
	assert_int_equal(zone_of(dev, geometry->max_active).cond, ZF_ZONE_EMPTY);
	assert_int_equal(zf_dev_reset(dev, 0), 0);
	assert_int_equal(run_append(dev, start_of(geometry->max_active), BLOCK, 1, &addr), 0);
}

/* ---- zones ---- */

static void zones_are_finished_and_reset(void **state)
{
	uint64_t addr;

	assert_int_equal(run_append(dev, start_of(7), BLOCK, 1, &addr), 0);
	assert_int_equal(zone_of(dev, 7).cond, ZF_ZONE_IMP_OPEN);
	assert_int_equal(zf_dev_finish(dev, 7), 0);
	assert_int_equal(zone_of(dev, 7).cond, ZF_ZONE_FULL);
	assert_int_equal(zone_of(dev, 7).wp, start_of(7) + zone_of(dev, 7).capacity);
	assert_true(device_holds(dev, start_of(7), BLOCK, 1));
	assert_int_equal(zf_dev_reset(dev, 7), 0);
	assert_int_equal(zone_of(dev, 7).cond, ZF_ZONE_EMPTY);
	assert_int_equal(zone_of(dev, 7).wp, start_of(7));
	assert_int_equal(run_append(dev, start_of(7), BLOCK, 2, &addr), 0);
	assert_int_equal(addr, start_of(7));
	assert_true(device_holds(dev, start_of(7), BLOCK, 2));
}

static void one_report_tells_of_all_zones(void **state)
{
	struct zf_zone_info *zones = calloc(geometry->zone_count, sizeof(*zones));
	uint32_t last = geometry->zone_count - 1;

	assert_int_equal(run_write(dev, start_of(last), BLOCK, 1, false), 0);
	assert_int_equal(zf_dev_report(dev, 0, geometry->zone_count, zones), 0);
	for (uint32_t i = 0; i <= last; i++) {
		assert_int_equal(zones[i].start, start_of(i));
		assert_int_equal(zones[i].type, ZF_ZONE_SEQUENTIAL);
		assert_int_equal(zones[i].cond, i == last ? ZF_ZONE_IMP_OPEN : ZF_ZONE_EMPTY);
		assert_int_equal(zones[i].wp, start_of(i) + (i == last ? BLOCK : 0));
	}
	assert_int_equal(zf_dev_report(dev, last, 1, zones), 0);
	assert_int_equal(zones[0].wp, start_of(last) + BLOCK);
	assert_int_equal(zf_dev_report(dev, last, 2, zones), -EINVAL);
	free(zones);
}

static void a_flush_succeeds_and_is_counted(void **state)
{
	struct zf_dev_stats stats;
	uint64_t addr;

	assert_int_equal(run_append(dev, start_of(0), BLOCK, 1, &addr), 0);
	assert_int_equal(zf_dev_flush(dev), 0);
	zf_dev_get_stats(dev, &stats);
	assert_int_equal(stats.flushes, geometry->volatile_cache ? 1 : 0);
}

/* ---- a namespace that is open ---- */

static void no_other_program_opens_either_path_of_an_open_namespace(void **state)
{
	struct zf_open_options read_only = {.read_only = true};
	struct zf_dev *other;

	assert_int_equal(zf_nvme_open(path, &no_wait, &report, &other), -EBUSY);
	assert_non_null(strstr(messages, "in use"));
	assert_int_equal(zf_nvme_open(path, &read_only, &report, &other), -EBUSY);
	assert_int_equal(open(block_path, O_RDONLY | O_EXCL | O_CLOEXEC), -1);
	assert_int_equal(errno, EBUSY);
}

static void a_namespace_whose_block_device_is_open_is_busy(void **state)
{
	struct zf_dev *other;
	int fd;

	zf_dev_close(dev);
	fd = open(block_path, O_RDWR | O_EXCL | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(zf_nvme_open(path, &no_wait, &report, &other), -EBUSY);
	close(fd);
	assert_int_equal(open_again(), 0);
}

static void readers_share_it(void **state)
{
	struct zf_open_options read_only = {.read_only = true};
	struct zf_dev *one, *two;

	assert_int_equal(run_write(dev, start_of(0), BLOCK, 1, false), 0);
	zf_dev_close(dev);
	assert_int_equal(zf_nvme_open(path, &read_only, &report, &one), 0);
	assert_int_equal(zf_nvme_open(path, &read_only, &report, &two), 0);
	assert_true(device_holds(two, 0, BLOCK, 1));
	assert_int_equal(open_again(), -EBUSY);
	zf_dev_close(one);
	zf_dev_close(two);
	assert_int_equal(open_again(), 0);
}

static void other_paths_are_refused_in_words(void **state)
{
	struct zf_dev *other;

	assert_int_equal(zf_nvme_open(block_path, &no_wait, &report, &other), -ENODEV);
	assert_int_equal(zf_nvme_open("/dev/null", &no_wait, &report, &other), -ENODEV);
	assert_non_null(strstr(messages, "/dev/null: not the character device"));
	assert_int_equal(zf_nvme_open("/dev/ng99n9", &no_wait, &report, &other), -ENOENT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_geometry_is_what_the_kernel_says_of_its_block_device),
		cmocka_unit_test(many_appends_in_one_zone_land_in_any_order),
		cmocka_unit_test(threads_append_to_one_zone_each_on_its_own),
		cmocka_unit_test(what_a_thread_has_submitted_outlives_it),
		cmocka_unit_test(large_scattered_writes_follow_each_other),
		cmocka_unit_test(a_write_off_the_pointer_fails),
		cmocka_unit_test(zeroes_move_the_pointer_and_read_as_zeroes),
		cmocka_unit_test(a_read_goes_over_the_end_of_a_zone),
		cmocka_unit_test(an_append_at_the_limit_lands_and_one_above_is_not_sent),
		cmocka_unit_test(a_full_zone_takes_nothing_more),
		cmocka_unit_test(one_active_zone_too_many_is_refused),
		cmocka_unit_test(zones_are_finished_and_reset),
		cmocka_unit_test(one_report_tells_of_all_zones),
		cmocka_unit_test(a_flush_succeeds_and_is_counted),
		cmocka_unit_test(no_other_program_opens_either_path_of_an_open_namespace),
		cmocka_unit_test(a_namespace_whose_block_device_is_open_is_busy),
		cmocka_unit_test(readers_share_it),
		cmocka_unit_test(other_paths_are_refused_in_words),
	};
	struct CMUnitTest each[ZF_ARRAY_SIZE(tests)];

	if (argc != 2) {
		fprintf(stderr, "usage: nvme_exercise /dev/ngXnY (everything on it is lost)\n");
		return 2;
	}
	path = argv[1];
	if (zf_nvme_block_name(path, block_path, sizeof(block_path)) < 0) {
		fprintf(stderr, "nvme_exercise: %s is not called /dev/ngXnY\n", path);
		return 2;
	}
	for (size_t i = 0; i < ZF_ARRAY_SIZE(tests); i++) {
		each[i] = tests[i];
		each[i].setup_func = setup;
		each[i].teardown_func = teardown;
	}
	return cmocka_run_group_tests(each, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * The image backend. Every test runs in memory (tmpfs) and on the disk of the build directory, and
 * there also with a recorder: with a recorder no request is carried out on the calling thread, and
 * all go through the ring.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/spawn.h"
#include "io/dev_ops.h"
#include "io/image.h"
#include "io/image_trailer.h"
#include "io_util.h"
#include "sim/rng.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (256 * BLOCK)
#define CAPACITY  (192 * BLOCK)
#define ZONES	  16u

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = CAPACITY,
	.zone_count = ZONES,
	.conventional = 1,
	.max_open = 4,
	.max_active = 6,
	.append_limit = 32 * BLOCK,
	.volatile_cache = true,
};

static const char *directory;
static bool through_ring;
static char path[256];
static struct zf_dev *dev;

static char messages[4096];

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	size_t used = strlen(messages);

	snprintf(messages + used, sizeof(messages) - used, "%s\n", message);
}

static const struct zf_report report = {.fn = keep_message};
static const struct zf_open_options no_wait = {};
static const struct zf_open_options patient = {.lock_wait_ms = 10000};
static const struct zf_open_options reading = {.read_only = true};

static void record_nothing(void *arg, const struct zf_io *io)
{
}

static int open_image(const struct zf_open_options *options)
{
	int r;

	messages[0] = '\0';
	r = zf_image_open(path, options, &report, &dev);
	if (r == 0 && through_ring)
		zf_dev_set_recorder(dev, record_nothing, NULL);
	return r;
}

static void close_image(void)
{
	zf_dev_close(dev);
	dev = NULL;
}

static void reopen(void)
{
	close_image();
	assert_int_equal(open_image(&patient), 0);
}

static int setup(void **state)
{
	snprintf(path, sizeof(path), "%s/zfuse-test-%d.img", directory, getpid());
	unlink(path);
	messages[0] = '\0';
	if (zf_image_create(path, &geometry, false, &no_wait, &report) < 0)
		return -1;
	return open_image(&no_wait);
}

static int teardown(void **state)
{
	close_image();
	unlink(path);
	return 0;
}

/* The opener has checked the name before, but another user may own the directory. */
static void a_fifo_in_the_place_of_the_image_is_refused_at_once(void **state)
{
	const struct zf_open_options options = {.read_only = true};
	struct zf_dev *fifo;

	close_image();
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10);
	assert_int_equal(zf_image_open(path, &options, &report, &fifo), -EINVAL);
	alarm(0);
}

/* ---- contents, rules, pointers ---- */

static void what_was_written_is_read(void **state)
{
	uint64_t addr = 0;

	assert_string_equal(zf_dev_kind(dev), "image");
	assert_string_equal(zf_dev_path(dev), path);
	assert_true(zf_dev_geometry(dev)->volatile_cache);
	assert_false(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_int_equal(run_write(dev, ZONE_SIZE, 2 * BLOCK, 1, false), 0);
	assert_int_equal(run_append(dev, ZONE_SIZE, 32 * BLOCK, 2, &addr), 0);
	assert_int_equal(addr, ZONE_SIZE + 2 * BLOCK);
	assert_int_equal(run_zeroes(dev, ZONE_SIZE + 34 * BLOCK, 37 * BLOCK), 0);
	assert_int_equal(run_write(dev, 5 * BLOCK, BLOCK, 3, true), 0);
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_true(device_holds(dev, ZONE_SIZE, 2 * BLOCK, 1));
	assert_true(device_holds(dev, ZONE_SIZE + 2 * BLOCK, 32 * BLOCK, 2));
	assert_true(device_holds_zeroes(dev, ZONE_SIZE + 34 * BLOCK, 37 * BLOCK));
	assert_true(device_holds(dev, 5 * BLOCK, BLOCK, 3));
}

static void device_byte_n_is_file_byte_n(void **state)
{
	void *buf = blocks_new(BLOCK, 0);
	int fd;

	assert_int_equal(run_write(dev, 3 * ZONE_SIZE, BLOCK, 9, true), 0);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, buf, BLOCK, 3 * ZONE_SIZE), BLOCK);
	assert_true(blocks_are(buf, BLOCK, 9));
	close(fd);
	free(buf);
}

/* The result is the same whether the host can unmap or not. */
static void unmapping_zeroes_fall_back_on_writing(void **state)
{
	struct zf_io io = {
		.op = ZF_IO_ZEROES, .addr = 4 * ZF_BLOCK_SIZE, .len = 40 * ZF_BLOCK_SIZE};
	uint8_t *buf = aligned_alloc(ZF_BLOCK_SIZE, 48 * ZF_BLOCK_SIZE);

	(void)state;
	assert_non_null(buf);
	dev->geometry.unmapping_zeroes = true;
	for (unsigned int i = 0; i < 2; i++) {
		memset(buf, 0xab, 48 * ZF_BLOCK_SIZE);
		assert_int_equal(zf_dev_write_sync(dev, 0, buf, 48 * ZF_BLOCK_SIZE, false), 0);
		assert_int_equal(zf_dev_run(dev, &io), 0);
		assert_int_equal(zf_dev_read_buf(dev, 0, buf, 48 * ZF_BLOCK_SIZE), 0);
		assert_int_equal(buf[4 * ZF_BLOCK_SIZE - 1], 0xab);
		assert_int_equal(buf[44 * ZF_BLOCK_SIZE], 0xab);
		for (unsigned int at = 4 * ZF_BLOCK_SIZE; at < 44 * ZF_BLOCK_SIZE; at++)
			assert_int_equal(buf[at], 0);
	}
	assert_string_equal(messages, "");
	free(buf);
}

static void zeroes_overwrite_a_conventional_zone(void **state)
{
	assert_int_equal(run_write(dev, 0, 192 * BLOCK, 1, false), 0);
	assert_int_equal(run_zeroes(dev, BLOCK, 190 * BLOCK), 0);
	assert_true(device_holds(dev, 0, BLOCK, 1));
	assert_true(device_holds_zeroes(dev, BLOCK, 190 * BLOCK));
	assert_false(device_holds_zeroes(dev, 191 * BLOCK, BLOCK));
}

static void the_rules_of_zones_are_enforced(void **state)
{
	uint64_t addr;

	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, BLOCK, 1, false), -EIO);
	assert_int_equal(run_write(dev, ZONE_SIZE, CAPACITY + BLOCK, 1, false), -ENOSPC);
	assert_int_equal(run_write(dev, ZONE_SIZE, ZONE_SIZE + BLOCK, 1, false), -ENOSPC);
	assert_int_equal(run_append(dev, ZONE_SIZE, 33 * BLOCK, 1, &addr), -EINVAL);
	assert_int_equal(run_append(dev, ZONE_SIZE + BLOCK, BLOCK, 1, &addr), -EINVAL);
	assert_int_equal(run_append(dev, 0, BLOCK, 1, &addr), -EINVAL);
	assert_int_equal(run_write(dev, ZONES * ZONE_SIZE, BLOCK, 1, false), -EINVAL);
	assert_int_equal(run_write(dev, ZONE_SIZE + 512, BLOCK, 1, false), -EINVAL);
	assert_int_equal(zf_dev_read_buf(dev, ZONES * ZONE_SIZE, (void *)BLOCK, BLOCK), -EINVAL);
	assert_int_equal(zf_dev_reset(dev, 0), -EINVAL);
	for (uint32_t i = 1; i <= 6; i++)
		assert_int_equal(run_write(dev, i * ZONE_SIZE, BLOCK, i, false), 0);
	assert_int_equal(zone_of(dev, 1).cond, ZF_ZONE_CLOSED);
	assert_int_equal(zone_of(dev, 6).cond, ZF_ZONE_IMP_OPEN);
	assert_int_equal(run_write(dev, 7 * ZONE_SIZE, BLOCK, 7, false), -EOVERFLOW);
	assert_int_equal(zf_dev_finish(dev, 3), 0);
	assert_int_equal(run_write(dev, 7 * ZONE_SIZE, BLOCK, 7, false), 0);
	assert_int_equal(run_write(dev, 3 * ZONE_SIZE, BLOCK, 7, false), -ENOSPC);
}

static void contents_pointers_and_reset_counts_outlive_the_device(void **state)
{
	assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, false), 0);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, CAPACITY, 2, false), 0);
	assert_int_equal(zf_dev_finish(dev, 3), 0);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(run_write(dev, 4 * ZONE_SIZE, BLOCK, 4, false), 0);
		assert_int_equal(zf_dev_reset(dev, 4), 0);
	}
	reopen();
	assert_string_equal(messages, "");
	assert_false(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_true(device_holds(dev, ZONE_SIZE, 3 * BLOCK, 1));
	assert_true(device_holds(dev, 2 * ZONE_SIZE, CAPACITY, 2));
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 3 * BLOCK);
	assert_int_equal(zone_of(dev, 1).cond, ZF_ZONE_CLOSED);
	assert_int_equal(zone_of(dev, 2).cond, ZF_ZONE_FULL);
	assert_int_equal(zone_of(dev, 3).cond, ZF_ZONE_FULL);
	assert_int_equal(zone_of(dev, 4).cond, ZF_ZONE_EMPTY);
	assert_int_equal(zone_of(dev, 4).reset_count, 3);
	assert_int_equal(zone_of(dev, 0).cond, ZF_ZONE_NOT_WP);
	assert_int_equal(run_write(dev, ZONE_SIZE + 3 * BLOCK, BLOCK, 1, false), 0);
}

static uint64_t bytes_on_host(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, ZONES * ZONE_SIZE + 3 * BLOCK);
	return (uint64_t)st.st_blocks * 512;
}

/* Not every filesystem can give back a part of a file: then every zone stays warm. */
static bool host_punches_holes(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int r;

	assert_true(fd >= 0);
	r = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, ZONE_SIZE, ZONE_SIZE);
	assert_true(r == 0 || errno == EOPNOTSUPP);
	close(fd);
	return r == 0;
}

static void a_reset_gives_the_space_back_but_for_two_warm_zones(void **state)
{
	uint64_t before;

	if (!host_punches_holes())
		skip();
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(run_write(dev, i * ZONE_SIZE, CAPACITY, i, false), 0);
	assert_int_equal(zf_dev_flush(dev), 0);
	before = bytes_on_host();
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	assert_int_equal(zf_dev_reset(dev, 2), 0);
	assert_true(bytes_on_host() + CAPACITY > before);
	assert_int_equal(zf_dev_reset(dev, 3), 0);
	assert_true(bytes_on_host() + CAPACITY <= before);
	assert_true(device_holds_zeroes(dev, 3 * ZONE_SIZE, CAPACITY));
	assert_true(zone_of(dev, 1).warm);
	assert_true(zone_of(dev, 2).warm);
	assert_false(zone_of(dev, 3).warm);
}

static void a_warm_zone_stays_so_until_it_is_written(void **state)
{
	if (!host_punches_holes())
		skip();
	assert_int_equal(run_write(dev, ZONE_SIZE, CAPACITY, 1, false), 0);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, BLOCK, 2, false), 0);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	assert_int_equal(zf_dev_reset(dev, 2), 0);
	assert_true(zone_of(dev, 1).warm);
	assert_false(zone_of(dev, 2).warm); /* hardly written: not worth its space */
	reopen();
	assert_true(zone_of(dev, 1).warm);
	assert_false(zone_of(dev, 2).warm);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 3, false), 0);
	assert_false(zone_of(dev, 1).warm);
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 3));
	reopen();
	assert_false(zone_of(dev, 1).warm);
}

/* ---- many in flight ---- */

#define MANY 700 /* more than the ring takes at once */

struct one {
	struct zf_io io;
	struct iovec iov;
	void *buf;
	bool done;
};

static struct one all[MANY];
static atomic_uint done_count;

static void one_done(struct zf_io *io)
{
	ZF_CONTAINER_OF(io, struct one, io)->done = true;
	atomic_fetch_add(&done_count, 1);
}

static void prepare_one(struct one *one, uint64_t tag)
{
	*one = (struct one){.buf = blocks_new(BLOCK, tag)};
	one->iov = (struct iovec){one->buf, BLOCK};
	one->io = (struct zf_io){.op = ZF_IO_APPEND,
				 .addr = (1 + tag % 4) * ZONE_SIZE,
				 .len = BLOCK,
				 .iov = &one->iov,
				 .iovcnt = 1,
				 .fua = tag % 3 == 0,
				 .done = one_done};
}

static uint64_t recorded[ZONES * 256];
static unsigned int recorded_count;

static void record(void *arg, const struct zf_io *io)
{
	assert_int_equal(io->op, ZF_IO_APPEND);
	recorded[recorded_count++] = io->addr;
}

static void check_all(void)
{
	static bool seen[ZONES * 256];

	memset(seen, 0, sizeof(seen));
	assert_int_equal(recorded_count, MANY);
	for (unsigned int i = 0; i < MANY; i++) {
		assert_true(all[i].done);
		assert_int_equal(all[i].io.result, 0);
		assert_true(device_holds(dev, all[i].io.addr, BLOCK, i));
		free(all[i].buf);
		assert_false(seen[recorded[i] / BLOCK]);
		seen[recorded[i] / BLOCK] = true;
	}
	/* Together they fill the zones without a gap, whatever the order they completed in. */
	for (uint32_t zone_no = 1; zone_no <= 4; zone_no++) {
		struct zf_zone_info info = zone_of(dev, zone_no);

		assert_int_equal(info.wp, info.start + MANY / 4 * BLOCK);
		for (uint64_t addr = info.start; addr < info.wp; addr += BLOCK)
			assert_true(seen[addr / BLOCK]);
	}
}

static void appends_in_flight_all_get_their_own_address(void **state)
{
	recorded_count = 0;
	atomic_store(&done_count, 0);
	zf_dev_set_recorder(dev, record, NULL);
	for (unsigned int i = 0; i < MANY; i++) {
		prepare_one(&all[i], i);
		zf_dev_submit(dev, &all[i].io);
	}
	while (zf_dev_poll(dev, true) > 0)
		;
	check_all();
	assert_int_equal(zf_dev_poll(dev, true), 0);
}

#define SUBMITTERS 4

static void *submitter(void *arg)
{
	for (uintptr_t i = (uintptr_t)arg; i < MANY; i += SUBMITTERS)
		zf_dev_submit(dev, &all[i].io);
	return NULL;
}

static void many_threads_submit_while_a_thread_completes(void **state)
{
	pthread_t threads[SUBMITTERS];

	recorded_count = 0;
	atomic_store(&done_count, 0);
	zf_dev_set_recorder(dev, record, NULL);
	assert_int_equal(zf_dev_start_thread(dev), 0);
	for (unsigned int i = 0; i < MANY; i++)
		prepare_one(&all[i], i);
	for (uintptr_t i = 0; i < SUBMITTERS; i++)
		pthread_create(&threads[i], NULL, submitter, (void *)i);
	for (unsigned int i = 0; i < SUBMITTERS; i++)
		pthread_join(threads[i], NULL);
	while (atomic_load(&done_count) < MANY)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	check_all();
}

static atomic_uint failures;

static void *runner(void *arg)
{
	uint64_t zone_no = 1 + (uintptr_t)arg % 2;

	for (uint64_t i = 0; i < 40; i++) {
		uint64_t tag = 100 * (uintptr_t)arg + i, addr = 0;

		if (run_append(dev, zone_no * ZONE_SIZE, BLOCK, tag, &addr) < 0 ||
		    !device_holds(dev, addr, BLOCK, tag) || (i % 8 == 0 && zf_dev_flush(dev) < 0))
			atomic_fetch_add(&failures, 1);
	}
	return NULL;
}

static void many_threads_run_requests_of_their_own(void **state)
{
	pthread_t threads[SUBMITTERS];
	struct zf_dev_stats stats;

	atomic_store(&failures, 0);
	assert_int_equal(zf_dev_start_thread(dev), 0);
	for (uintptr_t i = 0; i < SUBMITTERS; i++)
		pthread_create(&threads[i], NULL, runner, (void *)i);
	for (unsigned int i = 0; i < SUBMITTERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&failures), 0);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + SUBMITTERS / 2 * 40 * BLOCK);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	zf_dev_get_stats(dev, &stats);
	assert_int_equal(stats.appends, SUBMITTERS * 40);
	assert_true(stats.flushes >= 5 && stats.flushes <= SUBMITTERS * 5); /* shared */
}

static void an_idle_thread_sleeps_and_is_stopped(void **state)
{
	struct timespec before, after;

	assert_int_equal(zf_dev_start_thread(dev), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, true), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec <
		    25000000);
	reopen();
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 1));
}

static void a_reset_and_a_write_of_one_zone_exclude_each_other(void **state)
{
	struct one write, append;
	struct zf_io reset = {.op = ZF_IO_RESET, .addr = ZONE_SIZE, .done = one_done};
	struct one wrapper = {.io = reset};

	prepare_one(&append, 0);
	zf_dev_submit(dev, &append.io);
	zf_dev_submit(dev, &wrapper.io);
	while (zf_dev_poll(dev, true) > 0)
		;
	assert_int_equal(append.io.result, 0);
	assert_int_equal(wrapper.io.result, -EIO);

	prepare_one(&write, 0);
	wrapper.io.addr = ZONE_SIZE;
	zf_dev_submit(dev, &wrapper.io);
	zf_dev_submit(dev, &write.io);
	while (zf_dev_poll(dev, true) > 0)
		;
	assert_int_equal(wrapper.io.result, 0);
	assert_int_equal(write.io.result, -EIO);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	free(append.buf);
	free(write.buf);
}

/* ---- kill -9 ---- */

struct landed {
	uint64_t addr, tag, reset_count;
};

static int landed_pipe;

static void tell_parent(struct zf_io *io)
{
	struct one *one = ZF_CONTAINER_OF(io, struct one, io);
	struct landed landed = {.addr = io->addr, .tag = (uint64_t)(one - all)};

	if (io->result == 0)
		(void)!write(landed_pipe, &landed, sizeof(landed));
	one->done = true;
}

/* Appends to four zones, 48 in flight, until the process is killed; full zones are reset. */
static void append_until_killed(void)
{
	if (zf_image_open(path, &patient, NULL, &dev) < 0 || zf_dev_start_thread(dev) < 0)
		_exit(1);
	for (unsigned int i = 0; i < MANY; i++) {
		prepare_one(&all[i], i);
		all[i].io.done = tell_parent;
		zf_dev_submit(dev, &all[i].io);
	}
	for (unsigned int i = 0;; i++) {
		struct landed landed;

		if (run_write(dev, 6 * ZONE_SIZE, BLOCK, i, false) < 0 || zf_dev_reset(dev, 6) < 0)
			_exit(1);
		landed = (struct landed){.addr = 6 * ZONE_SIZE,
					 .reset_count = zone_of(dev, 6).reset_count};
		(void)!write(landed_pipe, &landed, sizeof(landed));
	}
}

static void nothing_that_completed_is_lost_by_kill_9(void **state)
{
	for (unsigned int round = 0; round < 8; round++) {
		struct landed landed[MANY + 1000];
		unsigned int n = 0;
		int fds[2], status;
		pid_t pid;

		close_image();
		assert_int_equal(zf_image_create(path, &geometry, true, &patient, NULL), 0);
		assert_int_equal(pipe(fds), 0);
		pid = fork();
		if (pid == 0) {
			close(fds[0]);
			landed_pipe = fds[1];
			append_until_killed();
		}
		close(fds[1]);
		while (n < 40 + round * 90 && read(fds[0], &landed[n], sizeof(*landed)) > 0)
			n++;
		kill(pid, SIGKILL);
		while (n < ZF_ARRAY_SIZE(landed) && read(fds[0], &landed[n], sizeof(*landed)) > 0)
			n++;
		close(fds[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));

		assert_int_equal(open_image(&patient), 0);
		assert_string_equal(messages, "");
		assert_false(zf_dev_geometry(dev)->pointers_are_lower_bounds);
		for (unsigned int i = 0; i < n; i++) {
			struct zf_zone_info info =
				zone_of(dev, (uint32_t)(landed[i].addr / ZONE_SIZE));

			assert_true(info.reset_count >= landed[i].reset_count);
			if (landed[i].reset_count > 0)
				continue;
			assert_true(info.wp >= landed[i].addr + BLOCK);
			assert_true(device_holds(dev, landed[i].addr, BLOCK, landed[i].tag));
		}
	}
}

/* ---- unclean stop of the host ---- */

static struct zf_image_trailer map_trailer(void)
{
	struct zf_image_trailer trailer;
	struct stat st;
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(zf_image_trailer_read(fd, (uint64_t)st.st_size, NULL, &trailer), 0);
	assert_int_equal(zf_image_trailer_map(&trailer, fd, true), 0);
	close(fd);
	return trailer;
}

/* Makes the image look as if its host had crashed during use, with the trailer as it is now. */
static void fake_host_crash(enum zf_image_use use)
{
	struct zf_image_trailer trailer = map_trailer();

	trailer.boot_id[0] ^= 1;
	zf_image_trailer_store_use(&trailer, use);
	zf_image_trailer_unmap(&trailer);
}

/* Killed between any two of the stores that a reset makes, the zone is as before the reset. */
static void a_kill_in_the_middle_of_a_reset_leaves_the_zone_as_it_was(void **state)
{
	for (uint64_t count = 0; count < 4; count++) {
		struct zf_image_trailer trailer;
		struct zf_image_slot *next;

		assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, count, false), 0);
		assert_int_equal(zone_of(dev, 1).reset_count, count);
		close_image();
		trailer = map_trailer();
		next = &trailer.table[1].slots[(count + 1) & 1];
		next->word = zf_le64_from(0);
		if (count & 2)
			next->reset_count = zf_le64_from(count + 1);
		zf_image_trailer_unmap(&trailer);
		assert_int_equal(open_image(&no_wait), 0);
		assert_string_equal(messages, "");
		assert_false(zf_dev_geometry(dev)->pointers_are_lower_bounds);
		assert_int_equal(zone_of(dev, 1).reset_count, count);
		assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 3 * BLOCK);
		assert_int_equal(zf_dev_reset(dev, 1), 0);
	}
}

/* Counts are set for a copy of another device: higher or lower, in the same slot or the other. */
static void an_empty_zone_takes_any_reset_count(void **state)
{
	static const uint64_t counts[] = {7, 9, 8, 2, 1, 1, 0, UINT64_C(1) << 40};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(counts); i++) {
		assert_int_equal(zf_dev_set_reset_count(dev, 1, counts[i]), 0);
		assert_int_equal(zone_of(dev, 1).reset_count, counts[i]);
		reopen();
		assert_string_equal(messages, "");
		assert_int_equal(zone_of(dev, 1).reset_count, counts[i]);
		assert_int_equal(zone_of(dev, 1).cond, ZF_ZONE_EMPTY);
		assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, true), 0);
		assert_int_equal(zf_dev_set_reset_count(dev, 1, 3), -EBUSY);
		assert_int_equal(zf_dev_reset(dev, 1), 0);
		assert_int_equal(zone_of(dev, 1).reset_count, counts[i] + 1);
		reopen();
		assert_int_equal(zone_of(dev, 1).reset_count, counts[i] + 1);
	}
	assert_int_equal(zf_dev_set_reset_count(dev, zf_dev_geometry(dev)->zone_count, 1), -EINVAL);
}

static void after_a_host_crash_pointers_are_lower_bounds(void **state)
{
	assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, true), 0);
	close_image();
	fake_host_crash(ZF_IMAGE_IN_USE);
	assert_int_equal(open_image(&no_wait), 0);
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 3 * BLOCK);

	assert_int_equal(zf_dev_raise_pointer(dev, 1, ZONE_SIZE + 7 * BLOCK), 0);
	assert_int_equal(zf_dev_raise_pointer(dev, 1, ZONE_SIZE + 5 * BLOCK), 0);
	assert_int_equal(zf_dev_raise_pointer(dev, 2, 2 * ZONE_SIZE + CAPACITY), 0);
	assert_int_equal(zf_dev_raise_pointer(dev, 3, 4 * ZONE_SIZE), -EINVAL);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 7 * BLOCK);
	assert_int_equal(zone_of(dev, 2).cond, ZF_ZONE_FULL);
	assert_int_equal(run_write(dev, ZONE_SIZE + 7 * BLOCK, BLOCK, 2, false), 0);

	reopen();
	assert_false(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 8 * BLOCK);
	assert_int_equal(zone_of(dev, 2).cond, ZF_ZONE_FULL);
}

static void lower_bounds_stay_until_the_next_write(void **state)
{
	close_image();
	fake_host_crash(ZF_IMAGE_IN_USE);
	assert_int_equal(open_image(&no_wait), 0);
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	reopen();
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, BLOCK, 1, false), -EIO);
	reopen();
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	reopen();
	assert_false(zf_dev_geometry(dev)->pointers_are_lower_bounds);
}

static void a_cleanly_closed_image_may_change_hosts(void **state)
{
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	close_image();
	fake_host_crash(ZF_IMAGE_CLEAN);
	assert_int_equal(open_image(&no_wait), 0);
	assert_false(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + BLOCK);
}

/* ---- damage ---- */

static void flip(uint64_t offset, uint8_t bits)
{
	int fd = open(path, O_RDWR);
	uint8_t byte;

	assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
	byte ^= bits;
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

#define TABLE	   (ZONES * ZONE_SIZE)
#define IMAGE_SIZE (TABLE + 3 * BLOCK)

static void a_damaged_zone_entry_becomes_a_lower_bound(void **state)
{
	assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, false), 0);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, BLOCK, 2, false), 0);
	assert_int_equal(zf_dev_reset(dev, 2), 0);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, BLOCK, 2, false), 0);
	close_image();
	/* Damages the newer of zone 2's two slots. The older slot is valid, but must not be
	 * used. */
	flip(TABLE + 2 * sizeof(struct zf_image_zone) + sizeof(struct zf_image_slot) + 8, 4);
	assert_int_equal(open_image(&no_wait), 0);
	assert_non_null(strstr(messages, "zone 2"));
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_int_equal(zone_of(dev, 2).wp, 2 * ZONE_SIZE);
	assert_true(zone_of(dev, 2).reset_count > 1);
	assert_true(zone_of(dev, 2).lost);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 3 * BLOCK);

	assert_int_equal(zf_dev_raise_pointer(dev, 2, 2 * ZONE_SIZE + BLOCK), 0);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE + BLOCK, BLOCK, 2, false), 0);
	reopen();
	assert_string_equal(messages, "");
	assert_false(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_false(zone_of(dev, 2).lost);
	assert_int_equal(zone_of(dev, 2).wp, 2 * ZONE_SIZE + 2 * BLOCK);
}

/* The entry's check is right, but a superblock cannot hold such a count. */
static void a_reset_count_that_no_zone_reaches_is_damage(void **state)
{
	assert_int_equal(zf_dev_set_reset_count(dev, 2, UINT64_C(1) << 61), 0);
	reopen();
	assert_string_equal(messages, "");
	assert_int_equal(zone_of(dev, 2).reset_count, UINT64_C(1) << 61);
	assert_int_equal(zf_dev_set_reset_count(dev, 2, (UINT64_C(1) << 61) + 1), 0);
	reopen();
	assert_non_null(strstr(messages, "zone 2"));
	assert_true(zone_of(dev, 2).lost);
	assert_true(zone_of(dev, 2).reset_count <= UINT64_C(1) << 61);
}

static void a_damaged_header_is_refused(void **state)
{
	close_image();
	flip(IMAGE_SIZE - BLOCK + offsetof(struct zf_image_header, zone_capacity), 1);
	assert_int_equal(open_image(&no_wait), -EUCLEAN);
	assert_non_null(strstr(messages, "corrupt image header at"));
	assert_non_null(strstr(messages, "checksum"));
}

static void a_truncated_or_grown_image_is_refused(void **state)
{
	static const uint64_t sizes[] = {IMAGE_SIZE - BLOCK, IMAGE_SIZE - 1, IMAGE_SIZE / 2, 100, 0,
					 IMAGE_SIZE + BLOCK};

	close_image();
	if (getxattr(path, "user.zfuse.image-size", NULL, 0) < 0)
		skip(); /* without attributes, what is left does not know that it was an image */
	for (size_t i = 0; i < ZF_ARRAY_SIZE(sizes); i++) {
		assert_int_equal(truncate(path, (off_t)sizes[i]), 0);
		assert_int_equal(open_image(&no_wait), -EUCLEAN);
		assert_non_null(strstr(messages, "expected 16789504"));
	}
}

/* A longer copy of an image has grown, and was cut before the former trailer was removed. */
static void of_two_headers_in_a_longer_copy_the_last_one_counts(void **state)
{
	const struct zf_open_options search = {.image_search_from = TABLE};
	void *former = blocks_new(3 * BLOCK, 0);
	int fd = open(path, O_RDWR);

	assert_int_equal(pread(fd, former, 3 * BLOCK, TABLE), 3 * BLOCK);
	assert_int_equal(zf_dev_grow(dev, 2 * ZONES), 0);
	close_image();
	assert_int_equal(pwrite(fd, former, 3 * BLOCK, TABLE), 3 * BLOCK);
	(void)!fremovexattr(fd, "user.zfuse.image-size");
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) + (16 << 20)), 0);
	close(fd);
	free(former);
	assert_int_equal(open_image(&no_wait), -ENODEV);
	assert_int_equal(open_image(&search), 0);
	assert_int_equal(zf_dev_geometry(dev)->zone_count, 2 * ZONES);
}

static void the_middle_of_an_image_may_not_be_missing(void **state)
{
	void *header = blocks_new(BLOCK, 0);
	int fd;

	close_image();
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, header, BLOCK, IMAGE_SIZE - BLOCK), BLOCK);
	assert_int_equal(pwrite(fd, header, BLOCK, IMAGE_SIZE - 2 * BLOCK), BLOCK);
	assert_int_equal(ftruncate(fd, IMAGE_SIZE - BLOCK), 0);
	close(fd);
	free(header);
	assert_int_equal(open_image(&no_wait), -EUCLEAN);
	assert_non_null(strstr(messages, "image size"));
}

static void what_is_no_image_says_how_to_make_one(void **state)
{
	int fd;

	close_image();
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT, 0666);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	close(fd);
	assert_int_equal(open_image(&no_wait), -ENODEV);
	assert_non_null(strstr(messages, "mkfs.zfuse"));
	unlink(path);
	assert_int_equal(open_image(&no_wait), -ENOENT);
	assert_non_null(strstr(messages, path));
	snprintf(path, sizeof(path), "/dev/null");
	assert_int_equal(open_image(&no_wait), -EINVAL);
	assert_non_null(strstr(messages, "neither a regular file nor a block device"));
	path[0] = '\0';
}

/* P7: whatever the trailer contains, opening succeeds or fails with an error. */
static void a_mangled_trailer_never_does_harm(void **state)
{
	const char *given = getenv("ZF_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
	unsigned int opened = 0, refused = 0;
	uint8_t *good = blocks_new(3 * BLOCK, 0), *bad = blocks_new(3 * BLOCK, 0);
	struct zf_rng rng;
	int fd;

	print_message("seed %llu (ZF_SEED)\n", (unsigned long long)seed);
	zf_rng_seed(&rng, seed);
	close_image();
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, good, 3 * BLOCK, TABLE), 3 * BLOCK);
	for (int i = 0; i < 400; i++) {
		struct zf_image_header *header = (void *)(bad + 2 * BLOCK);
		size_t from = offsetof(struct zf_image_header, version);
		int r;

		memcpy(bad, good, 3 * BLOCK);
		for (uint64_t n = 1 + zf_rng_below(&rng, 4); n > 0; n--) {
			uint64_t area = zf_rng_below(&rng, 3);
			uint64_t within = area == 0 ? ZONES * 32 : area == 1 ? 40 : 92;

			bad[area * BLOCK + zf_rng_below(&rng, within)] ^=
				(uint8_t)(1 << zf_rng_below(&rng, 8));
		}
		if (zf_rng_chance(&rng, 80))
			header->checksum = zf_le64_from(
				zf_hash64((const uint8_t *)header + from, BLOCK - from));
		assert_int_equal(pwrite(fd, bad, 3 * BLOCK, TABLE), 3 * BLOCK);
		r = open_image(&reading);
		if (r == 0) {
			opened++;
			close_image();
		} else {
			refused++;
			assert_true(r == -EUCLEAN || r == -ENODEV);
			assert_string_not_equal(messages, "");
		}
	}
	assert_true(opened > 20);
	assert_true(refused > 20);
	close(fd);
	free(good);
	free(bad);
}

/* ---- errors of the host ---- */

static void a_write_that_the_host_refuses_is_an_io_error(void **state)
{
	struct rlimit old, limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 2 * ZONE_SIZE;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	assert_int_equal(run_write(dev, 3 * ZONE_SIZE, BLOCK, 3, false), -EIO);
	assert_non_null(strstr(messages, "write at 3145728: File too large"));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	/* The pointer has moved past what failed, as dev.h says it may. */
	assert_int_equal(zone_of(dev, 3).wp, 3 * ZONE_SIZE + BLOCK);
	assert_int_equal(run_write(dev, 3 * ZONE_SIZE + BLOCK, BLOCK, 3, false), 0);
}

/* The host has no page for the table any more. The SIGBUS for that must not end the process. */
static void an_image_that_is_truncated_turns_read_only(void **state)
{
	reopen(); /* sets the handler again: cmocka sets its own for each test */
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, true), 0);
	assert_int_equal(truncate(path, ZONE_SIZE + BLOCK), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, BLOCK, 2, true), -EIO);
	assert_non_null(strstr(messages, "truncated: the image is read-only from now on"));
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + BLOCK);
	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, BLOCK, 2, true), -EROFS);
	assert_int_equal(zf_dev_reset(dev, 1), -EROFS);
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 1));
}

static void *write_there(void *arg)
{
	*(int *)arg = run_write(dev, ZONE_SIZE, BLOCK, 1, false);
	return NULL;
}

/* Threads of the library block all signals but SIGBUS. */
static void threads_of_the_library_survive_a_truncated_image_too(void **state)
{
	pthread_t thread;
	int r = 1;

	reopen();
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(zf_spawn(&thread, "writer", write_there, &r), 0);
	pthread_join(thread, NULL);
	assert_int_equal(r, -EIO);
}

/* The table is still there, and the header is not: nothing is durable in such a file. */
static void a_flush_finds_that_the_header_is_cut_off(void **state)
{
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(truncate(path, IMAGE_SIZE - BLOCK), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	assert_int_equal(zf_dev_flush(dev), -EIO);
	assert_non_null(
		strstr(messages, "the file was truncated: the image is read-only from now on"));
	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, BLOCK, 1, false), -EROFS);
}

static void a_short_write_is_continued_until_the_host_refuses(void **state)
{
	struct rlimit old, limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = ZONE_SIZE + 5 * BLOCK;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, 8 * BLOCK, 1, false), -EIO);
	assert_int_equal(run_zeroes(dev, 0, 192 * BLOCK), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(device_holds_zeroes(dev, ZONE_SIZE + 5 * BLOCK, 3 * BLOCK));
	assert_false(device_holds_zeroes(dev, ZONE_SIZE, BLOCK));
}

static void a_read_beyond_the_end_of_the_file_is_an_io_error(void **state)
{
	void *buf = blocks_new(2 * BLOCK, 0);
	struct iovec iov = {buf, 2 * BLOCK};
	struct zf_io io = {
		.op = ZF_IO_READ, .addr = ZONE_SIZE, .len = 2 * BLOCK, .iov = &iov, .iovcnt = 1};

	assert_int_equal(truncate(path, ZONE_SIZE + BLOCK), 0);
	assert_int_equal(zf_dev_read_buf(dev, ZONE_SIZE, buf, 2 * BLOCK), -EIO);
	assert_int_equal(zf_dev_run(dev, &io), -EIO);
	assert_non_null(strstr(messages, "read at"));
	assert_int_equal(truncate(path, IMAGE_SIZE), 0);
	free(buf);
}

/* ---- access ---- */

static void a_read_only_device_refuses_changes_and_changes_nothing(void **state)
{
	struct stat before, after;

	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	close_image();
	fake_host_crash(ZF_IMAGE_IN_USE);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(open_image(&reading), 0);
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 1));
	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, BLOCK, 1, false), -EROFS);
	assert_int_equal(zf_dev_reset(dev, 1), -EROFS);
	assert_int_equal(zf_dev_raise_pointer(dev, 1, ZONE_SIZE + 2 * BLOCK), 0);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 2 * BLOCK);
	close_image();
	assert_int_equal(stat(path, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_int_equal(open_image(&reading), 0);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + BLOCK);
}

static void a_file_without_write_permission_says_so(void **state)
{
	int status;
	pid_t pid;

	close_image();
	assert_int_equal(chmod(path, 0444), 0);
	pid = fork();
	if (pid == 0) {
		bool said;

		if (geteuid() == 0 && seteuid(65534) < 0)
			_exit(2);
		said = open_image(&no_wait) == -EACCES &&
		       strstr(messages, "cannot be opened for writing: Permission denied");
		_exit(said && open_image(&reading) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_second_owner_is_told_the_process_of_the_first(void **state)
{
	struct zf_dev *second = NULL;
	char expected[64];

	snprintf(expected, sizeof(expected), "in use by process %d\n", getpid());
	assert_int_equal(zf_image_open(path, &no_wait, &report, &second), -EBUSY);
	assert_non_null(strstr(messages, expected));
	messages[0] = '\0';
	assert_int_equal(zf_image_open(path, &reading, &report, &second), -EBUSY);
	assert_non_null(strstr(messages, expected));
	assert_int_equal(zf_image_create(path, &geometry, true, &no_wait, &report), -EBUSY);
	assert_null(second);
}

static void readers_share(void **state)
{
	struct zf_dev *second = NULL;

	close_image();
	assert_int_equal(open_image(&reading), 0);
	assert_int_equal(zf_image_open(path, &reading, &report, &second), 0);
	assert_non_null(second);
	assert_int_equal(zf_image_open(path, &no_wait, &report, &(struct zf_dev *){NULL}), -EBUSY);
	zf_dev_close(second);
}

static void *close_soon(void *arg)
{
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	zf_dev_close(arg);
	return NULL;
}

static void opening_waits_for_the_last_owner(void **state)
{
	struct zf_dev *first = dev;
	pthread_t thread;

	pthread_create(&thread, NULL, close_soon, first);
	assert_int_equal(open_image(&patient), 0);
	pthread_join(thread, NULL);
	assert_string_equal(messages, "");
}

/* ---- creating ---- */

static void creating_refuses_what_is_not_empty_unless_forced(void **state)
{
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, true), 0);
	close_image();
	messages[0] = '\0';
	assert_int_equal(zf_image_create(path, &geometry, false, &no_wait, &report), -EEXIST);
	assert_non_null(strstr(messages, "not empty"));
	assert_int_equal(open_image(&no_wait), 0);
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 1));
	close_image();
	assert_int_equal(zf_image_create(path, &geometry, true, &no_wait, &report), 0);
	assert_int_equal(open_image(&no_wait), 0);
	assert_int_equal(zone_of(dev, 1).cond, ZF_ZONE_EMPTY);
	assert_true(device_holds_zeroes(dev, ZONE_SIZE, BLOCK));
}

static void creating_checks_the_geometry_first(void **state)
{
	struct zf_geometry wrong = geometry;

	close_image();
	unlink(path);
	messages[0] = '\0';
	wrong.zone_capacity = ZONE_SIZE + BLOCK;
	assert_int_equal(zf_image_create(path, &wrong, false, &no_wait, &report), -EINVAL);
	assert_non_null(strstr(messages, "zone capacity"));
	assert_int_equal(access(path, F_OK), -1);
}

static void a_new_image_is_sparse(void **state)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, IMAGE_SIZE);
	assert_true(st.st_blocks * 512 <= 64 * 1024);
}

static void a_geometry_is_read_from_text(void **state)
{
	struct zf_geometry g;

	assert_int_equal(zf_image_parse_geometry("size=4G", &report, &g), 0);
	assert_int_equal(g.zone_size, 64 << 20);
	assert_int_equal(g.zone_capacity, 64 << 20);
	assert_int_equal(g.zone_count, 64);
	assert_int_equal(g.conventional, 0);
	assert_int_equal(g.max_open, 0);
	assert_int_equal(g.max_active, 0);
	assert_int_equal(g.append_limit, 1 << 20);
	assert_int_equal(zf_image_parse_geometry("size=1T,zone-size=256M,zone-capacity=200M,"
						 "conventional=3,max-open=8,max-active=12,"
						 "append-limit=128K",
						 &report, &g),
			 0);
	assert_int_equal(g.zone_count, 4096);
	assert_int_equal(g.zone_capacity, 200 << 20);
	assert_int_equal(g.conventional, 3);
	assert_int_equal(g.max_open, 8);
	assert_int_equal(g.max_active, 12);
	assert_int_equal(g.append_limit, 128 << 10);
	assert_int_equal(zf_image_parse_geometry("size=0.5GiB", &report, &g), 0);
	assert_int_equal(g.zone_count, 8);
}

static void a_wrong_geometry_text_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text, *reason;
	} wrong[] = {
		{"", "value is missing"},
		{"zone-size=64M", "size is 0"},
		{"size", "value is missing: 'size'"},
		{"size=", "size is ''"},
		{"size=4X", "size is '4X'"},
		{"size=4GG", "size is '4GG'"},
		{"size=-4G", "size is '-4G'"},
		{"size=99999999999999999999", "size is"},
		{"size=99999999T", "size is"},
		{"size=4G,zone-size=0", "zone size is 0"},
		{"size=4G,zone-size=1000", "multiple of"},
		{"size=100M", "multiple of the zone size"},
		{"size=4G,colour=red", "unknown key 'colour'"},
		{"size=4G,zonesize=64M", "unknown key 'zonesize'; did you mean zone-size?"},
		{"size=100M", "size 100M is not a multiple of the zone size 64M; try 64M or 128M"},
		{"size=1M", "size 1M is not a multiple of the zone size 64M; try 64M"},
		{"size=4G,zone-size=4K,zone-capacity=4K,append-limit=1P", "append-limit is '1P'"},
		{"size=4G,conventional=2K", "conventional is '2K'"},
		{"size=4G,conventional=65", "conventional"},
		{"size=4G,max-open=8,max-active=7", "max open"},
		{"size=4G,zone-capacity=65M", "zone capacity"},
	};
	struct zf_geometry g;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(wrong); i++) {
		messages[0] = '\0';
		assert_int_equal(zf_image_parse_geometry(wrong[i].text, &report, &g), -EINVAL);
		assert_non_null(strstr(messages, wrong[i].reason));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	static const struct {
		const char *directory;
		bool through_ring;
	} settings[] = {{"/dev/shm", false}, {".", false}, {".", true}};
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_read),
		TEST(device_byte_n_is_file_byte_n),
		TEST(zeroes_overwrite_a_conventional_zone),
		TEST(unmapping_zeroes_fall_back_on_writing),
		TEST(the_rules_of_zones_are_enforced),
		TEST(contents_pointers_and_reset_counts_outlive_the_device),
		TEST(a_reset_gives_the_space_back_but_for_two_warm_zones),
		TEST(a_warm_zone_stays_so_until_it_is_written),
		TEST(appends_in_flight_all_get_their_own_address),
		TEST(many_threads_submit_while_a_thread_completes),
		TEST(many_threads_run_requests_of_their_own),
		TEST(an_idle_thread_sleeps_and_is_stopped),
		TEST(a_reset_and_a_write_of_one_zone_exclude_each_other),
		TEST(nothing_that_completed_is_lost_by_kill_9),
		TEST(a_kill_in_the_middle_of_a_reset_leaves_the_zone_as_it_was),
		TEST(an_empty_zone_takes_any_reset_count),
		TEST(after_a_host_crash_pointers_are_lower_bounds),
		TEST(lower_bounds_stay_until_the_next_write),
		TEST(a_cleanly_closed_image_may_change_hosts),
		TEST(a_damaged_zone_entry_becomes_a_lower_bound),
		TEST(a_reset_count_that_no_zone_reaches_is_damage),
		TEST(a_damaged_header_is_refused),
		TEST(a_truncated_or_grown_image_is_refused),
		TEST(of_two_headers_in_a_longer_copy_the_last_one_counts),
		TEST(the_middle_of_an_image_may_not_be_missing),
		TEST(what_is_no_image_says_how_to_make_one),
		TEST(a_mangled_trailer_never_does_harm),
		TEST(a_write_that_the_host_refuses_is_an_io_error),
		TEST(an_image_that_is_truncated_turns_read_only),
		TEST(threads_of_the_library_survive_a_truncated_image_too),
		TEST(a_flush_finds_that_the_header_is_cut_off),
		TEST(a_short_write_is_continued_until_the_host_refuses),
		TEST(a_read_beyond_the_end_of_the_file_is_an_io_error),
		TEST(a_read_only_device_refuses_changes_and_changes_nothing),
		TEST(a_file_without_write_permission_says_so),
		TEST(a_second_owner_is_told_the_process_of_the_first),
		TEST(readers_share),
		TEST(opening_waits_for_the_last_owner),
		TEST(creating_refuses_what_is_not_empty_unless_forced),
		TEST(creating_checks_the_geometry_first),
		TEST(a_fifo_in_the_place_of_the_image_is_refused_at_once),
		TEST(a_new_image_is_sparse),
		TEST(a_geometry_is_read_from_text),
		TEST(a_wrong_geometry_text_is_refused_with_a_reason),
	};
	int failed = 0;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(settings); i++) {
		directory = settings[i].directory;
		through_ring = settings[i].through_ring;
		print_message("in %s%s\n", directory, through_ring ? ", all through the ring" : "");
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}

/* SPDX-License-Identifier: MIT */
/*
 * An image becomes larger: in use, with a power cut at every call to the host, and with a failure
 * of every such call. The calls are library calls that the linker wraps.
 */
#include <assert.h>
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/image.h"
#include "io_util.h"

#define BLOCK	   ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE  (32 * BLOCK)
#define ZONES	   16u
#define GROWN	   40u
#define IMAGE_SIZE (ZONES * ZONE_SIZE + 3 * BLOCK)
#define GROWN_SIZE (GROWN * ZONE_SIZE + 3 * BLOCK)
#define SIZE_XATTR "user.zfuse.image-size"

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = ZONE_SIZE,
	.zone_count = ZONES,
	.conventional = 1,
	.append_limit = 32 * BLOCK,
	.volatile_cache = true,
};

static const struct zf_open_options no_wait = {}, patient = {.lock_wait_ms = 10000};
static const struct zf_open_options reading = {.read_only = true};
static const char *directory;
static char path[64], cut_path[64], messages[4096];
static struct zf_dev *dev;

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	size_t used = strlen(messages);

	snprintf(messages + used, sizeof(messages) - used, "%s\n", message);
}

static const struct zf_report report = {.fn = keep_message};

/* ---- the host's calls ---- */

/* What has been written since the last call that made something durable. */
struct pending {
	off_t offset;
	size_t len;
	void *bytes;
};

static struct host {
	bool on;
	unsigned int calls, at; /* the call at which it happens; 0: never */
	int error;		/* -errno: it fails; 0: nothing after it happens */
	unsigned int outcome;	/* of a cut: see cut() */
	bool no_attributes;	/* as on hosts without them */
	struct pending pending[16];
	unsigned int pending_count;
} host;

ssize_t __real_pwrite64(int fd, const void *buf, size_t len, off_t offset);
ssize_t __real_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
int __real_fsync(int fd);
int __real_msync(void *from, size_t len, int flags);
int __real_ftruncate64(int fd, off_t size);
int __real_fallocate64(int fd, int mode, off_t offset, off_t len);
int __real_fsetxattr(int fd, const char *name, const void *value, size_t len, int flags);
ssize_t __real_fgetxattr(int fd, const char *name, void *value, size_t len);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t offset);
ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
int __wrap_fsync(int fd);
int __wrap_msync(void *from, size_t len, int flags);
int __wrap_ftruncate64(int fd, off_t size);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t len);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t len, int flags);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t len);

/* Copies the file and its attribute as they are durable at this instant. */
static void copy_image(void)
{
	char command[256];

	snprintf(command, sizeof(command), "cp --sparse=always --preserve=xattr %s %s", path,
		 cut_path);
	assert(system(command) == 0);
}

static void put(int fd, const struct pending *p)
{
	if (__real_pwrite64(fd, p->bytes, p->len, p->offset) != (ssize_t)p->len)
		abort();
}

/*
 * The host loses power: cut_path becomes one of the files that may be found then. Outcome 0: no
 * write that was not durable; 1: all of them; then two outcomes for each write: that write alone,
 * and only the length that it gave the file. Ends with 2 if there is no such outcome.
 */
static void cut(void)
{
	unsigned int n = host.outcome < 2 ? 0 : (host.outcome - 2) / 2;
	int fd = open(cut_path, O_RDWR);
	struct stat st;

	if (fd < 0 || (host.outcome >= 2 && n >= host.pending_count))
		_exit(2);
	for (unsigned int i = 0; host.outcome == 1 && i < host.pending_count; i++)
		put(fd, &host.pending[i]);
	if (host.outcome >= 2) {
		const struct pending *p = &host.pending[n];
		off_t end = p->offset + (off_t)p->len;

		fstat(fd, &st);
		if (host.outcome % 2 == 0)
			put(fd, p);
		else if (end > st.st_size && !host.no_attributes)
			__real_ftruncate64(fd, end);
	}
	close(fd);
	_exit(1);
}

/* Returns whether the call fails. */
static bool call(void)
{
	if (!host.on || ++host.calls != host.at)
		return false;
	if (host.error == 0)
		cut();
	errno = -host.error;
	return true;
}

static void note(const void *bytes, size_t len, off_t offset)
{
	struct pending *p = &host.pending[host.pending_count++];

	if (!host.on || host.error) {
		host.pending_count = 0;
		return;
	}
	assert(host.pending_count <= ZF_ARRAY_SIZE(host.pending));
	*p = (struct pending){.offset = offset, .len = len, .bytes = malloc(len)};
	memcpy(p->bytes, bytes, len);
}

static void synced(void)
{
	if (!host.on || host.error)
		return;
	host.pending_count = 0;
	copy_image();
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t offset)
{
	if (call())
		return -1;
	note(buf, len, offset);
	return __real_pwrite64(fd, buf, len, offset);
}

ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	ssize_t r;

	if (call())
		return -1;
	if (host.on && host.error == 0) {
		assert(count == 1);
		note(iov->iov_base, iov->iov_len, offset);
	}
	/* A write that is cut in the middle is not durable yet. */
	if (call())
		return -1;
	r = __real_pwritev64v2(fd, iov, count, offset, flags);
	if (flags & RWF_DSYNC)
		synced();
	return r;
}

int __wrap_fsync(int fd)
{
	int r = call() ? -1 : __real_fsync(fd);

	if (r == 0)
		synced();
	return r;
}

int __wrap_msync(void *from, size_t len, int flags)
{
	int r = call() ? -1 : __real_msync(from, len, flags);

	if (r == 0)
		synced();
	return r;
}

int __wrap_ftruncate64(int fd, off_t size)
{
	return call() ? -1 : __real_ftruncate64(fd, size);
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t len)
{
	return call() ? -1 : __real_fallocate64(fd, mode, offset, len);
}

int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t len, int flags)
{
	return call() ? -1 : __real_fsetxattr(fd, name, value, len, flags);
}

ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t len)
{
	if (!host.no_attributes)
		return __real_fgetxattr(fd, name, value, len);
	errno = ENOTSUP;
	return -1;
}

/* ---- helpers ---- */

static int open_image(const char *which, const struct zf_open_options *options)
{
	messages[0] = '\0';
	return zf_image_open(which, options, &report, &dev);
}

static void close_image(void)
{
	zf_dev_close(dev);
	dev = NULL;
}

static void reopen(void)
{
	close_image();
	assert_int_equal(open_image(path, &patient), 0);
	assert_string_equal(messages, "");
}

/* Zones in several conditions: empty, partly written, reset, full; and the conventional one. */
static void fill(void)
{
	assert_int_equal(run_write(dev, 3 * BLOCK, BLOCK, 9, false), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, false), 0);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, 3 * BLOCK, 2, false), 0);
	assert_int_equal(zf_dev_reset(dev, 2), 0);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, 2 * BLOCK, 3, false), 0);
	assert_int_equal(run_write(dev, 15 * ZONE_SIZE, ZONE_SIZE, 4, false), 0);
	assert_int_equal(zf_dev_flush(dev), 0);
}

static void expect_filled(uint32_t count)
{
	assert_int_equal(zf_dev_geometry(dev)->zone_count, count);
	assert_true(device_holds(dev, 3 * BLOCK, BLOCK, 9));
	assert_true(device_holds(dev, ZONE_SIZE, 3 * BLOCK, 1));
	assert_true(device_holds(dev, 2 * ZONE_SIZE, 2 * BLOCK, 3));
	assert_true(device_holds(dev, 15 * ZONE_SIZE, ZONE_SIZE, 4));
	assert_int_equal(zone_of(dev, 0).cond, ZF_ZONE_NOT_WP);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 3 * BLOCK);
	assert_int_equal(zone_of(dev, 2).wp, 2 * ZONE_SIZE + 2 * BLOCK);
	assert_int_equal(zone_of(dev, 2).reset_count, 1);
	assert_int_equal(zone_of(dev, 15).cond, ZF_ZONE_FULL);
	for (uint32_t z = ZONES; z < count; z++) {
		assert_int_equal(zone_of(dev, z).cond, ZF_ZONE_EMPTY);
		assert_int_equal(zone_of(dev, z).start, z * ZONE_SIZE);
	}
}

/* All zones can be used, to the last block of the last. */
static void use_grown(uint32_t count)
{
	for (uint32_t z = ZONES; z < count; z++)
		assert_int_equal(run_write(dev, z * ZONE_SIZE, ZONE_SIZE, 100 + z, false), 0);
	assert_int_equal(run_write(dev, count * ZONE_SIZE, BLOCK, 1, false), -EINVAL);
	for (uint32_t z = ZONES; z < count; z++)
		assert_true(device_holds(dev, z * ZONE_SIZE, ZONE_SIZE, 100 + z));
}

static uint64_t file_size(const char *which)
{
	struct stat st;

	assert_int_equal(stat(which, &st), 0);
	return (uint64_t)st.st_size;
}

static int setup(void **state)
{
	snprintf(path, sizeof(path), "%s/zfuse-grow-%d.img", directory, getpid());
	snprintf(cut_path, sizeof(cut_path), "%s/zfuse-grow-%d.cut", directory, getpid());
	unlink(path);
	host = (struct host){0};
	messages[0] = '\0';
	if (zf_image_create(path, &geometry, false, &no_wait, &report) < 0)
		return -1;
	return open_image(path, &no_wait);
}

static int teardown(void **state)
{
	host.on = false;
	close_image();
	unlink(path);
	unlink(cut_path);
	return 0;
}

/* ---- what it does ---- */

static void an_image_grows_in_use(void **state)
{
	fill();
	assert_int_equal(zf_dev_grow(dev, GROWN), 0);
	assert_string_equal(messages, "");
	assert_int_equal(file_size(path), GROWN_SIZE);
	expect_filled(GROWN);
	use_grown(GROWN);
	assert_int_equal(run_write(dev, ZONE_SIZE + 3 * BLOCK, BLOCK, 7, false), 0);
	reopen();
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 4 * BLOCK);
	assert_int_equal(zone_of(dev, GROWN - 1).cond, ZF_ZONE_FULL);
	assert_true(device_holds(dev, (GROWN - 1) * ZONE_SIZE, ZONE_SIZE, 100 + GROWN - 1));
}

static void it_grows_again_and_again(void **state)
{
	fill();
	for (uint32_t count = ZONES; count <= GROWN; count += 3) {
		assert_int_equal(zf_dev_grow(dev, count), 0);
		expect_filled(count);
		assert_int_equal(file_size(path), count * ZONE_SIZE + 3 * BLOCK);
		if (count % 2)
			reopen();
	}
}

static void to_the_size_that_it_has_is_nothing(void **state)
{
	assert_int_equal(zf_dev_grow(dev, ZONES), 0);
	assert_int_equal(zf_dev_grow(dev, 0), 0);
	assert_int_equal(file_size(path), IMAGE_SIZE);
	assert_string_equal(messages, "");
}

static void what_cannot_be_is_refused_in_words(void **state)
{
	assert_int_equal(zf_dev_grow(dev, ZONES - 1), -EINVAL);
	assert_non_null(strstr(messages, "cannot become fewer"));
	assert_int_equal(zf_dev_grow(dev, (1u << 22) + 1), -EINVAL);
	assert_non_null(strstr(messages, "number of zones"));
	assert_int_equal(file_size(path), IMAGE_SIZE);
	close_image();
	assert_int_equal(open_image(path, &reading), 0);
	assert_int_equal(zf_dev_grow(dev, GROWN), -EROFS);
	assert_non_null(strstr(messages, "cannot be grown"));
}

static void the_former_trailer_gives_its_space_back(void **state)
{
	struct stat before, after;

	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(zf_dev_grow(dev, GROWN), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_true(after.st_blocks <= before.st_blocks + (off_t)(BLOCK / 512));
	assert_true(device_holds_zeroes(dev, ZONES * ZONE_SIZE, 3 * BLOCK));
}

/* The owner made the file longer, as is usual for a disk image. */
static void a_longer_file_opens_and_grows_to_its_end(void **state)
{
	if (getxattr(path, SIZE_XATTR, NULL, 0) < 0)
		skip();
	fill();
	close_image();
	assert_int_equal(truncate(path, (off_t)GROWN_SIZE + 100), 0);
	assert_int_equal(open_image(path, &no_wait), 0);
	expect_filled(ZONES);
	reopen();
	assert_int_equal(zf_dev_grow(dev, 0), 0);
	expect_filled(GROWN);
	reopen();
	expect_filled(GROWN);
	use_grown(GROWN);
}

/* The header stays at the end of the file, and moves no more. */
static void a_longer_file_is_filled_step_by_step(void **state)
{
	if (getxattr(path, SIZE_XATTR, NULL, 0) < 0)
		skip();
	fill();
	close_image();
	assert_int_equal(truncate(path, (off_t)GROWN_SIZE), 0);
	assert_int_equal(open_image(path, &no_wait), 0);
	for (uint32_t count = ZONES + 1; count <= GROWN; count += 6) {
		assert_int_equal(zf_dev_grow(dev, count), 0);
		assert_int_equal(file_size(path), GROWN_SIZE);
		reopen();
		expect_filled(count);
	}
	assert_int_equal(zf_dev_grow(dev, 0), 0);
	assert_int_equal(file_size(path), GROWN_SIZE);
	expect_filled(GROWN);
	use_grown(GROWN);
}

/* The table is larger than a zone: the new one would begin within the old one. */
static void a_table_never_moves_onto_itself(void **state)
{
	const struct zf_geometry tiny = {
		.zone_size = BLOCK,
		.zone_capacity = BLOCK,
		.zone_count = 2000,
		.append_limit = BLOCK,
	};

	close_image();
	assert_int_equal(zf_image_create(path, &tiny, true, &no_wait, NULL), 0);
	assert_int_equal(open_image(path, &no_wait), 0);
	for (uint32_t z = 0; z < 2000; z += 7)
		assert_int_equal(run_write(dev, z * BLOCK, BLOCK, z, false), 0);
	for (uint32_t count = 2001; count < 2030; count += 3) {
		assert_int_equal(zf_dev_grow(dev, count), 0);
		assert_int_equal(run_write(dev, (count - 1) * BLOCK, BLOCK, count, false), 0);
		reopen();
		assert_int_equal(zf_dev_geometry(dev)->zone_count, count);
		assert_true(device_holds(dev, (count - 1) * BLOCK, BLOCK, count));
	}
	for (uint32_t z = 0; z < 2000; z++) {
		assert_int_equal(zone_of(dev, z).cond, z % 7 ? ZF_ZONE_EMPTY : ZF_ZONE_FULL);
		assert_true(z % 7 || device_holds(dev, z * BLOCK, BLOCK, z));
	}
}

static void lower_bounds_stay_lower_bounds(void **state)
{
	uint8_t byte;
	int fd;

	fill();
	close_image();
	/* The state's boot id, and the checksum with it: an unclean stop of the host. */
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, IMAGE_SIZE - 2 * BLOCK + 16), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, IMAGE_SIZE - 2 * BLOCK + 16), 1);
	close(fd);
	assert_int_equal(open_image(path, &no_wait), 0);
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	assert_int_equal(zf_dev_grow(dev, GROWN), 0);
	reopen();
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	expect_filled(GROWN);
}

/* A growth that was killed, or a crash of the host, leaves such bytes. */
static void bytes_in_the_middle_of_an_empty_zone_do_no_harm(void **state)
{
	int fd = open(path, O_RDWR);

	assert_int_equal(pwrite(fd, path, sizeof(path), 7 * ZONE_SIZE + 9 * BLOCK), sizeof(path));
	close(fd);
	alarm(20);
	reopen();
	alarm(0);
	assert_int_equal(zone_of(dev, 7).cond, ZF_ZONE_EMPTY);
}

/* ---- under load ---- */

#define WRITERS 3u
#define ROUNDS	40u

static void *writer(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	uint64_t zone = (4 + me) * ZONE_SIZE, addr;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < 32; i++)
			if (run_append(dev, zone, BLOCK, me * 1000 + i, &addr) < 0)
				abort();
		if (zf_dev_reset(dev, 4 + me) < 0)
			abort();
	}
	for (unsigned int i = 0; i < 20 + me; i++)
		if (run_append(dev, zone, BLOCK, me * 1000 + i, &addr) < 0)
			abort();
	return NULL;
}

static void writers_go_on_while_it_grows(void **state)
{
	pthread_t threads[WRITERS];

	assert_int_equal(zf_dev_start_thread(dev), 0);
	for (unsigned int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, writer, (void *)(uintptr_t)i),
				 0);
	for (uint32_t count = ZONES + 1; count <= GROWN; count++) {
		assert_int_equal(zf_dev_grow(dev, count), 0);
		assert_int_equal(run_write(dev, (count - 1) * ZONE_SIZE, BLOCK, count, true), 0);
	}
	for (unsigned int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	reopen();
	for (unsigned int me = 0; me < WRITERS; me++) {
		struct zf_zone_info info = zone_of(dev, 4 + me);

		assert_int_equal(info.reset_count, ROUNDS);
		assert_int_equal(info.wp, info.start + (20 + me) * BLOCK);
		for (unsigned int i = 0; i < 20 + me; i++)
			assert_true(
				device_holds(dev, info.start + i * BLOCK, BLOCK, me * 1000 + i));
	}
	for (uint32_t z = ZONES; z < GROWN; z++)
		assert_true(device_holds(dev, z * ZONE_SIZE, BLOCK, z + 1));
}

/* ---- at every call ---- */

/* Grows the image in a child, which stops at call `at` and leaves cut_path. Returns 0 if the growth
 * came to its end. */
static int grow_until(unsigned int at, unsigned int outcome)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (zf_image_open(path, &patient, NULL, &dev) < 0)
			_exit(9);
		copy_image();
		host.on = true;
		host.at = at;
		host.outcome = outcome;
		_exit(zf_dev_grow(dev, GROWN) < 0 ? 9 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The image has the old or the new size, and can grow to the new one. Returns whether it had
 * that. */
static bool expect_either(const char *which)
{
	uint32_t count;

	if (open_image(which, &patient) < 0)
		fail_msg("%s", messages);
	count = zf_dev_geometry(dev)->zone_count;
	assert_true(count == ZONES || count == GROWN);
	expect_filled(count);
	assert_int_equal(zf_dev_grow(dev, GROWN), 0);
	expect_filled(GROWN);
	use_grown(GROWN);
	close_image();
	assert_int_equal(open_image(which, &patient), 0);
	assert_int_equal(zf_dev_geometry(dev)->zone_count, GROWN);
	assert_true(device_holds(dev, 15 * ZONE_SIZE, ZONE_SIZE, 4));
	close_image();
	return count == GROWN;
}

/* Makes an image that has grown before. */
static void start_over(void)
{
	struct zf_geometry smaller = geometry;

	smaller.zone_count = ZONES - 3;
	assert_int_equal(zf_image_create(path, &smaller, true, &patient, NULL), 0);
	assert_int_equal(open_image(path, &no_wait), 0);
	assert_int_equal(zf_dev_grow(dev, ZONES), 0);
	fill();
	close_image();
}

static void a_cut_at_any_call_leaves_the_old_size_or_the_new(void **state)
{
	unsigned int at, old = 0, new = 0, outcomes = 0;
	int r = 1;

	close_image();
	for (at = 1; r != 0; at++)
		for (unsigned int outcome = 0;; outcome++) {
			start_over();
			r = grow_until(at, outcome);
			assert_int_not_equal(r, 9);
			if (r != 1)
				break;
			outcomes++;
			if (expect_either(cut_path))
				new ++;
			else
				old++;
		}
	print_message("%u calls, %u outcomes: %u old, %u new\n", at - 2, outcomes, old, new);
	assert_true(old > 0 && new > 0);
	assert_int_equal(open_image(path, &patient), 0);
}

static void a_kill_at_any_call_leaves_the_old_size_or_the_new(void **state)
{
	int r = 1;

	close_image();
	for (unsigned int at = 1; r != 0; at++) {
		start_over();
		r = grow_until(at, 0);
		assert_int_not_equal(r, 9);
		expect_either(path);
	}
	assert_int_equal(open_image(path, &patient), 0);
}

/* Only the end of the file tells where the header is. */
static void hosts_without_attributes_will_do(void **state)
{
	host.no_attributes = true;
	a_cut_at_any_call_leaves_the_old_size_or_the_new(state);
	a_kill_at_any_call_leaves_the_old_size_or_the_new(state);
}

/* The image keeps its old size; if its header cannot be identified, it opens only for reading. */
static void any_call_may_fail(void **state)
{
	unsigned int refused = 0, went_on = 0;

	for (unsigned int at = 1;; at++) {
		uint64_t size;
		unsigned int calls;
		int r;

		close_image();
		start_over();
		assert_int_equal(open_image(path, &patient), 0);
		host = (struct host){.on = true, .at = at, .error = -ENOSPC};
		r = zf_dev_grow(dev, GROWN);
		calls = host.calls;
		host.on = false;
		if (calls < at)
			break;
		size = file_size(path);
		if (r < 0) {
			assert_true(r == -ENOSPC);
			assert_true(strlen(messages) > 0);
			expect_filled(ZONES);
			r = run_write(dev, ZONE_SIZE + 3 * BLOCK, BLOCK, 5, false);
			assert_true(r == 0 || r == -EROFS);
			assert_true(r == -EROFS || size == IMAGE_SIZE);
			refused += r == -EROFS;
			went_on += r == 0;
			if (r == 0)
				assert_int_equal(zf_dev_reset(dev, 1), 0);
			if (r == 0)
				assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, false), 0);
			if (r == 0)
				assert_int_equal(zf_dev_grow(dev, GROWN), 0);
		} else {
			expect_filled(GROWN);
		}
		close_image();
		expect_either(path);
		dev = NULL;
	}
	assert_true(refused > 0 && went_on > 0);
}

/* Many outcomes are quick in memory, which can be used only if files have attributes there. */
static const char *choose_directory(void)
{
	int fd = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
	bool suits = fd >= 0 && __real_fsetxattr(fd, SIZE_XATTR, "1", 1, 0) == 0;

	if (fd >= 0)
		close(fd);
	return suits ? "/dev/shm" : ".";
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	int failed;
	const struct CMUnitTest on_disk[] = {
		TEST(an_image_grows_in_use),
		TEST(it_grows_again_and_again),
		TEST(to_the_size_that_it_has_is_nothing),
		TEST(what_cannot_be_is_refused_in_words),
		TEST(the_former_trailer_gives_its_space_back),
		TEST(a_longer_file_opens_and_grows_to_its_end),
		TEST(a_longer_file_is_filled_step_by_step),
		TEST(a_table_never_moves_onto_itself),
		TEST(lower_bounds_stay_lower_bounds),
		TEST(bytes_in_the_middle_of_an_empty_zone_do_no_harm),
		TEST(writers_go_on_while_it_grows),
	};
	const struct CMUnitTest at_calls[] = {
		TEST(a_cut_at_any_call_leaves_the_old_size_or_the_new),
		TEST(a_kill_at_any_call_leaves_the_old_size_or_the_new),
		TEST(hosts_without_attributes_will_do),
		TEST(any_call_may_fail),
	};

	directory = ".";
	failed = cmocka_run_group_tests(on_disk, NULL, NULL);
	directory = choose_directory();
	return failed + cmocka_run_group_tests(at_calls, NULL, NULL);
}

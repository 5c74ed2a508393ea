/* SPDX-License-Identifier: MIT */
/*
 * Reads that are in flight together: the memory device carries them out one by one, an image on the
 * disk of the build directory with a ring.
 */
#include <errno.h>
#include <liburing.h>
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
#include "io/dev_ops.h"
#include "io/image.h"
#include "io/memory.h"
#include "io_util.h"
#include "sim/rng.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (256 * BLOCK)
#define READS	  200u /* more than are in flight at once */
#define IN_FLIGHT 64u  /* at most */
#define TAG	  7u

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = ZONE_SIZE,
	.zone_count = 4,
	.append_limit = 64 * BLOCK,
	.volatile_cache = true,
};

/* ---- the ring, looked at ---- */

static struct {
	bool watched;		/* by one thread */
	int refuse;		/* so many calls fail ... */
	int error;		/* ... with this */
	unsigned int spoil;	/* so many completions, in a row, have ... */
	int result;		/* ... this in place of their own */
	unsigned int at_a_time; /* not 0: so many completions are seen at once, in ... */
	struct zf_rng *shuffle; /* ... an order that is drawn */
	uint64_t submitted, calls;
	uint64_t reaped;
	struct io_uring *ring;
} ring;

int __real_io_uring_submit_and_wait(struct io_uring *r, unsigned int count);
int __wrap_io_uring_submit_and_wait(struct io_uring *r, unsigned int count);

int __wrap_io_uring_submit_and_wait(struct io_uring *r, unsigned int count)
{
	int n;

	if (!ring.watched)
		return __real_io_uring_submit_and_wait(r, count);
	ring.calls++;
	if (ring.refuse > 0) {
		ring.refuse--;
		return ring.error;
	}
	n = __real_io_uring_submit_and_wait(r, count);
	ring.ring = r;
	ring.submitted += n > 0 ? (unsigned int)n : 0;
	return n;
}

unsigned int __real_io_uring_peek_batch_cqe(struct io_uring *r, struct io_uring_cqe **cqes,
					    unsigned int count);
unsigned int __wrap_io_uring_peek_batch_cqe(struct io_uring *r, struct io_uring_cqe **cqes,
					    unsigned int count);

unsigned int __wrap_io_uring_peek_batch_cqe(struct io_uring *r, struct io_uring_cqe **cqes,
					    unsigned int count)
{
	unsigned int n;

	if (!ring.watched)
		return __real_io_uring_peek_batch_cqe(r, cqes, count);
	if (ring.at_a_time > 0)
		count = ring.at_a_time;
	n = __real_io_uring_peek_batch_cqe(r, cqes, count);
	ring.reaped += n;
	for (unsigned int i = 0; i < n && ring.spoil > 0; i++) {
		const struct zf_read *read = io_uring_cqe_get_data(cqes[i]);

		ring.spoil--;
		cqes[i]->res = ring.result;
		memset(read->iov[0].iov_base, 0xee, BLOCK);
	}
	for (unsigned int i = n; ring.shuffle && i > 1; i--) {
		unsigned int other = (unsigned int)zf_rng_below(ring.shuffle, i);
		struct io_uring_cqe *cqe = cqes[i - 1];

		cqes[i - 1] = cqes[other];
		cqes[other] = cqe;
	}
	return n;
}

static void watch(void)
{
	memset(&ring, 0, sizeof(ring));
	ring.watched = true;
}

/* ---- devices ---- */

static struct zf_memory *memory;

static struct zf_dev *open_memory(void)
{
	static const struct zf_memory_options options = {0};
	struct zf_dev *dev;

	zf_memory_free(memory);
	assert_int_equal(zf_memory_new(&geometry, &memory), 0);
	assert_int_equal(zf_memory_open(memory, &options, NULL, &dev), 0);
	return dev;
}

static struct zf_dev *open_image(void)
{
	static const struct zf_open_options options = {0};
	char path[] = "./read-many-XXXXXX";
	struct zf_dev *dev;

	close(mkstemp(path));
	assert_int_equal(zf_image_create(path, &geometry, true, &options, NULL), 0);
	assert_int_equal(zf_image_open(path, &options, NULL, &dev), 0);
	unlink(path);
	return dev;
}

static bool uses_a_ring(struct zf_dev *dev)
{
	return dev->ops->read_fd && dev->ops->read_fd(dev) >= 0;
}

/* Writes the whole device, block n with the tag TAG + n. */
static void fill(struct zf_dev *dev)
{
	for (uint64_t at = 0; at < 4 * ZONE_SIZE; at += BLOCK)
		assert_int_equal(run_write(dev, at, BLOCK, TAG + at / BLOCK, false), 0);
}

/* ---- reads ---- */

struct many {
	struct zf_read reads[READS];
	struct iovec iov[READS][3];
	uint8_t *buf;
	unsigned int times[READS]; /* it was handed over */
	unsigned int done;
	uint64_t first_in_flight, in_flight_max; /* while one was handed over */
};

/* One to three blocks each, into as many segments, from anywhere. */
static void draw(struct many *many, struct zf_rng *rng)
{
	many->buf = aligned_alloc(BLOCK, READS * 3 * BLOCK);
	memset(many->buf, 0x5a, READS * 3 * BLOCK);
	for (unsigned int i = 0; i < READS; i++) {
		unsigned int count = 1 + (unsigned int)zf_rng_below(rng, 3);

		for (unsigned int k = 0; k < count; k++)
			many->iov[i][k] = (struct iovec){many->buf + (3 * i + k) * BLOCK, BLOCK};
		many->reads[i] = (struct zf_read){
			.addr = zf_rng_below(rng, 4 * 256 - count + 1) * BLOCK,
			.iov = many->iov[i],
			.iovcnt = count,
			.result = 77,
		};
	}
	memset(many->times, 0, sizeof(many->times));
	many->done = 0;
	many->first_in_flight = many->in_flight_max = 0;
}

static void expect(const struct many *many, unsigned int i);

/* Called when a read has its result and its bytes. */
static void read_done(void *arg, struct zf_read *read)
{
	struct many *many = arg;
	unsigned int i = (unsigned int)(read - many->reads);
	uint64_t in_flight = ring.submitted - ring.reaped;

	if (read->result == 0)
		expect(many, i);
	many->times[i]++;
	if (many->done++ == 0)
		many->first_in_flight = in_flight;
	many->in_flight_max = zf_max_u64(many->in_flight_max, in_flight);
}

static void read_many(struct zf_dev *dev, struct many *many, unsigned int count)
{
	zf_dev_read_many(dev, many->reads, count, read_done, many);
	assert_int_equal(many->done, count);
	for (unsigned int i = 0; i < READS; i++)
		assert_int_equal(many->times[i], i < count);
}

static void expect(const struct many *many, unsigned int i)
{
	assert_int_equal(many->reads[i].result, 0);
	for (unsigned int k = 0; k < many->reads[i].iovcnt; k++)
		assert_true(blocks_are(many->iov[i][k].iov_base, BLOCK,
				       TAG + many->reads[i].addr / BLOCK + k));
}

static void expect_all(const struct many *many)
{
	for (unsigned int i = 0; i < READS; i++)
		expect(many, i);
}

/* ---- tests ---- */

static struct zf_dev *(*open_device)(void);

static void each_read_gets_its_own_bytes(void **state)
{
	struct zf_dev *dev = open_device();
	struct zf_dev_stats before, after;
	struct many *many = calloc(1, sizeof(*many));
	struct zf_rng rng;

	fill(dev);
	zf_rng_seed(&rng, 1);
	for (unsigned int round = 0; round < 20; round++) {
		draw(many, &rng);
		zf_dev_get_stats(dev, &before);
		read_many(dev, many, READS);
		zf_dev_get_stats(dev, &after);
		expect_all(many);
		assert_int_equal(after.reads - before.reads, READS);
		free(many->buf);
	}
	free(many);
	zf_dev_close(dev);
}

static void none_is_in_flight_afterwards(void **state)
{
	struct zf_dev *dev = open_device();
	struct many *many = calloc(1, sizeof(*many));
	struct zf_rng rng;

	if (!uses_a_ring(dev)) {
		free(many);
		zf_dev_close(dev);
		skip();
	}
	fill(dev);
	zf_rng_seed(&rng, 2);
	draw(many, &rng);
	watch();
	read_many(dev, many, READS);
	assert_int_equal(ring.submitted, READS);
	/* Each call submits half a ring, later half of what is left. All reads have come back. */
	assert_in_range(ring.calls, 1, 2 * READS / (IN_FLIGHT / 2) + 8);
	assert_int_equal(io_uring_sq_ready(ring.ring), 0);
	assert_int_equal(*ring.ring->cq.khead, *ring.ring->cq.ktail);
	assert_int_equal(*ring.ring->sq.ktail, *ring.ring->cq.khead);
	expect_all(many);
	free(many->buf);
	free(many);
	zf_dev_close(dev);
}

/* Eight come at a time: those that have come are handed over while many others are in flight. */
static void what_has_come_is_handed_over_while_others_come(void **state)
{
	struct zf_dev *dev = open_device();
	struct many *many = calloc(1, sizeof(*many));
	struct zf_rng rng, order;

	if (!uses_a_ring(dev)) {
		free(many);
		zf_dev_close(dev);
		skip();
	}
	fill(dev);
	zf_rng_seed(&rng, 6);
	zf_rng_seed(&order, 7);
	for (unsigned int count = 2; count <= READS; count += 33) {
		draw(many, &rng);
		watch();
		ring.at_a_time = 8;
		ring.shuffle = &order;
		read_many(dev, many, count);
		assert_int_equal(ring.submitted, count);
		assert_int_equal(ring.reaped, count);
		/* All reads, or a full ring, are submitted before the first wait. More are never in
		 * flight. */
		assert_in_range(many->first_in_flight,
				count < IN_FLIGHT ? zf_max_u64(count, 8) - 8 : IN_FLIGHT - 8,
				count < IN_FLIGHT ? count : IN_FLIGHT);
		assert_in_range(many->in_flight_max, many->first_in_flight, IN_FLIGHT);
		free(many->buf);
	}
	free(many);
	zf_dev_close(dev);
}

static void what_the_ring_does_not_read_to_its_end_is_read_again(void **state)
{
	static const int results[] = {-EIO, -EAGAIN, 0, 512, -ECANCELED};
	struct zf_dev *dev = open_device();
	struct many *many = calloc(1, sizeof(*many));
	struct zf_rng rng;

	fill(dev);
	zf_rng_seed(&rng, 3);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(results); i++) {
		draw(many, &rng);
		watch();
		ring.spoil = 70;
		ring.result = results[i];
		read_many(dev, many, READS);
		assert_int_equal(ring.spoil, uses_a_ring(dev) ? 0 : 70);
		expect_all(many);
		free(many->buf);
	}
	free(many);
	zf_dev_close(dev);
}

static void a_kernel_that_refuses_for_the_moment_is_asked_again(void **state)
{
	static const int errors[] = {-EAGAIN, -EINTR, -EBUSY};
	struct zf_dev *dev = open_device();
	struct many *many = calloc(1, sizeof(*many));
	struct zf_rng rng;

	fill(dev);
	zf_rng_seed(&rng, 4);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(errors); i++) {
		draw(many, &rng);
		watch();
		ring.refuse = 5;
		ring.error = errors[i];
		read_many(dev, many, READS);
		assert_int_equal(ring.refuse, uses_a_ring(dev) ? 0 : 5);
		expect_all(many);
		free(many->buf);
	}
	free(many);
	zf_dev_close(dev);
}

/* Among many reads only those that are wrong fail. */
static void a_read_that_breaks_a_rule_fails_alone(void **state)
{
	struct zf_dev *dev = open_device();
	struct zf_dev_stats before, after;
	struct many *many = calloc(1, sizeof(*many));
	struct zf_rng rng;

	fill(dev);
	zf_rng_seed(&rng, 5);
	draw(many, &rng);
	many->reads[10].addr = 4 * ZONE_SIZE;			 /* behind the end */
	many->reads[20].addr = UINT64_MAX - BLOCK + 1;		 /* overflows */
	many->reads[30].addr += 512;				 /* no block */
	many->iov[40][0].iov_base = many->buf + 120 * BLOCK + 8; /* not aligned */
	many->reads[50].iovcnt = 0;
	zf_dev_get_stats(dev, &before);
	read_many(dev, many, READS);
	zf_dev_get_stats(dev, &after);
	for (unsigned int i = 0; i < READS; i++) {
		if (i == 10 || i == 20 || i == 30 || i == 40 || i == 50)
			assert_int_equal(many->reads[i].result, -EINVAL);
		else
			expect(many, i);
	}
	assert_int_equal(after.reads - before.reads, READS - 5);
	assert_int_equal(after.errors - before.errors, 5);
	assert_int_equal(after.read_errors - before.read_errors, 5);
	assert_int_equal(after.write_errors - before.write_errors, 0);
	free(many->buf);
	free(many);
	zf_dev_close(dev);
}

struct reader {
	pthread_t thread;
	pthread_barrier_t *end;
	struct zf_dev *dev;
	uint64_t seed;
};

static void *read_much(void *arg)
{
	struct reader *reader = arg;
	struct many *many = calloc(1, sizeof(*many));
	struct zf_rng rng;

	zf_rng_seed(&rng, reader->seed);
	for (unsigned int round = 0; round < 5; round++) {
		draw(many, &rng);
		read_many(reader->dev, many, 1 + (unsigned int)zf_rng_below(&rng, READS));
		for (unsigned int i = 0; i < READS; i++)
			if (many->reads[i].result != 77)
				expect(many, i);
		free(many->buf);
	}
	free(many);
	/*
	 * Each thread has a ring of its own until it ends. The thread sanitizer does not see how
	 * liburing unmaps that: to it the next ring at the same address is the same memory.
	 */
	pthread_barrier_wait(reader->end);
	return NULL;
}

static void threads_read_at_the_same_time(void **state)
{
	struct zf_dev *dev = open_device();
	struct reader readers[4];
	pthread_barrier_t end;

	fill(dev);
	assert_int_equal(pthread_barrier_init(&end, NULL, 4), 0);
	ring.watched = false;
	for (unsigned int i = 0; i < 4; i++) {
		readers[i] = (struct reader){.end = &end, .dev = dev, .seed = i};
		assert_int_equal(pthread_create(&readers[i].thread, NULL, read_much, &readers[i]),
				 0);
	}
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(readers[i].thread, NULL);
	pthread_barrier_destroy(&end);
	zf_dev_close(dev);
}

/* ---- by the caller ---- */

static void a_read_that_the_caller_carries_out_gets_its_bytes(void **state)
{
	struct zf_dev *dev = open_device();
	struct zf_dev_stats before, after;
	struct many *many = calloc(1, sizeof(*many));
	struct zf_rng rng;

	fill(dev);
	zf_rng_seed(&rng, 8);
	draw(many, &rng);
	zf_dev_get_stats(dev, &before);
	for (unsigned int i = 0; i < READS; i++) {
		struct zf_read *read = &many->reads[i];
		int fd = zf_dev_read_begin(dev, read);
		/* The result of a read: short, failed, or complete. */
		ssize_t results[] = {512, -EIO, 0};

		if (!uses_a_ring(dev)) {
			assert_int_equal(fd, -1);
			continue;
		}
		results[2] =
			i % 3 < 2 ? 0 : preadv(fd, read->iov, (int)read->iovcnt, (off_t)read->addr);
		zf_dev_read_end(dev, read, results[i % 3]);
		if (i % 3 < 2)
			assert_int_equal(read->result, -EAGAIN);
		else
			expect(many, i);
	}
	zf_dev_get_stats(dev, &after);
	assert_int_equal(after.reads - before.reads, uses_a_ring(dev) ? READS / 3 : 0);
	assert_int_equal(after.read_errors, before.read_errors);
	free(many->buf);
	free(many);
	zf_dev_close(dev);
}

static void a_read_that_breaks_a_rule_does_not_begin(void **state)
{
	struct zf_dev *dev = open_device();
	uint8_t *buf = aligned_alloc(BLOCK, 2 * BLOCK);
	struct iovec iov = {buf, BLOCK}, askew = {buf + 1, BLOCK}, empty = {buf, 0};
	struct zf_read reads[] = {
		{.addr = 4 * ZONE_SIZE, .iov = &iov, .iovcnt = 1},
		{.addr = UINT64_MAX - BLOCK + 1, .iov = &iov, .iovcnt = 1},
		{.addr = 512, .iov = &iov, .iovcnt = 1},
		{.addr = 0, .iov = &askew, .iovcnt = 1},
		{.addr = 0, .iov = &empty, .iovcnt = 1},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(reads); i++)
		assert_int_equal(zf_dev_read_begin(dev, &reads[i]), -1);
	free(buf);
	zf_dev_close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_that_the_caller_carries_out_gets_its_bytes),
		cmocka_unit_test(a_read_that_breaks_a_rule_does_not_begin),
		cmocka_unit_test(each_read_gets_its_own_bytes),
		cmocka_unit_test(none_is_in_flight_afterwards),
		cmocka_unit_test(what_has_come_is_handed_over_while_others_come),
		cmocka_unit_test(what_the_ring_does_not_read_to_its_end_is_read_again),
		cmocka_unit_test(a_kernel_that_refuses_for_the_moment_is_asked_again),
		cmocka_unit_test(a_read_that_breaks_a_rule_fails_alone),
		cmocka_unit_test(threads_read_at_the_same_time),
	};
	int failed;

	open_device = open_memory;
	failed = cmocka_run_group_tests_name("in memory", tests, NULL, NULL);
	open_device = open_image;
	failed += cmocka_run_group_tests_name("on an image", tests, NULL, NULL);
	zf_memory_free(memory);
	return failed;
}

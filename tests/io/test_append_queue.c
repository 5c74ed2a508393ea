/* SPDX-License-Identifier: MIT */
/*
 * Appends as writes at the write pointer, on a scripted device: which appends are merged, how many
 * are in flight, and what happens to each of them when a write fails, with the pointer moved or
 * not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/append_queue.h"
#include "sim/rng.h"

#define BLOCK	     ((uint64_t)ZF_BLOCK_SIZE)
#define ZONES	     80 /* more than the table holds */
#define ZONE_BLOCKS  64
#define CAPACITY     48
#define LIMIT	     8
#define REQUESTS_MAX 4000
#define UNANSWERED   1

/* The content of a block of the device: which block of which request, and whether the write was
 * FUA. */
struct cell {
	uint32_t request, block; /* request 0: nothing or garbage */
	bool fua;
};

struct request {
	struct zf_io io; /* first */
	struct iovec iov[3];
	uint32_t zone_no, blocks;
	bool hit;	   /* was part of a write that failed by itself */
	bool stale;	   /* and of one that the kernel refused */
	uint32_t on_media; /* how many of its blocks were ever stored */
	bool answered;
};

enum fault {
	FAULT_NONE,
	FAULT_PLAIN,  /* an error, and nothing happened */
	FAULT_MOVED,  /* an error, though part or all of it was stored */
	FAULT_SHORT,  /* part of it was stored, and that is what it says */
	FAULT_REPEAT, /* "try again" */
	FAULT_STALE,  /* -EIO, and nothing happened: the kernel was wrong about the pointer */
	FAULT_COUNT,
};

struct device {
	struct cell cells[ZONES][ZONE_BLOCKS];
	uint32_t pointer[ZONES];
	uint32_t expected[ZONES]; /* of the next write */
	bool broken[ZONES];	  /* a write failed: all are refused until a report */
	bool lies;		  /* a write that failed does not keep later ones from landing */
	bool told[ZONES];	  /* the failure has been delivered */
	int condition[ZONES];	  /* a report's result: -EROFS, -ENXIO, -EIO */
	bool report_wanted[ZONES];
	struct zf_io *manage_wanted[ZONES];
	unsigned int in_flight[ZONES];
	uint32_t reports;
	struct {
		struct zf_zone_write *write;
		int64_t result;
	} returned[ZF_APPEND_WRITES];
	unsigned int returned_count;
	uint32_t writes, written_blocks;
	enum fault next_fault; /* of the next write, then none */
	enum fault every_fault;
	uint32_t failures; /* told by the queue; of these, writes that the pointer has passed: */
	uint32_t passed;
	unsigned int fault_percent;
	uint32_t fault_part; /* blocks stored by MOVED and SHORT */
};

static struct device device;
static struct zf_append_queue *queue;
static struct zf_append_queue_options options;
static struct request requests[REQUESTS_MAX];
static uint32_t request_count, answered_count;
static struct zf_rng rng;

/* The memory that requests name is never touched: an address tells the request and the block. */
#define MEMORY ((uintptr_t)1 << 40)

static void *block_address(uint32_t request, uint32_t block)
{
	return (void *)(MEMORY + (((uintptr_t)request << 8) + block) * BLOCK);
}

static struct cell cell_of(const void *address, bool fua)
{
	uintptr_t n = ((uintptr_t)address - MEMORY) / BLOCK;

	if ((uintptr_t)address < MEMORY || n >> 8 >= REQUESTS_MAX)
		return (struct cell){0}; /* the queue's own zeroes */
	return (struct cell){(uint32_t)(n >> 8), (uint32_t)(n & 255), fua};
}

/* ---- the device below ---- */

static void store(const struct zf_zone_write *write, uint32_t zone_no, uint32_t count)
{
	uint32_t at = device.pointer[zone_no];

	for (unsigned int i = 0; i < write->iovcnt; i++) {
		for (uint64_t b = 0; b < write->iov[i].iov_len / BLOCK && count > 0; b++, count--) {
			struct cell cell =
				cell_of((char *)write->iov[i].iov_base + b * BLOCK, write->fua);

			device.cells[zone_no][at++] = cell;
			requests[cell.request].on_media++;
		}
	}
	device.pointer[zone_no] = at;
}

static void mark_hit(const struct zf_zone_write *write, bool stale)
{
	for (unsigned int i = 0; i < write->iovcnt; i++) {
		struct request *request = &requests[cell_of(write->iov[i].iov_base, false).request];

		request->hit |= !stale;
		request->stale |= stale;
	}
}

static enum fault choose_fault(void)
{
	enum fault fault = device.next_fault;

	device.next_fault = device.every_fault;
	if (fault == FAULT_NONE && zf_rng_chance(&rng, device.fault_percent))
		fault = FAULT_PLAIN + zf_rng_below(&rng, FAULT_COUNT - FAULT_PLAIN);
	return fault;
}

static uint32_t choose_part(uint32_t count, bool all)
{
	if (device.fault_part)
		return device.fault_part;
	return 1 + (uint32_t)zf_rng_below(&rng, all ? count : count - 1);
}

static int64_t execute(struct zf_zone_write *write, uint32_t zone_no)
{
	uint32_t count = (uint32_t)(write->len / BLOCK);
	enum fault fault = choose_fault();

	if (device.broken[zone_no] && !device.lies)
		return -EIO;
	if (fault == FAULT_SHORT && count == 1)
		fault = FAULT_PLAIN;
	device.broken[zone_no] = fault != FAULT_NONE;
	switch (fault) {
	case FAULT_STALE:
		mark_hit(write, true);
		return -EIO;
	case FAULT_PLAIN:
		mark_hit(write, false);
		return -EOVERFLOW;
	case FAULT_MOVED:
		mark_hit(write, false);
		store(write, zone_no, choose_part(count, true));
		return -EOVERFLOW;
	case FAULT_SHORT:
		count = choose_part(count, false);
		store(write, zone_no, count);
		return (int64_t)(count * BLOCK);
	case FAULT_REPEAT:
		return zf_rng_chance(&rng, 50) ? -EAGAIN : -ECANCELED;
	default:
		store(write, zone_no, count);
		return (int64_t)write->len;
	}
}

static void check_write(const struct zf_zone_write *write, uint32_t zone_no, uint32_t start)
{
	uint64_t len = 0;

	for (unsigned int i = 0; i < write->iovcnt; i++)
		len += write->iov[i].iov_len;
	assert_int_equal(len, write->len);
	assert_in_range(len, BLOCK, LIMIT * BLOCK);
	assert_true(start + len / BLOCK <= CAPACITY);
	assert_int_equal(start, device.expected[zone_no]);
	assert_false(device.told[zone_no]);
	assert_null(device.manage_wanted[zone_no]);
	assert_true(++device.in_flight[zone_no] <= options.depth);
}

static void device_write(void *arg, struct zf_zone_write *write)
{
	uint32_t zone_no = (uint32_t)(write->addr / BLOCK / ZONE_BLOCKS);
	uint32_t start = (uint32_t)(write->addr / BLOCK % ZONE_BLOCKS);

	check_write(write, zone_no, start);
	device.expected[zone_no] += (uint32_t)(write->len / BLOCK);
	device.writes++;
	device.written_blocks += (uint32_t)(write->len / BLOCK);
	assert_true(device.returned_count < ZF_APPEND_WRITES);
	device.returned[device.returned_count].write = write;
	device.returned[device.returned_count++].result = execute(write, zone_no);
}

static void device_report(void *arg, uint32_t zone_no)
{
	assert_int_equal(device.in_flight[zone_no], 0);
	assert_false(device.report_wanted[zone_no]);
	device.report_wanted[zone_no] = true;
}

static void device_manage(void *arg, struct zf_io *io)
{
	uint32_t zone_no = (uint32_t)(io->addr / BLOCK / ZONE_BLOCKS);

	assert_int_equal(device.in_flight[zone_no], 0);
	assert_null(device.manage_wanted[zone_no]);
	device.manage_wanted[zone_no] = io;
}

static void device_done(void *arg, struct zf_io *io, int result)
{
	struct request *request = (struct request *)(void *)io;

	assert_false(request->answered);
	request->answered = true;
	io->result = result;
	answered_count++;
}

/* Called for the device's own errors. "Try again" is no such error. */
static int device_failed(void *arg, const struct zf_zone_write *write, int error, bool passed)
{
	device.passed += passed;
	device.failures++;
	assert_true(error < 0 && write->count > 0);
	return error == -EOVERFLOW ? -EOVERFLOW : -EIO;
}

static const struct zf_append_queue_ops ops = {
	.write = device_write,
	.report = device_report,
	.manage = device_manage,
	.failed = device_failed,
	.done = device_done,
};

/* ---- delivering what the device has done ---- */

static void deliver_write(unsigned int i)
{
	struct zf_zone_write *write = device.returned[i].write;
	int64_t result = device.returned[i].result;
	uint32_t zone_no = (uint32_t)(write->addr / BLOCK / ZONE_BLOCKS);

	device.returned[i] = device.returned[--device.returned_count];
	device.in_flight[zone_no]--;
	if (result != (int64_t)write->len)
		device.told[zone_no] = true;
	zf_append_queue_written(queue, write, result);
}

static void deliver_report(uint32_t zone_no)
{
	device.report_wanted[zone_no] = false;
	device.broken[zone_no] = false;
	device.told[zone_no] = false;
	device.expected[zone_no] = device.pointer[zone_no];
	device.reports++;
	zf_append_queue_reported(queue, zone_no, device.condition[zone_no],
				 device.pointer[zone_no]);
}

static void deliver_manage(uint32_t zone_no)
{
	struct zf_io *io = device.manage_wanted[zone_no];

	device.manage_wanted[zone_no] = NULL;
	device.pointer[zone_no] = io->op == ZF_IO_RESET ? 0 : CAPACITY;
	device.expected[zone_no] = device.pointer[zone_no];
	device.broken[zone_no] = false;
	device.told[zone_no] = false;
	memset(device.cells[zone_no], 0, sizeof(device.cells[zone_no]));
	zf_append_queue_managed(queue, io, 0, device.pointer[zone_no]);
}

/* Delivers a random one of the device's pending results. Returns false if there is none. */
static bool deliver_any(void)
{
	uint32_t from = (uint32_t)zf_rng_below(&rng, ZONES);

	if (device.returned_count > 0 && zf_rng_chance(&rng, 80)) {
		deliver_write((unsigned int)zf_rng_below(&rng, device.returned_count));
		return true;
	}
	for (uint32_t i = 0; i < ZONES; i++) {
		uint32_t zone_no = (from + i) % ZONES;

		if (device.report_wanted[zone_no]) {
			deliver_report(zone_no);
			return true;
		}
		if (device.manage_wanted[zone_no]) {
			deliver_manage(zone_no);
			return true;
		}
	}
	if (device.returned_count == 0)
		return false;
	deliver_write((unsigned int)zf_rng_below(&rng, device.returned_count));
	return true;
}

static void deliver_all(void)
{
	while (deliver_any())
		;
}

/* ---- requests ---- */

static struct request *submit(enum zf_io_op op, uint32_t zone_no, uint32_t block, uint32_t blocks,
			      bool fua)
{
	uint32_t id = ++request_count;
	struct request *request = &requests[id];
	uint32_t first = blocks > 1 ? 1 : blocks;

	assert_true(id < REQUESTS_MAX);
	request->zone_no = zone_no;
	request->blocks = blocks;
	request->iov[0] = (struct iovec){block_address(id, 0), first * BLOCK};
	request->iov[1] = (struct iovec){block_address(id, first), (blocks - first) * BLOCK};
	request->io = (struct zf_io){
		.op = op,
		.fua = fua,
		.addr = (zone_no * ZONE_BLOCKS + block) * BLOCK,
		.len = blocks * BLOCK,
		.result = UNANSWERED,
	};
	memset(&request->io.backend, 0xff, sizeof(request->io.backend)); /* used before */
	if (op != ZF_IO_ZEROES) {
		request->io.iov = request->iov;
		request->io.iovcnt = blocks > 1 ? 2 : 1;
	}
	zf_append_queue_submit(queue, &request->io);
	return request;
}

static struct request *append(uint32_t zone_no, uint32_t blocks)
{
	return submit(ZF_IO_APPEND, zone_no, 0, blocks, false);
}

static uint32_t block_of(const struct request *request)
{
	return (uint32_t)(request->io.addr / BLOCK % ZONE_BLOCKS);
}

static void check_stored(const struct request *request)
{
	for (uint32_t b = 0; b < request->blocks; b++) {
		struct cell cell = device.cells[request->zone_no][block_of(request) + b];

		assert_int_equal(cell.request, request - requests);
		assert_int_equal(cell.block, b);
		assert_true(cell.fua || !request->io.fua);
	}
}

static void start(unsigned int depth, bool merge)
{
	options = (struct zf_append_queue_options){
		.zone_size = ZONE_BLOCKS * BLOCK,
		.capacity = CAPACITY * BLOCK,
		.zone_count = ZONES,
		.limit_bytes = LIMIT * BLOCK,
		.depth = depth,
		.merge = merge,
	};
	memset(&device, 0, sizeof(device));
	memset(requests, 0, sizeof(requests));
	request_count = answered_count = 0;
	zf_rng_seed(&rng, 1);
	assert_int_equal(zf_append_queue_new(&options, &ops, NULL, &queue), 0);
	for (uint32_t z = 0; z < ZONES; z++)
		zf_append_queue_set_pointer(queue, z, 0);
}

static void stop(void)
{
	deliver_all();
	assert_int_equal(answered_count, request_count);
	zf_append_queue_free(queue);
}

/* ---- without failures ---- */

static void test_waiting_appends_become_one_write(void **state)
{
	struct request *a[5];

	start(1, true);
	for (int i = 0; i < 5; i++)
		a[i] = append(0, i == 0 ? 1 : 2);
	assert_int_equal(device.writes, 1); /* the first; the others wait for it */
	deliver_write(0);
	assert_int_equal(device.writes, 2);
	assert_int_equal(device.written_blocks, 1 + 8);
	deliver_write(0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(a[i]->io.result, 0);
		check_stored(a[i]);
	}
	stop();
}

static void test_a_write_never_exceeds_the_limit(void **state)
{
	start(1, true);
	append(0, 1);
	append(0, 5);
	append(0, 4);
	deliver_write(0);
	assert_int_equal(device.written_blocks, 1 + 5);
	deliver_write(0);
	assert_int_equal(device.written_blocks, 1 + 5 + 4);
	deliver_all();
	assert_int_equal(append(0, LIMIT + 1)->io.result, -EINVAL);
	stop();
}

static void test_durable_and_other_appends_are_not_merged(void **state)
{
	start(1, true);
	append(0, 1);
	append(0, 1);
	submit(ZF_IO_APPEND, 0, 0, 1, true);
	submit(ZF_IO_APPEND, 0, 0, 1, true);
	deliver_all();
	assert_int_equal(device.writes, 3);
	assert_false(device.cells[0][1].fua);
	assert_true(device.cells[0][2].fua && device.cells[0][3].fua);
	stop();
}

static void test_locked_writes_one_request_at_a_time(void **state)
{
	start(1, false);
	for (int i = 0; i < 4; i++)
		append(0, 1);
	for (uint32_t i = 1; i <= 4; i++) {
		assert_int_equal(device.writes, i);
		assert_int_equal(device.written_blocks, i);
		deliver_write(0);
	}
	stop();
}

static void test_so_many_as_the_depth_are_in_flight(void **state)
{
	start(3, true);
	for (int i = 0; i < 10; i++)
		append(7, 1);
	assert_int_equal(device.in_flight[7], 3);
	append(8, 1); /* another zone does not wait */
	assert_int_equal(device.in_flight[8], 1);
	stop();
}

static void test_large_writes_and_zeroes_are_cut(void **state)
{
	struct request *write, *zeroes, *last;

	start(2, true);
	append(0, 2);
	write = submit(ZF_IO_WRITE, 0, 2, 20, true);
	zeroes = submit(ZF_IO_ZEROES, 0, 22, 17, false);
	last = append(0, 3);
	deliver_all();
	assert_int_equal(write->io.result, 0);
	assert_int_equal(zeroes->io.result, 0);
	check_stored(write);
	assert_int_equal(block_of(last), 39);
	check_stored(last);
	assert_int_equal(device.pointer[0], 42);
	stop();
}

static void test_writes_are_at_the_pointer_or_refused(void **state)
{
	start(2, true);
	assert_int_equal(submit(ZF_IO_WRITE, 0, 1, 1, false)->io.result, -EIO);
	append(0, 1);
	assert_int_equal(submit(ZF_IO_WRITE, 0, 0, 1, false)->io.result, -EIO);
	assert_int_equal(submit(ZF_IO_WRITE, 0, 1, 1, false)->io.result, UNANSWERED);
	stop();
}

static void test_capacity_is_never_crossed(void **state)
{
	struct request *fits;

	start(2, true);
	submit(ZF_IO_ZEROES, 0, 0, CAPACITY - 3, false);
	assert_int_equal(submit(ZF_IO_WRITE, 0, CAPACITY - 3, 4, false)->io.result, -ENOSPC);
	deliver_all();
	assert_int_equal(append(0, 4)->io.result, -ENOSPC);
	fits = append(0, 3);
	deliver_all();
	assert_int_equal(fits->io.result, 0);
	assert_int_equal(append(0, 1)->io.result, -ENOSPC);
	assert_int_equal(submit(ZF_IO_WRITE, 0, 0, 1, false)->io.result, -ENOSPC);
	stop();
}

static void test_nonsense_is_refused(void **state)
{
	static const struct {
		enum zf_io_op op;
		uint32_t zone_no, block, blocks;
	} cases[] = {
		{ZF_IO_APPEND, ZONES, 0, 1}, {ZF_IO_APPEND, 0, 1, 1}, {ZF_IO_APPEND, 0, 0, 0},
		{ZF_IO_RESET, 0, 1, 0},	     {ZF_IO_FINISH, 0, 1, 0},
	};
	struct zf_io unaligned = {.op = ZF_IO_WRITE, .addr = 512, .len = BLOCK};

	start(1, true);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(cases); i++)
		assert_int_equal(submit(cases[i].op, cases[i].zone_no, cases[i].block,
					cases[i].blocks, false)
					 ->io.result,
				 -EINVAL);
	requests[++request_count].io = unaligned;
	zf_append_queue_submit(queue, &requests[request_count].io);
	assert_int_equal(requests[request_count].io.result, -EINVAL);
	stop();
}

static void test_a_reset_has_the_zone_for_itself(void **state)
{
	struct request *reset;

	start(2, true);
	append(0, 1);
	assert_int_equal(submit(ZF_IO_RESET, 0, 0, 0, false)->io.result, -EIO);
	deliver_all();
	reset = submit(ZF_IO_RESET, 0, 0, 0, false);
	assert_int_equal(append(0, 1)->io.result, -EIO);
	assert_int_equal(submit(ZF_IO_FINISH, 0, 0, 0, false)->io.result, -EIO);
	deliver_all();
	assert_int_equal(reset->io.result, 0);
	reset = append(0, 1);
	deliver_all();
	assert_int_equal(block_of(reset), 0);
	submit(ZF_IO_FINISH, 0, 0, 0, false);
	deliver_all();
	assert_int_equal(append(0, 1)->io.result, -ENOSPC);
	stop();
}

static void test_more_zones_than_entries_wait_their_turn(void **state)
{
	start(2, true);
	for (uint32_t z = 0; z < ZONES; z++)
		append(z, 1);
	assert_int_equal(device.writes, ZF_APPEND_ZONES);
	deliver_all();
	assert_int_equal(device.writes, ZONES);
	for (uint32_t id = 1; id <= ZONES; id++)
		check_stored(&requests[id]);
	stop();
}

static void test_more_than_all_writes_wait_their_turn(void **state)
{
	start(4, false);
	for (uint32_t i = 0; i < 4 * 30; i++)
		append(i / 4, 1); /* nothing of the later zones is in flight */
	assert_int_equal(device.writes, ZF_APPEND_WRITES);
	deliver_all();
	assert_int_equal(device.written_blocks, 4 * 30);
	stop();
}

/* ---- failures ---- */

/* Three writes in flight, the first fails; a fourth append waits. */
static void four_appends(struct request **a, enum fault fault, uint32_t part)
{
	start(3, false);
	device.next_fault = fault;
	device.fault_part = part;
	for (int i = 0; i < 4; i++)
		a[i] = append(0, 2);
	assert_int_equal(device.in_flight[0], 3);
}

static void test_only_the_one_that_failed_is_told(void **state)
{
	struct request *a[4];

	four_appends(a, FAULT_PLAIN, 0);
	deliver_write(2);
	deliver_write(1);
	assert_false(device.report_wanted[0]); /* one is in flight still */
	deliver_write(0);
	assert_true(device.report_wanted[0]);
	assert_int_equal(device.writes, 3);
	deliver_all();
	assert_int_equal(a[0]->io.result, -EOVERFLOW);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(a[i]->io.result, 0);
		assert_int_equal(block_of(a[i]), 2 * (i - 1));
		check_stored(a[i]);
	}
	assert_int_equal(device.reports, 1);
	assert_int_equal(device.failures, 1);
	assert_int_equal(device.passed, 0);
	stop();
}

static void test_what_may_have_landed_is_not_sent_again(void **state)
{
	struct request *a[4];

	/* The first is stored although it failed, and a block of the second with it. */
	four_appends(a, FAULT_MOVED, 2);
	device.pointer[0]++;
	deliver_all();
	assert_int_equal(a[0]->io.result, -EOVERFLOW);
	assert_int_equal(a[1]->io.result, -EIO);
	assert_int_equal(a[1]->on_media, 0);
	assert_int_equal(a[2]->io.result, 0);
	assert_int_equal(block_of(a[2]), 3);
	assert_int_equal(a[3]->io.result, 0);
	assert_int_equal(device.failures, 2);
	assert_int_equal(device.passed, 1);
	stop();
}

static void test_a_short_write_goes_on(void **state)
{
	struct request *a[4];

	four_appends(a, FAULT_SHORT, 1);
	deliver_all();
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(a[i]->io.result, 0);
		assert_int_equal(block_of(a[i]), 2 * i);
		assert_int_equal(a[i]->on_media, 2);
		check_stored(a[i]);
	}
	stop();
}

static void test_a_short_write_that_moved_the_pointer_further_fails(void **state)
{
	struct request *a[4];

	four_appends(a, FAULT_SHORT, 1);
	device.pointer[0]++;
	deliver_all();
	assert_int_equal(a[0]->io.result, -EIO);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(a[i]->io.result, 0);
		assert_int_equal(block_of(a[i]), 2 * i);
	}
	stop();
}

/* A device that breaks the rules loses what it acknowledged; nothing is put in a wrong place. */
static void test_a_pointer_that_went_back(void **state)
{
	struct request *a[4];

	four_appends(a, FAULT_SHORT, 1);
	device.pointer[0] = 0;
	deliver_all();
	assert_int_equal(a[0]->io.result, -EIO);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(a[i]->io.result, 0);
		check_stored(a[i]);
	}
	stop();
}

static void test_a_later_part_that_landed_alone(void **state)
{
	struct request *write;

	start(2, true);
	device.lies = true;
	device.next_fault = FAULT_REPEAT;
	write = submit(ZF_IO_WRITE, 0, 0, 2 * LIMIT, false);
	device.pointer[0] = 0;
	deliver_all();
	assert_int_equal(write->io.result, -EIO);
	stop();
}

static void test_try_again_is_tried_again(void **state)
{
	struct request *a[4];

	four_appends(a, FAULT_REPEAT, 0);
	deliver_all();
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(a[i]->io.result, 0);
	stop();
}

static void test_a_pointer_that_the_kernel_had_wrong(void **state)
{
	struct request *a[4];

	four_appends(a, FAULT_STALE, 0);
	deliver_all();
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(a[i]->io.result, 0);
		assert_int_equal(block_of(a[i]), 2 * i);
	}
	assert_int_equal(device.failures, 0);
	stop();
}

static void test_a_zone_that_always_fails(void **state)
{
	struct request *a[4];

	four_appends(a, FAULT_STALE, 0);
	device.every_fault = device.next_fault = FAULT_STALE;
	deliver_all();
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(a[i]->io.result, -EIO);
	assert_true(device.reports <= 8); /* each is tried twice, and no more */
	stop();
}

static void test_a_zone_that_cannot_be_written_fails_all(void **state)
{
	struct request *a[4], *later;

	four_appends(a, FAULT_PLAIN, 0);
	device.condition[0] = -EROFS;
	deliver_all();
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(a[i]->io.result, -EROFS);
	assert_int_equal(device.failures, 3);
	assert_int_equal(device.passed, 0);
	later = append(0, 1); /* the pointer is still unknown: asks once more */
	deliver_all();
	assert_int_equal(later->io.result, -EROFS);
	device.condition[0] = 0;
	later = append(0, 1);
	deliver_all();
	assert_int_equal(later->io.result, 0);
	assert_int_equal(device.reports, 3);
	stop();
}

static void test_without_a_report_any_write_may_have_landed(void **state)
{
	struct request *a[4];

	four_appends(a, FAULT_PLAIN, 0);
	device.condition[0] = -EIO;
	deliver_all();
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(a[i]->io.result, -EIO);
	assert_int_equal(device.failures, 3);
	assert_int_equal(device.passed, 3);
	stop();
}

static void test_a_cut_write_fails_as_a_whole(void **state)
{
	struct request *write;

	start(1, true);
	write = submit(ZF_IO_WRITE, 0, 0, 20, false);
	deliver_write(0);
	device.next_fault = FAULT_PLAIN;
	deliver_write(0); /* sends the third piece, which fails */
	deliver_all();
	assert_int_equal(write->io.result, -EOVERFLOW);
	assert_int_equal(device.pointer[0], 16);
	stop();
}

static void test_a_cut_write_goes_on_after_another_failed(void **state)
{
	struct request *bad, *write;

	start(4, true);
	device.next_fault = FAULT_MOVED;
	device.fault_part = 2;
	bad = append(0, 2);
	write = submit(ZF_IO_WRITE, 0, 2, 20, false); /* its first pieces are refused */
	deliver_all();
	assert_int_equal(bad->io.result, -EOVERFLOW);
	assert_int_equal(write->io.result, 0); /* the pointer is where it has to be */
	check_stored(write);
	stop();
}

static void test_an_unknown_pointer_is_asked_for_first(void **state)
{
	struct request *a;

	start(1, true);
	zf_append_queue_set_pointer(queue, 3, ZF_APPEND_POINTER_UNKNOWN);
	device.pointer[3] = device.expected[3] = 5;
	a = append(3, 1);
	assert_int_equal(device.writes, 0);
	deliver_all();
	assert_int_equal(a->io.result, 0);
	assert_int_equal(block_of(a), 5);
	stop();
}

/* ---- at random ---- */

/* Nothing is stored twice, and each request that fails has a reason of its own. */
static void check_answer(const struct request *request)
{
	assert_true(request->on_media <= request->blocks);
	switch (request->io.result) {
	case 0:
	case -ENOSPC:
		break;
	case -EOVERFLOW:
		assert_true(request->hit || request->io.op == ZF_IO_ZEROES);
		break;
	case -EIO: /* part of it may have landed; a write's place was taken; a reset was there */
		assert_true(request->on_media > 0 || request->stale ||
			    request->io.op != ZF_IO_APPEND ||
			    device.manage_wanted[request->zone_no]);
		break;
	default:
		fail_msg("result %d", request->io.result);
	}
}

static uint32_t last_reset(uint32_t zone_no)
{
	for (uint32_t id = request_count; id > 0; id--) {
		if (requests[id].io.op == ZF_IO_RESET && requests[id].zone_no == zone_no &&
		    requests[id].io.result == 0)
			return id;
	}
	return 0;
}

/* All appends acknowledged since the zone's reset are there, in the order in which they came. */
static void check_zone(uint32_t zone_no)
{
	uint32_t end = 0;

	for (uint32_t id = last_reset(zone_no) + 1; id <= request_count; id++) {
		const struct request *request = &requests[id];

		if (request->zone_no != zone_no || request->io.result != 0 ||
		    (request->io.op != ZF_IO_APPEND && request->io.op != ZF_IO_WRITE))
			continue;
		check_stored(request);
		assert_true(block_of(request) >= end);
		end = block_of(request) + request->blocks;
	}
	assert_true(zf_append_queue_pointer(queue, zone_no) == device.pointer[zone_no] ||
		    zf_append_queue_pointer(queue, zone_no) == ZF_APPEND_POINTER_UNKNOWN);
}

static void submit_any(uint32_t zones)
{
	uint32_t zone_no = (uint32_t)zf_rng_below(&rng, zones);
	uint32_t blocks = 1 + (uint32_t)zf_rng_below(&rng, LIMIT);
	bool fua = zf_rng_chance(&rng, 30);

	if (zf_rng_chance(&rng, 80))
		submit(ZF_IO_APPEND, zone_no, 0, zf_rng_chance(&rng, 60) ? 1 : blocks, fua);
	else if (zf_rng_chance(&rng, 70))
		submit(ZF_IO_WRITE, zone_no, device.expected[zone_no],
		       1 + (uint32_t)zf_rng_below(&rng, 3 * LIMIT), fua);
	else
		submit(ZF_IO_ZEROES, zone_no, device.expected[zone_no], blocks, false);
}

static void random_run(uint64_t seed)
{
	uint32_t zones, checked = 1;

	zf_rng_seed(&rng, seed);
	zones = zf_rng_chance(&rng, 30) ? ZONES : 1 + (uint32_t)zf_rng_below(&rng, 4);
	start(1 + (unsigned int)zf_rng_below(&rng, 5), zf_rng_chance(&rng, 75));
	zf_rng_seed(&rng, seed);
	device.fault_percent = zf_rng_chance(&rng, 70) ? (unsigned int)zf_rng_below(&rng, 30) : 0;
	while (request_count < 300) {
		submit_any(zones);
		if (zf_rng_chance(&rng, 5)) {
			uint32_t zone_no = (uint32_t)zf_rng_below(&rng, zones);

			deliver_all();
			for (uint32_t z = 0; z < zones; z++)
				check_zone(z);
			for (; checked <= request_count; checked++)
				check_answer(&requests[checked]);
			submit(ZF_IO_RESET, zone_no, 0, 0, false);
			deliver_all();
		}
		while (zf_rng_chance(&rng, 60) && deliver_any())
			;
	}
	deliver_all();
	for (uint32_t z = 0; z < zones; z++)
		check_zone(z);
	for (; checked <= request_count; checked++)
		check_answer(&requests[checked]);
	stop();
}

static uint64_t running_seed; /* 0: all went well */

static int print_seed(void **state)
{
	if (running_seed != 0)
		print_message("ZF_SEED=%llu\n", (unsigned long long)running_seed);
	return 0;
}

static void test_random_appends_and_failures(void **state)
{
	const char *text = getenv("ZF_SEED");
	uint64_t from = text ? strtoull(text, NULL, 0) : 1, to = text ? from : 3000;

	for (uint64_t seed = from; seed <= to; seed++) {
		running_seed = seed;
		random_run(seed);
	}
	running_seed = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting_appends_become_one_write),
		cmocka_unit_test(test_a_write_never_exceeds_the_limit),
		cmocka_unit_test(test_durable_and_other_appends_are_not_merged),
		cmocka_unit_test(test_locked_writes_one_request_at_a_time),
		cmocka_unit_test(test_so_many_as_the_depth_are_in_flight),
		cmocka_unit_test(test_large_writes_and_zeroes_are_cut),
		cmocka_unit_test(test_writes_are_at_the_pointer_or_refused),
		cmocka_unit_test(test_capacity_is_never_crossed),
		cmocka_unit_test(test_nonsense_is_refused),
		cmocka_unit_test(test_a_reset_has_the_zone_for_itself),
		cmocka_unit_test(test_more_zones_than_entries_wait_their_turn),
		cmocka_unit_test(test_more_than_all_writes_wait_their_turn),
		cmocka_unit_test(test_only_the_one_that_failed_is_told),
		cmocka_unit_test(test_what_may_have_landed_is_not_sent_again),
		cmocka_unit_test(test_a_short_write_goes_on),
		cmocka_unit_test(test_a_short_write_that_moved_the_pointer_further_fails),
		cmocka_unit_test(test_a_pointer_that_went_back),
		cmocka_unit_test(test_a_later_part_that_landed_alone),
		cmocka_unit_test(test_try_again_is_tried_again),
		cmocka_unit_test(test_a_pointer_that_the_kernel_had_wrong),
		cmocka_unit_test(test_a_zone_that_always_fails),
		cmocka_unit_test(test_a_zone_that_cannot_be_written_fails_all),
		cmocka_unit_test(test_without_a_report_any_write_may_have_landed),
		cmocka_unit_test(test_a_cut_write_fails_as_a_whole),
		cmocka_unit_test(test_a_cut_write_goes_on_after_another_failed),
		cmocka_unit_test(test_an_unknown_pointer_is_asked_for_first),
		cmocka_unit_test_teardown(test_random_appends_and_failures, print_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The simulator: all outcomes of a power cut in turn, the digest, and completions that come late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io_util.h"
#include "sim/sim.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (16 * BLOCK)
#define MOST	  UINT64_C(200)

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = ZONE_SIZE,
	.zone_count = 8,
	.conventional = 1,
	.append_limit = 8 * BLOCK,
	.volatile_cache = true,
};

static struct zf_sim *sim;
static struct zf_dev *dev;

static int setup(void **state)
{
	sim = zf_sim_new(&geometry, 1);
	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
	return 0;
}

static int teardown(void **state)
{
	zf_dev_close(dev);
	zf_sim_free(sim);
	return 0;
}

static void append(uint32_t zone_no, uint64_t blocks, uint64_t tag, bool fua)
{
	void *buf = blocks_new(blocks * BLOCK, tag);
	struct iovec iov = {buf, blocks * BLOCK};
	struct zf_io io = {.op = ZF_IO_APPEND,
			   .addr = zone_no * ZONE_SIZE,
			   .len = blocks * BLOCK,
			   .iov = &iov,
			   .iovcnt = 1,
			   .fua = fua};

	assert_int_equal(zf_dev_run(dev, &io), 0);
	free(buf);
}

struct flight {
	struct zf_io io;
	struct iovec iov;
	bool done;
};

static void flight_done(struct zf_io *io)
{
	ZF_CONTAINER_OF(io, struct flight, io)->done = true;
}

static void launch(struct flight *f, enum zf_io_op op, uint32_t zone_no, uint64_t tag)
{
	bool data = op == ZF_IO_APPEND;

	*f = (struct flight){.iov = {blocks_new(BLOCK, tag), BLOCK}};
	f->io = (struct zf_io){.op = op,
			       .addr = zone_no * ZONE_SIZE,
			       .len = data ? BLOCK : 0,
			       .iov = &f->iov,
			       .iovcnt = 1,
			       .done = flight_done};
	zf_dev_submit(dev, &f->io);
}

static void land(struct flight *f)
{
	while (!f->done)
		zf_dev_poll(dev, true);
	free(f->iov.iov_base);
}

/* ---- outcomes ---- */

struct seen {
	uint64_t digests[MOST];
	unsigned int count;
};

static void see(struct seen *seen, uint64_t digest)
{
	for (unsigned int i = 0; i < seen->count; i++) {
		if (seen->digests[i] == digest)
			return;
	}
	seen->digests[seen->count++] = digest;
}

/* All outcomes of a cut now; `look`, if any, is called with a device on each. */
static struct seen see_all(void (*look)(struct zf_dev *found))
{
	uint64_t n = zf_sim_outcomes(sim, MOST);
	struct seen seen = {.count = 0};

	assert_true(n > 0 && n <= MOST);
	for (uint64_t i = 0; i < n; i++) {
		struct zf_sim *clone = zf_sim_clone(sim);
		struct zf_dev *found;

		zf_sim_crash_nth(clone, i);
		see(&seen, zf_sim_digest(clone));
		assert_int_equal(zf_sim_open(clone, NULL, &found), 0);
		if (look)
			look(found);
		zf_dev_close(found);
		zf_sim_free(clone);
	}
	return seen;
}

static unsigned int whole, zeroes, lost, torn, first, other;

static void look_at_one(struct zf_dev *found)
{
	static const uint8_t zero[2 * ZF_BLOCK_SIZE];
	uint64_t pointer = zone_of(found, 1).wp - ZONE_SIZE;
	uint8_t *bytes = blocks_new(2 * BLOCK, 0), *written = blocks_new(2 * BLOCK, 7);

	assert_true(device_holds(found, ZONE_SIZE, BLOCK, 6));
	assert_int_equal(zf_dev_read_buf(found, ZONE_SIZE + BLOCK, bytes, 2 * BLOCK), 0);
	if (pointer == BLOCK)
		lost++;
	else if (memcmp(bytes, written, 2 * BLOCK) == 0)
		whole++;
	else if (memcmp(bytes, zero, 2 * BLOCK) == 0)
		zeroes++;
	else if (memcmp(bytes, written, BLOCK) == 0 && memcmp(bytes + BLOCK, zero, BLOCK) == 0)
		first++;
	else if (memcmp(bytes, written, BLOCK + BLOCK / 2) == 0)
		torn++;
	else
		other++;
	free(bytes);
	free(written);
}

static void a_write_that_is_not_durable_has_each_of_its_fates_once(void **state)
{
	append(1, 1, 6, true);
	append(1, 2, 7, false);
	assert_int_equal(see_all(look_at_one).count, 5);
	assert_int_equal(whole, 1);
	assert_int_equal(zeroes, 1);
	assert_int_equal(lost, 1);
	assert_int_equal(first, 1);
	assert_int_equal(torn, 1);
	assert_int_equal(other, 0);
}

static void what_is_durable_has_one_outcome(void **state)
{
	append(1, 1, 6, true);
	append(2, 3, 7, false);
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(see_all(NULL).count, 1);
}

static void writes_are_lost_independently(void **state)
{
	append(1, 1, 6, false);
	append(2, 1, 7, false);
	assert_int_equal(see_all(NULL).count, 4 * 4);
}

static void below_a_durable_block_the_pointer_does_not_go(void **state)
{
	append(1, 1, 6, false);
	append(1, 1, 7, true);
	assert_int_equal(see_all(NULL).count, 3);
}

static void the_former_life_may_be_seen_again(void **state)
{
	append(1, 1, 6, true);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	append(1, 1, 7, false);
	assert_int_equal(see_all(NULL).count, 5);
}

static void a_reset_in_flight_may_have_happened_or_not(void **state)
{
	struct flight reset;

	append(1, 1, 6, true);
	launch(&reset, ZF_IO_RESET, 1, 0);
	assert_int_equal(see_all(NULL).count, 2);
	land(&reset);
}

static unsigned int swapped;

static void look_for_a_swap(struct zf_dev *found)
{
	swapped += zone_of(found, 1).wp == ZONE_SIZE + 2 * BLOCK &&
		   device_holds(found, ZONE_SIZE, BLOCK, 8) &&
		   device_holds(found, ZONE_SIZE + BLOCK, BLOCK, 7);
}

static void appends_in_flight_land_in_both_orders(void **state)
{
	struct flight a, b;

	launch(&a, ZF_IO_APPEND, 1, 7);
	launch(&b, ZF_IO_APPEND, 1, 8);
	see_all(look_for_a_swap);
	assert_int_equal(swapped, 1);
	land(&a);
	land(&b);
}

static void too_many_are_drawn(void **state)
{
	for (uint32_t zone_no = 1; zone_no < 7; zone_no++)
		append(zone_no, 1, zone_no, false);
	assert_int_equal(zf_sim_outcomes(sim, MOST), MOST + 1);
	for (uint64_t seed = 0; seed < 2; seed++) {
		struct zf_sim *a = zf_sim_clone(sim), *b = zf_sim_clone(sim);

		zf_sim_crash_some(a, seed);
		zf_sim_crash_some(b, seed);
		assert_int_equal(zf_sim_digest(a), zf_sim_digest(b));
		zf_sim_free(a);
		zf_sim_free(b);
	}
}

/* ---- the digest ---- */

static void the_digest_is_of_what_can_be_read(void **state)
{
	struct zf_sim *clone;
	uint64_t before = zf_sim_digest(sim);

	append(1, 1, 6, true);
	clone = zf_sim_clone(sim);
	assert_int_not_equal(zf_sim_digest(sim), before);
	assert_int_equal(zf_sim_digest(clone), zf_sim_digest(sim));
	append(2, 1, 6, true);
	assert_int_not_equal(zf_sim_digest(clone), zf_sim_digest(sim));
	assert_int_equal(zf_dev_reset(dev, 2), 0);
	assert_int_equal(zf_sim_digest(clone), zf_sim_digest(sim));
	zf_sim_free(clone);
}

/* ---- late completions ---- */

static void a_late_command_is_overtaken_by_all_that_does_not_wait_for_it(void **state)
{
	struct flight late;

	zf_sim_set_late(sim, ZF_IO_APPEND, 100);
	launch(&late, ZF_IO_APPEND, 1, 7);
	zf_sim_set_late(sim, ZF_IO_APPEND, 0);
	for (unsigned int i = 0; i < 8; i++) {
		append(2, 1, i, false);
		assert_int_equal(zf_dev_flush(dev), 0);
	}
	assert_int_equal(zf_dev_poll(dev, false), 0);
	assert_false(late.done);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE);
	land(&late);
	assert_int_equal(late.io.result, 0);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + BLOCK);
}

/* ---- after a cut of the host ---- */

static void what_a_raised_pointer_uncovers_stays(void **state)
{
	append(1, 3, 7, false);
	for (uint64_t seed = 0; seed < 100; seed++) {
		uint8_t *before = blocks_new(3 * BLOCK, 0), *after = blocks_new(3 * BLOCK, 0);
		struct zf_sim *clone = zf_sim_clone(sim);
		struct zf_dev *found;
		uint64_t addr;

		zf_sim_crash(clone, seed, ZF_SIM_CUT_HOST);
		assert_int_equal(zf_sim_open(clone, NULL, &found), 0);
		assert_int_equal(zf_dev_raise_pointer(found, 1, ZONE_SIZE + 3 * BLOCK), 0);
		assert_int_equal(zf_dev_read_buf(found, ZONE_SIZE, before, 3 * BLOCK), 0);
		assert_int_equal(run_append(found, 2 * ZONE_SIZE, BLOCK, 1, &addr), 0);
		zf_dev_close(found);
		zf_sim_crash(clone, seed + 1, ZF_SIM_CUT_DEVICE);
		assert_int_equal(zf_sim_open(clone, NULL, &found), 0);
		assert_int_equal(zone_of(found, 1).wp, ZONE_SIZE + 3 * BLOCK);
		assert_int_equal(zf_dev_read_buf(found, ZONE_SIZE, after, 3 * BLOCK), 0);
		assert_memory_equal(before, after, 3 * BLOCK);
		zf_dev_close(found);
		zf_sim_free(clone);
		free(before);
		free(after);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_write_that_is_not_durable_has_each_of_its_fates_once),
		TEST(what_is_durable_has_one_outcome),
		TEST(writes_are_lost_independently),
		TEST(below_a_durable_block_the_pointer_does_not_go),
		TEST(the_former_life_may_be_seen_again),
		TEST(a_reset_in_flight_may_have_happened_or_not),
		TEST(appends_in_flight_land_in_both_orders),
		TEST(too_many_are_drawn),
		TEST(the_digest_is_of_what_can_be_read),
		TEST(a_late_command_is_overtaken_by_all_that_does_not_wait_for_it),
		TEST(what_a_raised_pointer_uncovers_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

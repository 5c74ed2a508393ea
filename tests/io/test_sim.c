/* SPDX-License-Identifier: MIT */
/*
 * The simulator against its own fault model (sim/sim.h): for each clause, every outcome that the
 * clause allows occurs, and no outcome that it forbids occurs.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io_util.h"
#include "sim/rng.h"
#include "sim/sim.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (16 * BLOCK)
#define CAPACITY  (14 * BLOCK)
#define ZONES	  8u
#define CUTS	  400 /* states drawn for one clause */

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = CAPACITY,
	.zone_count = ZONES,
	.conventional = 1,
	.max_open = 3,
	.max_active = 4,
	.append_limit = 8 * BLOCK,
	.volatile_cache = true,
};

static struct zf_sim *sim;
static struct zf_dev *dev;

static void start(const struct zf_geometry *g, uint64_t seed)
{
	sim = zf_sim_new(g, seed);
	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
}

static int setup(void **state)
{
	start(&geometry, 1);
	return 0;
}

static int teardown(void **state)
{
	zf_dev_close(dev);
	zf_sim_free(sim);
	dev = NULL;
	sim = NULL;
	return 0;
}

static void restart(const struct zf_geometry *g, uint64_t seed)
{
	teardown(NULL);
	start(g, seed);
}

/* A state found after a cut at this instant, opened. */
struct found {
	struct zf_sim *sim;
	struct zf_dev *dev;
};

static struct found cut_now(uint64_t seed, enum zf_sim_cut cut)
{
	struct found found = {.sim = zf_sim_clone(sim)};

	zf_sim_crash(found.sim, seed, cut);
	assert_int_equal(zf_sim_open(found.sim, NULL, &found.dev), 0);
	return found;
}

static void leave(struct found *found)
{
	zf_dev_close(found->dev);
	zf_sim_free(found->sim);
}

static uint64_t pointer(const struct found *found, uint32_t zone_no)
{
	return zone_of(found->dev, zone_no).wp - zone_no * ZONE_SIZE;
}

static void append(uint32_t zone_no, uint64_t tag, bool fua)
{
	void *buf = blocks_new(BLOCK, tag);
	struct iovec iov = {buf, BLOCK};
	struct zf_io io = {.op = ZF_IO_APPEND,
			   .addr = zone_no * ZONE_SIZE,
			   .len = BLOCK,
			   .iov = &iov,
			   .iovcnt = 1,
			   .fua = fua};

	assert_int_equal(zf_dev_run(dev, &io), 0);
	free(buf);
}

/* ---- requests that stay in flight ---- */

struct flight {
	struct zf_io io;
	struct iovec iov;
	void *buf;
	bool done;
};

static unsigned int completions;

static void flight_done(struct zf_io *io)
{
	completions++;
	ZF_CONTAINER_OF(io, struct flight, io)->done = true;
}

static void launch(struct flight *f, enum zf_io_op op, uint64_t addr, uint64_t tag, bool fua)
{
	bool data = op == ZF_IO_WRITE || op == ZF_IO_APPEND || op == ZF_IO_READ;

	*f = (struct flight){.buf = blocks_new(BLOCK, tag)};
	f->iov = (struct iovec){f->buf, BLOCK};
	f->io = (struct zf_io){.op = op,
			       .addr = addr,
			       .len = data ? BLOCK : 0,
			       .iov = &f->iov,
			       .iovcnt = 1,
			       .fua = fua,
			       .done = flight_done};
	zf_dev_submit(dev, &f->io);
}

static void drain(void)
{
	while (zf_dev_poll(dev, true) > 0)
		;
}

/* ---- what a block turned out to be ---- */

enum content {
	WRITTEN,
	ZEROES,
	OLD,
	TORN,	 /* sectors of what is known, and others */
	GARBAGE, /* no sector of anything known */
	CONTENTS,
};

static bool sector_is(const uint8_t *block, const uint8_t *other, unsigned int sector)
{
	return memcmp(block + 512 * sector, other + 512 * sector, 512) == 0;
}

static enum content content_of(const struct found *found, uint64_t addr, uint64_t tag,
			       uint64_t old_tag)
{
	uint8_t *block = blocks_new(BLOCK, 0), *written = blocks_new(BLOCK, tag);
	uint8_t *old = blocks_new(BLOCK, old_tag);
	static const uint8_t zeroes[4096];
	enum content content = GARBAGE;
	unsigned int known = 0;

	assert_int_equal(zf_dev_read_buf(found->dev, addr, block, BLOCK), 0);
	for (unsigned int i = 0; i < 8; i++)
		known += sector_is(block, written, i) || sector_is(block, zeroes, i) ||
			 sector_is(block, old, i);
	if (memcmp(block, written, BLOCK) == 0)
		content = WRITTEN;
	else if (memcmp(block, old, BLOCK) == 0)
		content = OLD;
	else if (memcmp(block, zeroes, BLOCK) == 0)
		content = ZEROES;
	else if (known > 0)
		content = TORN;
	free(block);
	free(written);
	free(old);
	return content;
}

/* ---- clause 1: what is durable ---- */

static void what_was_fua_or_flushed_survives_and_the_rest_may_not(void **state)
{
	unsigned int kept = 0, lost = 0;

	append(1, 10, true);
	append(1, 11, false);
	assert_int_equal(zf_dev_flush(dev), 0);
	append(1, 12, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		assert_true(device_holds(found.dev, ZONE_SIZE, BLOCK, 10));
		assert_true(device_holds(found.dev, ZONE_SIZE + BLOCK, BLOCK, 11));
		assert_true(pointer(&found, 1) >= 2 * BLOCK);
		if (pointer(&found, 1) == 3 * BLOCK &&
		    device_holds(found.dev, ZONE_SIZE + 2 * BLOCK, BLOCK, 12))
			kept++;
		else
			lost++;
		leave(&found);
	}
	assert_true(kept > 0);
	assert_true(lost > 0);
}

static unsigned int count_kept(uint64_t addr, uint64_t tag)
{
	unsigned int kept = 0;

	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		kept += pointer(&found, 1) > addr - ZONE_SIZE &&
			device_holds(found.dev, addr, BLOCK, tag);
		leave(&found);
	}
	return kept;
}

static void a_flush_covers_only_what_completed_before_it_was_submitted(void **state)
{
	for (uint64_t seed = 0; seed < 8; seed++) { /* whichever of the two completes first */
		struct flight write, flush;

		restart(&geometry, seed);
		launch(&write, ZF_IO_APPEND, ZONE_SIZE, 1, false);
		launch(&flush, ZF_IO_FLUSH, 0, 0, false);
		drain();
		assert_true(write.done && flush.done);
		assert_in_range(count_kept(ZONE_SIZE, 1), 1, CUTS - 1);
		assert_int_equal(zf_dev_flush(dev), 0);
		assert_int_equal(count_kept(ZONE_SIZE, 1), CUTS);
		free(write.buf);
		free(flush.buf);
	}
}

static void a_flush_in_flight_covers_nothing(void **state)
{
	struct flight flush;

	append(1, 1, false);
	launch(&flush, ZF_IO_FLUSH, 0, 0, false);
	assert_in_range(count_kept(ZONE_SIZE, 1), 1, CUTS - 1);
	drain();
	assert_int_equal(count_kept(ZONE_SIZE, 1), CUTS);
	free(flush.buf);
}

static void a_fua_write_in_flight_is_not_durable(void **state)
{
	struct flight write;

	launch(&write, ZF_IO_APPEND, ZONE_SIZE, 1, true);
	assert_in_range(count_kept(ZONE_SIZE, 1), 1, CUTS - 1);
	drain();
	assert_int_equal(count_kept(ZONE_SIZE, 1), CUTS);
	free(write.buf);
}

static void without_a_volatile_cache_what_completed_is_durable(void **state)
{
	struct zf_geometry g = geometry;
	struct flight write;

	g.volatile_cache = false;
	restart(&g, 1);
	launch(&write, ZF_IO_APPEND, ZONE_SIZE, 1, false);
	assert_in_range(count_kept(ZONE_SIZE, 1), 1, CUTS - 1);
	drain();
	assert_int_equal(count_kept(ZONE_SIZE, 1), CUTS);
	free(write.buf);
}

static void what_survived_one_cut_survives_the_next(void **state)
{
	append(1, 1, false);
	append(1, 2, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);
		uint8_t before[4096], after[4096];
		uint64_t wp = pointer(&found, 1);

		zf_sim_peek(found.sim, ZONE_SIZE, before);
		zf_dev_close(found.dev);
		zf_sim_crash(found.sim, seed + 1, ZF_SIM_CUT_DEVICE);
		assert_int_equal(zf_sim_open(found.sim, NULL, &found.dev), 0);
		zf_sim_peek(found.sim, ZONE_SIZE, after);
		assert_int_equal(pointer(&found, 1), wp);
		if (wp > 0)
			assert_memory_equal(before, after, sizeof(before));
		leave(&found);
	}
}

/* ---- clause 2: below the last surviving block ---- */

static void below_a_durable_block_anything_may_be_found(void **state)
{
	unsigned int seen[CONTENTS] = {0};

	append(1, 20, true);
	append(1, 21, true);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	append(1, 30, false);
	append(1, 31, true);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		assert_int_equal(pointer(&found, 1), 2 * BLOCK);
		assert_true(device_holds(found.dev, ZONE_SIZE + BLOCK, BLOCK, 31));
		seen[content_of(&found, ZONE_SIZE, 30, 20)]++;
		leave(&found);
	}
	for (unsigned int i = 0; i < CONTENTS; i++)
		assert_true(seen[i] > 0);
}

static void the_last_block_may_be_torn(void **state)
{
	unsigned int torn = 0;

	append(1, 30, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		torn += pointer(&found, 1) == BLOCK &&
			content_of(&found, ZONE_SIZE, 30, 30) == TORN;
		leave(&found);
	}
	assert_true(torn > 0);
}

/* ---- clause 3: the pointer ---- */

static void the_pointer_survives_anywhere_up_to_where_it_stood(void **state)
{
	unsigned int seen[8] = {0};

	append(1, 1, true);
	for (uint64_t i = 0; i < 4; i++)
		append(1, 2 + i, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		assert_in_range(pointer(&found, 1), BLOCK, 5 * BLOCK);
		seen[pointer(&found, 1) / BLOCK]++;
		assert_int_equal(zone_of(found.dev, 1).cond, ZF_ZONE_CLOSED);
		leave(&found);
	}
	for (unsigned int i = 1; i <= 5; i++)
		assert_true(seen[i] > 0);
}

static void above_the_pointer_old_bytes_can_be_read(void **state)
{
	append(1, 1, true);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE);
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 1));
}

/* P6: a device keeps its limit of active zones, also when full zones are found less than full. */
static void no_cut_leaves_more_active_zones_than_allowed(void **state)
{
	unsigned int shrunk = 0;

	for (uint32_t zone_no = 1; zone_no < ZONES; zone_no++) {
		assert_int_equal(run_write(dev, zone_no * ZONE_SIZE, CAPACITY, zone_no, false), 0);
	}
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);
		unsigned int active = 0;

		for (uint32_t zone_no = 1; zone_no < ZONES; zone_no++)
			active += zone_of(found.dev, zone_no).cond == ZF_ZONE_CLOSED;
		assert_in_range(active, 0, geometry.max_active);
		shrunk += active > 0;
		leave(&found);
	}
	assert_true(shrunk > 0);
}

/* ---- clause 4: zones are independent ---- */

static void zones_lose_independently(void **state)
{
	unsigned int seen[2][2] = {{0}};

	append(1, 1, false);
	append(2, 2, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		seen[pointer(&found, 1) > 0][pointer(&found, 2) > 0]++;
		leave(&found);
	}
	assert_true(seen[0][0] > 0 && seen[0][1] > 0 && seen[1][0] > 0 && seen[1][1] > 0);
}

/* ---- clause 5: reset and finish ---- */

static void a_completed_reset_is_never_undone(void **state)
{
	append(1, 1, true);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		assert_int_equal(pointer(&found, 1), 0);
		assert_int_equal(zone_of(found.dev, 1).cond, ZF_ZONE_EMPTY);
		assert_int_equal(zone_of(found.dev, 1).reset_count, 1);
		leave(&found);
	}
}

static void a_reset_in_flight_may_have_happened_or_not(void **state)
{
	unsigned int happened = 0, not = 0;
	struct flight reset;

	append(1, 1, true);
	launch(&reset, ZF_IO_RESET, ZONE_SIZE, 0, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		if (zone_of(found.dev, 1).reset_count == 1) {
			assert_int_equal(pointer(&found, 1), 0);
			happened++;
		} else {
			assert_int_equal(pointer(&found, 1), BLOCK);
			assert_true(device_holds(found.dev, ZONE_SIZE, BLOCK, 1));
			not++;
		}
		leave(&found);
	}
	assert_true(happened > 0);
	assert_true(not> 0);
	drain();
	free(reset.buf);
}

static void a_finish_is_durable_when_completed(void **state)
{
	unsigned int happened = 0, not = 0;
	struct flight finish;

	append(1, 1, true);
	launch(&finish, ZF_IO_FINISH, ZONE_SIZE, 0, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		happened += pointer(&found, 1) == CAPACITY;
		not += pointer(&found, 1) == BLOCK;
		assert_true(device_holds(found.dev, ZONE_SIZE, BLOCK, 1));
		leave(&found);
	}
	assert_true(happened > 0);
	assert_true(not> 0);
	assert_int_equal(happened + not, CUTS);
	drain();
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		assert_int_equal(pointer(&found, 1), CAPACITY);
		assert_int_equal(zone_of(found.dev, 1).cond, ZF_ZONE_FULL);
		leave(&found);
	}
	free(finish.buf);
}

/* ---- clause 6: what was in flight ---- */

static void appends_in_flight_land_in_any_order_or_not_at_all(void **state)
{
	unsigned int first[3] = {0}, nothing = 0, everything = 0;
	struct flight f[3];

	for (uint64_t i = 0; i < 3; i++)
		launch(&f[i], ZF_IO_APPEND, ZONE_SIZE, i, true);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);
		unsigned int present = 0;

		assert_in_range(pointer(&found, 1), 0, 3 * BLOCK);
		for (uint64_t tag = 0; tag < 3; tag++) {
			first[tag] += device_holds(found.dev, ZONE_SIZE, BLOCK, tag);
			for (uint64_t at = 0; at < pointer(&found, 1); at += BLOCK)
				present += device_holds(found.dev, ZONE_SIZE + at, BLOCK, tag);
		}
		nothing += pointer(&found, 1) == 0;
		everything += present == 3;
		assert_in_range(present, 0, 3);
		leave(&found);
	}
	assert_true(first[0] > 0 && first[1] > 0 && first[2] > 0);
	assert_true(nothing > 0);
	assert_true(everything > 0);
	drain();
	for (uint64_t i = 0; i < 3; i++) {
		assert_true(device_holds(dev, f[i].io.addr, BLOCK, i));
		free(f[i].buf);
	}
}

static void writes_at_the_pointer_keep_their_order(void **state)
{
	struct flight f[4];
	unsigned int partly = 0;

	for (uint64_t i = 0; i < 4; i++)
		launch(&f[i], ZF_IO_WRITE, ZONE_SIZE + i * BLOCK, i, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		partly += pointer(&found, 1) == 2 * BLOCK;
		for (uint64_t i = 0; i < 4; i++) {
			for (uint64_t tag = 0; tag < 4 && i * BLOCK < pointer(&found, 1); tag++)
				assert_true(tag == i ||
					    !device_holds(found.dev, ZONE_SIZE + i * BLOCK, BLOCK,
							  tag));
		}
		leave(&found);
	}
	assert_true(partly > 0);
	drain();
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(f[i].io.result, 0);
		free(f[i].buf);
	}
}

static void completions_come_in_any_order(void **state)
{
	unsigned int swapped = 0, straight = 0;

	for (uint64_t seed = 0; seed < 40; seed++) {
		struct flight a, b;

		restart(&geometry, seed);
		launch(&a, ZF_IO_APPEND, ZONE_SIZE, 1, false);
		launch(&b, ZF_IO_APPEND, ZONE_SIZE, 2, false);
		assert_int_equal(zf_dev_poll(dev, true), 1);
		assert_true(a.done != b.done);
		swapped += b.done;
		straight += a.done;
		drain();
		assert_true(a.io.addr != b.io.addr);
		free(a.buf);
		free(b.buf);
	}
	assert_true(swapped > 0);
	assert_true(straight > 0);
}

/* ---- clause 7: conventional zones ---- */

/* 1, 2, 4 for the versions with tags 1, 2, 3 (0 before any); 8 for torn between them; 16 else. */
static unsigned int version_found(uint64_t seed)
{
	struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);
	uint8_t *block = blocks_new(BLOCK, 0);
	unsigned int result = 8;

	assert_int_equal(zf_dev_read_buf(found.dev, 0, block, BLOCK), 0);
	for (unsigned int i = 0; i < 8; i++) {
		bool known = false;

		for (uint64_t tag = 1; tag <= 3; tag++) {
			uint8_t *version = blocks_new(BLOCK, tag);

			known |= sector_is(block, version, i);
			free(version);
		}
		if (!known)
			result = 16;
	}
	for (uint64_t tag = 1; tag <= 3; tag++) {
		if (blocks_are(block, BLOCK, tag))
			result = 1u << (tag - 1);
	}
	free(block);
	leave(&found);
	return result;
}

static unsigned int versions_found(void)
{
	unsigned int all = 0;

	for (uint64_t seed = 0; seed < CUTS; seed++)
		all |= version_found(seed);
	return all;
}

static void a_conventional_block_is_any_version_since_the_last_durable_one(void **state)
{
	assert_int_equal(run_write(dev, 0, BLOCK, 1, true), 0);
	assert_int_equal(versions_found(), 1);
	assert_int_equal(run_write(dev, 0, BLOCK, 2, false), 0);
	assert_int_equal(versions_found(), 1 | 2 | 8);
	assert_int_equal(run_write(dev, 0, BLOCK, 3, false), 0);
	assert_int_equal(versions_found(), 1 | 2 | 4 | 8);
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(versions_found(), 4);
}

static void a_flush_makes_the_version_durable_that_it_covers(void **state)
{
	struct flight later;

	assert_int_equal(run_write(dev, 0, BLOCK, 1, true), 0);
	assert_int_equal(run_write(dev, 0, BLOCK, 2, false), 0);
	launch(&later, ZF_IO_WRITE, 0, 3, false);
	while (!later.done) {
		struct flight flush;

		launch(&flush, ZF_IO_FLUSH, 0, 0, false);
		while (!flush.done)
			zf_dev_poll(dev, true);
		free(flush.buf);
		if (!later.done)
			assert_int_equal(versions_found() & 1, 0);
	}
	drain();
	/* No flush was submitted since `later` completed: versions 2 and 3 may both be found. */
	assert_int_equal(versions_found() & ~8u, 2 | 4);
	free(later.buf);
}

static void before_the_first_durable_version_a_conventional_block_is_zeroes(void **state)
{
	unsigned int zeroes = 0;

	assert_int_equal(run_write(dev, 0, BLOCK, 1, false), 0);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		zeroes += device_holds_zeroes(found.dev, 0, BLOCK);
		leave(&found);
	}
	assert_in_range(zeroes, 1, CUTS - 1);
}

/* ---- clause 8: a cut of the host ---- */

static void after_a_cut_of_the_host_pointers_are_lower_bounds(void **state)
{
	unsigned int below = 0, above = 0;

	append(1, 1, true);
	append(1, 2, true);
	append(1, 3, false);
	for (uint64_t seed = 0; seed < CUTS; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_HOST);

		assert_true(zf_dev_geometry(found.dev)->pointers_are_lower_bounds);
		assert_in_range(pointer(&found, 1), 0, 3 * BLOCK);
		below += pointer(&found, 1) < 2 * BLOCK;
		above += pointer(&found, 1) > 2 * BLOCK;
		/* Wherever the pointer is said to be, what is durable can be read. */
		assert_true(device_holds(found.dev, ZONE_SIZE, BLOCK, 1));
		assert_true(device_holds(found.dev, ZONE_SIZE + BLOCK, BLOCK, 2));
		leave(&found);
	}
	assert_true(below > 0);
	assert_true(above > 0);
}

static struct found cut_host_with_pointer(uint64_t wp)
{
	for (uint64_t seed = 0;; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_HOST);

		if (pointer(&found, 1) == wp)
			return found;
		leave(&found);
	}
}

static void a_writer_that_does_not_raise_a_pointer_overwrites_durable_data(void **state)
{
	struct found found;

	append(1, 1, true);
	append(1, 2, true);
	found = cut_host_with_pointer(BLOCK);
	assert_int_equal(zf_dev_raise_pointer(found.dev, 1, ZONE_SIZE + 2 * BLOCK), 0);
	assert_int_equal(run_write(found.dev, ZONE_SIZE + 2 * BLOCK, BLOCK, 3, false), 0);
	assert_true(device_holds(found.dev, ZONE_SIZE + BLOCK, BLOCK, 2));
	leave(&found);

	found = cut_host_with_pointer(BLOCK);
	assert_int_equal(run_write(found.dev, ZONE_SIZE + BLOCK, BLOCK, 3, false), 0);
	assert_true(device_holds(found.dev, ZONE_SIZE + BLOCK, BLOCK, 3));
	leave(&found);
}

static void lower_bounds_last_until_the_next_write(void **state)
{
	struct found found;

	append(1, 1, true);
	append(1, 2, true);
	found = cut_host_with_pointer(0);
	zf_dev_close(found.dev);
	assert_int_equal(zf_sim_open(found.sim, NULL, &found.dev), 0);
	assert_true(zf_dev_geometry(found.dev)->pointers_are_lower_bounds);

	/* A second cut comes before anything was written: durable data stays durable. */
	zf_dev_close(found.dev);
	zf_sim_crash(found.sim, 7, ZF_SIM_CUT_HOST);
	assert_int_equal(zf_sim_open(found.sim, NULL, &found.dev), 0);
	assert_true(device_holds(found.dev, ZONE_SIZE, BLOCK, 1));
	assert_true(device_holds(found.dev, ZONE_SIZE + BLOCK, BLOCK, 2));

	assert_int_equal(zf_dev_raise_pointer(found.dev, 1, ZONE_SIZE + 2 * BLOCK), 0);
	assert_int_equal(zf_dev_reset(found.dev, 2), 0);
	zf_dev_close(found.dev);
	assert_int_equal(zf_sim_open(found.sim, NULL, &found.dev), 0);
	assert_false(zf_dev_geometry(found.dev)->pointers_are_lower_bounds);
	assert_int_equal(pointer(&found, 1), 2 * BLOCK);
	leave(&found);
}

/* ---- all clauses at once ---- */

#define MODEL_BLOCKS (ZONES * 16)

/* The test's own record of what must be durable, kept apart from the simulator. */
struct model {
	uint64_t durable[MODEL_BLOCKS]; /* tag + 1, or 0 */
	uint64_t unflushed[MODEL_BLOCKS];
	uint64_t resets[ZONES];
	unsigned int cuts;
};

static void check_against_model(void *arg, const struct zf_sim *running)
{
	struct model *model = arg;

	for (uint64_t seed = 0; seed < 3; seed++) {
		struct found found = {.sim = zf_sim_clone(running)};

		model->cuts++;
		zf_sim_crash(found.sim, zf_sim_commands(running) * 3 + seed,
			     seed == 2 ? ZF_SIM_CUT_HOST : ZF_SIM_CUT_DEVICE);
		assert_int_equal(zf_sim_open(found.sim, NULL, &found.dev), 0);
		for (uint32_t zone_no = 1; zone_no < ZONES; zone_no++) {
			struct zf_zone_info info = zone_of(found.dev, zone_no);

			assert_true(info.reset_count >= model->resets[zone_no]);
			if (info.reset_count > model->resets[zone_no])
				continue; /* the one in flight has happened */
			for (uint64_t b = 0; b < 16; b++) {
				uint64_t tag = model->durable[zone_no * 16 + b];

				if (tag == 0)
					continue;
				assert_true(device_holds(found.dev, info.start + b * BLOCK, BLOCK,
							 tag - 1));
				assert_true(seed == 2 || info.wp > info.start + b * BLOCK);
			}
		}
		leave(&found);
	}
}

static void run_one(struct model *model, struct zf_rng *rng, uint64_t tag)
{
	uint32_t zone_no = 1 + (uint32_t)zf_rng_below(rng, ZONES - 1);
	bool fua = zf_rng_chance(rng, 30);
	struct flight f;

	switch (zf_rng_below(rng, 10)) {
	case 0:
		assert_int_equal(zf_dev_flush(dev), 0);
		for (unsigned int i = 0; i < MODEL_BLOCKS; i++) {
			if (model->unflushed[i])
				model->durable[i] = model->unflushed[i];
			model->unflushed[i] = 0;
		}
		break;
	case 1:
		/* A reset may take effect before it completes. Then no data of the zone is
		 * durable. */
		assert_int_equal(zf_dev_reset(dev, zone_no), 0);
		memset(&model->durable[zone_no * 16], 0, 16 * sizeof(uint64_t));
		memset(&model->unflushed[zone_no * 16], 0, 16 * sizeof(uint64_t));
		model->resets[zone_no]++;
		break;
	default:
		launch(&f, ZF_IO_APPEND, zone_no * ZONE_SIZE, tag, fua);
		drain();
		if (f.io.result == 0)
			(fua ? model->durable : model->unflushed)[f.io.addr / BLOCK] = tag + 1;
		free(f.buf);
	}
}

static void a_random_workload_never_loses_what_is_durable(void **state)
{
	const char *given = getenv("ZF_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
	struct model model = {0};
	struct zf_rng rng;

	print_message("seed %llu (ZF_SEED)\n", (unsigned long long)seed);
	zf_rng_seed(&rng, seed);
	restart(&geometry, seed);
	zf_sim_observe(sim, check_against_model, &model);
	for (uint64_t tag = 0; tag < 600; tag++)
		run_one(&model, &rng, tag);
	assert_int_equal(model.cuts, 3 * zf_sim_commands(sim));
	assert_true(model.cuts >= 1800);
}

/* ---- cutting ---- */

static void from_the_cut_on_everything_fails(void **state)
{
	struct zf_zone_info info;
	struct flight a, b;
	uint8_t *buf = blocks_new(BLOCK, 0);

	append(1, 1, true);
	assert_int_equal(zf_sim_commands(sim), 1);
	zf_sim_set_cut(sim, 3);
	launch(&a, ZF_IO_APPEND, ZONE_SIZE, 2, true);
	assert_false(zf_sim_is_cut(sim));
	launch(&b, ZF_IO_APPEND, ZONE_SIZE, 3, true);
	assert_true(zf_sim_is_cut(sim));
	drain();
	assert_int_equal(a.io.result, -EIO);
	assert_int_equal(b.io.result, -EIO);
	assert_int_equal(zf_dev_flush(dev), -EIO);
	assert_int_equal(zf_dev_read_buf(dev, ZONE_SIZE, buf, BLOCK), -EIO);
	assert_int_equal(zf_dev_report(dev, 1, 1, &info), -EIO);
	assert_int_equal(zf_sim_commands(sim), 3);

	zf_dev_close(dev);
	zf_sim_crash(sim, 1, ZF_SIM_CUT_DEVICE);
	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 1));
	assert_int_equal(zf_dev_flush(dev), 0);
	free(a.buf);
	free(b.buf);
	free(buf);
}

static void what_the_cut_caught_may_have_happened_or_not(void **state)
{
	unsigned int happened = 0, not = 0;

	for (uint64_t seed = 0; seed < 60; seed++) {
		restart(&geometry, seed);
		zf_sim_set_cut(sim, 1);
		assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, true), -EIO);
		zf_dev_close(dev);
		zf_sim_crash(sim, seed, ZF_SIM_CUT_DEVICE);
		assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
		happened +=
			zone_of(dev, 1).wp > ZONE_SIZE && device_holds(dev, ZONE_SIZE, BLOCK, 1);
		not += zone_of(dev, 1).wp == ZONE_SIZE;
	}
	assert_true(happened > 0);
	assert_true(not> 0);
}

static uint64_t run_from_seed(uint64_t seed)
{
	struct flight f[12];
	uint64_t hash = 0;
	uint8_t block[4096];

	restart(&geometry, seed);
	for (uint64_t i = 0; i < ZF_ARRAY_SIZE(f); i++)
		launch(&f[i], ZF_IO_APPEND, (1 + i % 3) * ZONE_SIZE, i, i % 2);
	for (unsigned int i = 0; i < 6; i++)
		zf_dev_poll(dev, true);
	for (uint64_t i = 0; i < ZF_ARRAY_SIZE(f); i++)
		hash = hash * 31 + f[i].io.addr + f[i].done;
	zf_dev_close(dev);
	zf_sim_crash(sim, seed, ZF_SIM_CUT_DEVICE);
	for (uint64_t addr = ZONE_SIZE; addr < 4 * ZONE_SIZE; addr += BLOCK) {
		zf_sim_peek(sim, addr, block);
		for (unsigned int i = 0; i < 4096; i++)
			hash = hash * 31 + block[i];
	}
	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
	for (uint64_t i = 0; i < ZF_ARRAY_SIZE(f); i++)
		free(f[i].buf);
	return hash;
}

static void the_same_seed_gives_the_same_run_and_the_same_cut(void **state)
{
	assert_int_equal(run_from_seed(5), run_from_seed(5));
	assert_int_not_equal(run_from_seed(5), run_from_seed(6));
}

static void a_clone_goes_its_own_way(void **state)
{
	struct zf_sim *clone;
	struct zf_dev *other;

	append(1, 1, true);
	clone = zf_sim_clone(sim);
	assert_int_equal(zf_sim_open(clone, NULL, &other), 0);
	append(1, 2, true);
	assert_int_equal(run_write(other, ZONE_SIZE + BLOCK, BLOCK, 3, true), 0);
	assert_int_equal(run_write(other, 0, BLOCK, 4, true), 0);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	assert_true(device_holds(other, ZONE_SIZE, BLOCK, 1));
	assert_true(device_holds(other, ZONE_SIZE + BLOCK, BLOCK, 3));
	assert_int_equal(zone_of(other, 1).wp, ZONE_SIZE + 2 * BLOCK);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE);
	assert_true(device_holds_zeroes(dev, 0, BLOCK));
	zf_dev_close(other);
	zf_sim_free(clone);
}

/* ---- faults ---- */

static void the_nth_command_fails_and_no_other(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_IO_APPEND, .nth = 2, .error = -EIO};
	uint64_t addr;

	zf_sim_add_fault(sim, &fault);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 1, &addr), 0);
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(zf_sim_faults_left(sim), 1);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 2, &addr), -EIO);
	assert_int_equal(zf_sim_faults_left(sim), 0);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + BLOCK);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 3, &addr), 0);
	assert_int_equal(addr, ZONE_SIZE + BLOCK);
}

static void any_command_counts_for_any_op(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_SIM_ANY_OP, .nth = 3, .error = -ENOSPC};

	zf_sim_add_fault(sim, &fault);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 1));
	assert_int_equal(zf_dev_reset(dev, 1), -ENOSPC);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + BLOCK);
}

static void a_failed_append_may_move_the_pointer(void **state)
{
	struct zf_sim_fault fault = {
		.op = ZF_IO_APPEND, .nth = 1, .error = -EIO, .moves_pointer = true};
	uint64_t addr = 0;

	zf_sim_add_fault(sim, &fault);
	assert_int_equal(run_append(dev, ZONE_SIZE, 2 * BLOCK, 1, &addr), -EIO);
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 2 * BLOCK);
	assert_false(device_holds(dev, ZONE_SIZE, BLOCK, 1));
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 2, &addr), 0);
	assert_int_equal(addr, ZONE_SIZE + 2 * BLOCK);
}

static void a_failed_flush_makes_nothing_durable(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_IO_FLUSH, .nth = 1, .error = -EIO};

	append(1, 1, false);
	zf_sim_add_fault(sim, &fault);
	assert_int_equal(zf_dev_flush(dev), -EIO);
	assert_in_range(count_kept(ZONE_SIZE, 1), 1, CUTS - 1);
}

/* The cache is lost at once, or with the next cut. Data that is flushed later stays. */
static void a_failed_flush_can_lose_the_cache(void **state)
{
	const struct zf_sim_fault fault = {
		.op = ZF_IO_FLUSH, .nth = 1, .error = -EIO, .loses_cache = true};
	unsigned int gone = 0;

	for (uint64_t seed = 0; seed < 40; seed++) {
		struct flight flush;

		restart(&geometry, seed);
		append(1, 1, false);
		append(1, 2, true);
		zf_sim_add_fault(sim, &fault);
		launch(&flush, ZF_IO_FLUSH, 0, 0, false);
		drain();
		free(flush.buf);
		assert_int_equal(flush.io.result, -EIO);
		gone += !device_holds(dev, ZONE_SIZE, BLOCK, 1);
		append(1, 3, false);
		launch(&flush, ZF_IO_FLUSH, 0, 0, false);
		drain();
		free(flush.buf);
		assert_in_range(count_kept(ZONE_SIZE, 1), 0, CUTS - 1);
		assert_int_equal(count_kept(ZONE_SIZE + BLOCK, 2), CUTS);
		assert_int_equal(count_kept(ZONE_SIZE + 2 * BLOCK, 3), CUTS);
	}
	assert_in_range(gone, 1, 39);
}

static void reads_fail_too(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = 2, .error = -EIO};
	uint8_t *buf = blocks_new(BLOCK, 0);
	struct flight read;

	append(1, 1, true);
	zf_sim_add_fault(sim, &fault);
	assert_int_equal(zf_dev_read_buf(dev, ZONE_SIZE, buf, BLOCK), 0);
	assert_int_equal(zf_dev_read_buf(dev, ZONE_SIZE, buf, BLOCK), -EIO);
	fault.nth = 1;
	zf_sim_add_fault(sim, &fault);
	launch(&read, ZF_IO_READ, ZONE_SIZE, 0, false);
	drain();
	assert_int_equal(read.io.result, -EIO);
	free(read.buf);
	launch(&read, ZF_IO_READ, ZONE_SIZE, 0, false);
	drain();
	assert_int_equal(read.io.result, 0);
	assert_true(blocks_are(read.buf, BLOCK, 1));
	assert_int_equal(zf_sim_commands(sim), 1);
	free(read.buf);
	free(buf);
}

static void a_zone_turns_read_only_or_offline(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_IO_APPEND,
				     .nth = 1,
				     .error = -EIO,
				     .kills_zone = true,
				     .zone_cond = ZF_ZONE_READONLY};
	uint8_t *buf = blocks_new(BLOCK, 0);
	uint64_t addr;

	append(1, 1, true);
	zf_sim_add_fault(sim, &fault);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 2, &addr), -EIO);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 2, &addr), -EROFS);
	assert_int_equal(zone_of(dev, 1).cond, ZF_ZONE_READONLY);
	assert_true(device_holds(dev, ZONE_SIZE, BLOCK, 1));

	zf_sim_set_zone_cond(sim, 1, ZF_ZONE_OFFLINE);
	assert_int_equal(zf_dev_read_buf(dev, ZONE_SIZE, buf, BLOCK), -ENXIO);
	assert_int_equal(zf_dev_reset(dev, 1), -ENXIO);
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		assert_int_equal(zone_of(found.dev, 1).cond, ZF_ZONE_OFFLINE);
		leave(&found);
	}
	free(buf);
}

static void another_zone_turns_read_only_with_a_command(void **state)
{
	const struct zf_sim_fault fault = {
		.op = ZF_IO_APPEND,
		.nth = 2,
		.kills_zone = true,
		.zone_cond = ZF_ZONE_READONLY,
		.zone_no = 2,
	};
	uint64_t addr;

	zf_sim_add_fault(sim, &fault);
	append(1, 1, true);
	assert_int_not_equal(zone_of(dev, 2).cond, ZF_ZONE_READONLY);
	append(1, 2, true);
	assert_int_equal(zone_of(dev, 2).cond, ZF_ZONE_READONLY);
	assert_int_not_equal(zone_of(dev, 1).cond, ZF_ZONE_READONLY);
	assert_int_equal(run_append(dev, 2 * ZONE_SIZE, BLOCK, 2, &addr), -EROFS);
}

static void zones_wear_out(void **state)
{
	const struct zf_sim_wear wear = {.first = 2, .readonly = 10000, .zones_max = 1};
	uint64_t addr;

	zf_sim_set_wear(sim, &wear);
	append(1, 1, true);
	assert_int_equal(run_append(dev, 2 * ZONE_SIZE, BLOCK, 2, &addr), -EROFS);
	assert_int_equal(zone_of(dev, 2).cond, ZF_ZONE_READONLY);
	append(3, 1, true);
}

static void a_device_disappears(void **state)
{
	uint8_t *buf = blocks_new(BLOCK, 0);
	struct zf_zone_info info;
	struct found found;
	uint64_t addr;

	append(1, 1, true);
	zf_sim_vanish(sim, zf_sim_commands(sim) + 2, -ENODEV);
	append(1, 2, true);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 3, &addr), -ENODEV);
	assert_int_equal(zf_dev_read_buf(dev, ZONE_SIZE, buf, BLOCK), -ENODEV);
	assert_int_equal(zf_dev_report(dev, 1, 1, &info), -ENODEV);
	assert_int_equal(zf_dev_reset(dev, 1), -ENODEV);
	found = cut_now(1, ZF_SIM_CUT_DEVICE);
	assert_true(device_holds(found.dev, ZONE_SIZE, BLOCK, 1));
	leave(&found);
	free(buf);
}

static void what_is_stored_can_be_damaged(void **state)
{
	uint8_t block[4096];

	append(1, 1, true);
	zf_sim_peek(sim, ZONE_SIZE, block);
	assert_true(blocks_are(block, BLOCK, 1));
	block[7] ^= 1;
	zf_sim_poke(sim, ZONE_SIZE, block);
	assert_false(device_holds(dev, ZONE_SIZE, BLOCK, 1));
}

static void a_buffer_that_changes_in_flight_is_found_out(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct flight f;

		(void)!freopen("/dev/null", "w", stderr);
		signal(SIGABRT, SIG_DFL);
		launch(&f, ZF_IO_APPEND, ZONE_SIZE, 1, false);
		((uint8_t *)f.buf)[100] ^= 1;
		drain();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* ---- speed ---- */

static void a_fork_is_cheap(void **state)
{
	const struct zf_geometry g = {
		.zone_size = 64 * BLOCK,
		.zone_capacity = 64 * BLOCK,
		.zone_count = 64,
		.append_limit = 8 * BLOCK,
		.volatile_cache = true,
	};
	struct timespec from, to;
	unsigned int forks = 500;
	double seconds;

	restart(&g, 1);
	for (uint32_t zone_no = 0; zone_no < 48; zone_no++)
		assert_int_equal(run_write(dev, zone_no * 64 * BLOCK, 64 * BLOCK, 1, true), 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(run_write(dev, (48 + i % 4) * 64 * BLOCK + i / 4 * BLOCK, BLOCK, i,
					   i % 8 == 0),
				 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (uint64_t seed = 0; seed < forks; seed++) {
		struct found found = cut_now(seed, ZF_SIM_CUT_DEVICE);

		leave(&found);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	print_message("%.0f cuts a second of the processor\n", forks / seconds);
	/* Sanitizers are slow. The bound only excludes that a clone copies the contents. */
	assert_true(forks / seconds > 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_fua_or_flushed_survives_and_the_rest_may_not),
		TEST(a_flush_covers_only_what_completed_before_it_was_submitted),
		TEST(a_flush_in_flight_covers_nothing),
		TEST(a_fua_write_in_flight_is_not_durable),
		TEST(without_a_volatile_cache_what_completed_is_durable),
		TEST(what_survived_one_cut_survives_the_next),
		TEST(below_a_durable_block_anything_may_be_found),
		TEST(the_last_block_may_be_torn),
		TEST(the_pointer_survives_anywhere_up_to_where_it_stood),
		TEST(above_the_pointer_old_bytes_can_be_read),
		TEST(no_cut_leaves_more_active_zones_than_allowed),
		TEST(zones_lose_independently),
		TEST(a_completed_reset_is_never_undone),
		TEST(a_reset_in_flight_may_have_happened_or_not),
		TEST(a_finish_is_durable_when_completed),
		TEST(appends_in_flight_land_in_any_order_or_not_at_all),
		TEST(writes_at_the_pointer_keep_their_order),
		TEST(completions_come_in_any_order),
		TEST(a_conventional_block_is_any_version_since_the_last_durable_one),
		TEST(a_flush_makes_the_version_durable_that_it_covers),
		TEST(before_the_first_durable_version_a_conventional_block_is_zeroes),
		TEST(after_a_cut_of_the_host_pointers_are_lower_bounds),
		TEST(a_writer_that_does_not_raise_a_pointer_overwrites_durable_data),
		TEST(lower_bounds_last_until_the_next_write),
		TEST(a_random_workload_never_loses_what_is_durable),
		TEST(from_the_cut_on_everything_fails),
		TEST(what_the_cut_caught_may_have_happened_or_not),
		TEST(the_same_seed_gives_the_same_run_and_the_same_cut),
		TEST(a_clone_goes_its_own_way),
		TEST(the_nth_command_fails_and_no_other),
		TEST(any_command_counts_for_any_op),
		TEST(a_failed_append_may_move_the_pointer),
		TEST(a_failed_flush_makes_nothing_durable),
		TEST(a_failed_flush_can_lose_the_cache),
		TEST(reads_fail_too),
		TEST(a_zone_turns_read_only_or_offline),
		TEST(another_zone_turns_read_only_with_a_command),
		TEST(zones_wear_out),
		TEST(a_device_disappears),
		TEST(what_is_stored_can_be_damaged),
		TEST(a_buffer_that_changes_in_flight_is_found_out),
		TEST(a_fork_is_cheap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

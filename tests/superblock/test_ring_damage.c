/* SPDX-License-Identifier: MIT */
/* A damaged ring: power cuts, failed writes, pointers that are lower bounds, newer formats, hostile
 * bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/hash.h"
#include "io/dev_ops.h"
#include "sample.h"
#include "sim/rng.h"

static void fill(struct sample_disk *disk, unsigned int zone_no, uint32_t count, uint64_t first)
{
	for (uint32_t slot = 0; slot < count; slot++)
		sample_put(disk, zone_no, slot, first + slot);
}

/* Makes the record's checksum wrong, as a torn write or a loss on the medium does. */
static void damage(struct sample_disk *disk, unsigned int zone_no, uint32_t slot)
{
	sample_slot(disk, zone_no, slot)[300] ^= 0x10;
}

static void a_torn_newest_record_is_stepped_over_and_counted(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		struct sample_disk disk;
		uint64_t address;

		sample_disk_new(&disk, &geometry);
		fill(&disk, 0, 3, 10);
		damage(&disk, 0, 2);
		sample_expect(&disk, 11, 1);
		assert_int_equal(zf_ring_highest_generation(disk.ring), 12);

		assert_int_equal(sample_commit(&disk, 13, &address), 0);
		assert_int_equal(address, sample_address(&disk, 0, 3));
		sample_expect(&disk, 13, 0);
		sample_disk_free(&disk);
	}
}

static void a_torn_record_that_reads_as_zeroes_counts_in_a_sequential_zone(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk disk;

	sample_disk_new(&disk, &geometry);
	fill(&disk, 0, 3, 10);
	memset(sample_slot(&disk, 0, 2), 0, ZF_SUPER_SIZE);
	sample_expect(&disk, 11, 1);
	sample_disk_free(&disk);
}

/* A torn block may hold the bytes from before the reset: a whole record that belongs to this
 * slot. */
static void a_torn_record_that_reads_as_an_older_one_is_stepped_over(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk disk;

	sample_disk_new(&disk, &geometry);
	fill(&disk, 1, SAMPLE_SLOTS, 100);
	fill(&disk, 0, 2, 100 + SAMPLE_SLOTS);
	sample_put(&disk, 0, 2, 7);
	sample_put(&disk, 0, 3, 8);
	sample_expect(&disk, 101 + SAMPLE_SLOTS, 2);
	assert_int_equal(zf_ring_highest_generation(disk.ring), 103 + SAMPLE_SLOTS);
	sample_disk_free(&disk);

	sample_disk_new(&disk, &geometry);
	fill(&disk, 1, SAMPLE_SLOTS, 100);
	sample_put(&disk, 0, 0, 5);
	sample_expect(&disk, 99 + SAMPLE_SLOTS, 1);
	sample_disk_free(&disk);
}

static void a_torn_first_record_after_the_switch_is_stepped_over(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		struct sample_disk disk;
		uint64_t address;

		sample_disk_new(&disk, &geometry);
		fill(&disk, 0, SAMPLE_SLOTS, 10);
		sample_put(&disk, 1, 0, 10 + SAMPLE_SLOTS);
		damage(&disk, 1, 0);
		sample_expect(&disk, 9 + SAMPLE_SLOTS, 1);
		assert_int_equal(sample_commit(&disk, 20, &address), 0);
		/* The new record lies behind the damaged ones, which are kept for inspection. */
		assert_int_equal(address, sample_address(&disk, 1, 1));
		sample_expect(&disk, 20, 0);
		sample_disk_free(&disk);
	}
}

static void a_record_torn_over_an_older_one_is_stepped_over(void **state)
{
	const struct zf_geometry geometry = sample_geometry(2);
	struct sample_disk disk;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	fill(&disk, 1, SAMPLE_SLOTS, 10);
	fill(&disk, 0, SAMPLE_SLOTS, 20);
	damage(&disk, 1, 0); /* generation 24 over generation 10 */
	sample_expect(&disk, 23, 1);
	assert_int_equal(sample_commit(&disk, 25, &address), 0);
	assert_int_equal(address, sample_address(&disk, 1, 0));
	sample_put(&disk, 1, 1, 26);
	damage(&disk, 1, 1);
	sample_expect(&disk, 25, 1);
	sample_disk_free(&disk);
}

static void a_crash_between_reset_and_write_leaves_the_full_zone(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk disk;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	fill(&disk, 0, SAMPLE_SLOTS, 10);
	fill(&disk, 1, SAMPLE_SLOTS, 20);
	assert_int_equal(zf_dev_reset(disk.dev, 0), 0);
	sample_expect(&disk, 19 + SAMPLE_SLOTS, 0);
	assert_int_equal(sample_commit(&disk, 30, &address), 0);
	assert_int_equal(address, 0);
	sample_expect(&disk, 30, 0);
	sample_disk_free(&disk);
}

static void when_every_record_is_damaged_nothing_is_the_newest(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		const struct zf_super *super;
		struct sample_disk disk;
		unsigned int stepped_over;

		sample_disk_new(&disk, &geometry);
		fill(&disk, 0, 2, 10);
		damage(&disk, 0, 0);
		damage(&disk, 0, 1);
		assert_int_equal(sample_reopen(&disk), 0);
		assert_int_equal(zf_ring_newest(disk.ring, &super, &stepped_over), -EUCLEAN);
		sample_disk_free(&disk);
	}
}

static void after_a_failed_write_the_pointer_is_asked_for_again(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk disk;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	fill(&disk, 0, 1, 10);
	assert_int_equal(sample_reopen(&disk), 0);
	/* The device's pointer moves, as it does when a write fails after it reached the medium. */
	sample_put_garbage(&disk, 0, 1);
	assert_int_equal(sample_commit(&disk, 11, &address), -EIO);
	assert_int_equal(zf_ring_highest_generation(disk.ring), 11);
	assert_int_equal(sample_commit(&disk, 12, &address), 0);
	assert_int_equal(address, sample_address(&disk, 0, 2));
	sample_expect(&disk, 12, 0);
	sample_disk_free(&disk);
}

static void a_write_that_fails_as_the_zone_fills_up_goes_on_in_the_other(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk disk;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	fill(&disk, 0, SAMPLE_SLOTS - 1, 10);
	assert_int_equal(sample_reopen(&disk), 0);
	sample_put_garbage(&disk, 0, SAMPLE_SLOTS - 1);
	assert_int_equal(sample_commit(&disk, 20, &address), -ENOSPC);
	assert_int_equal(sample_commit(&disk, 21, &address), 0);
	assert_int_equal(address, sample_address(&disk, 1, 0));
	sample_expect(&disk, 21, 0);
	sample_disk_free(&disk);
}

static void values_that_no_reader_would_accept_are_not_written(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct zf_super super = sample_super(11);
	struct sample_disk disk;

	sample_disk_new(&disk, &geometry);
	fill(&disk, 0, 1, 10);
	assert_int_equal(sample_reopen(&disk), 0);
	super.root.generation = 12;
	assert_int_equal(zf_ring_write(disk.ring, &super), -EUCLEAN);
	sample_expect(&disk, 10, 0);
	sample_disk_free(&disk);
}

/* ---- a newer format ---- */

static void reseal(uint8_t *block)
{
	struct zf_le64 csum = zf_le64_from(zf_hash64(block + 8, ZF_SUPER_SIZE - 8));

	memcpy(block, &csum, sizeof(csum));
}

static void a_record_of_a_newer_format_is_never_stepped_over(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		const struct zf_super *super;
		struct zf_super older;
		struct sample_disk disk;
		unsigned int stepped_over;

		sample_disk_new(&disk, &geometry);
		fill(&disk, 0, 3, 10);
		sample_slot(&disk, 0, 2)[offsetof(struct zf_disk_super, incompat)] = 2;
		reseal(sample_slot(&disk, 0, 2));
		assert_int_equal(sample_reopen(&disk), 0);
		assert_int_equal(zf_ring_newest(disk.ring, &super, &stepped_over),
				 -EPROTONOSUPPORT);
		assert_int_equal(zf_ring_highest_generation(disk.ring), 12);
		assert_int_equal(zf_ring_find(disk.ring, 11, &older), 0);
		sample_disk_free(&disk);
	}
}

/* ---- pointers that are lower bounds ---- */

/*
 * Makes a device whose write pointers are below the data in its zones: a device with `known`
 * records, and the bytes of the zones of `disk` copied over it.
 */
static void forget_pointers(struct sample_disk *disk, const uint32_t known[2],
			    struct sample_disk *ret_disk)
{
	struct zf_geometry geometry = sample_geometry(0);

	geometry.pointers_are_lower_bounds = true;
	sample_disk_new(ret_disk, &geometry);
	for (unsigned int zone_no = 0; zone_no < 2; zone_no++) {
		for (uint32_t slot = 0; slot < known[zone_no]; slot++)
			sample_put_garbage(ret_disk, zone_no, slot);
		memcpy(zf_memory_zone(ret_disk->memory, zone_no),
		       zf_memory_zone(disk->memory, zone_no), geometry.zone_size);
	}
}

static uint64_t pointer_of(struct sample_disk *disk, uint32_t zone_no)
{
	struct zf_zone_info info;

	assert_int_equal(zf_dev_report(disk->dev, zone_no, 1, &info), 0);
	return info.wp;
}

static void records_past_a_lower_bound_are_found_and_the_pointer_raised(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);

	for (uint32_t known = 0; known <= 3; known++) {
		struct sample_disk whole, disk;
		uint64_t address;

		sample_disk_new(&whole, &geometry);
		fill(&whole, 0, 3, 10);
		forget_pointers(&whole, (const uint32_t[]){known, 0}, &disk);
		sample_expect(&disk, 12, 0);
		assert_int_equal(pointer_of(&disk, 0), sample_address(&disk, 0, 3));
		assert_int_equal(pointer_of(&disk, 1), sample_address(&disk, 1, 0));
		assert_int_equal(sample_commit(&disk, 13, &address), 0);
		assert_int_equal(address, sample_address(&disk, 0, 3));
		sample_disk_free(&disk);
		sample_disk_free(&whole);
	}
}

static int refuse_to_raise(struct zf_dev *dev, uint32_t zone_no, uint64_t wp)
{
	return -EIO;
}

static void without_its_pointer_raised_a_zone_is_not_used(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk whole, disk;
	struct zf_dev_ops ops;

	sample_disk_new(&whole, &geometry);
	fill(&whole, 0, 3, 10);
	forget_pointers(&whole, (const uint32_t[]){1, 0}, &disk);
	ops = *disk.dev->ops;
	ops.raise_pointer = refuse_to_raise;
	disk.dev->ops = &ops;
	assert_int_equal(sample_reopen(&disk), -EIO);
	sample_disk_free(&disk);
	sample_disk_free(&whole);
}

static void a_torn_record_does_not_hide_those_behind_it(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk whole, disk;

	sample_disk_new(&whole, &geometry);
	fill(&whole, 0, 3, 10);
	damage(&whole, 0, 1);
	forget_pointers(&whole, (const uint32_t[]){1, 0}, &disk);
	sample_expect(&disk, 12, 0);
	assert_int_equal(pointer_of(&disk, 0), sample_address(&disk, 0, 3));
	sample_disk_free(&disk);
	sample_disk_free(&whole);
}

static void leftovers_from_before_a_reset_do_not_count(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct sample_disk whole, disk;

	/* Zone 0 has one new record, then older records whose discard was undone. */
	sample_disk_new(&whole, &geometry);
	sample_put(&whole, 0, 0, 30);
	fill(&whole, 1, SAMPLE_SLOTS, 20);
	for (uint32_t slot = 1; slot < SAMPLE_SLOTS; slot++)
		sample_put(&whole, 0, slot, 10 + slot);
	forget_pointers(&whole, (const uint32_t[]){0, SAMPLE_SLOTS}, &disk);
	sample_expect(&disk, 30, 0);
	assert_int_equal(pointer_of(&disk, 0), sample_address(&disk, 0, 1));
	sample_disk_free(&disk);
	sample_disk_free(&whole);
}

/* ---- hostile bytes ---- */

static uint64_t seed_of_this_run(void)
{
	const char *given = getenv("ZF_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

	print_message("replay with ZF_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static void a_record_with_any_bits_flipped_is_never_accepted(void **state)
{
	struct zf_super super = sample_super(5), decoded;
	struct zf_rng rng;

	zf_rng_seed(&rng, seed_of_this_run());
	for (unsigned int round = 0; round < 20000; round++) {
		struct zf_disk_super disk, flipped;
		uint64_t flips = 1 + zf_rng_below(&rng, 8);

		zf_super_encode(&super, &disk);
		flipped = disk;
		while (flips-- > 0) {
			uint64_t bit = zf_rng_below(&rng, 8 * sizeof(disk));

			((uint8_t *)&flipped)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		if (memcmp(&disk, &flipped, sizeof(disk)) == 0)
			continue;
		assert_int_not_equal(zf_super_decode(&flipped, 0, NULL, &decoded), 0);
	}
}

/* The checksums are right, so only the other checks can refuse these records. */
static void hostile_records_are_refused_or_harmless(void **state)
{
	struct zf_super super = sample_super(5), decoded;
	unsigned int accepted = 0, refused = 0;
	struct zf_rng rng;

	zf_rng_seed(&rng, seed_of_this_run());
	for (unsigned int round = 0; round < 50000; round++) {
		struct zf_disk_super disk;
		uint64_t offset = 8 + zf_rng_below(&rng, 400);

		zf_super_encode(&super, &disk);
		zf_rng_fill(&rng, (uint8_t *)&disk + offset, 1 + zf_rng_below(&rng, 8));
		reseal((uint8_t *)&disk);
		if (zf_super_decode(&disk, 0, NULL, &decoded) < 0) {
			refused++;
			continue;
		}
		/* An accepted record passes the check of its values, and its root is within the
		 * device. */
		accepted++;
		assert_int_equal(zf_super_check(&decoded, NULL), 0);
		assert_in_range(decoded.root.address[0] / decoded.zone_size, ZF_SUPER_ZONES,
				decoded.zone_count - 1);
	}
	assert_in_range(accepted, 1, 49999);
	assert_in_range(refused, 1, 49999);
}

static int count_slots(void *arg, const struct zf_ring_record *record)
{
	(*(unsigned int *)arg)++;
	return 0;
}

/* `stepped_over` may have any value: the ring may have to guard against damaged slots elsewhere. */
static void expect_newest(struct sample_disk *disk, uint64_t generation)
{
	const struct zf_super *super;
	unsigned int stepped_over;

	assert_int_equal(sample_reopen(disk), 0);
	assert_int_equal(zf_ring_newest(disk->ring, &super, &stepped_over), 0);
	assert_int_equal(super->generation, generation);
}

static void a_ring_of_random_bytes_never_crashes(void **state)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, seed_of_this_run());
	for (unsigned int round = 0; round < 500; round++) {
		const struct zf_geometry geometry =
			sample_geometry((uint32_t)zf_rng_below(&rng, 3));
		struct sample_disk disk;
		unsigned int slots = 0;

		sample_disk_new(&disk, &geometry);
		for (unsigned int zone_no = 0; zone_no < 2; zone_no++)
			fill(&disk, zone_no, (uint32_t)zf_rng_below(&rng, SAMPLE_SLOTS + 1),
			     1 + zf_rng_below(&rng, 30));
		for (unsigned int i = 0; i < 6; i++) {
			uint8_t *p = sample_slot(&disk, (unsigned int)zf_rng_below(&rng, 2),
						 (uint32_t)zf_rng_below(&rng, SAMPLE_SLOTS));

			zf_rng_fill(&rng, p + zf_rng_below(&rng, 4000), 1 + zf_rng_below(&rng, 90));
			if (zf_rng_chance(&rng, 50))
				reseal(p);
		}
		if (sample_reopen(&disk) == 0) {
			struct zf_super super =
				sample_super(zf_ring_highest_generation(disk.ring) + 1);

			assert_int_equal(zf_ring_walk(disk.ring, count_slots, &slots), 0);
			assert_in_range(slots, 1, 2 * SAMPLE_SLOTS);
			if (zf_ring_write(disk.ring, &super) == 0)
				expect_newest(&disk, super.generation);
		}
		sample_disk_free(&disk);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_torn_newest_record_is_stepped_over_and_counted),
		cmocka_unit_test(a_torn_record_that_reads_as_zeroes_counts_in_a_sequential_zone),
		cmocka_unit_test(a_torn_record_that_reads_as_an_older_one_is_stepped_over),
		cmocka_unit_test(a_torn_first_record_after_the_switch_is_stepped_over),
		cmocka_unit_test(a_record_torn_over_an_older_one_is_stepped_over),
		cmocka_unit_test(a_crash_between_reset_and_write_leaves_the_full_zone),
		cmocka_unit_test(when_every_record_is_damaged_nothing_is_the_newest),
		cmocka_unit_test(after_a_failed_write_the_pointer_is_asked_for_again),
		cmocka_unit_test(a_write_that_fails_as_the_zone_fills_up_goes_on_in_the_other),
		cmocka_unit_test(values_that_no_reader_would_accept_are_not_written),
		cmocka_unit_test(a_record_of_a_newer_format_is_never_stepped_over),
		cmocka_unit_test(records_past_a_lower_bound_are_found_and_the_pointer_raised),
		cmocka_unit_test(without_its_pointer_raised_a_zone_is_not_used),
		cmocka_unit_test(a_torn_record_does_not_hide_those_behind_it),
		cmocka_unit_test(leftovers_from_before_a_reset_do_not_count),
		cmocka_unit_test(a_record_with_any_bits_flipped_is_never_accepted),
		cmocka_unit_test(hostile_records_are_refused_or_harmless),
		cmocka_unit_test(a_ring_of_random_bytes_never_crashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

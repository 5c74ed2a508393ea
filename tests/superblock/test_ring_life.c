/* SPDX-License-Identifier: MIT */
/* A ring in use: its zones alternate, mkfs over an old filesystem, older candidates, and that
 * opening reads little. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "sample.h"

static void format(struct sample_disk *disk)
{
	zf_ring_close(disk->ring);
	disk->ring = NULL;
	assert_int_equal(zf_ring_format(disk->dev, NULL, &disk->ring), 0);
}

static void going_round_four_times_on(uint32_t conventional)
{
	const struct zf_geometry geometry = sample_geometry(conventional);
	struct sample_disk disk;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	format(&disk);
	for (uint64_t generation = 1; generation <= 4 * 2 * SAMPLE_SLOTS + 1; generation++) {
		uint64_t place = generation - 1;

		assert_int_equal(sample_commit(&disk, generation, &address), 0);
		assert_int_equal(address, sample_address(&disk, place / SAMPLE_SLOTS % 2,
							 (uint32_t)(place % SAMPLE_SLOTS)));
		sample_expect(&disk, generation, 0);
	}
	sample_disk_free(&disk);
}

static void the_newest_is_found_each_time_around(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++)
		going_round_four_times_on(conventional);
}

static void a_ring_that_stays_open_goes_round_too(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	const struct zf_super *super;
	struct sample_disk disk;
	unsigned int stepped_over;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	format(&disk);
	for (uint64_t generation = 1; generation <= 40; generation += 3) {
		assert_int_equal(sample_commit(&disk, generation, &address), 0);
		assert_int_equal(zf_ring_newest(disk.ring, &super, &stepped_over), 0);
		assert_int_equal(super->generation, generation);
		assert_int_equal(super->address, address);
		assert_int_equal(zf_ring_highest_generation(disk.ring), generation);
	}
	sample_expect(&disk, 40, 0);
	sample_disk_free(&disk);
}

static void a_record_is_found_as_soon_as_it_is_written(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		struct sample_disk disk;
		struct zf_super super;
		uint64_t address;

		sample_disk_new(&disk, &geometry);
		format(&disk);
		for (uint64_t generation = 1; generation <= 3 * SAMPLE_SLOTS; generation++) {
			assert_int_equal(zf_ring_find(disk.ring, generation, &super), -ENOENT);
			assert_int_equal(sample_commit(&disk, generation, &address), 0);
			assert_int_equal(zf_ring_find(disk.ring, generation, &super), 0);
			assert_int_equal(super.address, address);
		}
		sample_disk_free(&disk);
	}
}

static void what_is_read_is_what_was_written(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	const struct zf_super *super;
	struct zf_super written = sample_super(3);
	struct zf_disk_super before, after;
	struct sample_disk disk;
	unsigned int stepped_over;

	sample_disk_new(&disk, &geometry);
	format(&disk);
	assert_int_equal(zf_ring_newest(disk.ring, &super, &stepped_over), -ENOENT);
	assert_int_equal(zf_ring_write(disk.ring, &written), 0);
	assert_int_equal(sample_reopen(&disk), 0);
	assert_int_equal(zf_ring_newest(disk.ring, &super, &stepped_over), 0);
	zf_super_encode(&written, &before);
	zf_super_encode(super, &after);
	assert_memory_equal(&after, &before, sizeof(before));
	sample_disk_free(&disk);
}

static void every_record_is_one_fua_write(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct zf_dev_stats before, after;
	struct sample_disk disk;
	uint64_t address;

	sample_disk_new(&disk, &geometry);
	format(&disk);
	zf_dev_get_stats(disk.dev, &before);
	assert_int_equal(sample_commit(&disk, 1, &address), 0);
	zf_dev_get_stats(disk.dev, &after);
	assert_int_equal(after.fua_writes - before.fua_writes, 1);
	assert_int_equal(after.writes - before.writes, 1);
	assert_int_equal(after.flushes - before.flushes, 0);
	sample_disk_free(&disk);
}

static void mkfs_leaves_no_record_of_the_old_filesystem(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		struct sample_disk disk;
		uint64_t address;

		sample_disk_new(&disk, &geometry);
		format(&disk);
		for (uint64_t generation = 100; generation < 100 + 2 * SAMPLE_SLOTS; generation++)
			assert_int_equal(sample_commit(&disk, generation, &address), 0);

		format(&disk);
		assert_int_equal(zf_ring_zone_state(disk.ring, 0), ZF_RING_EMPTY);
		assert_int_equal(zf_ring_zone_state(disk.ring, 1), ZF_RING_EMPTY);
		assert_int_equal(zf_ring_highest_generation(disk.ring), 0);
		assert_int_equal(sample_commit(&disk, 1, &address), 0);
		assert_int_equal(address, 0);
		sample_expect(&disk, 1, 0);
		sample_disk_free(&disk);
	}
}

struct resets {
	uint64_t address[2];
	unsigned int count;
};

static void note_reset(void *arg, const struct zf_io *io)
{
	struct resets *resets = arg;

	if (io->op == ZF_IO_RESET && resets->count < 2)
		resets->address[resets->count++] = io->addr;
}

static void mkfs_resets_the_zone_of_the_newest_record_last(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);

	for (unsigned int newest = 0; newest <= 1; newest++) {
		struct resets resets = {0};
		struct sample_disk disk;

		sample_disk_new(&disk, &geometry);
		sample_put(&disk, newest, 0, 7);
		zf_dev_set_recorder(disk.dev, note_reset, &resets);
		format(&disk);
		zf_dev_set_recorder(disk.dev, NULL, NULL);
		assert_int_equal(resets.count, 2);
		assert_int_equal(resets.address[1], sample_address(&disk, newest, 0));
		sample_disk_free(&disk);
	}
}

static void another_filesystems_record_is_no_candidate(void **state)
{
	const struct zf_geometry geometry = sample_geometry(2);
	struct zf_super foreign = sample_super(3), older;
	struct sample_disk disk;

	foreign.fsid[0] ^= 1;
	sample_disk_new(&disk, &geometry);
	sample_put(&disk, 0, 0, 9);
	sample_put_super(&disk, 0, 1, &foreign);
	sample_expect(&disk, 9, 0);
	assert_int_equal(zf_ring_find(disk.ring, 3, &older), -ENOENT);
	assert_int_equal(zf_ring_older(disk.ring, 9, &older), -ENOENT);
	sample_disk_free(&disk);
}

static void older_candidates_come_one_by_one_across_both_zones(void **state)
{
	for (uint32_t conventional = 0; conventional <= 2; conventional++) {
		const struct zf_geometry geometry = sample_geometry(conventional);
		const uint64_t last = 3 * SAMPLE_SLOTS + 2;
		struct sample_disk disk;
		struct zf_super super;
		uint64_t address, generation, oldest;

		sample_disk_new(&disk, &geometry);
		format(&disk);
		for (generation = 1; generation <= last; generation++)
			assert_int_equal(sample_commit(&disk, generation, &address), 0);
		sample_expect(&disk, last, 0);

		/* The current zone, here zone 1, was reset before it was written, unless it is
		 * conventional. */
		oldest = conventional == 2 ? last + 1 - 2 * SAMPLE_SLOTS : 2 * SAMPLE_SLOTS + 1;
		for (generation = last; generation > oldest; generation--) {
			assert_int_equal(zf_ring_older(disk.ring, generation, &super), 0);
			assert_int_equal(super.generation, generation - 1);
			assert_int_equal(zf_ring_find(disk.ring, generation, &super), 0);
			assert_int_equal(super.generation, generation);
		}
		assert_int_equal(zf_ring_older(disk.ring, oldest, &super), -ENOENT);
		assert_int_equal(zf_ring_find(disk.ring, oldest - 1, &super), -ENOENT);
		sample_disk_free(&disk);
	}
}

struct listing {
	uint64_t generation[3 * SAMPLE_SLOTS];
	int status[3 * SAMPLE_SLOTS];
	unsigned int count, stop_at;
};

static int list(void *arg, const struct zf_ring_record *record)
{
	struct listing *listing = arg;

	assert_true(listing->count < ZF_ARRAY_SIZE(listing->status));
	listing->generation[listing->count] = record->generation;
	listing->status[listing->count] = record->status;
	listing->count++;
	return listing->count == listing->stop_at ? 42 : 0;
}

static void a_walk_shows_every_slot_newest_first_the_damaged_in_their_place(void **state)
{
	const struct zf_geometry geometry = sample_geometry(0);
	struct listing listing = {0}, first = {.stop_at = 1};
	struct sample_disk disk;

	sample_disk_new(&disk, &geometry);
	for (uint32_t slot = 0; slot < SAMPLE_SLOTS; slot++)
		sample_put(&disk, 1, slot, 5 + slot);
	sample_put(&disk, 0, 0, 9);
	sample_put_garbage(&disk, 0, 1);
	sample_slot(&disk, 1, 2)[1000] ^= 1;
	assert_int_equal(sample_reopen(&disk), 0);

	assert_int_equal(zf_ring_walk(disk.ring, list, &listing), 0);
	assert_int_equal(listing.count, 2 + SAMPLE_SLOTS);
	assert_int_equal(listing.status[0], -ENOENT);
	assert_int_equal(listing.status[1], 0);
	assert_int_equal(listing.generation[1], 9);
	assert_int_equal(listing.generation[2], 8);
	assert_int_equal(listing.status[3], -EUCLEAN);
	assert_int_equal(listing.generation[3], 0);
	assert_int_equal(listing.generation[4], 6);
	assert_int_equal(listing.generation[5], 5);

	assert_int_equal(zf_ring_walk(disk.ring, list, &first), 42);
	assert_int_equal(first.count, 1);
	sample_disk_free(&disk);
}

static void a_zone_of_16384_records_is_opened_with_little_reading(void **state)
{
	struct zf_geometry geometry = sample_geometry(0);
	const uint32_t slots = 16384;
	struct zf_dev_stats before, after;
	struct sample_disk disk;

	geometry.zone_size = geometry.zone_capacity = (uint64_t)slots * ZF_SUPER_SIZE;
	sample_disk_new(&disk, &geometry);
	for (uint32_t slot = 0; slot < slots; slot++)
		sample_put(&disk, 0, slot, 1 + slot);
	sample_put(&disk, 1, 0, slots + 1);
	zf_dev_get_stats(disk.dev, &before);
	sample_expect(&disk, slots + 1, 0);
	zf_dev_get_stats(disk.dev, &after);
	assert_in_range(after.read_bytes - before.read_bytes, ZF_SUPER_SIZE, 192 * 1024);
	sample_disk_free(&disk);
}

static void a_big_conventional_zone_uses_its_first_slots_only(void **state)
{
	struct zf_geometry geometry = sample_geometry(2);
	struct sample_disk disk;
	uint64_t address;

	geometry.zone_size = geometry.zone_capacity = 64 << 20;
	sample_disk_new(&disk, &geometry);
	format(&disk);
	for (uint64_t i = 0; i <= ZF_RING_CONVENTIONAL_SLOTS; i++)
		assert_int_equal(sample_commit(&disk, 1 + i, &address), 0);
	assert_int_equal(address, geometry.zone_size);
	sample_expect(&disk, 1 + ZF_RING_CONVENTIONAL_SLOTS, 0);
	sample_disk_free(&disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_is_found_each_time_around),
		cmocka_unit_test(a_ring_that_stays_open_goes_round_too),
		cmocka_unit_test(a_record_is_found_as_soon_as_it_is_written),
		cmocka_unit_test(what_is_read_is_what_was_written),
		cmocka_unit_test(every_record_is_one_fua_write),
		cmocka_unit_test(mkfs_leaves_no_record_of_the_old_filesystem),
		cmocka_unit_test(mkfs_resets_the_zone_of_the_newest_record_last),
		cmocka_unit_test(another_filesystems_record_is_no_candidate),
		cmocka_unit_test(older_candidates_come_one_by_one_across_both_zones),
		cmocka_unit_test(a_walk_shows_every_slot_newest_first_the_damaged_in_their_place),
		cmocka_unit_test(a_zone_of_16384_records_is_opened_with_little_reading),
		cmocka_unit_test(a_big_conventional_zone_uses_its_first_slots_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

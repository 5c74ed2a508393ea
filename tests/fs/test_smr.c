/* SPDX-License-Identifier: MIT */
/* The shape of a host-managed SMR disk: zones of 256 MiB, the first of them conventional. */
#include <string.h>

#include "alloc/zone.h"
#include "fs/data_rig.h"
#include "superblock/ring.h"

#define MIB	  (UINT64_C(1) << 20)
#define ZONE_SIZE (256 * MIB)

static const struct data_rig_options disk = {
	.memory = true,
	.seed = 11,
	.zone_count = 40,
	.zone_size = ZONE_SIZE,
	.conventional = 8,
	.rotational = true,
};

/* As the mounted filesystem has it. */
static enum zf_role role_of(struct data_rig *rig, uint32_t zone_no)
{
	struct zf_zone zone;

	zf_alloc_get_zone(zf_fs_alloc(rig->fs), zone_no, &zone);
	return zone.role;
}

static void files_and_what_was_synced_are_there_again(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &disk);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 5 * MIB);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, 5 * MIB);
	data_rig_write_pattern(&rig, ino, 1, 5 * MIB, 3000);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 5 * MIB + 3000);
	data_rig_deinit(&rig);
}

static void conventional_zones_hold_the_superblocks_and_are_left_for_writing_in_place(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &disk);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 2 * MIB);
	data_rig_sync(&rig);
	assert_int_equal(role_of(&rig, 0), ZF_ROLE_SUPER);
	assert_int_equal(role_of(&rig, 1), ZF_ROLE_SUPER);
	for (uint32_t z = 2; z < disk.conventional; z++)
		assert_int_equal(role_of(&rig, z), ZF_ROLE_NONE);
	data_rig_allocate(&rig, ino, ZF_FALLOC_WRITE_ZEROES, 4 * MIB, MIB);
	data_rig_remount(&rig);
	assert_int_equal(role_of(&rig, 2), ZF_ROLE_OVERWRITE);
	data_rig_expect_zeroes(&rig, ino, 4 * MIB, MIB);
	data_rig_deinit(&rig);
}

/* A conventional zone takes ZF_RING_CONVENTIONAL_SLOTS records. Then the other zone is written. */
static void the_ring_goes_round_in_conventional_zones(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &disk);
	ino = data_rig_make(&rig, "file");
	for (unsigned int i = 0; i < 2 * ZF_RING_CONVENTIONAL_SLOTS + 10; i++) {
		data_rig_write_pattern(&rig, ino, i, 0, 100);
		data_rig_sync(&rig);
		if (i % 500 == 0)
			data_rig_crash(&rig);
	}
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 2 * ZF_RING_CONVENTIONAL_SLOTS + 9, 0, 100);
	data_rig_deinit(&rig);
}

/* Two files, written by turns: one zone is written at a time, however much is in flight. */
static void data_goes_to_one_zone_at_a_time(void **state)
{
	struct data_rig rig;
	struct data_rig_extents extents;
	uint64_t ino[2];
	uint32_t zone_no;

	(void)state;
	data_rig_init(&rig, &disk);
	ino[0] = data_rig_make(&rig, "one");
	ino[1] = data_rig_make(&rig, "two");
	for (unsigned int i = 0; i < 40; i++)
		data_rig_write_pattern(&rig, ino[i % 2], 1, i / 2 * MIB, MIB);
	data_rig_sync(&rig);
	data_rig_extents(&rig, ino[0], &extents);
	zone_no = (uint32_t)(extents.at[0].address / ZONE_SIZE);
	for (unsigned int f = 0; f < 2; f++) {
		data_rig_extents(&rig, ino[f], &extents);
		for (int i = 0; i < extents.count; i++)
			assert_int_equal(extents.at[i].address / ZONE_SIZE, zone_no);
	}
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_and_what_was_synced_are_there_again),
		cmocka_unit_test(
			conventional_zones_hold_the_superblocks_and_are_left_for_writing_in_place),
		cmocka_unit_test(the_ring_goes_round_in_conventional_zones),
		cmocka_unit_test(data_goes_to_one_zone_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* From a device address to the files that have the byte there (fs/space/resolve.h). */
#include <errno.h>

#include "fs/data_rig.h"
#include "fs/space/resolve.h"

#define BLOCK 4096u
#define KIB   1024u
#define MIB   (1024u * KIB)

struct places {
	uint64_t ino[8], offset[8];
	unsigned int count, most; /* no more than `most` are wanted */
};

static int take(void *arg, uint64_t ino, uint64_t offset)
{
	struct places *places = arg;

	assert_true(places->count < 8);
	places->ino[places->count] = ino;
	places->offset[places->count++] = offset;
	return places->count == places->most;
}

static struct places resolve(struct data_rig *rig, uint64_t address)
{
	struct places places = {0};

	assert_int_equal(zf_resolve(rig->fs, address, take, &places), 0);
	return places;
}

static bool has(const struct places *places, uint64_t ino, uint64_t offset)
{
	for (unsigned int i = 0; i < places->count; i++)
		if (places->ino[i] == ino && places->offset[i] == offset)
			return true;
	return false;
}

/* Every block of the file leads to it, and to `others` more places. */
static void expect_file(struct data_rig *rig, uint64_t ino, unsigned int others)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	assert_true(extents.count > 0);
	for (int i = 0; i < extents.count; i++) {
		const struct zf_extent_info *extent = &extents.at[i];

		for (uint64_t at = 0; extent->address && at < extent->len; at += BLOCK) {
			struct places places = resolve(rig, extent->address + at + at % 1000);

			assert_int_equal(places.count, 1 + others);
			assert_true(has(&places, ino, extent->offset + at + at % 1000));
		}
	}
}

static uint64_t first_address(struct data_rig *rig, uint64_t ino)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	assert_true(extents.count > 0 && extents.at[0].address);
	return extents.at[0].address;
}

static void every_block_leads_to_its_file(void **state)
{
	const struct data_rig_options options = {.seed = 1};
	struct data_rig rig;
	uint64_t file, other;

	(void)state;
	data_rig_init(&rig, &options);
	file = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	data_rig_write_pattern(&rig, file, 1, 0, 3 * MIB);
	data_rig_write_pattern(&rig, other, 2, 64 * KIB, 100 * KIB);
	data_rig_sync(&rig);
	data_rig_write_pattern(&rig, file, 3, MIB + 8 * KIB, 12 * KIB);
	data_rig_sync(&rig);
	expect_file(&rig, file, 0);
	expect_file(&rig, other, 0);
	data_rig_remount(&rig);
	expect_file(&rig, file, 0);
	data_rig_deinit(&rig);
}

static void garbage_leads_nowhere(void **state)
{
	const struct data_rig_options options = {.seed = 1};
	struct data_rig rig;
	uint64_t file, address;

	(void)state;
	data_rig_init(&rig, &options);
	file = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, file, 1, 0, 64 * KIB);
	data_rig_sync(&rig);
	address = first_address(&rig, file);
	assert_int_equal(resolve(&rig, address).count, 1);
	data_rig_write_pattern(&rig, file, 2, 0, BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(resolve(&rig, address).count, 0);
	assert_int_equal(resolve(&rig, address + BLOCK).count, 1);
	data_rig_unlink(&rig, "file", file);
	data_rig_sync(&rig);
	assert_int_equal(resolve(&rig, address + BLOCK).count, 0);
	data_rig_deinit(&rig);
}

static void shared_bytes_lead_to_all_files(void **state)
{
	const struct data_rig_options options = {.seed = 1};
	uint64_t file, copies[2];
	struct places places = {.most = 2};
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	file = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, file, 1, 0, 2 * MIB);
	data_rig_sync(&rig);
	for (unsigned int i = 0; i < 2; i++) {
		copies[i] = data_rig_make(&rig, i == 0 ? "a" : "b");
		assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, file, 0, copies[i],
						  i * 64 * KIB, 2 * MIB),
				 2 * MIB);
	}
	data_rig_sync(&rig);
	expect_file(&rig, file, 2);
	expect_file(&rig, copies[1], 2);
	/* The callback ends the search when it has enough places. */
	assert_int_equal(zf_resolve(rig.fs, first_address(&rig, file), take, &places), 1);
	assert_int_equal(places.count, 2);
	data_rig_unlink(&rig, "file", file);
	data_rig_sync(&rig);
	expect_file(&rig, copies[0], 1);
	data_rig_deinit(&rig);
}

static void what_is_written_in_place_leads_to_its_file(void **state)
{
	const struct data_rig_options options = {.seed = 7, .conventional = 6};
	struct data_rig rig;
	uint64_t file, address;

	(void)state;
	data_rig_init(&rig, &options);
	file = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, file, ZF_FALLOC_WRITE_ZEROES, 0, 256 * KIB);
	data_rig_sync(&rig);
	expect_file(&rig, file, 0);
	address = first_address(&rig, file);
	assert_int_equal(resolve(&rig, address + 256 * KIB).count, 0);
	data_rig_unlink(&rig, "file", file);
	data_rig_sync(&rig);
	data_rig_sync(&rig);
	assert_int_equal(resolve(&rig, address).count, 0);
	data_rig_deinit(&rig);
}

static void other_addresses_lead_nowhere(void **state)
{
	const struct data_rig_options options = {.seed = 1};
	struct places places = {0};
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	for (uint64_t zone = 0; zone < 64; zone++)
		assert_int_equal(resolve(&rig, zone * MIB + 4097).count, 0);
	assert_int_equal(zf_resolve(rig.fs, 64 * MIB, take, &places), -EINVAL);
	assert_int_equal(zf_resolve(rig.fs, UINT64_MAX, take, &places), -EINVAL);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_block_leads_to_its_file),
		cmocka_unit_test(garbage_leads_nowhere),
		cmocka_unit_test(shared_bytes_lead_to_all_files),
		cmocka_unit_test(what_is_written_in_place_leads_to_its_file),
		cmocka_unit_test(other_addresses_lead_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A filesystem is filled to the last block, emptied, and filled again, a hundred times: the same
 * amount fits each time. `test_refill ROUNDS` for fewer rounds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "fs/data_rig.h"

#define BLOCK	 UINT64_C(4096)
#define MIB	 (UINT64_C(1) << 20)
#define FILES	 1000u
#define LONGEST	 (4 * MIB)
#define PER_CENT 1u

struct file {
	char name[16];
	uint64_t ino;
};

static unsigned int rounds = 100;
static struct file files[FILES];
static uint8_t buf[LONGEST];

/* Files of all sizes, the same in each round. Returns the bytes that fit. */
static uint64_t fill(struct data_rig *rig, unsigned int *ret_count)
{
	uint64_t bytes = 0;
	struct zf_rng rng;
	ssize_t r;

	zf_rng_seed(&rng, 1);
	*ret_count = 0;
	do {
		struct file *file = &files[*ret_count];
		size_t len = 1 + (size_t)zf_rng_below(&rng, LONGEST);

		assert_true(*ret_count < FILES);
		snprintf(file->name, sizeof(file->name), "%u", (*ret_count)++);
		file->ino = data_rig_make(rig, file->name);
		r = zf_fs_write(rig->fs, &rig->ctx, file->ino, 0, buf, len, 0);
		bytes += r > 0 ? (uint64_t)r : 0;
		/* After a short write there is room for less than a block, so the next write
		 * fails. */
		if (r >= 0 && (size_t)r < len)
			r = zf_fs_write(rig->fs, &rig->ctx, file->ino, (uint64_t)r, buf, BLOCK, 0);
	} while (r > 0);
	assert_int_equal(r, -ENOSPC);
	return bytes;
}

static void empty(struct data_rig *rig, struct zf_rng *rng, unsigned int count)
{
	while (count > 0) {
		unsigned int i = (unsigned int)zf_rng_below(rng, count);

		data_rig_unlink(rig, files[i].name, files[i].ino);
		files[i] = files[--count];
	}
}

static void the_same_fits_each_time(const struct data_rig_options *options)
{
	uint64_t least = UINT64_MAX, most = 0;
	struct data_rig rig;
	struct zf_rng rng;

	data_rig_init(&rig, options);
	zf_rng_seed(&rng, options->seed);
	for (unsigned int round = 0; round < rounds; round++) {
		unsigned int count;
		uint64_t bytes = fill(&rig, &count);

		least = zf_min_u64(least, bytes);
		most = zf_max_u64(most, bytes);
		/* The files are deleted at once, or when all of them are durable, or after a
		 * mount. */
		if (round % 3 == 1)
			data_rig_sync(&rig);
		if (round % 10 == 9)
			data_rig_remount(&rig);
		empty(&rig, &rng, count);
	}
	print_message("%u zones, %u copies: %.1f to %.1f MiB, %.2f %%\n", options->zone_count,
		      options->copies ? options->copies : 1, (double)least / (double)MIB,
		      (double)most / (double)MIB, (double)(most - least) * 100 / (double)most);
	assert_true((most - least) * 100 <= most * PER_CENT);
	data_rig_deinit(&rig);
}

static void a_disk_takes_the_same_a_hundred_times(void **state)
{
	const struct data_rig_options options = {
		.seed = 1, .zone_count = 256, .zone_size = MIB, .memory = true};

	(void)state;
	the_same_fits_each_time(&options);
}

static void so_does_one_with_two_copies_of_its_metadata(void **state)
{
	const struct data_rig_options options = {
		.seed = 2, .zone_count = 512, .zone_size = MIB / 2, .copies = 2, .memory = true};

	(void)state;
	the_same_fits_each_time(&options);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_disk_takes_the_same_a_hundred_times),
		cmocka_unit_test(so_does_one_with_two_copies_of_its_metadata),
	};

	if (argc > 1)
		rounds = (unsigned int)strtoul(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

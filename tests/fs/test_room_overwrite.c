/* SPDX-License-Identifier: MIT */
/*
 * The smallest device is nearly full and overwritten at random: no write is refused, and no
 * answered write is lost (P5), even with the lowest limit of active zones that zfuse accepts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"

#define BLOCK 4096u

static uint64_t seed = 1;
static unsigned int rounds = 8, times = 4, percent = 80;
static uint8_t buf[256 * BLOCK];

static uint64_t available(struct data_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	return space.available;
}

static void tell(struct data_rig *rig)
{
	for (uint32_t z = 2; z < zf_alloc_zone_count(rig->fs->alloc); z++) {
		struct zf_zone q;

		zf_alloc_get_zone(rig->fs->alloc, z, &q);
		print_message(" %u: role %u, %u written, %u+%u live%s\n", z, q.role, q.pointer,
			      q.live, q.system_live, q.stuck ? ", stuck" : "");
	}
}

static void write_or_fail(struct data_rig *rig, uint64_t ino, uint64_t block, uint64_t count,
			  uint64_t written)
{
	ssize_t r = zf_fs_write(rig->fs, &rig->ctx, ino, block * BLOCK, buf, count * BLOCK, 0);

	if (r == (ssize_t)(count * BLOCK))
		return;
	tell(rig);
	fail_msg("seed %" PRIu64 ": after %" PRIu64 " blocks: %s, with %" PRIu64 " KiB available",
		 seed, written, r < 0 ? strerror((int)-r) : "short", available(rig) >> 10);
}

static void overwrite(const struct data_rig_options *options)
{
	static const unsigned int counts[] = {1, 1, 1, 8, 32};
	struct data_rig rig;
	struct zf_rng rng;
	uint64_t ino, blocks;

	data_rig_init(&rig, options);
	zf_rng_seed(&rng, options->seed);
	ino = data_rig_make(&rig, "file");
	blocks = available(&rig) / 100 * percent / BLOCK;
	for (uint64_t at = 0; at < blocks; at += 256)
		write_or_fail(&rig, ino, at, zf_min_u64(256, blocks - at), at);
	for (uint64_t written = 0; written < blocks * times;) {
		uint64_t at = zf_rng_below(&rng, blocks), n = counts[zf_rng_below(&rng, 5)];

		n = zf_min_u64(n, blocks - at);
		write_or_fail(&rig, ino, at, n, written);
		written += n;
		if (zf_rng_chance(&rng, 5))
			memset(buf, (int)written, BLOCK);
		if (!options->threads && zf_rng_below(&rng, 600) == 0)
			assert_int_equal(zf_fs_step(rig.fs), 0);
	}
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	print_message("seed %" PRIu64 ": %" PRIu64 " KiB left\n", options->seed,
		      available(&rig) >> 10);
	data_rig_deinit(&rig);
}

static void run(bool threads)
{
	uint64_t first = seed;

	for (unsigned int i = 0; i < rounds; i++, seed++) {
		struct data_rig_options options = {
			.zone_count = 16,
			.zone_size = 4 << 20,
			.max_active = threads || i % 2 ? 6 : 0,
			.memory = !threads,
			.threads = threads,
			.dirty_bytes = i % 3 ? 16 << 20 : 8 << 20,
			.seed = seed,
		};

		overwrite(&options);
	}
	seed = first;
}

static void the_smallest_device_is_overwritten_at_random(void **state)
{
	(void)state;
	run(false);
}

static void so_it_is_with_threads(void **state)
{
	(void)state;
	run(true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_device_is_overwritten_at_random),
		cmocka_unit_test(so_it_is_with_threads),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		rounds = (unsigned int)strtoul(argv[2], NULL, 0);
	if (argc > 3)
		percent = (unsigned int)strtoul(argv[3], NULL, 0);
	if (argc > 4)
		times = (unsigned int)strtoul(argv[4], NULL, 0);
	if (argc > 5)
		cmocka_set_test_filter(argv[5]);
	print_message("seed %" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The growth of a filesystem, with a power cut at every command that the device gets meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "alloc/zone.h"
#include "fs/data_rig.h"

#define BLOCK 4096u

static uint8_t buf[1 << 16];

static uint32_t zone_count(struct data_rig *rig)
{
	return zf_alloc_zone_count(zf_fs_alloc(rig->fs));
}

#define CUT_FROM 20u
#define CUT_TO	 90u

/* Appends, syncs, and grows twice. Returns when something fails. */
static void append_and_grow(struct data_rig *rig, uint64_t ino, struct zf_rng *rng,
			    uint64_t *synced, uint64_t *begun, uint32_t *grown)
{
	for (unsigned int n = 0; n < 70; n++) {
		size_t len = 1 + zf_rng_below(rng, 30000);

		if (n == 20 || n == 40) {
			uint32_t count = n == 20 ? CUT_FROM + 5 : CUT_TO;

			if (zf_fs_grow(rig->fs, count) < 0)
				return;
			*grown = count;
		}
		data_rig_fill(1, *begun, buf, len);
		*begun += len;
		if (zf_fs_write(rig->fs, &rig->ctx, ino, *begun - len, buf, len, 0) != (ssize_t)len)
			return;
		if (zf_rng_chance(rng, 60)) {
			if (zf_fs_fsync(rig->fs, &rig->ctx, ino, true) < 0)
				return;
			*synced = *begun;
		} else if (zf_rng_chance(rng, 30) && zf_fs_step(rig->fs) < 0) {
			return;
		}
	}
}

static bool cut_at(uint64_t seed, uint64_t n)
{
	const struct data_rig_options options = {.seed = seed,
						 .node_size = 4096,
						 .zone_size = 32 * BLOCK,
						 .append_limit = 16 * BLOCK,
						 .zone_count = CUT_FROM};
	uint64_t ino, synced = 0, begun = 0, size;
	uint32_t grown = CUT_FROM, count;
	struct data_rig rig;
	struct zf_rng rng;
	bool cut;

	data_rig_init(&rig, &options);
	zf_rng_seed(&rng, seed);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	rig.errors_expected = true;
	zf_sim_set_cut(rig.sim, zf_sim_commands(rig.sim) + n);
	append_and_grow(&rig, ino, &rng, &synced, &begun, &grown);
	cut = zf_sim_is_cut(rig.sim);
	data_rig_crash(&rig);
	count = zone_count(&rig);
	assert_true(count == CUT_FROM || count == CUT_FROM + 5 || count == CUT_TO);
	assert_true(count >= grown);
	size = data_rig_size(&rig, ino);
	assert_true(size >= synced && size <= begun);
	if (size > 0)
		data_rig_expect(&rig, ino, 1, 0, size);
	assert_int_equal(zf_fs_grow(rig.fs, CUT_TO), 0);
	data_rig_write_pattern(&rig, ino, 1, size, 300000);
	data_rig_remount(&rig);
	assert_int_equal(zone_count(&rig), CUT_TO);
	data_rig_expect(&rig, ino, 1, 0, size + 300000);
	data_rig_deinit(&rig);
	return cut;
}

static void a_cut_at_any_command_leaves_the_old_size_or_the_new(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		uint64_t n = 1;

		while (cut_at(seed, n))
			n++;
		print_message("seed %lu: %lu cuts\n", (unsigned long)seed, (unsigned long)n);
		assert_true(n > 50);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_at_any_command_leaves_the_old_size_or_the_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

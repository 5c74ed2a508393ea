/* SPDX-License-Identifier: MIT */
/*
 * A writer that never pauses and is faster than reclaim: the test counts the commits that it takes
 * to give the writer room. When files are overwritten at random, each commit writes nearly all
 * leaves again, so a commit for each zone that comes back would write more than the user
 * (docs/decisions/0016).
 */
#include <inttypes.h>

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"

#define BLOCK 4096u
#define ZONE  (1u << 20)

static uint8_t buf[64 * BLOCK];

static uint64_t commits(struct data_rig *rig)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(zf_fs_txn(rig->fs), &stats);
	return stats.commits;
}

static uint64_t fill(struct data_rig *rig, uint64_t ino, unsigned int percent)
{
	struct zf_space space;
	uint64_t blocks;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	blocks = space.available / 100 * percent / sizeof(buf) * (sizeof(buf) / BLOCK);
	for (uint64_t at = 0; at < blocks; at += sizeof(buf) / BLOCK)
		data_rig_write(rig, ino, at * BLOCK, buf, sizeof(buf));
	return blocks;
}

/* `help`: reclaim's thread has moved a zone, or made a commit, each time that so much is written.
 */
static void overwrite(struct data_rig *rig, uint64_t ino, uint64_t blocks, uint64_t count,
		      uint64_t help)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, rig->options.seed);
	for (uint64_t i = 0; i < count; i++) {
		data_rig_write(rig, ino, zf_rng_below(&rng, blocks) * BLOCK, buf, BLOCK);
		if (help > 0 && i % (help / BLOCK) == 0)
			(void)zf_reclaim_in_peace(rig->fs);
	}
}

static void run(uint64_t help)
{
	const struct data_rig_options options = {
		.memory = true, .zone_count = 128, .zone_size = ZONE, .seed = 1};
	uint64_t ino, blocks, before, taken;
	struct data_rig rig;

	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	blocks = fill(&rig, ino, 80);
	overwrite(&rig, ino, blocks, blocks, help);
	before = commits(&rig);
	overwrite(&rig, ino, blocks, blocks, help);
	taken = commits(&rig) - before;
	print_message("%" PRIu64 " commits for %" PRIu64 " MiB\n", taken, blocks * BLOCK >> 20);
	assert_true(taken > 0 && taken < 2 * blocks * BLOCK / ZONE);
	data_rig_deinit(&rig);
}

static void a_writer_without_help_commits_for_several_zones_at_once(void **state)
{
	(void)state;
	run(0);
}

static void so_does_a_writer_that_is_quicker_than_its_help(void **state)
{
	(void)state;
	run(ZONE / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_writer_without_help_commits_for_several_zones_at_once),
		cmocka_unit_test(so_does_a_writer_that_is_quicker_than_its_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

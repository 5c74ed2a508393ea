/* SPDX-License-Identifier: MIT */
/*
 * In any state of the filesystem fallocate() can reserve all space that statfs() reports as
 * available, and all space that statfs() reports as free can be written.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/data_rig.h"

#define BLOCK	 4096u
#define FILE_MAX 4096u
#define PIECE	 16u /* blocks of one of many files */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct data_rig_options shapes[] = {
	{.seed = 1, .memory = true, .zone_count = 64, .zone_size = 1 << 20, .node_size = 4096},
	{.seed = 2,
	 .memory = true,
	 .zone_count = 40,
	 .zone_size = 1 << 20,
	 .zone_capacity = 768 << 10},
	{.seed = 3, .memory = true, .zone_count = 24, .zone_size = 4 << 20, .node_size = 16384},
	{.seed = 4,
	 .memory = true,
	 .zone_count = 32,
	 .zone_size = 2 << 20,
	 .node_size = 16384,
	 .copies = 2},
	{.seed = 5,
	 .memory = true,
	 .zone_count = 96,
	 .zone_size = 512 << 10,
	 .node_size = 4096,
	 .copies = 2},
};

static struct zf_statfs space_of(struct data_rig *rig)
{
	struct zf_statfs statfs;

	assert_int_equal(zf_fs_statfs(rig->fs, &statfs), 0);
	assert_true(statfs.blocks_available <= statfs.blocks_free);
	return statfs;
}

/* ---- states ---- */

static void empty(struct data_rig *rig)
{
	(void)rig;
}

static void one_large_file(struct data_rig *rig)
{
	uint64_t blocks = space_of(rig).blocks_free / 2, ino = data_rig_make(rig, "large");

	data_rig_write_pattern(rig, ino, 1, 0, blocks * BLOCK);
}

/* Of many files every second one is gone: garbage is everywhere. */
static void every_second_file(struct data_rig *rig)
{
	uint64_t files = space_of(rig).blocks_free * 7 / 10 / PIECE;
	static uint64_t ino[FILE_MAX];
	char name[16];

	assert_true(files < FILE_MAX);
	for (uint64_t i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "%u", (unsigned int)i);
		ino[i] = data_rig_make(rig, name);
		data_rig_write_pattern(rig, ino[i], i, 0, PIECE * BLOCK);
	}
	data_rig_sync(rig);
	for (uint64_t i = 0; i < files; i += 2) {
		snprintf(name, sizeof(name), "%u", (unsigned int)i);
		data_rig_unlink(rig, name, ino[i]);
	}
}

/* Each block is an extent of its own, so there is much metadata, and garbage of metadata. */
static void overwritten_at_random(struct data_rig *rig)
{
	uint64_t blocks = space_of(rig).blocks_free / 2, ino = data_rig_make(rig, "random");

	data_rig_write_pattern(rig, ino, 1, 0, blocks * BLOCK);
	for (uint64_t i = 0; i < blocks; i++)
		data_rig_write_pattern(rig, ino, 2, i * 7919 % blocks * BLOCK, BLOCK);
}

static void half_of_it_kept(struct data_rig *rig)
{
	uint64_t blocks = space_of(rig).blocks_available / 2, ino = data_rig_make(rig, "kept");

	data_rig_allocate(rig, ino, 0, 0, blocks * BLOCK);
	/* A part of the kept space is written. */
	data_rig_write_pattern(rig, ino, 1, blocks / 4 * BLOCK, blocks / 4 * BLOCK);
}

/* ---- the claims ---- */

static void what_is_available_can_be_allocated(void **state)
{
	static void (*const states[])(struct data_rig *) = {
		empty, one_large_file, every_second_file, overwritten_at_random, half_of_it_kept};

	(void)state;
	for (unsigned int i = 0; i < COUNT(shapes) * COUNT(states); i++) {
		struct data_rig rig;
		struct zf_statfs before;
		uint64_t ino, blocks;
		int r;

		data_rig_init(&rig, &shapes[i % COUNT(shapes)]);
		states[i / COUNT(shapes)](&rig);
		data_rig_sync(&rig);
		ino = data_rig_make(&rig, "file");
		before = space_of(&rig);
		blocks = before.blocks_available * 99 / 100;
		assert_true(blocks > 0);
		r = zf_fs_fallocate(rig.fs, &rig.ctx, ino, 0, 0, blocks * BLOCK);
		if (r < 0)
			fail_msg("shape %zu, state %zu: %" PRIu64 " blocks of %" PRIu64
				 " available and %" PRIu64 " free: %d",
				 i % COUNT(shapes), i / COUNT(shapes), blocks,
				 before.blocks_available, before.blocks_free, r);
		data_rig_deinit(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_available_can_be_allocated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

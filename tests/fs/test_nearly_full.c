/* SPDX-License-Identifier: MIT */
/*
 * Random overwrites of single blocks on a device that is 95 to 99 % full, as statfs sees it. A
 * write is accepted as long as statfs reports a free block, and its cost is bounded, in moved
 * blocks and in commits for each written block. So writes are slow, but they end: reclaim does not
 * move the same blocks round and round.
 *
 *      test_nearly_full [TIMES]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reserve.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"

#define BLOCK	    UINT64_C(4096)
#define MIB	    (UINT64_C(1) << 20)

#define GIVEN	    64u /* blocks, when it is full */
#define REFUSED_MAX 50u /* metadata takes of the last per cents, too */

/* Sanitizers make it ten times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WRITES 1000u
#define SHAPES 2u
#else
#define WRITES 5000u
#define SHAPES 4u
#endif

static uint8_t buf[BLOCK];
static unsigned int times = 1;

struct work {
	uint64_t moved, commits; /* blocks */
};

static uint64_t available(struct data_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	return space.available;
}

static struct work work_now(struct data_rig *rig)
{
	struct zf_reclaim_stats reclaim;
	struct zf_txn_stats txn;

	zf_reclaim_get_stats(rig->fs, &reclaim);
	zf_txn_get_stats(rig->fs->txn, &txn);
	return (struct work){.moved = reclaim.moved / BLOCK, .commits = txn.commits};
}

static struct work work_since(struct data_rig *rig, const struct work *was)
{
	struct work now = work_now(rig);

	return (struct work){now.moved - was->moved, now.commits - was->commits};
}

struct world {
	struct data_rig rig;
	struct zf_rng rng;
	uint64_t ino, blocks; /* of the file */
	uint64_t refused;
};

/* Returns whether the write was accepted. After a rightful refusal the file gives some blocks
 * back. */
static bool write_block(struct world *w, uint64_t block)
{
	ssize_t r = zf_fs_write(w->rig.fs, &w->rig.ctx, w->ino, block * BLOCK, buf, BLOCK, 0);

	if (r == (ssize_t)BLOCK)
		return true;
	if (r != -ENOSPC || available(&w->rig) >= BLOCK)
		fail_msg("block %" PRIu64 ": %s, with %" PRIu64 " KiB available", block,
			 strerror((int)-r), available(&w->rig) >> 10);
	w->refused++;
	w->blocks -= GIVEN;
	data_rig_truncate(&w->rig, w->ino, w->blocks * BLOCK);
	return false;
}

/* Makes a file whose every block was written by itself, so that the space left is only for data. */
static void begin(struct world *w, const struct data_rig_options *options, unsigned int percent)
{
	uint64_t first;

	*w = (struct world){0};
	data_rig_init(&w->rig, options);
	zf_rng_seed(&w->rng, options->seed);
	w->ino = data_rig_make(&w->rig, "file");
	first = available(&w->rig);
	w->blocks = first / BLOCK / 4 * 3;
	for (uint64_t i = 0; i < w->blocks; i++)
		write_block(w, i % 2 ? i : i / 2 * 7919 * 2 % w->blocks);
	while (available(&w->rig) > first / 100 * (100 - percent))
		w->blocks += write_block(w, w->blocks);
}

/*
 * Emptying the zone with the most garbage moves no more for each block that comes back than if
 * garbage were spread evenly. One write may have to wait for a whole zone's worth, and pays for
 * those that come after it: but for each commit that it makes, many blocks have been moved.
 */
static void overwrite(const struct data_rig_options *options, unsigned int percent)
{
	struct work before, all, most = {0};
	uint64_t writes = WRITES * times, spare;
	struct world w;

	begin(&w, options, percent);
	spare = available(&w.rig) / BLOCK + 1;
	before = work_now(&w.rig);
	for (uint64_t i = 0; i < writes; i++) {
		struct work was = work_now(&w.rig), one;

		write_block(&w, zf_rng_below(&w.rng, w.blocks));
		one = work_since(&w.rig, &was);
		assert_true(one.moved <= 2 * w.blocks);
		assert_true(one.commits <= 16 + one.moved / 256);
		most.moved = zf_max_u64(most.moved, one.moved);
		most.commits = zf_max_u64(most.commits, one.commits);
	}
	all = work_since(&w.rig, &before);
	print_message("%u zones, %u copies, %u %%: %" PRIu64 " blocks, %" PRIu64
		      " to spare: for each write %.1f moved and %.3f commits, for one at most "
		      "%" PRIu64 " and %" PRIu64 "; %" PRIu64 " refused\n",
		      options->zone_count, options->copies, percent, w.blocks, spare,
		      (double)all.moved / (double)writes, (double)all.commits / (double)writes,
		      most.moved, most.commits, w.refused);
	assert_true(all.moved <= writes * (w.blocks / spare + 4));
	assert_true(all.commits <= writes / 4);
	assert_true(w.refused <= REFUSED_MAX);
	data_rig_deinit(&w.rig);
}

static void overwrite_shapes(unsigned int percent)
{
	for (unsigned int i = 0; i < SHAPES; i++) {
		const struct data_rig_options options = {
			.zone_count = i < 2 ? 16 : 64,
			.zone_size = 4 * MIB,
			.copies = (uint8_t)(1 + i % 2),
			.max_active = 6 + i % 2,
			.memory = true,
			.dirty_bytes = 4 * MIB,
			.seed = i,
		};

		overwrite(&options, percent);
	}
}

static void at_95_per_cent(void **state)
{
	(void)state;
	overwrite_shapes(95);
}

static void at_98_per_cent(void **state)
{
	(void)state;
	overwrite_shapes(98);
}

static void at_99_per_cent(void **state)
{
	(void)state;
	overwrite_shapes(99);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_95_per_cent),
		cmocka_unit_test(at_98_per_cent),
		cmocka_unit_test(at_99_per_cent),
	};

	if (argc > 1)
		times = (unsigned int)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

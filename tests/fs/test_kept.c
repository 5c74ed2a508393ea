/* SPDX-License-Identifier: MIT */
/*
 * The promise of fallocate (P5): the first write to each block of kept space finds room, however
 * full the filesystem is, and in whatever order and size the writes come. The promise of
 * write-zeroes: each later write finds room, too.
 *
 *      test_kept [SEED [TURNS]]
 *
 * TURNS: how often most of a disk is overwritten after it was written for the first time; default
 * 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/reserve.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/data/discard.h"
#include "fs/data/drop.h"
#include "fs/data_rig.h"
#include "fs/space/room.h"

#define BLOCK 4096u

/*
 * How many blocks are kept, and how often those that are guaranteed are overwritten. Sanitizers are
 * slow, and find what they look for in fewer.
 */
#if defined(__SANITIZE_THREAD__)
#define BLOCKS 500u
#define ROUNDS 2u
#elif defined(__SANITIZE_ADDRESS__)
#define BLOCKS 2000u
#define ROUNDS 2u
#else
#define BLOCKS 2000u
#define ROUNDS 5u
#endif

static uint64_t seed = 1, turns = 1;
static uint8_t buf[1 << 20];

struct full {
	struct data_rig rig;
	struct zf_rng rng;
	uint64_t ino;
	unsigned int blocks; /* of the file */
	unsigned int order[BLOCKS];
	unsigned int fillers;
};

/* ---- filling ---- */

/* Writes everything that fits, in ever smaller pieces, and makes every name that fits. */
static void fill(struct full *full)
{
	struct data_rig *rig = &full->rig;
	char name[32];

	for (size_t len = sizeof(buf); len >= 1; len /= 2) {
		struct zf_attr attr;
		uint64_t at = 0;
		ssize_t r;

		snprintf(name, sizeof(name), "filler %u", full->fillers);
		if (zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, 0100600, 0, NULL, &attr) < 0)
			continue;
		full->fillers++;
		zf_fs_forget(rig->fs, attr.ino, 1);
		memset(buf, (int)len | 1, len);
		while ((r = zf_fs_write(rig->fs, &rig->ctx, attr.ino, at, buf, len, 0)) > 0)
			at += (uint64_t)r;
		assert_int_equal(r, -ENOSPC);
	}
	for (int r = 0; r == 0; full->fillers++) {
		struct zf_attr attr;

		snprintf(name, sizeof(name), "filler %u", full->fillers);
		r = zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, 0100600, 0, NULL, &attr);
		assert_true(r == 0 || r == -ENOSPC);
		if (r == 0)
			zf_fs_forget(rig->fs, attr.ino, 1);
	}
}

static void shuffle(struct full *full)
{
	for (unsigned int i = 0; i < full->blocks; i++)
		full->order[i] = i;
	for (unsigned int i = full->blocks - 1; i > 0; i--) {
		unsigned int j = (unsigned int)zf_rng_below(&full->rng, i + 1);
		unsigned int t = full->order[i];

		full->order[i] = full->order[j];
		full->order[j] = t;
	}
}

static void begin(struct full *full, const struct data_rig_options *options, int mode)
{
	*full = (struct full){.blocks = BLOCKS};
	zf_rng_seed(&full->rng, seed + options->seed);
	data_rig_init(&full->rig, options);
	full->ino = data_rig_make(&full->rig, "kept");
	assert_int_equal(zf_fs_fallocate(full->rig.fs, &full->rig.ctx, full->ino, mode, 0,
					 (uint64_t)full->blocks * BLOCK),
			 0);
	shuffle(full);
	fill(full);
}

/* ---- overwriting ---- */

static void write_blocks(struct full *full, uint64_t first, unsigned int count, unsigned int flags)
{
	uint64_t offset = first * BLOCK;
	size_t len = (size_t)count * BLOCK;
	ssize_t r;

	data_rig_fill(seed, offset, buf, len);
	r = zf_fs_write(full->rig.fs, &full->rig.ctx, full->ino, offset, buf, len, flags);
	if (r != (ssize_t)len)
		fail_msg("seed %" PRIu64 ": %u blocks at %" PRIu64 ": %zd of %zu", seed, count,
			 first, r, len);
}

static void something_else(struct full *full)
{
	uint64_t dice = zf_rng_below(&full->rng, 100);

	if (dice < 5)
		data_rig_sync(&full->rig);
	else if (dice < 30 && !full->rig.options.threads)
		assert_int_equal(zf_fs_step(full->rig.fs), 0);
	else if (dice < 31)
		data_rig_remount(&full->rig);
}

/*
 * Writes each block once, and again while it is surely still dirty, which takes no space either. If
 * all blocks fit into memory, no writeback starts before a flush is requested.
 */
static void overwrite_single(struct full *full)
{
	bool again = !full->rig.options.threads && full->rig.options.dirty_bytes == 0;

	for (unsigned int i = 0; i < full->blocks; i++) {
		bool durable = zf_rng_chance(&full->rng, 3);

		write_blocks(full, full->order[i], 1, durable ? ZF_WRITE_DSYNC : 0);
		if (!durable && again)
			write_blocks(full, full->order[i], 1, 0);
		something_else(full);
	}
}

static void overwrite_in_pieces(struct full *full)
{
	bool done[BLOCKS] = {0};

	for (unsigned int i = 0; i < full->blocks; i++) {
		unsigned int most = 1 + (unsigned int)zf_rng_below(&full->rng, 250), n = 0;
		unsigned int first = full->order[i];

		while (n < most && first + n < full->blocks && !done[first + n])
			done[first + n++] = true;
		if (n == 0)
			continue;
		write_blocks(full, first, n, zf_rng_chance(&full->rng, 10) ? ZF_WRITE_DSYNC : 0);
		something_else(full);
	}
}

static void end(struct full *full, uint64_t kept)
{
	struct data_rig *rig = &full->rig;
	struct zf_space space;
	char name[32];

	data_rig_sync(rig);
	data_rig_remount(rig);
	data_rig_expect(rig, full->ino, seed, 0, (size_t)full->blocks * BLOCK);
	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	assert_int_equal(space.kept, kept * BLOCK);
	/* All files can be deleted. */
	for (unsigned int i = 0; i < full->fillers; i++) {
		int r;

		snprintf(name, sizeof(name), "filler %u", i);
		r = zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, name);
		assert_true(r == 0 || (i == full->fillers - 1 && r == -ENOENT));
	}
	data_rig_deinit(rig);
}

static const struct data_rig_options shapes[] = {
	{.seed = 1, .zone_count = 64, .zone_size = 256 << 10, .node_size = 4096},
	{.seed = 2, .zone_count = 40, .zone_size = 1 << 20, .node_size = 16384},
	{.seed = 3, .zone_count = 96, .zone_size = 256 << 10, .node_size = 4096, .copies = 2},
	{.seed = 4,
	 .zone_count = 40,
	 .zone_size = 1 << 20,
	 .node_size = 4096,
	 .dirty_bytes = 256 << 10,
	 .max_active = 6},
	{.seed = 5,
	 .zone_count = 40,
	 .zone_size = 1 << 20,
	 .node_size = 16384,
	 .threads = true,
	 .commit_ms = 20},
	/* Here metadata in the end takes all zones but the claimed ones. */
	{.seed = 6, .zone_count = 16, .zone_size = 4 << 20, .node_size = 4096},
};

/* Sanitizers are slow. The thread sanitizer finds nothing with one thread, and the address
 * sanitizer finds the same for each shape. */
static bool is_worth_it(const struct data_rig_options *options)
{
#if defined(__SANITIZE_THREAD__)
	return options->threads;
#elif defined(__SANITIZE_ADDRESS__)
	return options->threads || options->seed == 1;
#else
	(void)options;
	return true;
#endif
}

static void kept_space_can_be_overwritten(const int mode, void (*overwrite)(struct full *full))
{
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(shapes); i++) {
		struct full *full;

		if (!is_worth_it(&shapes[i]))
			continue;
		full = malloc(sizeof(*full));
		begin(full, &shapes[i], mode);
		overwrite(full);
		end(full, 0);
		free(full);
	}
}

static void what_is_allocated_can_be_overwritten_block_by_block(void **state)
{
	(void)state;
	kept_space_can_be_overwritten(0, overwrite_single);
}

static void what_is_allocated_can_be_overwritten_in_pieces(void **state)
{
	(void)state;
	kept_space_can_be_overwritten(FALLOC_FL_KEEP_SIZE, overwrite_in_pieces);
}

static void what_is_zeroed_can_be_overwritten_block_by_block(void **state)
{
	(void)state;
	kept_space_can_be_overwritten(FALLOC_FL_ZERO_RANGE, overwrite_single);
}

static void what_write_zeroes_made_can_be_overwritten_again_and_again(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2 * ZF_ARRAY_SIZE(shapes); i++) {
		struct full *full;

		if (!is_worth_it(&shapes[i / 2]))
			continue;
		full = malloc(sizeof(*full));
		begin(full, &shapes[i / 2], ZF_FALLOC_WRITE_ZEROES);
		for (unsigned int round = 0; round < ROUNDS; round++) {
			seed++;
			shuffle(full);
			if (i % 2 == 0)
				overwrite_single(full);
			else
				overwrite_in_pieces(full);
		}
		end(full, 0);
		free(full);
	}
}

#define WRITERS 6u
#define WRITES	(100u * ROUNDS)

struct writer {
	struct full *full;
	pthread_t thread;
	uint64_t seed;
	uint8_t buf[64 * BLOCK];
	ssize_t failed; /* 0: none */
};

static void *overwrite_with_others(void *arg)
{
	struct writer *writer = arg;
	struct full *full = writer->full;
	struct zf_rng rng;

	zf_rng_seed(&rng, writer->seed);
	for (unsigned int i = 0; i < WRITES && writer->failed == 0; i++) {
		uint64_t count = zf_rng_chance(&rng, 2) ? 1 : 1 + zf_rng_below(&rng, 64);
		uint64_t offset = zf_rng_below(&rng, full->blocks - count + 1) * BLOCK;
		size_t len = count * BLOCK;
		ssize_t r;

		data_rig_fill(seed, offset, writer->buf, len);
		r = zf_fs_write(full->rig.fs, &full->rig.ctx, full->ino, offset, writer->buf, len,
				zf_rng_chance(&rng, 10) ? ZF_WRITE_DSYNC : 0);
		if (r != (ssize_t)len)
			writer->failed = r < 0 ? r : 1;
	}
	return NULL;
}

static const struct data_rig_options narrow = {
	.seed = 7,
	.zone_count = 100,
	.zone_size = 256 << 10,
	.node_size = 4096,
	.threads = true,
	.commit_ms = 20,
};

/* A full filesystem, and no garbage. */
static void begin_overwriting(struct full *full)
{
	begin(full, &narrow, ZF_FALLOC_WRITE_ZEROES);
	for (unsigned int i = 0; i < full->blocks; i++)
		write_blocks(full, i, 1, 0);
	data_rig_sync(&full->rig);
}

static void start(struct writer *writer, struct full *full, uint64_t writer_seed)
{
	writer->full = full;
	writer->seed = writer_seed;
	assert_int_equal(pthread_create(&writer->thread, NULL, overwrite_with_others, writer), 0);
}

/* The writers together want more than the slack, whose zones are small. */
static void writers_that_share_the_slack_are_all_served(void **state)
{
	struct writer *writers = calloc(WRITERS, sizeof(*writers));
	struct full *full = malloc(sizeof(*full));

	(void)state;
	begin_overwriting(full);
	for (unsigned int i = 0; i < WRITERS; i++)
		start(&writers[i], full, seed + i);
	for (unsigned int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
	for (unsigned int i = 0; i < WRITERS; i++)
		assert_int_equal(writers[i].failed, 0);
	assert_int_equal(atomic_load(&full->rig.fs->room->overwriting), 0);
	end(full, 0);
	free(full);
	free(writers);
}

/* Acts as a writer that has reserved the whole slack, and does not write for a while. */
static void a_writer_that_finds_the_slack_in_use_waits(void **state)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	struct full *full = malloc(sizeof(*full));
	struct zf_room *room;
	uint64_t held = 0;

	(void)state;
	begin_overwriting(full);
	room = full->rig.fs->room;
	atomic_fetch_add(&room->overwriting, 1);
	while (zf_room_reserve(full->rig.fs, ZF_RESERVE_OVERWRITE, 1, 0, NULL) == 0)
		held++;
	assert_true(held > 0);
	start(writer, full, seed);
	usleep(500000);
	zf_alloc_unreserve(full->rig.fs->alloc, held, 0);
	atomic_fetch_sub(&room->overwriting, 1);
	assert_int_equal(pthread_join(writer->thread, NULL), 0);
	assert_int_equal(writer->failed, 0);
	end(full, 0);
	free(full);
	free(writer);
}

/* Has just enough zones that the reserved ones are a small part of them. */
static const struct data_rig_options wide = {.seed = 9,
					     .zone_count = 480,
					     .zone_size = 256 << 10,
					     .node_size = 4096,
					     .dirty_bytes = 1 << 20};

/* The zeroes are overwritten in random order while the rest of the disk is full. */
static void zeroes_of_most_of_the_disk_can_be_overwritten(void **state)
{
	struct full *full = malloc(sizeof(*full));
	struct data_rig *rig = &full->rig;
	uint64_t len = wide.zone_count * wide.zone_size / 10 * 9;

	(void)state;
	if (!is_worth_it(&wide)) {
		free(full);
		return;
	}
	*full = (struct full){.blocks = (unsigned int)(len / BLOCK)};
	zf_rng_seed(&full->rng, seed);
	data_rig_init(rig, &wide);
	full->ino = data_rig_make(rig, "most");
	data_rig_allocate(rig, full->ino, ZF_FALLOC_WRITE_ZEROES, 0,
			  (uint64_t)full->blocks * BLOCK);
	fill(full);
	for (uint64_t i = 0; i < full->blocks; i++)
		write_blocks(full, i, 1, 0);
	for (uint64_t i = 0; i < turns * full->blocks; i++) {
		uint64_t block = zf_rng_below(&full->rng, full->blocks);

		write_blocks(full, block, 1, i % 100 == 0 ? ZF_WRITE_DSYNC : 0);
		if (i % 10000 == 9999)
			data_rig_remount(rig);
	}
	end(full, 0);
	free(full);
}

/* ---- and what else becomes of it ---- */

static uint64_t available(struct data_rig *rig)
{
	struct zf_statfs statfs;

	assert_int_equal(zf_fs_statfs(rig->fs, &statfs), 0);
	return statfs.blocks_available;
}

static void kept_space_is_given_back_when_full(void **state)
{
	(void)state;
	for (unsigned int way = 0; way < 3; way++) {
		const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
		struct full *full;
		struct data_rig *rig;
		uint64_t before;
		ssize_t r;

		if (!is_worth_it(&shapes[way]))
			continue;
		full = malloc(sizeof(*full));
		rig = &full->rig;
		begin(full, &shapes[way], 0);
		before = available(rig);
		/* A few blocks are in flight. */
		for (unsigned int i = 0; i < 40; i++)
			write_blocks(full, full->order[i], 1, 0);
		if (way == 0)
			data_rig_truncate(rig, full->ino, 0);
		else if (way == 1)
			data_rig_unlink(rig, "kept", full->ino);
		else
			assert_int_equal(zf_fs_fallocate(rig->fs, &rig->ctx, full->ino, punch, 5,
							 BLOCKS * BLOCK - 5),
					 0);
		/* All space is back, except for the metadata, and a zone that metadata has opened.
		 */
		assert_true(available(rig) + 200 + (shapes[way].zone_size >> ZF_BLOCK_SHIFT) >
			    before + BLOCKS);
		full->ino = data_rig_make(rig, "other");
		memset(buf, 7, sizeof(buf));
		r = zf_fs_write(rig->fs, &rig->ctx, full->ino, 0, buf, sizeof(buf), 0);
		assert_int_equal(r, sizeof(buf));
		data_rig_deinit(rig);
		free(full);
	}
}

#define PUNCHED 500u /* blocks */

/* Called after the extents were dropped, and before the dirty blocks are dropped. */
static void note_and_discard(struct zf_drop *drop)
{
	struct zf_space *meanwhile = drop->arg;

	zf_alloc_get_space(drop->inode->fs->alloc, meanwhile);
	zf_discard_blocks(drop->inode, 0, PUNCHED);
}

/* Dirty blocks hold the space that they borrowed until they are dropped: no one else gets it. */
static void space_punched_while_dirty_is_lent_to_no_other(void **state)
{
	struct full *full = malloc(sizeof(*full));
	struct data_rig *rig = &full->rig;
	struct zf_space before, meanwhile;
	struct zf_drop drop = {
		.may_wait = true,
		.to = PUNCHED * BLOCK,
		.inline_max = UINT64_MAX,
		.change = note_and_discard,
		.arg = &meanwhile,
	};

	(void)state;
	begin(full, &shapes[0], 0);
	for (unsigned int i = 0; i < PUNCHED; i++)
		write_blocks(full, i, 1, 0);
	assert_int_equal(zf_inode_get(rig->fs, full->ino, &drop.inode), 0);
	zf_alloc_get_space(rig->fs->alloc, &before);
	zf_rwlock_wrlock(&drop.inode->lock);
	assert_int_equal(zf_drop_run(&drop), 0);
	zf_rwlock_unlock(&drop.inode->lock);
	zf_inode_put(drop.inode);
	assert_true(meanwhile.available <= before.available);
	data_rig_deinit(rig);
	free(full);
}

/* Few and large nodes, each twice. */
static const struct data_rig_options scarce = {
	.seed = 8, .zone_count = 16, .zone_size = 4 << 20, .node_size = 16384, .copies = 2};

/*
 * Data that was written but not committed when the power went lies in zones that hold other data,
 * so its space does not come back soon. Then the promise cannot be kept to the last block; but
 * nothing breaks, and all files can be deleted.
 */
static void crashes_on_a_full_filesystem_leave_it_usable(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		const struct data_rig_options *shape = i < 3 ? &shapes[i] : &scarce;
		unsigned int written = 0;
		struct zf_space space;
		struct data_rig *rig;
		struct full *full;

		if (!is_worth_it(shape))
			continue;
		full = malloc(sizeof(*full));
		rig = &full->rig;
		begin(full, shape, 0);
		data_rig_sync(rig);
		for (unsigned int n = 0; n < BLOCKS; n++) {
			uint64_t offset = (uint64_t)full->order[n] * BLOCK;

			data_rig_fill(seed, offset, buf, BLOCK);
			written += zf_fs_write(rig->fs, &rig->ctx, full->ino, offset, buf, BLOCK,
					       0) == BLOCK;
			if (n % 100 == 99) {
				zf_data_flush_all(rig->fs, true);
				data_rig_crash(rig);
			}
			if (n % 500 == 250)
				data_rig_sync(rig);
		}
		assert_true(written > BLOCKS / 4);
		data_rig_unlink(rig, "kept", full->ino);
		data_rig_sync(rig);
		zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
		assert_int_equal(space.kept, 0);
		data_rig_deinit(rig);
		free(full);
	}
}

/*
 * The writes of a punch at its edges take blocks. On a full filesystem reclaim brings back the
 * blocks that the punch gives up, though they are few in each zone, and other files are not harmed.
 */
static void punching_within_blocks_goes_on_and_leaves_what_is_kept(void **state)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct full *full = malloc(sizeof(*full));
	struct data_rig *rig = &full->rig;
	uint64_t ino, at = 0;
	ssize_t r;

	(void)state;
	if (!is_worth_it(&shapes[1])) {
		free(full);
		return;
	}
	*full = (struct full){0};
	data_rig_init(rig, &shapes[1]);
	full->ino = data_rig_make(rig, "kept");
	r = zf_fs_fallocate(rig->fs, &rig->ctx, full->ino, 0, 0, BLOCKS * BLOCK);
	assert_int_equal(r, 0);
	ino = data_rig_make(rig, "filler");
	memset(buf, 7, sizeof(buf));
	while ((r = zf_fs_write(rig->fs, &rig->ctx, ino, at, buf, BLOCK, 0)) > 0)
		at += (uint64_t)r;
	assert_int_equal(r, -ENOSPC);
	/* The punches are spread, so that no zone comes back without reclaim. */
	for (; at > 4 * BLOCK; at -= 4 * BLOCK)
		data_rig_allocate(rig, ino, punch, at - BLOCK + 1, BLOCK - 2);
	for (unsigned int i = 0; i < BLOCKS; i++)
		write_blocks(full, i, 1, 0);
	data_rig_sync(rig);
	data_rig_expect(rig, full->ino, seed, 0, BLOCKS * BLOCK);
	data_rig_truncate(rig, ino, 5);
	data_rig_unlink(rig, "filler", ino);
	data_rig_deinit(rig);
	free(full);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_allocated_can_be_overwritten_block_by_block),
		cmocka_unit_test(what_is_allocated_can_be_overwritten_in_pieces),
		cmocka_unit_test(what_is_zeroed_can_be_overwritten_block_by_block),
		cmocka_unit_test(what_write_zeroes_made_can_be_overwritten_again_and_again),
		cmocka_unit_test(writers_that_share_the_slack_are_all_served),
		cmocka_unit_test(a_writer_that_finds_the_slack_in_use_waits),
		cmocka_unit_test(zeroes_of_most_of_the_disk_can_be_overwritten),
		cmocka_unit_test(kept_space_is_given_back_when_full),
		cmocka_unit_test(space_punched_while_dirty_is_lent_to_no_other),
		cmocka_unit_test(crashes_on_a_full_filesystem_leave_it_usable),
		cmocka_unit_test(punching_within_blocks_goes_on_and_leaves_what_is_kept),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		turns = strtoull(argv[2], NULL, 0);
	print_message("seed %" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

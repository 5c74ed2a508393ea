/* SPDX-License-Identifier: MIT */
/*
 * File data at every power cut: each workload runs once for every command that it sends to the
 * device, and the power goes at that command. Then the device is checked and mounted, and the file
 * data is judged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/data_rig.h"
#include "txn/txn.h"

#define BLOCK 4096u

static uint8_t buf[1 << 20], got[1 << 20];

struct turn {
	uint64_t cut, grown; /* sizes */
};

struct run {
	struct data_rig rig;
	struct turn turns[12];
	struct zf_rng rng;
	uint64_t ino;
	uint64_t synced; /* what the workload knows to be durable */
	uint64_t begun;	 /* what it has begun */
};

/* `prepare` fills the file before the power can go; `work` goes on until something fails. */
struct workload {
	void (*prepare)(struct run *run);
	void (*work)(struct run *run);
	void (*judge)(struct run *run);
};

static ssize_t write_pattern(struct run *run, uint64_t seed, uint64_t offset, size_t len,
			     unsigned int flags)
{
	data_rig_fill(seed, offset, buf, len);
	return zf_fs_write(run->rig.fs, &run->rig.ctx, run->ino, offset, buf, len, flags);
}

static int truncate_to(struct run *run, uint64_t size)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = size};
	struct zf_attr attr;

	return zf_fs_setattr(run->rig.fs, &run->rig.ctx, run->ino, &set, &attr);
}

/*
 * Without threads a step does a part of the pending work: every order occurs, also a commit before
 * any data.
 */
static int maybe_step(struct run *run)
{
	switch (zf_rng_below(&run->rng, 5)) {
	case 0:
	case 1:
		return zf_fs_step(run->rig.fs);
	case 2:
	case 3:
		return zf_txn_commit(zf_fs_txn(run->rig.fs), false);
	}
	return 0;
}

/* Returns whether the power went before the workload was done. */
static bool cut_at(const struct workload *workload, uint64_t seed, uint64_t n)
{
	const struct data_rig_options options = {
		.seed = seed, .node_size = 4096, .append_limit = 16 * BLOCK, .zone_count = 40};
	struct run run = {0};
	bool cut;

	data_rig_init(&run.rig, &options);
	zf_rng_seed(&run.rng, seed);
	run.ino = data_rig_make(&run.rig, "file");
	workload->prepare(&run);
	data_rig_sync(&run.rig);
	run.rig.errors_expected = true;
	zf_sim_set_cut(run.rig.sim, zf_sim_commands(run.rig.sim) + n);
	workload->work(&run);
	cut = zf_sim_is_cut(run.rig.sim);
	data_rig_crash(&run.rig);
	workload->judge(&run);
	data_rig_deinit(&run.rig);
	return cut;
}

static void cut_everywhere(const struct workload *workload, unsigned int at_least)
{
	for (uint64_t seed = 1; seed <= 6; seed++) {
		uint64_t n = 1;

		while (cut_at(workload, seed, n))
			n++;
		print_message("seed %lu: %lu cuts\n", (unsigned long)seed, (unsigned long)n);
		assert_true(n > at_least);
	}
}

static void prepare_nothing(struct run *run)
{
	(void)run;
}

/* ---- a file that grows ---- */

#define APPENDED 300000u

static void append_on(struct run *run)
{
	while (run->begun < APPENDED) {
		size_t len = 1 + zf_rng_below(&run->rng, 40000);

		run->begun += len;
		if (write_pattern(run, 1, run->begun - len, len, 0) != (ssize_t)len)
			return;
		if (maybe_step(run) < 0)
			return;
		if (!zf_rng_chance(&run->rng, 20))
			continue;
		if (zf_fs_fsync(run->rig.fs, &run->rig.ctx, run->ino, true) < 0)
			return;
		run->synced = run->begun;
	}
}

static void is_a_prefix(struct run *run)
{
	uint64_t size = data_rig_size(&run->rig, run->ino);

	assert_true(size >= run->synced && size <= run->begun);
	if (size > 0)
		data_rig_expect(&run->rig, run->ino, 1, 0, size);
}

static void a_file_that_grew_is_a_prefix(void **state)
{
	const struct workload workload = {prepare_nothing, append_on, is_a_prefix};

	(void)state;
	cut_everywhere(&workload, 20);
}

/* ---- blocks written in any order behind the end ---- */

#define SCATTERED 60u

static void scatter(struct run *run)
{
	for (unsigned int i = 0; i < SCATTERED; i++) {
		uint64_t block = zf_rng_below(&run->rng, SCATTERED);

		run->begun = SCATTERED * BLOCK;
		if (write_pattern(run, 1, block * BLOCK, BLOCK, 0) != BLOCK)
			return;
		if (maybe_step(run) < 0)
			return;
		if (zf_rng_chance(&run->rng, 10) &&
		    zf_fs_fsync(run->rig.fs, &run->rig.ctx, run->ino, true) < 0)
			return;
	}
}

/* Each block has what was written, or zeroes. */
static void is_written_or_zero(struct run *run)
{
	uint64_t size = data_rig_size(&run->rig, run->ino);

	assert_true(size <= run->begun);
	for (uint64_t at = 0; at < size; at += BLOCK) {
		assert_true(zf_fs_read(run->rig.fs, &run->rig.ctx, run->ino, at, got, BLOCK) > 0);
		if (got[0] == 0)
			data_rig_expect_zeroes(&run->rig, run->ino, at, BLOCK);
		else
			data_rig_expect(&run->rig, run->ino, 1, at, BLOCK);
	}
}

static void blocks_behind_the_end_are_whole_or_zero(void **state)
{
	const struct workload workload = {prepare_nothing, scatter, is_written_or_zero};

	(void)state;
	cut_everywhere(&workload, 20);
}

/* ---- overwriting ---- */

#define OVERWRITTEN 40u

static void prepare_old(struct run *run)
{
	assert_int_equal(write_pattern(run, 1, 0, OVERWRITTEN * BLOCK, 0), OVERWRITTEN * BLOCK);
}

static void overwrite(struct run *run)
{
	for (unsigned int i = 0; i < 30; i++) {
		uint64_t block = zf_rng_below(&run->rng, OVERWRITTEN - 5);

		if (write_pattern(run, 2, block * BLOCK, 5 * BLOCK, 0) != 5 * BLOCK ||
		    maybe_step(run) < 0)
			return;
	}
}

static void is_old_or_new(struct run *run)
{
	assert_int_equal(data_rig_size(&run->rig, run->ino), OVERWRITTEN * BLOCK);
	for (uint64_t at = 0; at < OVERWRITTEN * BLOCK; at += BLOCK) {
		assert_int_equal(zf_fs_read(run->rig.fs, &run->rig.ctx, run->ino, at, got, BLOCK),
				 BLOCK);
		data_rig_fill(1, at, buf, BLOCK);
		data_rig_expect(&run->rig, run->ino, memcmp(got, buf, BLOCK) == 0 ? 1 : 2, at,
				BLOCK);
	}
}

static void an_overwritten_block_is_old_or_new(void **state)
{
	const struct workload workload = {prepare_old, overwrite, is_old_or_new};

	(void)state;
	cut_everywhere(&workload, 15);
}

/* ---- short and long again ---- */

#define TURNS 12u

static int grow_again(struct run *run, struct turn *turn, unsigned int i)
{
	ssize_t r = 0;

	/* Each turn has a size of its own. */
	switch (zf_rng_below(&run->rng, 3)) {
	case 0:
		turn->grown = 5 * BLOCK + 10 + i;
		r = truncate_to(run, turn->grown);
		break;
	case 1:
		turn->grown = 4 * BLOCK + 105 + i;
		r = write_pattern(run, 3, turn->grown - 100, 100, 0);
		break;
	case 2:
		turn->grown = turn->cut + 12;
		r = write_pattern(run, 3, turn->cut + 9, 3, 0);
		break;
	}
	return r < 0 ? (int)r : maybe_step(run);
}

static void shrink_and_grow(struct run *run)
{
	for (unsigned int i = 0; i < TURNS; i++) {
		struct turn *turn = &run->turns[i];

		if (write_pattern(run, 1, 0, 6 * BLOCK, 0) < 0 || maybe_step(run) < 0)
			return;
		if (zf_rng_chance(&run->rng, 50) &&
		    zf_fs_fsync(run->rig.fs, &run->rig.ctx, run->ino, true) < 0)
			return;
		/* The last block to be: dirty above what is stored, or in flight. */
		if (zf_rng_chance(&run->rng, 50) &&
		    (write_pattern(run, 1, 2 * BLOCK, BLOCK, 0) < 0 || maybe_step(run) < 0))
			return;
		turn->cut = 2 * BLOCK + 1 + zf_rng_below(&run->rng, BLOCK - 20);
		run->begun = i + 1;
		if (truncate_to(run, turn->cut) < 0 || maybe_step(run) < 0)
			return;
		if (grow_again(run, turn, i) < 0 || maybe_step(run) < 0)
			return;
		if (truncate_to(run, 0) < 0)
			return;
	}
}

/*
 * From `cut` on there are later bytes or zeroes. Before `cut` there are old bytes, or zeroes where
 * the file has its size but the data had not landed.
 */
static bool is_clean_behind(uint64_t cut, uint64_t size)
{
	data_rig_fill(3, 0, buf, size);
	for (uint64_t i = cut; i < size; i++)
		if (got[i] != 0 && got[i] != buf[i])
			return false;
	data_rig_fill(1, 0, buf, size);
	for (uint64_t i = 0; i < cut; i++)
		if (got[i] != 0 && got[i] != buf[i])
			return false;
	return true;
}

/* A file that grew again shows none of the bytes that were cut off. */
static void shows_no_stale_bytes(struct run *run)
{
	uint64_t size = data_rig_size(&run->rig, run->ino);
	bool clean = false;

	assert_true(size <= 6 * BLOCK);
	if (size == 0)
		return;
	assert_int_equal(zf_fs_read(run->rig.fs, &run->rig.ctx, run->ino, 0, got, size), size);
	for (uint64_t i = 0; i < run->begun; i++) {
		const struct turn *turn = &run->turns[i];

		if (size == turn->cut)
			clean |= is_clean_behind(size, size);
		/* The file grew at once, or block by block as the data landed. */
		if (size == turn->grown || (size % BLOCK == 0 && size < turn->grown))
			clean |= is_clean_behind(turn->cut, size);
	}
	/* Otherwise the file was being written from its start. */
	if (!clean) {
		assert_int_equal(size % BLOCK, 0);
		data_rig_expect(&run->rig, run->ino, 1, 0, size);
	}
}

static void what_was_cut_off_never_comes_back(void **state)
{
	const struct workload workload = {prepare_nothing, shrink_and_grow, shows_no_stale_bytes};

	(void)state;
	cut_everywhere(&workload, 20);
}

/* ---- a truncation of many transactions ---- */

#define PIECES 700u

static void prepare_pieces(struct run *run)
{
	for (uint64_t i = 0; i < PIECES; i++)
		assert_int_equal(write_pattern(run, 1, i * 2 * BLOCK, BLOCK, 0), BLOCK);
}

static void truncate_pieces(struct run *run)
{
	run->begun = truncate_to(run, 100) == 0;
	if (zf_fs_syncfs(run->rig.fs, &run->rig.ctx) == 0)
		run->synced = 1;
}

static void is_whole_or_short(struct run *run)
{
	uint64_t size = data_rig_size(&run->rig, run->ino);
	struct zf_attr attr;

	if (run->synced)
		assert_int_equal(size, 100);
	if (size == 100) {
		data_rig_expect(&run->rig, run->ino, 1, 0, 100);
		assert_int_equal(zf_fs_getattr(run->rig.fs, &run->rig.ctx, run->ino, &attr), 0);
		assert_int_equal(attr.blocks, 8);
		assert_int_equal(truncate_to(run, 2 * PIECES * BLOCK), 0);
		data_rig_expect_zeroes(&run->rig, run->ino, 100, sizeof(got));
		return;
	}
	assert_int_equal(size, (PIECES - 1) * 2 * BLOCK + BLOCK);
	for (uint64_t i = 0; i < PIECES; i++)
		data_rig_expect(&run->rig, run->ino, 1, i * 2 * BLOCK, BLOCK);
}

static void a_long_truncation_is_finished_by_the_next_mount(void **state)
{
	const struct workload workload = {prepare_pieces, truncate_pieces, is_whole_or_short};

	(void)state;
	cut_everywhere(&workload, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_grew_is_a_prefix),
		cmocka_unit_test(blocks_behind_the_end_are_whole_or_zero),
		cmocka_unit_test(an_overwritten_block_is_old_or_new),
		cmocka_unit_test(what_was_cut_off_never_comes_back),
		cmocka_unit_test(a_long_truncation_is_finished_by_the_next_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Data that is written in place, at every power cut. Two files share very few conventional zones,
 * so that space that one file gives up soon belongs to the other. Every sector that is written
 * names its file, its place and its version. After the cut each sector of a file is zero, or
 * belongs to that file and place and is at least as new as the durable version (P1, P3). Sectors of
 * one block may have different versions: a block in place is not written atomically.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "txn/txn.h"

#define BLOCK	4096u
#define SECTOR	512u
#define BLOCKS	40u /* of a file */
#define FILES	2u
#define STEPS	40u
#define NOTHING UINT32_MAX

struct stamp {
	uint64_t file, block, sector, when;
};

struct file {
	uint64_t ino;
	uint8_t wrote[STEPS + 1][BLOCKS]; /* what each step did: 0 nothing, 1 zeroes, 2 data */
	uint32_t durable[BLOCKS];	  /* the last step that surely is */
};

struct run {
	struct data_rig rig;
	struct zf_rng rng;
	struct file files[FILES];
	uint32_t now;
};

static uint8_t buf[BLOCKS * BLOCK];

static const char *const names[FILES] = {"one", "two"};

static void make_dirt(struct data_rig *rig)
{
	uint8_t dirt[BLOCK];

	memset(dirt, 0xdd, sizeof(dirt));
	for (uint64_t at = 2 * rig->options.zone_size;
	     at < rig->options.conventional * rig->options.zone_size; at += BLOCK)
		zf_sim_poke(rig->sim, at, dirt);
}

static void note(struct run *run, struct file *file, uint64_t first, uint64_t count, uint8_t what)
{
	for (uint64_t b = first; b < first + count; b++)
		file->wrote[run->now][b] = what;
}

static void all_is_durable(struct run *run, struct file *file)
{
	for (unsigned int b = 0; b < BLOCKS; b++)
		file->durable[b] = run->now;
}

static int write_blocks(struct run *run, unsigned int f, uint64_t first, uint64_t count,
			unsigned int flags)
{
	struct file *file = &run->files[f];

	for (uint64_t s = 0; s < count * (BLOCK / SECTOR); s++) {
		const struct stamp stamp = {f + 1, first + s / 8, s % 8, run->now};

		memset(buf + s * SECTOR, 0xee, SECTOR);
		memcpy(buf + s * SECTOR, &stamp, sizeof(stamp));
	}
	note(run, file, first, count, 2);
	if (zf_fs_write(run->rig.fs, &run->rig.ctx, file->ino, first * BLOCK, buf, count * BLOCK,
			flags) < 0)
		return -EIO;
	for (uint64_t b = first; (flags & ZF_WRITE_DSYNC) && b < first + count; b++)
		file->durable[b] = run->now;
	return 0;
}

static int allocate(struct run *run, unsigned int f, int mode, uint64_t first, uint64_t count)
{
	struct file *file = &run->files[f];

	note(run, file, first, count, 1);
	return zf_fs_fallocate(run->rig.fs, &run->rig.ctx, file->ino, mode, first * BLOCK,
			       count * BLOCK);
}

static int truncate_to(struct run *run, unsigned int f, uint64_t first)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = first * BLOCK};
	struct zf_attr attr;

	note(run, &run->files[f], first, BLOCKS - first, 1);
	return zf_fs_setattr(run->rig.fs, &run->rig.ctx, run->files[f].ino, &set, &attr);
}

static int fsync_file(struct run *run, unsigned int f)
{
	int r = zf_fs_fsync(run->rig.fs, &run->rig.ctx, run->files[f].ino,
			    zf_rng_chance(&run->rng, 50));

	if (r == 0)
		all_is_durable(run, &run->files[f]);
	return r;
}

static int step(struct run *run)
{
	unsigned int f = (unsigned int)zf_rng_below(&run->rng, FILES);
	uint64_t first = zf_rng_below(&run->rng, BLOCKS);
	uint64_t count = 1 + zf_rng_below(&run->rng, zf_min_u64(BLOCKS - first, 24));

	switch (zf_rng_below(&run->rng, 14)) {
	case 0:
	case 1:
	case 2:
		return allocate(run, f, ZF_FALLOC_WRITE_ZEROES, first, count);
	case 3:
	case 4:
	case 5:
		return write_blocks(run, f, first, count, 0);
	case 6:
	case 7:
		return write_blocks(run, f, first, zf_min_u64(count, 3), ZF_WRITE_DSYNC);
	case 8:
		return allocate(run, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first, count);
	case 9:
		return truncate_to(run, f, first);
	case 10:
		return fsync_file(run, f);
	case 11:
		return zf_txn_commit(zf_fs_txn(run->rig.fs), true);
	case 12:
		return zf_data_flush_all(run->rig.fs, false);
	default:
		return zf_fs_step(run->rig.fs);
	}
}

/* ---- afterwards ---- */

static bool may_be(const struct file *file, uint64_t block, uint64_t when, uint8_t what)
{
	uint32_t durable = file->durable[block];

	/* If a step did nothing to the block, the last step before it that did counts. */
	while (durable > 0 && file->wrote[durable][block] == 0)
		durable--;
	if (when != NOTHING)
		return when >= durable && when <= STEPS && file->wrote[when][block] == what;
	for (uint32_t s = durable; s <= STEPS; s++)
		if (file->wrote[s][block] == what || (s == 0 && what == 1))
			return true;
	return false;
}

static bool is_zero(const uint8_t *bytes)
{
	for (unsigned int i = 0; i < SECTOR; i++)
		if (bytes[i])
			return false;
	return true;
}

static void judge_sector(const struct run *run, unsigned int f, uint64_t block, uint64_t sector,
			 const uint8_t *bytes)
{
	struct stamp stamp;

	memcpy(&stamp, bytes, sizeof(stamp));
	if (is_zero(bytes)) {
		if (!may_be(&run->files[f], block, NOTHING, 1))
			fail_msg("file %u block %lu sector %lu is zero: durable is step %u", f,
				 (unsigned long)block, (unsigned long)sector,
				 run->files[f].durable[block]);
		return;
	}
	if (stamp.file != f + 1 || stamp.block != block || stamp.sector != sector)
		fail_msg("file %u block %lu sector %lu has bytes of elsewhere (%lx %lx %lx)", f,
			 (unsigned long)block, (unsigned long)sector, (unsigned long)stamp.file,
			 (unsigned long)stamp.block, (unsigned long)stamp.sector);
	if (!may_be(&run->files[f], block, stamp.when, 2))
		fail_msg("file %u block %lu sector %lu is of step %lu: durable is step %u", f,
			 (unsigned long)block, (unsigned long)sector, (unsigned long)stamp.when,
			 run->files[f].durable[block]);
}

static void judge(struct run *run)
{
	for (unsigned int f = 0; f < FILES; f++) {
		ssize_t len;

		memset(buf, 0, sizeof(buf));
		len = zf_fs_read(run->rig.fs, &run->rig.ctx, run->files[f].ino, 0, buf,
				 sizeof(buf));
		assert_true(len >= 0);
		for (uint64_t s = 0; s < sizeof(buf) / SECTOR; s++)
			judge_sector(run, f, s / 8, s % 8, buf + s * SECTOR);
	}
}

/* ---- the cuts ---- */

/* Returns whether the power went before the workload was done. */
static bool cut_at(uint64_t seed, uint64_t n)
{
	const struct data_rig_options options = {
		.seed = seed,
		.node_size = 4096,
		.append_limit = 16 * BLOCK,
		.zone_count = 40,
		.zone_size = 32 * BLOCK,
		.conventional = 3 + (uint32_t)seed % 2,
	};
	static struct run run;
	bool cut;

	memset(&run, 0, sizeof(run));
	data_rig_init(&run.rig, &options);
	make_dirt(&run.rig);
	zf_rng_seed(&run.rng, seed);
	for (unsigned int f = 0; f < FILES; f++)
		run.files[f].ino = data_rig_make(&run.rig, names[f]);
	data_rig_sync(&run.rig);
	run.rig.errors_expected = true;
	zf_sim_set_cut(run.rig.sim, zf_sim_commands(run.rig.sim) + n);
	for (run.now = 1; run.now <= STEPS; run.now++)
		if (step(&run) < 0 && zf_sim_is_cut(run.rig.sim))
			break;
	cut = zf_sim_is_cut(run.rig.sim);
	data_rig_crash(&run.rig);
	judge(&run);
	data_rig_deinit(&run.rig);
	return cut;
}

static void what_is_written_in_place_survives_every_cut(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 24; seed++) {
		uint64_t n = 1;

		while (cut_at(seed, n))
			n++;
		print_message("seed %lu: %lu cuts\n", (unsigned long)seed, (unsigned long)n);
		assert_true(n > 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_in_place_survives_every_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

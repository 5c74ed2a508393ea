/* SPDX-License-Identifier: MIT */
/* Reclaim against a model: other operations run between its copying and its swapping of extents,
 * and the power goes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "btree/node_format.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"

#define BLOCK  4096u
#define MIB    (1u << 20)
#define FILES  5u
#define BLOCKS 48u

static uint8_t buf[BLOCKS * BLOCK], wanted[BLOCK];

/* ---- a model ---- */

struct block {
	uint64_t seed, at; /* seed 0: zeroes */
};

struct file {
	char name[8];
	uint64_t ino;
	unsigned int blocks; /* its size */
	struct block map[BLOCKS];
};

struct world {
	struct data_rig rig;
	struct zf_rng rng;
	uint64_t seed;
	struct file files[FILES];
	bool faults, full, busy;
};

static uint64_t below(struct world *w, uint64_t n)
{
	return zf_rng_below(&w->rng, n);
}

static void range(struct world *w, unsigned int *from, unsigned int *count)
{
	*from = (unsigned int)below(w, BLOCKS);
	*count = 1 + (unsigned int)below(w, BLOCKS - *from);
}

static void do_write(struct world *w, struct file *f)
{
	unsigned int from, count;
	int64_t done;

	range(w, &from, &count);
	if (below(w, 2))
		count = 1 + count / 8;
	w->seed++;
	data_rig_fill(w->seed, (uint64_t)from * BLOCK, buf, count * BLOCK);
	done = zf_fs_write(w->rig.fs, &w->rig.ctx, f->ino, (uint64_t)from * BLOCK, buf,
			   count * BLOCK, 0);
	if (w->full && done == -ENOSPC)
		return;
	if (w->full && done > 0)
		count = (unsigned int)(done / BLOCK);
	assert_int_equal(done, count * BLOCK);
	for (unsigned int i = from; i < from + count; i++)
		f->map[i] = (struct block){w->seed, (uint64_t)i * BLOCK};
	if (f->blocks < from + count)
		f->blocks = from + count;
}

static void do_truncate(struct world *w, struct file *f)
{
	unsigned int blocks = below(w, 3) ? (unsigned int)below(w, BLOCKS) : 0;

	if (w->full && blocks > f->blocks)
		blocks = f->blocks;
	data_rig_truncate(&w->rig, f->ino, (uint64_t)blocks * BLOCK);
	for (unsigned int i = blocks; i < BLOCKS; i++)
		f->map[i] = (struct block){0};
	f->blocks = blocks;
}

static void do_punch(struct world *w, struct file *f)
{
	unsigned int from, count;

	range(w, &from, &count);
	data_rig_allocate(&w->rig, f->ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (uint64_t)from * BLOCK, (uint64_t)count * BLOCK);
	for (unsigned int i = from; i < from + count; i++)
		f->map[i] = (struct block){0};
}

static void do_copy(struct world *w, struct file *in, struct file *out)
{
	unsigned int from, count, to = (unsigned int)below(w, BLOCKS);
	int64_t done;

	if (in == out)
		return;
	range(w, &from, &count);
	if (from >= in->blocks)
		return;
	if (count > in->blocks - from)
		count = in->blocks - from;
	if (count > BLOCKS - to)
		count = BLOCKS - to;
	done = zf_fs_copy_range(w->rig.fs, &w->rig.ctx, in->ino, (uint64_t)from * BLOCK, out->ino,
				(uint64_t)to * BLOCK, (uint64_t)count * BLOCK);
	if (w->full && done == -ENOSPC)
		return;
	if (w->full && done > 0)
		count = (unsigned int)(done / BLOCK);
	assert_int_equal(done, count * BLOCK);
	memmove(&out->map[to], &in->map[from], count * sizeof(out->map[0]));
	if (out->blocks < to + count)
		out->blocks = to + count;
}

static void do_remake(struct world *w, struct file *f)
{
	data_rig_unlink(&w->rig, f->name, f->ino);
	memset(f->map, 0, sizeof(f->map));
	f->blocks = 0;
	f->ino = data_rig_make(&w->rig, f->name);
}

static void one(struct world *w)
{
	struct file *f = &w->files[below(w, FILES)];
	struct zf_fs *fs = w->rig.fs;

	w->busy = true;
	switch (below(w, 14)) {
	case 0:
	case 1:
	case 2:
	case 3:
		do_write(w, f);
		break;
	case 4:
		do_truncate(w, f);
		break;
	case 5:
	case 6:
		do_punch(w, f);
		break;
	case 7:
	case 8:
	case 9:
		do_copy(w, f, &w->files[below(w, FILES)]);
		break;
	case 10:
		if (!w->full && below(w, 3) == 0)
			do_remake(w, f);
		break;
	case 11:
		assert_int_equal(zf_data_flush_all(fs, true), 0);
		break;
	case 12:
		assert_int_equal(zf_fs_fsync(fs, &w->rig.ctx, f->ino, false), 0);
		break;
	case 13:
		if (below(w, 3) == 0) {
			assert_int_equal(zf_txn_commit(fs->txn, true), 0);
			while (zf_txn_tidy(fs->txn, true) == ZF_TIDY_DID)
				;
		}
		break;
	}
	w->busy = false;
}

static void some(void *arg)
{
	struct world *w = arg;

	/* An operation may run reclaim itself, and one thread cannot run two operations at once. */
	if (w->busy)
		return;
	for (uint64_t n = below(w, 6); n > 0; n--)
		one(w);
}

static void expect_all(struct world *w)
{
	for (unsigned int i = 0; i < FILES; i++) {
		struct file *f = &w->files[i];
		size_t len = (size_t)f->blocks * BLOCK;

		assert_int_equal(data_rig_size(&w->rig, f->ino), len);
		assert_int_equal(zf_fs_read(w->rig.fs, &w->rig.ctx, f->ino, 0, buf, len), len);
		for (unsigned int b = 0; b < f->blocks; b++) {
			memset(wanted, 0, sizeof(wanted));
			if (f->map[b].seed)
				data_rig_fill(f->map[b].seed, f->map[b].at, wanted, BLOCK);
			assert_memory_equal(buf + (size_t)b * BLOCK, wanted, BLOCK);
		}
	}
}

/* One of the next writes fails; each is tried once more. */
static void add_fault(struct world *w)
{
	struct zf_sim_fault fault = {
		.op = ZF_IO_APPEND,
		.nth = 1 + below(w, 12),
		.error = -EIO,
		.moves_pointer = below(w, 2),
	};

	if (!w->faults || zf_sim_faults_left(w->rig.sim) > 0)
		return;
	zf_sim_add_fault(w->rig.sim, &fault);
}

static void reclaim_some(struct world *w)
{
	uint32_t zones = zf_dev_geometry(w->rig.dev)->zone_count;
	int r;

	add_fault(w);

	switch (below(w, 4)) {
	case 0:
		assert_true(zf_reclaim_make_room(w->rig.fs) >= 0);
		break;
	case 1:
		r = zf_reclaim_one(w->rig.fs, ZF_RECLAIM_URGENT);
		/* A device full of data may have no victim, and no room for the nodes of a zone. */
		assert_true(r >= 0 || (w->full && r == -ENOSPC));
		break;
	default:
		for (unsigned int i = 0; i < 6; i++)
			(void)zf_reclaim_zone(w->rig.fs, 2 + (uint32_t)below(w, zones - 2));
	}
}

static void hook(struct world *w)
{
	w->rig.fs->reclaim->copied = some;
	w->rig.fs->reclaim->copied_arg = w;
}

static void fsync_all(struct world *w)
{
	for (unsigned int i = 0; i < FILES; i++)
		assert_int_equal(zf_fs_fsync(w->rig.fs, &w->rig.ctx, w->files[i].ino, false), 0);
}

static void fill_up(struct world *w)
{
	uint64_t ino = data_rig_make(&w->rig, "filler"), at = 0;
	int64_t done;

	while ((done = zf_fs_write(w->rig.fs, &w->rig.ctx, ino, at, buf, 16 * BLOCK, 0)) > 0)
		at += (uint64_t)done;
	assert_int_equal(done, -ENOSPC);
	data_rig_sync(&w->rig);
	/* Makes some room in scattered places. */
	for (uint64_t i = 0; i < 12; i++) {
		uint64_t hole = below(w, at / BLOCK);

		data_rig_allocate(&w->rig, ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  hole * BLOCK, (1 + below(w, 16)) * BLOCK);
	}
}

static void play(uint64_t seed, struct data_rig_options options, unsigned int rounds, bool faults,
		 bool full)
{
	static struct world world;
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	options.seed = seed;
	zf_rng_seed(&w->rng, seed);
	data_rig_init(&w->rig, &options);
	for (unsigned int i = 0; i < FILES; i++) {
		snprintf(w->files[i].name, sizeof(w->files[i].name), "f%u", i);
		w->files[i].ino = data_rig_make(&w->rig, w->files[i].name);
	}
	hook(w);
	w->faults = faults;
	w->full = full;
	w->busy = true;
	if (full)
		fill_up(w);
	w->busy = false;
	for (unsigned int round = 0; round < rounds; round++) {
		for (unsigned int i = 0; i < 6; i++)
			one(w);
		if (below(w, 2))
			reclaim_some(w);
		switch (below(w, 8)) {
		case 0:
			data_rig_remount(&w->rig);
			hook(w);
			break;
		case 1:
		case 2:
			fsync_all(w);
			data_rig_crash(&w->rig);
			hook(w);
			break;
		}
		expect_all(w);
	}
	data_rig_deinit(&w->rig);
}

static void play_many(struct data_rig_options options, bool faults, bool full)
{
	const char *from = getenv("REVIEW_FROM"), *count = getenv("REVIEW_COUNT");
	uint64_t first = from ? strtoull(from, NULL, 0) : 1;
	uint64_t end = first + (count ? strtoull(count, NULL, 0) : 6);

	for (uint64_t seed = first; seed < end; seed++) {
		if (getenv("REVIEW_VERBOSE"))
			fprintf(stderr, "seed %lu\n", (unsigned long)seed);
		play(seed, options, 40, faults, full);
	}
}

static void against_a_model(void **state)
{
	(void)state;
	play_many((struct data_rig_options){.zone_size = 256 << 10,
					    .zone_count = 64,
					    .append_limit = 64 << 10,
					    .node_size = 4096},
		  false, false);
}

static void against_a_model_of_few_active_zones(void **state)
{
	(void)state;
	play_many((struct data_rig_options){.zone_size = 256 << 10,
					    .zone_count = 40,
					    .append_limit = 128 << 10,
					    .node_size = 4096,
					    .max_active = 6},
		  false, false);
}

static void against_a_model_where_zones_are_conventional(void **state)
{
	(void)state;
	play_many((struct data_rig_options){.zone_size = 256 << 10,
					    .zone_count = 48,
					    .append_limit = 128 << 10,
					    .node_size = 4096,
					    .conventional = 48},
		  false, false);
}

static void against_a_model_with_two_copies_and_late_zones(void **state)
{
	(void)state;
	play_many((struct data_rig_options){.zone_size = 256 << 10,
					    .zone_capacity = 236 << 10,
					    .zone_count = 48,
					    .append_limit = 16 << 10,
					    .node_size = 4096,
					    .copies = 2,
					    .max_active = 7},
		  false, false);
}

static void against_a_model_with_faults(void **state)
{
	(void)state;
	play_many((struct data_rig_options){.zone_size = 256 << 10,
					    .zone_count = 64,
					    .append_limit = 32 << 10,
					    .node_size = 4096},
		  true, false);
}

static void against_a_model_with_faults_and_few_active(void **state)
{
	(void)state;
	play_many((struct data_rig_options){.zone_size = 256 << 10,
					    .zone_count = 64,
					    .append_limit = 32 << 10,
					    .node_size = 4096,
					    .max_active = 7},
		  true, false);
}

static void against_a_model_when_full(void **state)
{
	(void)state;
	play_many((struct data_rig_options){.zone_size = 256 << 10,
					    .zone_count = 28,
					    .append_limit = 64 << 10,
					    .node_size = 4096},
		  false, true);
}

static void against_a_model_when_full_with_few_active(void **state)
{
	(void)state;
	play_many((struct data_rig_options){.zone_size = 256 << 10,
					    .zone_count = 28,
					    .append_limit = 64 << 10,
					    .node_size = 4096,
					    .max_active = 6},
		  false, true);
}

/* ---- what the summary says lies below the pointer ---- */

static void empty_both(void *arg)
{
	struct world *w = arg;

	w->rig.fs->reclaim->copied = NULL;
	data_rig_truncate(&w->rig, w->files[0].ino, 0);
	data_rig_truncate(&w->rig, w->files[1].ino, 0);
}

/* Shared bytes get summary entries before a file names them, but then no file names them. */
static void a_conventional_zone_is_written_as_far_as_its_summary_goes(void **state)
{
	struct data_rig_options options = {.seed = 3, .conventional = 32, .zone_count = 32};
	static struct world world;
	struct world *w = &world;
	struct data_rig *rig = &w->rig;
	uint64_t ino;

	(void)state;
	data_rig_init(rig, &options);
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(w->files[i].name, sizeof(w->files[i].name), "f%u", i);
		w->files[i].ino = data_rig_make(rig, w->files[i].name);
	}
	data_rig_write_pattern(rig, w->files[0].ino, 1, 0, 64 * BLOCK);
	data_rig_sync(rig);
	ino = data_rig_make(rig, "filler");
	data_rig_write_pattern(rig, ino, 9, 0, MIB);
	data_rig_sync(rig);
	data_rig_unlink(rig, "filler", ino);
	assert_int_equal(zf_fs_copy_range(rig->fs, &rig->ctx, w->files[0].ino, 0, w->files[1].ino,
					  0, 64 * BLOCK),
			 64 * BLOCK);
	data_rig_sync(rig);
	rig->fs->reclaim->copied = empty_both;
	rig->fs->reclaim->copied_arg = w;
	for (uint32_t z = 2; z < 32 && rig->fs->reclaim->copied; z++)
		(void)zf_reclaim_zone(rig->fs, z);
	assert_null(rig->fs->reclaim->copied);
	data_rig_remount(rig);
	ino = data_rig_make(rig, "all");
	for (unsigned int i = 0; i < 60; i++)
		data_rig_write_pattern(rig, ino, 20 + i, 0, MIB);
	data_rig_sync(rig);
	data_rig_expect(rig, ino, 79, 0, MIB);
	data_rig_deinit(rig);
}

/* ---- one damaged victim ---- */

/* Damages every version of each summary leaf whose first key lies within [from, to). */
static unsigned int damage_leaves(struct data_rig *rig, uint64_t from, uint64_t to)
{
	const struct zf_geometry *geometry = zf_dev_geometry(rig->dev);
	uint8_t block[BLOCK];
	unsigned int n = 0;

	for (uint32_t z = 2; z < geometry->zone_count; z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(rig->fs->alloc, z, &zone);
		if (zone.role != ZF_ROLE_META)
			continue;
		for (uint64_t b = 0; b < zone.pointer; b++) {
			uint64_t at = z * geometry->zone_size + b * BLOCK;
			const struct zf_disk_node_header *header = (const void *)block;
			const struct zf_disk_key *key = (const void *)(header + 1);

			zf_sim_peek(rig->sim, at, block);
			if (zf_le64_get(header->owner) != ZF_TREE_SUMMARY || header->level > 0 ||
			    zf_le64_get(key->objectid) < from || zf_le64_get(key->objectid) >= to)
				continue;
			memset(block + BLOCK / 2, 0x5a, BLOCK / 2);
			zf_sim_poke(rig->sim, at, block);
			n++;
		}
	}
	return n;
}

static void damage_one_victim(bool empty)
{
	struct data_rig_options options = {.seed = 5, .zone_count = 32, .node_size = 4096};
	struct zf_reclaim_room before, after;
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t victim, others, start;

	data_rig_init(&rig, &options);
	victim = data_rig_make(&rig, "victim");
	data_rig_truncate(&rig, victim, 256 * BLOCK);
	for (uint64_t i = 0; i < 256; i++) {
		data_rig_write_pattern(&rig, victim, 1, (i * 37 % 256) * BLOCK, BLOCK);
		assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
	}
	others = data_rig_make(&rig, "others");
	data_rig_write_pattern(&rig, others, 1, 0, 8 * MIB);
	data_rig_sync(&rig);
	for (uint64_t i = 0; i < 8 * MIB / BLOCK; i += 2)
		data_rig_write_pattern(&rig, others, 2, i * BLOCK, BLOCK);
	data_rig_write_pattern(&rig, victim, 2, 16 * BLOCK, 220 * BLOCK);
	data_rig_sync(&rig);
	data_rig_remount(&rig);
	rig.errors_expected = true;
	data_rig_extents(&rig, victim, &extents);
	start = extents.at[0].address / MIB * MIB;
	if (empty)
		assert_true(damage_leaves(&rig, start + 160 * BLOCK, start + MIB) > 0);
	else
		assert_true(damage_leaves(&rig, start + 16 * BLOCK, start + 160 * BLOCK) > 0);
	if (empty)
		data_rig_truncate(&rig, victim, 0);
	zf_alloc_reclaim_room(rig.fs->alloc, &before);
	for (unsigned int i = 0; i < 64 && zf_reclaim_make_room(rig.fs) >= 0; i++)
		;
	zf_alloc_reclaim_room(rig.fs->alloc, &after);
	assert_true(before.reclaimable > 3 * MIB);
	assert_true(after.reclaimable < 2 * MIB);
	assert_true(after.empty >= before.empty + 2);
	data_rig_drop(&rig);
}

static void a_damaged_victim_does_not_keep_others_from_being_emptied(void **state)
{
	(void)state;
	damage_one_victim(false);
}

/* The damage is in the zone's summary, which has to be dropped before the zone is reset. */
static void a_damaged_empty_zone_does_not_keep_others_from_coming_back(void **state)
{
	(void)state;
	damage_one_victim(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_conventional_zone_is_written_as_far_as_its_summary_goes),
		cmocka_unit_test(a_damaged_victim_does_not_keep_others_from_being_emptied),
		cmocka_unit_test(a_damaged_empty_zone_does_not_keep_others_from_coming_back),
		cmocka_unit_test(against_a_model),
		cmocka_unit_test(against_a_model_of_few_active_zones),
		cmocka_unit_test(against_a_model_where_zones_are_conventional),
		cmocka_unit_test(against_a_model_with_two_copies_and_late_zones),
		cmocka_unit_test(against_a_model_with_faults),
		cmocka_unit_test(against_a_model_when_full),
		cmocka_unit_test(against_a_model_when_full_with_few_active),
		cmocka_unit_test(against_a_model_with_faults_and_few_active),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

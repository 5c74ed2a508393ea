/* SPDX-License-Identifier: MIT */
/*
 * Zones are reclaimed, one after the other and whatever is in them, while threads write, truncate,
 * punch, copy, sync and remove. Each thread finds in its files what it did, at once and after a
 * remount.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"

#define BLOCK	 4096u
#define WORKERS	 4u
#define FILES	 3u /* of each */
#define FILE_MAX (40u * BLOCK)
#define OPS	 2000u
#define OPS_MAX	 (20u * OPS)
#define BASE	 7u /* the seed of what all copy from */

struct shared {
	struct data_rig rig;
	uint64_t base; /* no thread changes it, all copy from it */
	atomic_uint running;
	atomic_uint failures;
};

/* A file and what is in it. */
struct file {
	char name[16];
	uint64_t ino, size;
	uint8_t *bytes; /* zero behind the size */
};

struct worker {
	struct shared *shared;
	struct zf_rng rng;
	struct file files[FILES];
};

/* cmocka's asserts use longjmp(), which must not be called on these threads. */
static bool expect(struct shared *shared, bool ok, const char *what)
{
	if (!ok) {
		print_error("%s\n", what);
		atomic_fetch_add(&shared->failures, 1);
	}
	return ok;
}

static uint64_t below(struct worker *worker, uint64_t limit)
{
	return zf_rng_below(&worker->rng, limit);
}

static void draw_range(struct worker *worker, uint64_t *ret_at, uint64_t *ret_len)
{
	uint64_t at = below(worker, FILE_MAX - 1), len = 1 + below(worker, 6 * BLOCK);

	if (zf_rng_chance(&worker->rng, 60)) {
		at = zf_align_down(at, BLOCK);
		len = zf_align_up(len, BLOCK);
	}
	*ret_at = at;
	*ret_len = zf_min_u64(len, FILE_MAX - at);
}

/* ---- what a worker does ---- */

static void write_some(struct worker *worker, struct file *file)
{
	struct data_rig *rig = &worker->shared->rig;
	unsigned int flags = zf_rng_chance(&worker->rng, 20) ? ZF_WRITE_DSYNC : 0;
	uint64_t at, len;

	draw_range(worker, &at, &len);
	zf_rng_fill(&worker->rng, file->bytes + at, len);
	file->size = zf_max_u64(file->size, at + len);
	expect(worker->shared,
	       zf_fs_write(rig->fs, &rig->ctx, file->ino, at, file->bytes + at, len, flags) ==
		       (ssize_t)len,
	       "write");
}

static void truncate_some(struct worker *worker, struct file *file)
{
	struct data_rig *rig = &worker->shared->rig;
	uint64_t size = zf_rng_chance(&worker->rng, 20) ? 0 : below(worker, FILE_MAX + 1);
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = size};
	struct zf_attr attr;

	if (size < file->size)
		memset(file->bytes + size, 0, file->size - size);
	file->size = size;
	expect(worker->shared, zf_fs_setattr(rig->fs, &rig->ctx, file->ino, &set, &attr) == 0,
	       "truncate");
}

static void punch_some(struct worker *worker, struct file *file)
{
	struct data_rig *rig = &worker->shared->rig;
	uint64_t at, len;

	draw_range(worker, &at, &len);
	if (at < file->size)
		memset(file->bytes + at, 0, zf_min_u64(len, file->size - at));
	expect(worker->shared,
	       zf_fs_fallocate(rig->fs, &rig->ctx, file->ino,
			       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len) == 0,
	       "punch");
}

/* Copies from the file that all threads copy from, or from another file of this thread. */
static void copy_some(struct worker *worker, struct file *file)
{
	struct file *from = &worker->files[below(worker, FILES)];
	struct data_rig *rig = &worker->shared->rig;
	uint64_t at = zf_align_down(below(worker, FILE_MAX), BLOCK);
	uint64_t to = zf_align_down(below(worker, FILE_MAX), BLOCK);
	uint64_t len = BLOCK * (1 + below(worker, 8)), ino = from->ino;

	len = zf_min_u64(len, FILE_MAX - zf_max_u64(at, to));
	if (from == file) {
		ino = worker->shared->base;
		data_rig_fill(BASE, at, file->bytes + to, len);
	} else {
		if (at >= from->size)
			return;
		len = zf_min_u64(len, from->size - at);
		memcpy(file->bytes + to, from->bytes + at, len);
	}
	file->size = zf_max_u64(file->size, to + len);
	expect(worker->shared,
	       zf_fs_copy_range(rig->fs, &rig->ctx, ino, at, file->ino, to, len) == (ssize_t)len,
	       "copy");
}

static bool compare(struct shared *shared, const struct file *file, uint64_t at, uint64_t len)
{
	struct data_rig *rig = &shared->rig;
	uint8_t *got = aligned_alloc(BLOCK, FILE_MAX);
	ssize_t r = zf_fs_read(rig->fs, &rig->ctx, file->ino, at, got, len);
	bool ok = expect(shared, r == (ssize_t)len, "read");

	ok = ok && expect(shared, memcmp(got, file->bytes + at, len) == 0, "what was read");
	free(got);
	return ok;
}

static void read_some(struct worker *worker, struct file *file)
{
	uint64_t at, len;

	draw_range(worker, &at, &len);
	if (at < file->size)
		compare(worker->shared, file, at, zf_min_u64(len, file->size - at));
}

static void make_file(struct shared *shared, struct file *file)
{
	struct data_rig *rig = &shared->rig;
	struct zf_attr attr = {0};

	if (expect(shared,
		   zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, file->name, 0100644, 0, NULL,
			      &attr) == 0,
		   "make"))
		zf_fs_forget(rig->fs, attr.ino, 1);
	memset(file->bytes, 0, FILE_MAX);
	file->ino = attr.ino;
	file->size = 0;
}

static void make_again(struct worker *worker, struct file *file)
{
	struct data_rig *rig = &worker->shared->rig;

	expect(worker->shared, zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, file->name) == 0,
	       "unlink");
	make_file(worker->shared, file);
}

/* If reclaim has done too little, as on a busy machine, the threads do more operations. */
static bool goes_on(struct shared *shared, unsigned int ops)
{
	struct zf_reclaim_stats stats;

	if (atomic_load(&shared->failures) > 0)
		return false;
	if (ops < OPS || ops % 100 != 0)
		return ops < OPS_MAX;
	zf_reclaim_get_stats(shared->rig.fs, &stats);
	return ops < OPS_MAX && (stats.victims <= 20 || stats.moved <= 100 * BLOCK);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct shared *shared = worker->shared;
	struct data_rig *rig = &shared->rig;

	for (unsigned int i = 0; goes_on(shared, i); i++) {
		struct file *file = &worker->files[below(worker, FILES)];

		switch (below(worker, 20)) {
		case 0 ... 6:
			write_some(worker, file);
			break;
		case 7:
			truncate_some(worker, file);
			break;
		case 8:
			punch_some(worker, file);
			break;
		case 9 ... 11:
			copy_some(worker, file);
			break;
		case 12 ... 13:
			expect(shared,
			       zf_fs_fsync(rig->fs, &rig->ctx, file->ino,
					   zf_rng_chance(&worker->rng, 50)) == 0,
			       "fsync");
			break;
		case 14:
			if (zf_rng_chance(&worker->rng, 20))
				make_again(worker, file);
			break;
		default:
			read_some(worker, file);
			break;
		}
	}
	atomic_fetch_sub(&shared->running, 1);
	return NULL;
}

/* ---- what goes on meanwhile ---- */

static void *reclaim(void *arg)
{
	struct shared *shared = arg;
	struct data_rig *rig = &shared->rig;
	struct zf_rng rng;

	zf_rng_seed(&rng, rig->options.seed);
	while (atomic_load(&shared->running) > 0) {
		uint32_t zones = zf_alloc_zone_count(zf_fs_alloc(rig->fs));
		int r = zf_rng_chance(&rng, 20)
				? zf_reclaim_one(rig->fs, ZF_RECLAIM_URGENT)
				: zf_reclaim_zone(rig->fs, (uint32_t)zf_rng_below(&rng, zones));

		if (!expect(shared, r >= 0 || r == -EBUSY || r == -ENOSPC, "reclaim"))
			break;
	}
	return NULL;
}

/* The syncs make reclaim's moves durable, so that the emptied zones are written again. */
static void *sync_all(void *arg)
{
	struct shared *shared = arg;
	struct data_rig *rig = &shared->rig;

	while (atomic_load(&shared->running) > 0)
		if (!expect(shared, zf_fs_syncfs(rig->fs, &rig->ctx) == 0, "syncfs"))
			break;
	return NULL;
}

/* ---- all of it ---- */

static void worker_init(struct worker *worker, struct shared *shared, unsigned int number)
{
	*worker = (struct worker){.shared = shared};
	zf_rng_seed(&worker->rng, shared->rig.options.seed * 100 + number);
	for (unsigned int i = 0; i < FILES; i++) {
		struct file *file = &worker->files[i];

		snprintf(file->name, sizeof(file->name), "file-%u-%u", number, i);
		file->bytes = malloc(FILE_MAX);
		assert_non_null(file->bytes);
		make_file(shared, file);
	}
}

static void worker_check(struct worker *worker)
{
	for (unsigned int i = 0; i < FILES; i++) {
		const struct file *file = &worker->files[i];

		assert_int_equal(data_rig_size(&worker->shared->rig, file->ino), file->size);
		if (file->size > 0)
			assert_true(compare(worker->shared, file, 0, file->size));
	}
}

static void run_threads(struct shared *shared, struct worker *workers)
{
	pthread_t threads[WORKERS + 2];

	atomic_store(&shared->running, WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	assert_int_equal(pthread_create(&threads[WORKERS], NULL, reclaim, shared), 0);
	assert_int_equal(pthread_create(&threads[WORKERS + 1], NULL, sync_all, shared), 0);
	for (unsigned int i = 0; i < WORKERS + 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&shared->failures), 0);
}

static void run(const struct data_rig_options *options)
{
	static struct shared shared;
	struct worker workers[WORKERS];
	struct zf_reclaim_stats stats;

	shared = (struct shared){0};
	data_rig_init(&shared.rig, options);
	shared.base = data_rig_make(&shared.rig, "base");
	data_rig_write_pattern(&shared.rig, shared.base, BASE, 0, FILE_MAX);
	for (unsigned int i = 0; i < WORKERS; i++)
		worker_init(&workers[i], &shared, i);
	run_threads(&shared, workers);
	zf_reclaim_get_stats(shared.rig.fs, &stats);
	assert_true(stats.victims > 20 && stats.moved > 100 * BLOCK);
	for (unsigned int remounted = 0; remounted < 2; remounted++) {
		for (unsigned int i = 0; i < WORKERS; i++)
			worker_check(&workers[i]);
		data_rig_expect(&shared.rig, shared.base, BASE, 0, FILE_MAX);
		if (!remounted)
			data_rig_remount(&shared.rig);
	}
	data_rig_deinit(&shared.rig);
	for (unsigned int i = 0; i < WORKERS; i++)
		for (unsigned int f = 0; f < FILES; f++)
			free(workers[i].files[f].bytes);
	print_message("%lu victims, %lu blocks moved, %lu changed meanwhile\n",
		      (unsigned long)stats.victims, (unsigned long)stats.moved / BLOCK,
		      (unsigned long)stats.changed / BLOCK);
}

static void files_stay_what_they_are_while_zones_are_reclaimed(void **state)
{
	struct data_rig_options options = {.threads = true,
					   .zone_size = 128 << 10,
					   .zone_count = 160,
					   .node_size = 4096,
					   .commit_ms = 20};

	(void)state;
	for (options.seed = 1; options.seed <= 2; options.seed++)
		run(&options);
}

/* The bound on dirty blocks makes them land, and change extents, all the time. */
static void the_same_with_little_memory_and_few_zones(void **state)
{
	struct data_rig_options options = {.threads = true,
					   .zone_size = 128 << 10,
					   .node_size = 4096,
					   .zone_count = 96,
					   .commit_ms = 20,
					   .max_active = 8,
					   .dirty_bytes = 128 << 10,
					   .cache_bytes = 256 << 10};

	(void)state;
	for (options.seed = 3; options.seed <= 4; options.seed++)
		run(&options);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_stay_what_they_are_while_zones_are_reclaimed),
		cmocka_unit_test(the_same_with_little_memory_and_few_zones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Several threads share extents and give them up at the same time. Afterwards the checker counts
 * the live blocks. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"

#define BLOCK	UINT64_C(4096)
#define WORKERS 4u
#define BLOCKS	64u
#define SIZE	(BLOCKS * BLOCK)

struct shared {
	struct data_rig rig;
	uint64_t template;
	uint64_t ino[WORKERS];
	pthread_barrier_t barrier;
	atomic_uint failures;
	unsigned int rounds;
};

struct worker {
	struct shared *shared;
	unsigned int number;
	struct zf_rng rng;
	uint8_t bytes[SIZE]; /* of its own file */
	uint8_t got[SIZE];
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

static void truncate_file(struct shared *shared, uint64_t ino, uint64_t size)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = size};
	struct zf_attr attr;

	expect(shared, zf_fs_setattr(shared->rig.fs, &shared->rig.ctx, ino, &set, &attr) == 0,
	       "truncate");
}

static void copy(struct shared *shared, uint64_t in, uint64_t offset_in, uint64_t out,
		 uint64_t offset_out, uint64_t len)
{
	ssize_t r = zf_fs_copy_range(shared->rig.fs, &shared->rig.ctx, in, offset_in, out,
				     offset_out, len);

	/* If another thread shortens the source, fewer bytes are copied. */
	expect(shared, r >= 0 && r <= (ssize_t)len, "copy");
}

static bool read_own(struct worker *worker, uint8_t *buf)
{
	struct shared *shared = worker->shared;

	return expect(shared,
		      zf_fs_read(shared->rig.fs, &shared->rig.ctx, shared->ino[worker->number], 0,
				 buf, SIZE) == (ssize_t)SIZE,
		      "read");
}

/* ---- the last ones to go ---- */

/* All threads give their extents up at once, by truncation or by overwriting. */
static void *give_up_together(void *arg)
{
	struct worker *worker = arg;
	struct shared *shared = worker->shared;
	struct data_rig *rig = &shared->rig;
	uint64_t ino = shared->ino[worker->number];

	for (unsigned int round = 0; round < shared->rounds; round++) {
		for (uint64_t i = 0; i < BLOCKS; i += 2)
			copy(shared, shared->template, i * BLOCK, ino,
			     (i + 2 * worker->number) % BLOCKS * BLOCK, 2 * BLOCK);
		pthread_barrier_wait(&shared->barrier);
		if (worker->number == 0)
			truncate_file(shared, shared->template, 0);
		pthread_barrier_wait(&shared->barrier);
		truncate_file(shared, ino, worker->number * BLOCK);
		truncate_file(shared, ino, 0);
		pthread_barrier_wait(&shared->barrier);
		if (worker->number == 0) {
			expect(shared, data_rig_live_blocks(rig) == 0, "what nobody names is live");
			expect(shared,
			       zf_fs_write(rig->fs, &rig->ctx, shared->template, 0, worker->bytes,
					   SIZE, 0) == (ssize_t)SIZE,
			       "write");
		}
		pthread_barrier_wait(&shared->barrier);
	}
	return NULL;
}

/* ---- all kinds of things ---- */

static void copy_from_another_file(struct worker *worker)
{
	struct shared *shared = worker->shared;
	unsigned int other = (unsigned int)zf_rng_below(&worker->rng, WORKERS);
	uint64_t len = 1 + zf_rng_below(&worker->rng, BLOCKS / 2);
	uint64_t from = zf_rng_below(&worker->rng, BLOCKS - len + 1);
	uint64_t to = zf_rng_below(&worker->rng, BLOCKS - len + 1);

	if (other == worker->number && from < to + len && to < from + len)
		return;
	copy(shared, zf_rng_chance(&worker->rng, 20) ? shared->template : shared->ino[other],
	     from * BLOCK, shared->ino[worker->number], to * BLOCK, len * BLOCK);
	/* No other thread writes to this file, so its content now must stay. */
	read_own(worker, worker->got);
	memcpy(worker->bytes + to * BLOCK, worker->got + to * BLOCK, len * BLOCK);
}

static void write_some(struct worker *worker)
{
	struct data_rig *rig = &worker->shared->rig;
	uint64_t at = zf_rng_below(&worker->rng, SIZE - 1);
	uint64_t len = 1 + zf_rng_below(&worker->rng, zf_min_u64(SIZE - at, 5 * BLOCK));

	zf_rng_fill(&worker->rng, worker->bytes + at, len);
	expect(worker->shared,
	       zf_fs_write(rig->fs, &rig->ctx, worker->shared->ino[worker->number], at,
			   worker->bytes + at, len, 0) == (ssize_t)len,
	       "write");
}

static void shorten_and_grow(struct worker *worker)
{
	struct shared *shared = worker->shared;
	uint64_t size = zf_rng_below(&worker->rng, SIZE);

	truncate_file(shared, shared->ino[worker->number], size);
	truncate_file(shared, shared->ino[worker->number], SIZE);
	memset(worker->bytes + size, 0, SIZE - size);
}

static void *do_anything(void *arg)
{
	struct worker *worker = arg;
	struct shared *shared = worker->shared;
	struct data_rig *rig = &shared->rig;

	for (unsigned int i = 0; i < shared->rounds && atomic_load(&shared->failures) == 0; i++) {
		switch (zf_rng_below(&worker->rng, 10)) {
		case 0 ... 3:
			copy_from_another_file(worker);
			break;
		case 4 ... 5:
			write_some(worker);
			break;
		case 6:
			shorten_and_grow(worker);
			break;
		case 7 ... 8:
			read_own(worker, worker->got);
			expect(shared, memcmp(worker->got, worker->bytes, SIZE) == 0,
			       "what was read");
			break;
		default:
			if (zf_rng_chance(&worker->rng, 10))
				expect(shared, zf_fs_syncfs(rig->fs, &rig->ctx) == 0, "syncfs");
		}
	}
	return NULL;
}

/* ---- running ---- */

static void run(void *(*body)(void *arg), uint64_t seed, unsigned int rounds)
{
	const struct data_rig_options options = {
		.threads = true, .seed = seed, .zone_count = 64, .commit_ms = 10};
	static struct worker workers[WORKERS];
	static struct shared shared;
	pthread_t threads[WORKERS];

	shared = (struct shared){.rounds = rounds};
	data_rig_init(&shared.rig, &options);
	pthread_barrier_init(&shared.barrier, NULL, WORKERS);
	shared.template = data_rig_make(&shared.rig, "template");
	for (unsigned int i = 0; i < WORKERS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "own-%u", i);
		workers[i] = (struct worker){.shared = &shared, .number = i};
		zf_rng_seed(&workers[i].rng, seed * 100 + i);
		zf_rng_fill(&workers[i].rng, workers[i].bytes, SIZE);
		shared.ino[i] = data_rig_make(&shared.rig, name);
		if (body == do_anything)
			data_rig_write(&shared.rig, shared.ino[i], 0, workers[i].bytes, SIZE);
	}
	data_rig_write(&shared.rig, shared.template, 0, workers[0].bytes, SIZE);
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, body, &workers[i]), 0);
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&shared.failures), 0);
	data_rig_remount(&shared.rig);
	for (unsigned int i = 0; body == do_anything && i < WORKERS; i++) {
		read_own(&workers[i], workers[i].got);
		assert_memory_equal(workers[i].got, workers[i].bytes, SIZE);
	}
	pthread_barrier_destroy(&shared.barrier);
	data_rig_deinit(&shared.rig);
}

static void bytes_die_with_the_last_of_many_names_given_up_at_once(void **state)
{
	(void)state;
	run(give_up_together, 1, 300);
}

static void threads_that_copy_from_each_other_find_what_they_copied(void **state)
{
	(void)state;
	for (uint64_t seed = 2; seed <= 4; seed++)
		run(do_anything, seed, 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_die_with_the_last_of_many_names_given_up_at_once),
		cmocka_unit_test(threads_that_copy_from_each_other_find_what_they_copied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Data that is written in place, under threads: durable writers, each with blocks of its own,
 * readers of all blocks, and a thread that allocates and frees space, so that space changes its
 * owner while reads and writes are in flight.
 */
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "fs/data_rig.h"

#define BLOCK	4096u
#define WRITERS 3u
#define READERS 2u
#define ROUNDS	1500u
#define OWN	16u /* blocks of each writer */
#define FILES	2u  /* of which one is allocated, filled and given up again and again */

struct shared {
	struct data_rig rig;
	uint64_t ino, changing[FILES];
	atomic_uint running; /* writers */
	atomic_uint wrong;
};

struct worker {
	struct shared *shared;
	unsigned int number;
	uint32_t last[OWN]; /* what a writer wrote last */
};

static void fill_block(uint8_t *buf, uint64_t block, uint32_t round)
{
	const uint64_t stamp[] = {block, round};

	for (unsigned int i = 0; i < BLOCK; i += sizeof(stamp))
		memcpy(buf + i, stamp, sizeof(stamp));
}

/* Each part of the block names this place, or is zero because it was never written. */
static bool is_sound(const uint8_t *buf, uint64_t block)
{
	for (unsigned int i = 0; i < BLOCK; i += 16) {
		uint64_t stamp[2];

		memcpy(stamp, buf + i, sizeof(stamp));
		if (stamp[0] != block && (stamp[0] != 0 || stamp[1] != 0))
			return false;
	}
	return true;
}

static void *write_on(void *arg)
{
	struct worker *worker = arg;
	struct shared *shared = worker->shared;
	struct zf_rng rng;
	uint8_t buf[BLOCK];

	zf_rng_seed(&rng, worker->number + 1);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint64_t own = zf_rng_below(&rng, OWN);
		uint64_t block = 1 + worker->number * OWN + own;
		unsigned int flags = zf_rng_chance(&rng, 60) ? ZF_WRITE_DSYNC : 0;

		fill_block(buf, block, round);
		if (zf_fs_write(shared->rig.fs, &shared->rig.ctx, shared->ino, block * BLOCK, buf,
				BLOCK, flags) != BLOCK)
			atomic_fetch_add(&shared->wrong, 1);
		worker->last[own] = round;
	}
	atomic_fetch_sub(&shared->running, 1);
	return NULL;
}

static void *read_on(void *arg)
{
	struct worker *worker = arg;
	struct shared *shared = worker->shared;
	struct zf_rng rng;
	uint8_t buf[BLOCK];

	zf_rng_seed(&rng, 100 + worker->number);
	while (atomic_load(&shared->running) > 0) {
		uint64_t block = 1 + zf_rng_below(&rng, WRITERS * OWN);
		uint64_t ino = shared->ino;

		if (zf_rng_chance(&rng, 50))
			ino = shared->changing[zf_rng_below(&rng, FILES)];
		memset(buf, 0, sizeof(buf));
		if (zf_fs_read(shared->rig.fs, &shared->rig.ctx, ino, block * BLOCK, buf, BLOCK) <
			    0 ||
		    !is_sound(buf, block))
			atomic_fetch_add(&shared->wrong, 1);
	}
	return NULL;
}

static void *allocate_on(void *arg)
{
	struct worker *worker = arg;
	struct shared *shared = worker->shared;
	uint64_t len = (1 + WRITERS * OWN) * BLOCK;
	uint8_t buf[BLOCK];
	uint32_t round = 0;

	while (atomic_load(&shared->running) > 0) {
		uint64_t ino = shared->changing[++round % FILES];
		const struct zf_setattr set = {.valid = ZF_SET_SIZE};
		struct zf_attr attr;

		if (zf_fs_fallocate(shared->rig.fs, &shared->rig.ctx, ino, ZF_FALLOC_WRITE_ZEROES,
				    0, len) < 0)
			atomic_fetch_add(&shared->wrong, 1);
		for (uint64_t block = 1; block <= WRITERS * OWN; block++) {
			fill_block(buf, block, round);
			if (zf_fs_write(shared->rig.fs, &shared->rig.ctx, ino, block * BLOCK, buf,
					BLOCK, 0) != BLOCK)
				atomic_fetch_add(&shared->wrong, 1);
		}
		if (zf_fs_setattr(shared->rig.fs, &shared->rig.ctx, ino, &set, &attr) < 0)
			atomic_fetch_add(&shared->wrong, 1);
	}
	return NULL;
}

static void room_changes_hands_while_others_read_and_write(void **state)
{
	const struct data_rig_options options = {
		.threads = true, .seed = 3, .conventional = 3, .commit_ms = 20};
	static struct worker workers[WRITERS + READERS + 1];
	static struct shared shared;
	pthread_t threads[WRITERS + READERS + 1];
	unsigned int n = 0;

	(void)state;
	data_rig_init(&shared.rig, &options);
	shared.ino = data_rig_make(&shared.rig, "file");
	shared.changing[0] = data_rig_make(&shared.rig, "one");
	shared.changing[1] = data_rig_make(&shared.rig, "two");
	assert_int_equal(zf_fs_fallocate(shared.rig.fs, &shared.rig.ctx, shared.ino,
					 ZF_FALLOC_WRITE_ZEROES, 0, (1 + WRITERS * OWN) * BLOCK),
			 0);
	atomic_store(&shared.running, WRITERS);
	for (; n < WRITERS + READERS + 1; n++) {
		workers[n] = (struct worker){.shared = &shared, .number = n};
		assert_int_equal(pthread_create(&threads[n], NULL,
						n < WRITERS		? write_on
						: n < WRITERS + READERS ? read_on
									: allocate_on,
						&workers[n]),
				 0);
	}
	while (n-- > 0)
		pthread_join(threads[n], NULL);
	assert_int_equal(atomic_load(&shared.wrong), 0);
	for (unsigned int pass = 0; pass < 2; pass++) {
		for (unsigned int i = 0; i < WRITERS * OWN; i++) {
			uint32_t last = workers[i / OWN].last[i % OWN];
			uint8_t got[BLOCK], wanted[BLOCK] = {0};

			if (last > 0)
				fill_block(wanted, 1 + i, last);
			assert_int_equal(zf_fs_read(shared.rig.fs, &shared.rig.ctx, shared.ino,
						    (1 + i) * BLOCK, got, BLOCK),
					 BLOCK);
			assert_memory_equal(got, wanted, BLOCK);
		}
		data_rig_remount(&shared.rig);
	}
	data_rig_deinit(&shared.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_changes_hands_while_others_read_and_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

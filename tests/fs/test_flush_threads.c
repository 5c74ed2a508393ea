/* SPDX-License-Identifier: MIT */
/*
 * A writer waits for room in memory that has been granted to another writer, which cannot go on
 * yet. Nothing else happens meanwhile: the next commit is ten minutes away.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "fs/data/block.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "fs/ops/file/file.h"

#define KIB	     UINT64_C(1024)
#define WRITE_MAX    (1024 * KIB)
#define HANG_SECONDS 60u

struct writer {
	struct data_rig *rig;
	pthread_t thread;
	struct zf_inode *inode;
	size_t len;
	unsigned int flags;
	ssize_t result;
};

static const uint8_t bytes[WRITE_MAX];

static void *run_writer(void *arg)
{
	struct writer *writer = arg;

	writer->result = zf_file_write(writer->inode, &writer->rig->ctx, 0, bytes, writer->len,
				       writer->flags);
	return NULL;
}

static void start_writer(struct writer *writer)
{
	assert_int_equal(pthread_create(&writer->thread, NULL, run_writer, writer), 0);
}

static struct zf_inode *make(struct data_rig *rig, const char *name)
{
	struct zf_inode *inode;

	assert_int_equal(zf_inode_get(rig->fs, data_rig_make(rig, name), &inode), 0);
	return inode;
}

static bool is_waited(struct zf_fs *fs)
{
	bool r;

	zf_mutex_lock(&fs->flush.lock);
	r = fs->flush.askers > 0 && !atomic_load(&fs->flush.wanted);
	zf_mutex_unlock(&fs->flush.lock);
	return r;
}

static uint64_t commits(struct data_rig *rig)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(rig->fs->txn, &stats);
	return stats.commits;
}

/*
 * The first writer is admitted and waits for its inode's lock. The second writer waits for room,
 * and the flusher has found nothing to flush. Then the first writer goes on.
 */
static void run_both(struct data_rig *rig, struct writer *first, struct writer *second)
{
	uint64_t commits_before = commits(rig);

	zf_rwlock_wrlock(&first->inode->lock);
	alarm(HANG_SECONDS);
	start_writer(first);
	while (atomic_load(&rig->fs->flush.used_bytes) == 0)
		sched_yield();
	start_writer(second);
	while (!is_waited(rig->fs))
		sched_yield();
	zf_rwlock_unlock(&first->inode->lock);
	pthread_join(first->thread, NULL);
	pthread_join(second->thread, NULL);
	alarm(0);
	assert_int_equal(second->result, second->len);
	assert_int_equal(commits(rig), commits_before);
	zf_inode_put(first->inode);
	zf_inode_put(second->inode);
}

static void init_rig(struct data_rig *rig, uint64_t dirty_bytes)
{
	const struct data_rig_options options = {
		.threads = true,
		.append_limit = 1024 * KIB,
		.dirty_bytes = dirty_bytes,
		.commit_ms = 600000,
	};

	data_rig_init(rig, &options);
}

/* A quarter of the bound is too little data for an append, unless a writer waits. */
static void placed_blocks_are_written_for_a_thread_that_waits(void **state)
{
	struct data_rig rig;
	struct writer first = {.rig = &rig, .len = 256 * KIB};
	struct writer second = {.rig = &rig, .len = 1024 * KIB};

	(void)state;
	init_rig(&rig, 1024 * KIB);
	first.inode = make(&rig, "first");
	second.inode = make(&rig, "second");
	run_both(&rig, &first, &second);
	assert_int_equal(first.result, first.len);
	data_rig_deinit(&rig);
}

static void memory_given_back_goes_to_a_thread_that_waits(void **state)
{
	struct data_rig rig;
	struct writer first = {.rig = &rig, .len = 960 * KIB, .flags = ZF_WRITE_APPEND};
	struct writer second = {.rig = &rig, .len = 1024 * KIB};

	(void)state;
	init_rig(&rig, 2048 * KIB - 64 * KIB);
	first.inode = make(&rig, "first");
	second.inode = make(&rig, "second");
	/* The writer finds out under the inode's lock that the file is too large. */
	data_rig_truncate(&rig, first.inode->ino, ZF_FILE_SIZE_MAX);
	run_both(&rig, &first, &second);
	assert_int_equal(first.result, -EFBIG);
	data_rig_deinit(&rig);
}

/*
 * An fsync that may not wait has taken the dirty blocks for a record, but cannot write the record,
 * because the description is too long. The fsync returns; the blocks are in flight all the same.
 */
static void what_an_fsync_leaves_behind_is_written(void **state)
{
	struct data_rig rig;
	struct zf_inode *inode, *other;
	struct zf_ctx ctx;

	(void)state;
	init_rig(&rig, 1024 * KIB);
	inode = make(&rig, "file");
	other = make(&rig, "other");
	data_rig_sync(&rig);
	/* One piece of the file, in as many extents as it has blocks. */
	for (uint64_t i = 0; i < 1000; i++) {
		data_rig_write_pattern(&rig, inode->ino, 1, i * 4 * KIB, 4 * KIB);
		assert_int_equal(zf_data_flush(inode, true), 0);
		data_rig_write_pattern(&rig, other->ino, 1, i * 4 * KIB, 4 * KIB);
		assert_int_equal(zf_data_flush(other, true), 0);
	}
	data_rig_write_pattern(&rig, inode->ino, 2, 0, 4 * KIB);
	/* The flusher has nothing more to do, and sleeps. */
	usleep(30000);
	ctx = (struct zf_ctx){.may_wait_record = true};
	assert_int_equal(zf_fs_fsync(rig.fs, &ctx, inode->ino, true), -EAGAIN);
	zf_mutex_lock(&inode->data.lock);
	assert_int_equal(inode->data.ready, 0);
	zf_mutex_unlock(&inode->data.lock);
	alarm(HANG_SECONDS);
	while (atomic_load(&rig.fs->flush.used_bytes) > 0)
		sched_yield();
	alarm(0);
	zf_inode_put(inode);
	zf_inode_put(other);
	data_rig_deinit(&rig);
}

/* ---- memory ---- */

static uint64_t pool_blocks(struct zf_fs *fs)
{
	uint64_t blocks;

	zf_mutex_lock(&fs->flush.lock);
	blocks = fs->flush.pool_blocks;
	zf_mutex_unlock(&fs->flush.lock);
	return blocks;
}

static void memory_goes_back_when_there_is_nothing_to_do(void **state)
{
	const struct data_rig_options options = {.threads = true, .commit_ms = 20};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	for (unsigned int round = 0; round < 2; round++) {
		data_rig_write_pattern(&rig, ino, round, 0, 8 * WRITE_MAX);
		alarm(HANG_SECONDS);
		while (pool_blocks(rig.fs) > 0)
			usleep(1000);
		alarm(0);
	}
	data_rig_deinit(&rig);
}

static void memory_in_use_stays(void **state)
{
	const struct data_rig_options options = {0};
	struct data_rig rig;
	struct zf_block *chain;
	struct zf_flush *flush;

	(void)state;
	data_rig_init(&rig, &options);
	flush = &rig.fs->flush;
	chain = zf_block_pool_take(flush, 100);
	assert_non_null(chain);
	zf_block_pool_give(flush, chain->next);
	chain->next = NULL;
	zf_block_pool_trim(flush);
	memset(chain->bytes, 1, ZF_BLOCK_SIZE);
	assert_true(pool_blocks(rig.fs) >= 100);
	zf_block_pool_give(flush, chain);
	zf_block_pool_trim(flush);
	assert_int_equal(pool_blocks(rig.fs), 0);
	data_rig_deinit(&rig);
}

/* ---- many writers, and room for a write or two ---- */

#define CROWD 8u

struct crowd {
	struct data_rig rig;
	uint64_t inos[CROWD];
	_Atomic unsigned int next;
	unsigned int rounds;
};

/* Writes of all sizes, and at the same time fsyncs that may wait and fsyncs that may not. */
static void *run_crowded(void *arg)
{
	struct crowd *crowd = arg;
	unsigned int me = atomic_fetch_add(&crowd->next, 1);
	struct zf_ctx impatient = {.may_wait_record = true};
	struct zf_rng rng;

	zf_rng_seed(&rng, me + 1);
	for (unsigned int i = 0; i < crowd->rounds; i++) {
		uint64_t ino = crowd->inos[zf_rng_below(&rng, CROWD)];
		uint64_t offset = zf_rng_below(&rng, 2048 * KIB);
		size_t len = 1 + zf_rng_below(&rng, zf_rng_chance(&rng, 50) ? WRITE_MAX : 8 * KIB);

		if (zf_fs_write(crowd->rig.fs, &crowd->rig.ctx, ino, offset, bytes, len, 0) !=
		    (ssize_t)len)
			abort();
		if (zf_rng_chance(&rng, 10))
			(void)zf_fs_fsync(crowd->rig.fs, &impatient, ino, true);
		else if (zf_rng_chance(&rng, 10) &&
			 zf_fs_fsync(crowd->rig.fs, &crowd->rig.ctx, ino, true) < 0)
			abort();
	}
	return NULL;
}

/* More rounds: ZFUSE_TEST_ROUNDS. */
static void a_crowd_of_writers_never_waits_for_the_next_commit(void **state)
{
	static const uint64_t bounds[] = {4 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB, 1900 * KIB};
	const char *rounds = getenv("ZFUSE_TEST_ROUNDS");

	(void)state;
	for (unsigned int b = 0; b < ZF_ARRAY_SIZE(bounds); b++) {
		struct crowd crowd = {.rounds = rounds ? (unsigned int)atoi(rounds) : 8};
		pthread_t threads[CROWD];
		char name[16];

		init_rig(&crowd.rig, bounds[b]);
		for (unsigned int i = 0; i < CROWD; i++) {
			snprintf(name, sizeof(name), "file %u", i);
			crowd.inos[i] = data_rig_make(&crowd.rig, name);
		}
		alarm(HANG_SECONDS);
		for (unsigned int i = 0; i < CROWD; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, run_crowded, &crowd), 0);
		for (unsigned int i = 0; i < CROWD; i++)
			pthread_join(threads[i], NULL);
		alarm(0);
		data_rig_deinit(&crowd.rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placed_blocks_are_written_for_a_thread_that_waits),
		cmocka_unit_test(memory_given_back_goes_to_a_thread_that_waits),
		cmocka_unit_test(what_an_fsync_leaves_behind_is_written),
		cmocka_unit_test(memory_goes_back_when_there_is_nothing_to_do),
		cmocka_unit_test(memory_in_use_stays),
		cmocka_unit_test(a_crowd_of_writers_never_waits_for_the_next_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

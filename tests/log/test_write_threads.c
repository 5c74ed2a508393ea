/* SPDX-License-Identifier: MIT */
/*
 * Many threads write and sync files of their own and one that they share, while commits are made.
 * The threads share log records, and no answered fsync is lost (P1).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "log/log.h"

#define BLOCK	4096u
#define WORKERS 6u
#define OPS	1000u
#define REGION	(16 * BLOCK)

struct shared {
	struct data_rig rig;
	uint64_t ino; /* a region for each worker */
	atomic_uint running, failures;
	atomic_uint fsyncs;
};

struct worker {
	struct shared *shared;
	unsigned int number, made;
	uint64_t ino;
	struct zf_rng rng;
	uint8_t own[REGION], region[REGION];
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

static void sync_file(struct worker *worker, uint64_t ino, bool data_only)
{
	struct data_rig *rig = &worker->shared->rig;

	expect(worker->shared, zf_fs_fsync(rig->fs, &rig->ctx, ino, data_only) == 0, "fsync");
	atomic_fetch_add(&worker->shared->fsyncs, 1);
}

/* A piece of REGION bytes of the file from `start` on, which `bytes` remembers. */
static void write_some(struct worker *worker, uint64_t ino, uint64_t start, uint8_t *bytes)
{
	struct data_rig *rig = &worker->shared->rig;
	uint64_t at = zf_rng_below(&worker->rng, REGION - 1);
	uint64_t len =
		1 + zf_rng_below(&worker->rng, zf_rng_chance(&worker->rng, 10) ? REGION : 6000);

	if (len > REGION - at)
		len = REGION - at;
	data_rig_fill(zf_rng_next(&worker->rng), start + at, bytes + at, len);
	expect(worker->shared,
	       zf_fs_write(rig->fs, &rig->ctx, ino, start + at, bytes + at, len, 0) == (ssize_t)len,
	       "write");
}

static void name_of(const struct worker *worker, unsigned int n, char name[32])
{
	snprintf(name, 32, "%u.%u", worker->number, n);
}

static void make_one(struct worker *worker)
{
	struct data_rig *rig = &worker->shared->rig;
	struct zf_attr attr;
	char name[32];

	name_of(worker, worker->made++, name);
	expect(worker->shared,
	       zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, 0100600, 0, NULL, &attr) == 0,
	       "make");
	zf_fs_forget(rig->fs, attr.ino, 1);
	sync_file(worker, zf_rng_chance(&worker->rng, 50) ? attr.ino : ZF_INO_ROOT, false);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct shared *shared = worker->shared;

	for (unsigned int i = 0; i < OPS && atomic_load(&shared->failures) == 0; i++) {
		uint64_t dice = zf_rng_below(&worker->rng, 10);

		if (dice < 4) {
			write_some(worker, worker->ino, 0, worker->own);
			sync_file(worker, worker->ino, dice == 0);
		} else if (dice < 8) {
			write_some(worker, shared->ino, (uint64_t)worker->number * REGION,
				   worker->region);
			sync_file(worker, shared->ino, dice == 4);
		} else {
			make_one(worker);
		}
	}
	atomic_fetch_sub(&shared->running, 1);
	return NULL;
}

static void *commit(void *arg)
{
	const struct timespec pause = {.tv_nsec = 3000000};
	struct shared *shared = arg;

	while (atomic_load(&shared->running) > 0) {
		expect(shared, zf_txn_commit(shared->rig.fs->txn, true) == 0, "commit");
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void prepare(struct shared *shared, struct worker *workers)
{
	const struct data_rig_options options = {
		.threads = true, .seed = 1, .zone_count = 256, .commit_ms = 20};
	char name[32];

	data_rig_init(&shared->rig, &options);
	shared->ino = data_rig_make(&shared->rig, "shared");
	data_rig_truncate(&shared->rig, shared->ino, (uint64_t)WORKERS * REGION);
	atomic_store(&shared->running, WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct worker *worker = &workers[i];

		*worker = (struct worker){.shared = shared, .number = i};
		zf_rng_seed(&worker->rng, 100 + i);
		snprintf(name, sizeof(name), "own %u", i);
		worker->ino = data_rig_make(&shared->rig, name);
		data_rig_truncate(&shared->rig, worker->ino, REGION);
	}
	data_rig_sync(&shared->rig);
}

static void run_threads(struct shared *shared, struct worker *workers)
{
	pthread_t threads[WORKERS + 1];

	for (unsigned int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	assert_int_equal(pthread_create(&threads[WORKERS], NULL, commit, shared), 0);
	for (unsigned int i = 0; i <= WORKERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&shared->failures), 0);
}

static void verify(struct shared *shared, const struct worker *worker)
{
	struct data_rig *rig = &shared->rig;
	uint8_t *got = malloc(REGION);
	struct zf_attr attr;
	char name[32];

	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, worker->ino, 0, got, REGION), REGION);
	assert_memory_equal(got, worker->own, REGION);
	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, shared->ino,
				    (uint64_t)worker->number * REGION, got, REGION),
			 REGION);
	assert_memory_equal(got, worker->region, REGION);
	for (unsigned int i = 0; i < worker->made; i++) {
		name_of(worker, i, name);
		assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ZF_INO_ROOT, name, &attr), 0);
		zf_fs_forget(rig->fs, attr.ino, 1);
	}
	free(got);
}

static void fsyncs_share_records_and_nothing_is_lost(void **state)
{
	struct worker *workers = calloc(WORKERS, sizeof(*workers));
	struct shared *shared = calloc(1, sizeof(*shared));
	struct zf_log_stats stats;

	(void)state;
	prepare(shared, workers);
	run_threads(shared, workers);
	zf_log_get_stats(shared->rig.fs->log, &stats);
	print_message("%u fsyncs, %lu parts in %lu records, %lu times a commit\n",
		      atomic_load(&shared->fsyncs), (unsigned long)stats.parts,
		      (unsigned long)stats.records, (unsigned long)stats.commits_instead);
	assert_true(stats.records > 0 && stats.records < stats.parts);
	assert_int_equal(stats.failures, 0);
	data_rig_crash(&shared->rig);
	for (unsigned int i = 0; i < WORKERS; i++)
		verify(shared, &workers[i]);
	data_rig_deinit(&shared->rig);
	free(workers);
	free(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fsyncs_share_records_and_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Many threads on a filesystem with its background threads. Each writer owns a region of a shared
 * file and a file of its own, and must find there what it wrote. Other threads sync, list and
 * truncate meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/data_rig.h"

#define BLOCK	4096u
#define WORKERS 4u
#define REGION	(UINT64_C(1) << 20)
#define OPS	300u

struct shared {
	struct data_rig rig;
	uint64_t ino; /* a region each */
	uint64_t log; /* appended to by all */
	atomic_uint running;
	atomic_uint failures;
};

struct worker {
	struct shared *shared;
	unsigned int number;
	uint64_t ino;
	struct zf_rng rng;
	uint8_t *bytes; /* of the region */
	uint64_t own_size;
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

static bool write_all(struct worker *worker, uint64_t ino, uint64_t offset, const void *buf,
		      size_t len)
{
	struct data_rig *rig = &worker->shared->rig;
	struct zf_ctx ctx = {.may_wait = false};
	ssize_t r = zf_fs_write(rig->fs, &ctx, ino, offset, buf, len, 0);

	if (r == -EAGAIN) {
		ctx.may_wait = true;
		r = zf_fs_write(rig->fs, &ctx, ino, offset, buf, len, 0);
	}
	return expect(worker->shared, r == (ssize_t)len, "write");
}

static bool compare(struct worker *worker, uint64_t ino, uint64_t offset, const uint8_t *wanted,
		    size_t len)
{
	struct data_rig *rig = &worker->shared->rig;
	uint8_t *got = aligned_alloc(BLOCK, len);
	ssize_t r = zf_fs_read(rig->fs, &rig->ctx, ino, offset, got, len);
	bool ok = expect(worker->shared, r == (ssize_t)len, "read") &&
		  expect(worker->shared, memcmp(got, wanted, len) == 0, "what was read");

	free(got);
	return ok;
}

static void write_region(struct worker *worker)
{
	uint64_t at = zf_rng_below(&worker->rng, REGION - 1), len;

	len = 1 + zf_rng_below(&worker->rng, zf_rng_chance(&worker->rng, 20) ? REGION - at : 9000);
	if (len > REGION - at)
		len = REGION - at;
	if (zf_rng_chance(&worker->rng, 50)) {
		at &= ~(uint64_t)(BLOCK - 1);
		len = len < BLOCK ? BLOCK : len & ~(uint64_t)(BLOCK - 1);
		if (at + len > REGION)
			return;
	}
	zf_rng_fill(&worker->rng, worker->bytes + at, len);
	write_all(worker, worker->shared->ino, worker->number * REGION + at, worker->bytes + at,
		  len);
}

static void append_own(struct worker *worker)
{
	uint8_t bytes[30000];
	size_t len = 1 + zf_rng_below(&worker->rng, sizeof(bytes));

	data_rig_fill(worker->number, worker->own_size, bytes, len);
	if (write_all(worker, worker->ino, worker->own_size, bytes, len))
		worker->own_size += len;
}

static void check_own(struct worker *worker)
{
	uint64_t at = zf_rng_below(&worker->rng, worker->own_size + 1);
	uint64_t len = worker->own_size - at;
	uint8_t *wanted;

	if (len > 50000)
		len = 50000;
	len &= ~(uint64_t)(BLOCK - 1);
	if (len == 0)
		return;
	wanted = malloc(len);
	data_rig_fill(worker->number, at, wanted, len);
	compare(worker, worker->ino, at, wanted, len);
	free(wanted);
}

/* One record of 64 bytes, all alike. */
static void append_record(struct worker *worker)
{
	struct data_rig *rig = &worker->shared->rig;
	uint8_t record[64];

	memset(record, 'A' + (int)worker->number, sizeof(record));
	expect(worker->shared,
	       zf_fs_write(rig->fs, &rig->ctx, worker->shared->log, 0, record, sizeof(record),
			   ZF_WRITE_APPEND) == sizeof(record),
	       "append");
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct shared *shared = worker->shared;
	const struct zf_setattr shrink = {.valid = ZF_SET_SIZE, .size = 1000};
	struct zf_attr attr;

	for (unsigned int i = 0; i < OPS && atomic_load(&shared->failures) == 0; i++) {
		switch (zf_rng_below(&worker->rng, 12)) {
		case 0 ... 4:
			write_region(worker);
			break;
		case 5 ... 6:
			compare(worker, shared->ino, worker->number * REGION, worker->bytes,
				REGION);
			break;
		case 7 ... 8:
			append_own(worker);
			break;
		case 9:
			check_own(worker);
			break;
		case 10:
			append_record(worker);
			break;
		case 11:
			if (zf_rng_chance(&worker->rng, 30))
				expect(shared,
				       zf_fs_fsync(shared->rig.fs, &shared->rig.ctx,
						   zf_rng_chance(&worker->rng, 50) ? worker->ino
										   : shared->ino,
						   false) == 0,
				       "fsync");
			else if (worker->own_size > 200000 &&
				 expect(shared,
					zf_fs_setattr(shared->rig.fs, &shared->rig.ctx, worker->ino,
						      &shrink, &attr) == 0,
					"truncate"))
				worker->own_size = 1000;
			break;
		}
	}
	atomic_fetch_sub(&shared->running, 1);
	return NULL;
}

/* Creates and deletes files, with data that no thread waits for. */
static void *come_and_go(void *arg)
{
	struct shared *shared = arg;
	struct data_rig *rig = &shared->rig;
	static uint8_t bytes[200000];

	for (unsigned int i = 0; atomic_load(&shared->running) > 0; i++) {
		struct zf_attr attr;
		char name[16];

		snprintf(name, sizeof(name), "temporary-%u", i % 7);
		if (!expect(shared,
			    zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, 0100644, 0, NULL,
				       &attr) == 0,
			    "make"))
			break;
		expect(shared,
		       zf_fs_write(rig->fs, &rig->ctx, attr.ino, 0, bytes, 1 + i * 997 % 200000,
				   0) > 0,
		       "write of a temporary file");
		if (i % 3 == 0)
			expect(shared, zf_fs_syncfs(rig->fs, &rig->ctx) == 0, "syncfs");
		expect(shared, zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, name) == 0, "unlink");
		zf_fs_forget(rig->fs, attr.ino, 1);
	}
	return NULL;
}

static void check_log(struct shared *shared)
{
	uint64_t size = data_rig_size(&shared->rig, shared->log);
	uint8_t record[64];

	assert_int_equal(size % sizeof(record), 0);
	for (uint64_t at = 0; at < size; at += sizeof(record)) {
		assert_int_equal(zf_fs_read(shared->rig.fs, &shared->rig.ctx, shared->log, at,
					    record, sizeof(record)),
				 sizeof(record));
		for (size_t i = 1; i < sizeof(record); i++)
			assert_int_equal(record[i], record[0]);
	}
}

static void run(uint64_t seed, uint64_t dirty_bytes)
{
	const struct data_rig_options options = {
		.threads = true,
		.seed = seed,
		.zone_count = 64,
		.dirty_bytes = dirty_bytes,
		.commit_ms = 20,
	};
	static struct shared shared;
	struct worker workers[WORKERS];
	pthread_t threads[WORKERS], temporary;

	shared = (struct shared){0};
	data_rig_init(&shared.rig, &options);
	shared.ino = data_rig_make(&shared.rig, "shared");
	shared.log = data_rig_make(&shared.rig, "log");
	data_rig_truncate(&shared.rig, shared.ino, WORKERS * REGION);
	atomic_store(&shared.running, WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "own-%u", i);
		workers[i] = (struct worker){
			.shared = &shared,
			.number = i,
			.ino = data_rig_make(&shared.rig, name),
			.bytes = calloc(1, REGION),
		};
		zf_rng_seed(&workers[i].rng, seed * 100 + i);
	}
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	assert_int_equal(pthread_create(&temporary, NULL, come_and_go, &shared), 0);
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(temporary, NULL);
	assert_int_equal(atomic_load(&shared.failures), 0);
	for (unsigned int remounted = 0; remounted < 2; remounted++) {
		for (unsigned int i = 0; i < WORKERS; i++) {
			struct worker *worker = &workers[i];

			assert_true(compare(worker, shared.ino, i * REGION, worker->bytes, REGION));
			assert_int_equal(data_rig_size(&shared.rig, worker->ino), worker->own_size);
			if (worker->own_size)
				data_rig_expect(&shared.rig, worker->ino, i, 0, worker->own_size);
		}
		check_log(&shared);
		if (!remounted)
			data_rig_remount(&shared.rig);
	}
	data_rig_deinit(&shared.rig);
	for (unsigned int i = 0; i < WORKERS; i++)
		free(workers[i].bytes);
}

static void threads_find_what_they_wrote(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2; seed++)
		run(seed, 8 << 20);
}

static void threads_wait_for_room_and_find_what_they_wrote(void **state)
{
	(void)state;
	for (uint64_t seed = 3; seed <= 4; seed++)
		run(seed, 512 << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_find_what_they_wrote),
		cmocka_unit_test(threads_wait_for_room_and_find_what_they_wrote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

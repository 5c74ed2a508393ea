/* SPDX-License-Identifier: MIT */
/* A filesystem becomes larger, many times, while threads write to it and sync. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "fs/data_rig.h"

#define BLOCK 4096u

static uint32_t zone_count(struct data_rig *rig)
{
	return zf_alloc_zone_count(zf_fs_alloc(rig->fs));
}

static uint64_t total(struct data_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	return space.total;
}

#define WORKERS 4u

struct worker {
	struct data_rig *rig;
	uint64_t ino;
	unsigned int number, failures;
	uint64_t size;
	atomic_bool *stop;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	const struct zf_ctx ctx = {.may_wait = true};
	uint8_t *bytes = malloc(64 * BLOCK);
	uint64_t turn = 0;

	while (!atomic_load(w->stop)) {
		uint64_t at = turn++ * 7919 % 512 * BLOCK;
		size_t len = (1 + turn % 64) * BLOCK;

		data_rig_fill(w->number, at, bytes, len);
		w->failures +=
			zf_fs_write(w->rig->fs, &ctx, w->ino, at, bytes, len, 0) != (ssize_t)len;
		if (at + len > w->size)
			w->size = at + len;
		if (turn % 5 == 0)
			w->failures += zf_fs_fsync(w->rig->fs, &ctx, w->ino, true) < 0;
	}
	free(bytes);
	return NULL;
}

static void it_grows_while_threads_write(void **state)
{
	const struct data_rig_options options = {
		.threads = true,
		.seed = 9,
		.zone_count = 48,
		.zone_size = 256 * BLOCK,
		.dirty_bytes = 4 << 20,
		.commit_ms = 20,
	};
	struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	struct data_rig rig;
	atomic_bool stop = false;

	(void)state;
	data_rig_init(&rig, &options);
	for (unsigned int i = 0; i < WORKERS; i++) {
		char name[] = {(char)('a' + i), '\0'};

		workers[i] = (struct worker){.rig = &rig,
					     .ino = data_rig_make(&rig, name),
					     .number = i + 1,
					     .stop = &stop};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (uint32_t count = 49; count <= 600; count += 1 + count / 10) {
		assert_int_equal(zf_fs_grow(rig.fs, count), 0);
		assert_int_equal(zone_count(&rig), count);
		assert_true(total(&rig) == (count - 2) * 256 * (uint64_t)BLOCK);
	}
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].failures, 0);
	}
	data_rig_remount(&rig);
	for (unsigned int i = 0; i < WORKERS; i++)
		assert_int_equal(data_rig_size(&rig, workers[i].ino), workers[i].size);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_grows_while_threads_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

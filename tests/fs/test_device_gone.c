/* SPDX-License-Identifier: MIT */
/*
 * The device disappears, at each command of a workload and under threads. No thread hangs, nothing
 * is retried without end, and requests fail. When the device is back, all acknowledged data is
 * there.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "support/gone.h"

#define BLOCK 4096u
#define FILES 6u

static const struct data_rig_options tiny = {
	.seed = 1, .zone_size = 256 << 10, .append_limit = 128 << 10, .node_size = 4096};

/* What a workload did until it failed: the number of the content that each file is known to have.
 */
struct known {
	uint64_t ino[FILES];
	unsigned int synced[FILES], written[FILES];
};

static int write_one(struct data_rig *rig, struct known *known, unsigned int i, unsigned int n)
{
	uint8_t buf[24 * BLOCK];
	ssize_t r;

	data_rig_fill(n, 0, buf, sizeof(buf));
	known->written[i] = n;
	r = zf_fs_write(rig->fs, &rig->ctx, known->ino[i], 0, buf, sizeof(buf), 0);
	if (r != (ssize_t)sizeof(buf))
		return r < 0 ? (int)r : -EIO;
	r = n % 5 == 0 ? zf_fs_syncfs(rig->fs, &rig->ctx)
		       : zf_fs_fsync(rig->fs, &rig->ctx, known->ino[i], false);
	if (r < 0)
		return (int)r;
	known->synced[i] = n;
	return 0;
}

static int work(struct data_rig *rig, struct known *known)
{
	for (unsigned int n = 1; n <= 20; n++) {
		int r = write_one(rig, known, n % FILES, n);

		if (r == 0 && n % 7 == 0)
			r = zf_fs_step(rig->fs);
		if (r < 0)
			return r;
	}
	return 0;
}

static void make_files(struct data_rig *rig, struct known *known)
{
	*known = (struct known){0};
	for (unsigned int i = 0; i < FILES; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%u", i);
		known->ino[i] = data_rig_make(rig, name);
	}
	data_rig_sync(rig);
}

/* Every change is refused with an error that names the reason. */
static void expect_read_only(struct data_rig *rig, const struct known *known)
{
	struct zf_attr attr;
	uint8_t byte = 1;

	assert_int_equal(
		zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, "new", S_IFREG | 0600, 0, NULL, &attr),
		-EROFS);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, "1"), -EROFS);
	assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, known->ino[0], 0, &byte, 1, 0), -EROFS);
	for (unsigned int i = 0; i < 2; i++)
		assert_true(zf_fs_fsync(rig->fs, &rig->ctx, known->ino[1], false) < 0);
	assert_true(zf_fs_syncfs(rig->fs, &rig->ctx) < 0);
	assert_true(zf_fs_is_read_only(rig->fs));
	assert_non_null(zf_txn_failed(zf_fs_txn(rig->fs)));
	/* Reads of data in memory work, all others fail. */
	assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ZF_INO_ROOT, "0", &attr), 0);
	zf_fs_forget(rig->fs, attr.ino, 1);
}

/* A block has the version that was synced last, or a later one that reached the device unanswered.
 */
static bool is_known(const struct known *known, unsigned int i, uint64_t offset,
		     const uint8_t *block)
{
	uint8_t expected[BLOCK];

	for (unsigned int n = known->synced[i]; n <= known->written[i]; n++) {
		data_rig_fill(n, offset, expected, BLOCK);
		if (memcmp(block, expected, BLOCK) == 0)
			return true;
	}
	return false;
}

static void expect_synced(struct data_rig *rig, const struct known *known)
{
	for (unsigned int i = 0; i < FILES; i++) {
		for (uint64_t at = 0; known->synced[i] > 0 && at < 24 * BLOCK; at += BLOCK) {
			uint8_t block[BLOCK];

			assert_int_equal(
				zf_fs_read(rig->fs, &rig->ctx, known->ino[i], at, block, BLOCK),
				BLOCK);
			assert_true(is_known(known, i, at, block));
		}
	}
}

/* False: the workload ended before that. */
static bool vanish(uint64_t nth, int error, uint8_t copies)
{
	struct data_rig_options options = tiny;
	struct known known;
	struct data_rig rig;
	bool gone;
	int r;

	options.seed = nth;
	options.copies = copies;
	data_rig_init(&rig, &options);
	make_files(&rig, &known);
	rig.errors_expected = true;
	zf_sim_vanish(rig.sim, zf_sim_commands(rig.sim) + nth, error);
	r = work(&rig, &known);
	gone = zf_sim_is_cut(rig.sim);
	assert_true(r == 0 || gone);
	if (gone) {
		/* A commit notices the loss of the device, if nothing did before. */
		for (unsigned int i = 0; i < 3; i++)
			(void)zf_fs_step(rig.fs);
		(void)zf_txn_commit(zf_fs_txn(rig.fs), true);
		expect_read_only(&rig, &known);
		assert_true(rig.errors < 100);
		assert_true(zf_fs_unmount(rig.fs) < 0);
	} else {
		zf_fs_abandon(rig.fs);
	}
	zf_dev_close(rig.dev);
	zf_sim_crash(rig.sim, nth, ZF_SIM_CUT_DEVICE);
	rig.errors_expected = false;
	rig.errors = 0;
	data_rig_mount(&rig);
	expect_synced(&rig, &known);
	data_rig_deinit(&rig);
	return gone;
}

static void at_each_command_nothing_hangs_and_what_was_synced_stays(void **state)
{
	static const int errors[] = {-ENODEV, -ENXIO, -EIO};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t nth = 1;

		while (vanish(nth, errors[i % 3], i == 3 ? 2 : 1))
			nth++;
		assert_true(nth > 20);
	}
}

/* ---- with threads ---- */

struct shared {
	struct data_rig rig;
	struct known known;
	atomic_bool failed;
};

struct writer {
	struct shared *shared;
	unsigned int i;
};

/* Works until it fails. There is no limit here: the test's time limit ends a thread that hangs. */
static void *write_until_it_fails(void *arg)
{
	const struct writer *writer = arg;
	struct shared *shared = writer->shared;
	int r = 0;

	for (unsigned int n = 1; r == 0; n++)
		r = write_one(&shared->rig, &shared->known, writer->i, n);
	atomic_store(&shared->failed, true);
	return NULL;
}

static void *make_until_it_fails(void *arg)
{
	const struct writer *writer = arg;
	struct data_rig *rig = &writer->shared->rig;
	int r = 0;

	for (unsigned int n = 0; r == 0; n++) {
		struct zf_attr attr;
		char name[16];

		snprintf(name, sizeof(name), "made-%u", n % 50);
		r = zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, S_IFREG | 0600, 0, NULL,
			       &attr);
		if (r == 0) {
			zf_fs_forget(rig->fs, attr.ino, 1);
			r = zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, name);
		}
	}
	return NULL;
}

static void under_threads_all_come_to_an_end(void **state)
{
	static const int errors[] = {-ENODEV, -EIO};

	(void)state;
	for (unsigned int round = 0; round < 6; round++) {
		struct data_rig_options options = tiny;
		struct writer writers[FILES + 1];
		pthread_t threads[FILES + 1];
		struct shared shared = {0};
		struct gone gone;

		options.threads = true;
		options.seed = round;
		options.commit_ms = 50;
		options.dirty_bytes = round % 3 ? 0 : 256 << 10;
		options.max_active = round % 2 ? 8 : 0;
		data_rig_init(&shared.rig, &options);
		make_files(&shared.rig, &shared.known);
		shared.rig.errors_expected = true;
		/* The device is wrapped before it has a thread that could see the change. */
		assert_int_equal(zf_fs_unmount(shared.rig.fs), 0);
		zf_dev_close(shared.rig.dev);
		assert_int_equal(zf_memory_open(shared.rig.memory, NULL, &shared.rig.report,
						&shared.rig.dev),
				 0);
		gone_init(&gone, shared.rig.dev);
		assert_int_equal(zf_dev_start_thread(shared.rig.dev), 0);
		assert_int_equal(data_rig_mount_opened(&shared.rig), 0);
		for (unsigned int i = 0; i <= FILES; i++) {
			writers[i] = (struct writer){&shared, i};
			assert_int_equal(pthread_create(&threads[i], NULL,
							i < FILES ? write_until_it_fails
								  : make_until_it_fails,
							&writers[i]),
					 0);
		}
		usleep(20000 * round);
		gone_begin(&gone, errors[round % 2]);
		for (unsigned int i = 0; i <= FILES; i++)
			pthread_join(threads[i], NULL);
		assert_true(zf_fs_is_read_only(shared.rig.fs));
		expect_read_only(&shared.rig, &shared.known);
		/* The device is not asked again and again. */
		usleep(200000);
		atomic_store(&gone.asked, 0);
		usleep(300000);
		assert_true(atomic_load(&gone.asked) < 100);
		assert_true(zf_fs_unmount(shared.rig.fs) < 0);
		zf_dev_close(shared.rig.dev);
		data_rig_mount(&shared.rig);
		expect_synced(&shared.rig, &shared.known);
		data_rig_drop(&shared.rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_each_command_nothing_hangs_and_what_was_synced_stays),
		cmocka_unit_test(under_threads_all_come_to_an_end),
	};

	return cmocka_run_group_tests_name("device_gone", tests, NULL, NULL);
}

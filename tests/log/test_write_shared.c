/* SPDX-License-Identifier: MIT */
/*
 * Which threads share a record, while the device holds the records before it. Each test hangs, and
 * runs into its time limit, if a thread that waits is not woken.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "log/log.h"

#define BLOCK	    4096u
#define FEW	    7u
#define MANY	    14u
#define RECORDS_MAX (2 * MANY)

/* Bytes of a file. A record has room for the blocks of three large ones. */
#define SMALL (4u * BLOCK)
#define LARGE (20u * BLOCK)

static struct data_rig rig;

/* The device holds the n-th record, counted from 1, until released[n] is set. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int file_bytes;
static unsigned int sent;
static bool released[RECORDS_MAX];
static unsigned int fails; /* the record of this number fails; 0: none */

struct syncer {
	pthread_t thread;
	uint64_t ino;
	int result;
	atomic_bool answered;
};

int __real_zf_dev_run(struct zf_dev *dev, struct zf_io *io);
int __wrap_zf_dev_run(struct zf_dev *dev, struct zf_io *io);

int __wrap_zf_dev_run(struct zf_dev *dev, struct zf_io *io)
{
	bool failed;

	if (io->purpose != ZF_FOR_LOG)
		return __real_zf_dev_run(dev, io);
	pthread_mutex_lock(&lock);
	sent++;
	failed = sent == fails;
	pthread_cond_broadcast(&changed);
	assert(sent < RECORDS_MAX);
	for (unsigned int number = sent; !released[number];)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	if (!failed)
		return __real_zf_dev_run(dev, io);
	io->result = -EIO;
	return -EIO;
}

static void wait_for_record(unsigned int number)
{
	pthread_mutex_lock(&lock);
	while (sent < number)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void release(unsigned int from, unsigned int to)
{
	pthread_mutex_lock(&lock);
	for (unsigned int number = from; number <= to; number++)
		released[number] = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static unsigned int records_sent(void)
{
	unsigned int r;

	pthread_mutex_lock(&lock);
	r = sent;
	pthread_mutex_unlock(&lock);
	return r;
}

static struct zf_log_stats log_stats(void)
{
	struct zf_log_stats stats;

	zf_log_get_stats(rig.fs->log, &stats);
	return stats;
}

/* The place behind the last thread that waits for a sync of the file's data. */
static struct zf_sync_waiter **last_waiter(uint64_t ino)
{
	struct zf_sync_waiter **r;
	struct zf_inode *inode;

	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	zf_mutex_lock(&zf_inode_shard(inode)->lock);
	r = inode->sync_waiters.stqh_last;
	zf_mutex_unlock(&zf_inode_shard(inode)->lock);
	zf_inode_put(inode);
	return r;
}

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = 100000};

	nanosleep(&pause, NULL);
}

/* If the part fits, a thread counts it and puts it into the batch in one critical section. */
static void wait_for_parts(uint64_t count)
{
	while (log_stats().parts < count)
		nap();
}

/* Makes a file for each syncer, with `bytes` of dirty data. */
static void begin(struct syncer *syncers, unsigned int count, unsigned int bytes)
{
	const struct data_rig_options options = {
		.threads = true, .zone_size = 8u << 20, .commit_ms = 3600000};
	char name[16];

	sent = fails = 0;
	file_bytes = bytes;
	memset(released, 0, sizeof(released));
	data_rig_init(&rig, &options);
	rig.errors_expected = true;
	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "file %u", i);
		syncers[i].ino = data_rig_make(&rig, name);
	}
	data_rig_sync(&rig);
	for (unsigned int i = 0; i < count; i++)
		data_rig_write_pattern(&rig, syncers[i].ino, i, 0, file_bytes);
}

static void *sync_data(void *arg)
{
	struct syncer *syncer = arg;

	syncer->result = zf_fs_fsync(rig.fs, &rig.ctx, syncer->ino, true);
	atomic_store(&syncer->answered, true);
	return NULL;
}

static void start(struct syncer *syncer)
{
	assert_int_equal(pthread_create(&syncer->thread, NULL, sync_data, syncer), 0);
}

/* The first two have a record each, which the device holds; the parts of the others wait. */
static void start_all(struct syncer *syncers, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		start(&syncers[i]);
		if (i < ZF_LOG_IN_FLIGHT)
			wait_for_record(i + 1);
	}
	wait_for_parts(count);
}

static void end(struct syncer *syncers, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		assert_int_equal(pthread_join(syncers[i].thread, NULL), 0);
		assert_int_equal(syncers[i].result, 0);
	}
	data_rig_crash(&rig);
	for (unsigned int i = 0; i < count; i++)
		data_rig_expect(&rig, syncers[i].ino, i, 0, file_bytes);
	data_rig_deinit(&rig);
}

static void parts_that_wait_share_the_next_record(void **state)
{
	struct syncer syncers[FEW] = {0};

	(void)state;
	begin(syncers, FEW, SMALL);
	start_all(syncers, FEW);
	assert_int_equal(records_sent(), 2);
	release(1, 1);
	wait_for_record(3);
	release(2, 3);
	end(syncers, FEW);
	assert_int_equal(records_sent(), 3);
}

static void a_record_counts_after_the_one_before_it(void **state)
{
	struct syncer syncers[FEW] = {0};

	(void)state;
	begin(syncers, FEW, SMALL);
	start_all(syncers, FEW);
	release(2, 2);
	wait_for_record(3);
	release(3, 3);
	/* Nothing may happen now. If an answer comes too early, it comes soon. */
	for (unsigned int i = 0; i < 100; i++)
		nap();
	for (unsigned int i = 0; i < FEW; i++)
		assert_false(atomic_load(&syncers[i].answered));
	release(1, 1);
	end(syncers, FEW);
	assert_int_equal(records_sent(), 3);
}

static void parts_that_do_not_fit_come_with_a_later_record(void **state)
{
	struct syncer syncers[MANY] = {0};

	(void)state;
	begin(syncers, MANY, LARGE);
	assert_true((MANY - ZF_LOG_IN_FLIGHT) * LARGE > ZF_LOG_RECORD_MAX);
	start_all(syncers, MANY);
	assert_int_equal(records_sent(), 2);
	release(1, RECORDS_MAX - 1);
	end(syncers, MANY);
	assert_in_range(records_sent(), 4, MANY - 1);
}

/* Their threads commit instead. */
static void parts_behind_a_record_that_failed_are_not_written(void **state)
{
	struct syncer syncers[FEW] = {0};

	(void)state;
	begin(syncers, FEW, SMALL);
	fails = 1;
	start_all(syncers, FEW);
	release(1, 1);
	while (log_stats().failures == 0)
		nap();
	release(2, 2);
	end(syncers, FEW);
	assert_int_equal(records_sent(), 2);
}

/* ---- data syncs of one file ---- */

/* The first serves itself only, because the others have come later; the second serves them all. */
static void data_syncs_that_wait_are_served_by_the_next_one(void **state)
{
	struct syncer syncers[FEW] = {0};
	uint64_t parts;

	(void)state;
	begin(syncers, FEW, SMALL);
	parts = log_stats().parts;
	for (unsigned int i = 0; i < FEW; i++)
		syncers[i].ino = syncers[0].ino;
	start(&syncers[0]);
	wait_for_record(1);
	for (unsigned int i = 1; i < FEW; i++) {
		struct zf_sync_waiter **last = last_waiter(syncers[0].ino);

		data_rig_write_pattern(&rig, syncers[0].ino, 0, 0, file_bytes);
		start(&syncers[i]);
		while (last_waiter(syncers[0].ino) == last)
			nap();
	}
	release(1, 2);
	for (unsigned int i = 0; i < FEW; i++) {
		assert_int_equal(pthread_join(syncers[i].thread, NULL), 0);
		assert_int_equal(syncers[i].result, 0);
	}
	assert_int_equal(log_stats().parts - parts, 2);
	data_rig_crash(&rig);
	data_rig_expect(&rig, syncers[0].ino, 0, 0, file_bytes);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_that_wait_share_the_next_record),
		cmocka_unit_test(a_record_counts_after_the_one_before_it),
		cmocka_unit_test(parts_that_do_not_fit_come_with_a_later_record),
		cmocka_unit_test(parts_behind_a_record_that_failed_are_not_written),
		cmocka_unit_test(data_syncs_that_wait_are_served_by_the_next_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

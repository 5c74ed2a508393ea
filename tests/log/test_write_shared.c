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

/* Threads that wait for a sync of the file's data. */
static unsigned int count_waiters(uint64_t ino)
{
	const struct zf_sync_waiter *waiter;
	struct zf_inode *inode;
	unsigned int r = 0;

	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	zf_mutex_lock(&zf_inode_shard(inode)->lock);
	STAILQ_FOREACH (waiter, &inode->sync_share.threads, link)
		r++;
	zf_mutex_unlock(&zf_inode_shard(inode)->lock);
	zf_inode_put(inode);
	return r;
}

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = 100000};

	nanosleep(&pause, NULL);
}

static void wait_for_waiters(uint64_t ino, unsigned int count)
{
	while (count_waiters(ino) < count)
		nap();
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
		data_rig_write_pattern(&rig, syncers[0].ino, 0, 0, file_bytes);
		start(&syncers[i]);
		wait_for_waiters(syncers[0].ino, i);
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

/* ---- data syncs without a thread ---- */

struct later {
	struct zf_syncing *syncing;
	bool served;
	atomic_bool ended;
	int result; /* of zf_fs_sync_later_end() */
};

static void note_ended(struct zf_syncing *syncing, bool served, void *arg)
{
	struct later *later = arg;

	later->syncing = syncing;
	later->served = served;
	assert_false(atomic_exchange(&later->ended, true));
}

static void sync_later(uint64_t ino, struct later *later)
{
	assert_int_equal(zf_fs_sync_later(rig.fs, &rig.ctx, ino, note_ended, later), -EINPROGRESS);
}

static void wait_for_end(struct later *later)
{
	while (!atomic_load(&later->ended))
		nap();
}

static void *end_later(void *arg)
{
	struct later *later = arg;

	later->result = zf_fs_sync_later_end(later->syncing);
	return NULL;
}

static void join(struct syncer *syncer)
{
	assert_int_equal(pthread_join(syncer->thread, NULL), 0);
	assert_int_equal(syncer->result, 0);
}

static void crash_and_expect(uint64_t ino)
{
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 0, 0, file_bytes);
	data_rig_deinit(&rig);
}

/* The first that waits is asked to run the next sync, which serves all of them. */
static void data_syncs_without_threads_are_served_by_the_next_one(void **state)
{
	struct later laters[FEW] = {0};
	struct syncer syncer = {0};
	pthread_t thread;

	(void)state;
	begin(&syncer, 1, SMALL);
	start(&syncer);
	wait_for_record(1);
	data_rig_write_pattern(&rig, syncer.ino, 0, 0, file_bytes);
	for (unsigned int i = 0; i < FEW; i++)
		sync_later(syncer.ino, &laters[i]);
	for (unsigned int i = 0; i < FEW; i++)
		assert_false(atomic_load(&laters[i].ended));
	release(1, 1);
	wait_for_end(&laters[0]);
	assert_false(laters[0].served);
	join(&syncer);
	assert_int_equal(pthread_create(&thread, NULL, end_later, &laters[0]), 0);
	wait_for_record(2);
	for (unsigned int i = 1; i < FEW; i++)
		assert_false(atomic_load(&laters[i].ended));
	release(2, 2);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (unsigned int i = 1; i < FEW; i++) {
		assert_true(atomic_load(&laters[i].ended));
		assert_true(laters[i].served);
		end_later(&laters[i]);
	}
	for (unsigned int i = 0; i < FEW; i++)
		assert_int_equal(laters[i].result, 0);
	assert_int_equal(records_sent(), 2);
	crash_and_expect(syncer.ino);
}

/* A thread that comes before the caller to which a sync is offered runs it, and does not wait. */
static void a_thread_does_not_wait_for_a_sync_that_is_offered(void **state)
{
	struct later laters[2] = {0};
	struct syncer syncer = {0};

	(void)state;
	begin(&syncer, 1, SMALL);
	release(1, RECORDS_MAX - 1);
	sync_later(syncer.ino, &laters[0]);
	sync_later(syncer.ino, &laters[1]);
	assert_true(atomic_load(&laters[0].ended));
	assert_false(laters[0].served);
	assert_false(atomic_load(&laters[1].ended));
	sync_data(&syncer);
	assert_int_equal(syncer.result, 0);
	assert_true(atomic_load(&laters[1].ended));
	assert_true(laters[1].served);
	end_later(&laters[0]);
	end_later(&laters[1]);
	assert_int_equal(laters[0].result, 0);
	assert_int_equal(laters[1].result, 0);
	assert_int_equal(records_sent(), 1);
	crash_and_expect(syncer.ino);
}

/*
 * The caller to which a sync was offered comes while another thread runs that sync. It is served by
 * that sync, although another caller, which is not, has come to wait before it.
 */
static void a_caller_whose_sync_was_taken_is_served_by_it(void **state)
{
	struct syncer syncers[2] = {0};
	struct later later = {0};
	pthread_t thread;

	(void)state;
	begin(syncers, 1, SMALL);
	syncers[1].ino = syncers[0].ino;
	sync_later(syncers[0].ino, &later);
	start(&syncers[0]);
	wait_for_record(1);
	data_rig_write_pattern(&rig, syncers[0].ino, 0, 0, file_bytes);
	start(&syncers[1]);
	wait_for_waiters(syncers[0].ino, 1);
	assert_int_equal(pthread_create(&thread, NULL, end_later, &later), 0);
	wait_for_waiters(syncers[0].ino, 2);
	release(1, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(later.result, 0);
	join(&syncers[0]);
	assert_false(atomic_load(&syncers[1].answered));
	release(2, 2);
	join(&syncers[1]);
	assert_int_equal(records_sent(), 2);
	crash_and_expect(syncers[0].ino);
}

/* Otherwise all workers could wait for a sync that needs one of them. */
static void a_sync_is_offered_to_a_thread_first(void **state)
{
	struct syncer syncers[2] = {0};
	struct later later = {0};

	(void)state;
	begin(syncers, 1, SMALL);
	syncers[1].ino = syncers[0].ino;
	start(&syncers[0]);
	wait_for_record(1);
	data_rig_write_pattern(&rig, syncers[0].ino, 0, 0, file_bytes);
	sync_later(syncers[0].ino, &later);
	start(&syncers[1]);
	wait_for_waiters(syncers[0].ino, 1);
	release(1, 2);
	join(&syncers[0]);
	join(&syncers[1]);
	wait_for_end(&later);
	assert_true(later.served);
	end_later(&later);
	assert_int_equal(later.result, 0);
	crash_and_expect(syncers[0].ino);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_that_wait_share_the_next_record),
		cmocka_unit_test(a_record_counts_after_the_one_before_it),
		cmocka_unit_test(parts_that_do_not_fit_come_with_a_later_record),
		cmocka_unit_test(parts_behind_a_record_that_failed_are_not_written),
		cmocka_unit_test(data_syncs_that_wait_are_served_by_the_next_one),
		cmocka_unit_test(data_syncs_without_threads_are_served_by_the_next_one),
		cmocka_unit_test(a_thread_does_not_wait_for_a_sync_that_is_offered),
		cmocka_unit_test(a_caller_whose_sync_was_taken_is_served_by_it),
		cmocka_unit_test(a_sync_is_offered_to_a_thread_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

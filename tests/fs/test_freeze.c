/* SPDX-License-Identifier: MIT */
/* A transaction does not freeze while a log record is being written. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "log/log.h"

#define WHILE_US 100000u

static atomic_bool frozen;

static void *freeze(void *arg)
{
	struct zf_fs *fs = arg;

	assert_int_equal(zf_txn_freeze(fs->txn), 0);
	atomic_store(&frozen, true);
	return NULL;
}

/* The record's changes are put into the trees of the transaction whose S covers the record. */
static void a_freeze_waits_for_records(void **state)
{
	const struct data_rig_options options = {.seed = 1};
	struct data_rig rig;
	pthread_t thread;

	(void)state;
	data_rig_init(&rig, &options);
	data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	data_rig_make(&rig, "another");
	assert_true(zf_log_enter(rig.fs->log));
	assert_int_equal(pthread_create(&thread, NULL, freeze, rig.fs), 0);
	usleep(WHILE_US);
	assert_false(atomic_load(&frozen));
	zf_log_leave(rig.fs->log);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&frozen));
	assert_int_equal(zf_txn_write(rig.fs->txn), 0);
	assert_int_equal(zf_txn_finish(rig.fs->txn), 0);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_freeze_waits_for_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

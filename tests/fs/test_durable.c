/* SPDX-License-Identifier: MIT */
/* fsync through the intent log where something comes in between. */
#include <errno.h>

#include "fs/data_rig.h"
#include "fs/inode.h"
#include "log/log.h"

static void open_rig(struct data_rig *rig)
{
	const struct data_rig_options options = {.seed = 11};

	data_rig_init(rig, &options);
	/* The log's zones are named by the first commit. */
	assert_int_equal(zf_txn_commit(rig->fs->txn, true), 0);
}

/* One of another thread's, after the gate: what had been listed before is dropped with it. */
static void operations_lost_behind_the_gate_are_not_durable(void **state)
{
	struct zf_log_part part = {0};
	struct data_rig rig;

	(void)state;
	open_rig(&rig);
	data_rig_make(&rig, "file");
	assert_true(zf_log_enter(rig.fs->log));
	zf_log_add(rig.fs->log, NULL, 0);
	assert_int_equal(zf_log_append(rig.fs->log, &part), -EAGAIN);
	zf_log_leave(rig.fs->log);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_lost_behind_the_gate_are_not_durable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

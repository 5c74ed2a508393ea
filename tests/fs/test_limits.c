/* SPDX-License-Identifier: MIT */
/*
 * The limit of active zones is as low as zfuse accepts (P6), and a zone stays active when another
 * is needed. Data that was answered waits until that zone is no longer active, and is written (P5).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc_internal.h"
#include "fs/data/append.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"

#define BLOCK  4096u
#define APPEND (64u * BLOCK) /* the rig's limit */

#define CHUNKS 5u /* appends that one zone has no room for */

static const struct data_rig_options tight = {.seed = 1, .max_active = 6};

static void fail_nth(struct data_rig *rig, enum zf_io_op op, uint64_t nth)
{
	const struct zf_sim_fault fault = {.op = op, .nth = nth, .error = -EIO};

	zf_sim_add_fault(rig->sim, &fault);
}

/*
 * The first append of a new file fails, and its other appends land behind it. They wait for the
 * first (fs/data/data.h), and the first waits for their zone, which is active until its pointer is
 * read again.
 */
static void a_failed_append_finds_a_zone_though_others_wait_for_it(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &tight);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	data_rig_write_pattern(&rig, ino, 1, 0, 3 * APPEND);
	fail_nth(&rig, ZF_IO_APPEND, 1);
	assert_int_equal(zf_fs_syncfs(rig.fs, &rig.ctx), 0);
	assert_int_equal(zf_sim_faults_left(rig.sim), 0);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 3 * APPEND);
	data_rig_deinit(&rig);
}

static int flush(struct data_rig *rig, uint64_t ino)
{
	struct zf_inode *inode;
	int r;

	assert_int_equal(zf_inode_get(rig->fs, ino, &inode), 0);
	r = zf_data_flush(inode, true);
	if (r == 0)
		r = zf_write_error_since(inode, 0);
	zf_inode_put(inode);
	return r;
}

static void note_stuck(void *arg, enum zf_report_level level, const char *message)
{
	unsigned int *stuck = arg;

	*stuck += level == ZF_REPORT_ERROR && strstr(message, "none can be finished");
}

/* The same, but the device refuses to finish the zone: a message says so. */
static void a_zone_that_cannot_be_finished_is_told_of(void **state)
{
	unsigned int stuck = 0;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &tight);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	rig.fs->report = (struct zf_report){note_stuck, &stuck};
	data_rig_write_pattern(&rig, ino, 1, 0, 3 * APPEND);
	fail_nth(&rig, ZF_IO_APPEND, 1);
	for (uint64_t n = 1; n <= 100; n++)
		fail_nth(&rig, ZF_IO_FINISH, n);
	assert_int_equal(flush(&rig, ino), -EIO);
	/* Once: it is not tried again and again. */
	assert_int_equal(zf_sim_faults_left(rig.sim), 99);
	assert_int_equal(stuck, 1);
	data_rig_drop(&rig);
}

/* ---- waiting ---- */

/* Takes room in two COLD zones, which stay active until these appends end: no other zone may be
 * active then. */
static void take_cold(struct data_rig *rig, struct zf_append_grant grants[CHUNKS])
{
	struct zf_alloc *alloc = zf_fs_alloc(rig->fs);

	assert_int_equal(zf_alloc_reserve_cold(alloc, CHUNKS * (APPEND / BLOCK)), 0);
	for (unsigned int i = 0; i < CHUNKS; i++) {
		assert_int_equal(zf_alloc_append_begin(alloc, ZF_ROLE_COLD, APPEND, &grants[i]), 0);
		assert_int_equal(grants[i].len, APPEND);
	}
	assert_int_not_equal(grants[0].zone_no, grants[CHUNKS - 1].zone_no);
}

struct flusher {
	struct data_rig *rig;
	uint64_t ino;
	int result;
};

static void *flush_file(void *arg)
{
	struct flusher *flusher = arg;

	flusher->result = flush(flusher->rig, flusher->ino);
	return NULL;
}

static bool is_waiting(struct data_rig *rig)
{
	struct zf_flush *flush = &rig->fs->flush;
	bool r;

	zf_mutex_lock(&flush->lock);
	r = !STAILQ_EMPTY(&flush->waiting) && flush->submitted == 0;
	zf_mutex_unlock(&flush->lock);
	return r;
}

static uint64_t commits(struct data_rig *rig)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(rig->fs->txn, &stats);
	return stats.commits;
}

/* The zones that reclaim is writing use up the limit. A writer only waits for these zones. */
static void an_append_waits_while_too_many_zones_are_active(void **state)
{
	const struct data_rig_options options = {
		.seed = 1, .max_active = 6, .threads = true, .commit_ms = 100000};
	struct zf_append_grant grants[CHUNKS];
	struct flusher flusher;
	struct data_rig rig;
	pthread_t thread;
	uint64_t before;

	(void)state;
	data_rig_init(&rig, &options);
	flusher = (struct flusher){.rig = &rig, .ino = data_rig_make(&rig, "file")};
	take_cold(&rig, grants);
	data_rig_write_pattern(&rig, flusher.ino, 1, 0, APPEND);
	before = commits(&rig);
	assert_int_equal(pthread_create(&thread, NULL, flush_file, &flusher), 0);
	while (!is_waiting(&rig))
		sched_yield();
	for (unsigned int i = 0; i < CHUNKS; i++)
		zf_alloc_append_end(zf_fs_alloc(rig.fs), &grants[i], -EIO);
	pthread_join(thread, NULL);
	assert_int_equal(flusher.result, 0);
	assert_int_equal(commits(&rig), before);
	data_rig_expect(&rig, flusher.ino, 1, 0, APPEND);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_append_finds_a_zone_though_others_wait_for_it),
		cmocka_unit_test(a_zone_that_cannot_be_finished_is_told_of),
		cmocka_unit_test(an_append_waits_while_too_many_zones_are_active),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The phases of a commit, the order of its writes, and the state that failures leave. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "alloc/reclaim.h"
#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "rig.h"
#include "txn/txn_internal.h"

static const struct zf_geometry roomy = {
	.zone_size = 256 * 1024,
	.zone_capacity = 252 * 1024,
	.zone_count = 32,
	.append_limit = 16 * 1024,
	.volatile_cache = true,
};

/* Items of 900 bytes whose leaves take more than one of its zones. */
#define MORE_THAN_A_ZONE 320u

static void what_is_edited_after_the_freeze_belongs_to_the_next_commit(void **state)
{
	struct rig rig;
	struct rig_table frozen;
	uint64_t generation;

	rig_open(&rig, &roomy, 0);
	assert_int_equal(rig_put(&rig, 1, 100), 0);
	assert_int_equal(rig_put(&rig, 2, 100), 0);
	generation = zf_txn_running(rig.txn);
	frozen = rig.now;
	assert_int_equal(zf_txn_freeze(rig.txn), 0);
	assert_int_equal(zf_txn_running(rig.txn), generation + 1);
	assert_int_equal(rig_put(&rig, 1, 100), 0);
	assert_int_equal(zf_txn_write(rig.txn), 0);
	assert_int_equal(rig_delete(&rig, 2), 0);
	assert_int_equal(rig_put(&rig, 3, 100), 0);
	assert_true(zf_txn_durable(rig.txn) < generation);
	assert_int_equal(zf_txn_finish(rig.txn), 0);
	assert_int_equal(zf_txn_durable(rig.txn), generation);
	assert_true(zf_txn_is_dirty(rig.txn));
	rig_assert_holds(&rig, &rig.now);
	rig_abandon(&rig);
	rig_mount(&rig);
	rig_assert_holds(&rig, &frozen);
	rig_assert_sound(&rig);
	rig_close(&rig);
}

static void what_was_not_finished_is_not_there_after_a_crash(void **state)
{
	struct rig rig;
	struct rig_table committed;

	for (unsigned int phases = 0; phases <= 2; phases++) {
		rig_open(&rig, &roomy, 0);
		assert_int_equal(rig_put(&rig, 1, 100), 0);
		assert_int_equal(zf_txn_commit(rig.txn, false), 0);
		committed = rig.now;
		assert_int_equal(rig_put(&rig, 1, 100), 0);
		if (phases >= 1)
			assert_int_equal(zf_txn_freeze(rig.txn), 0);
		if (phases >= 2)
			assert_int_equal(zf_txn_write(rig.txn), 0);
		rig_abandon(&rig);
		rig_mount(&rig);
		rig_assert_holds(&rig, &committed);
		rig_close(&rig);
	}
}

static void nothing_is_committed_of_nothing_unless_forced(void **state)
{
	struct rig rig;
	uint64_t durable, running;

	rig_open(&rig, &roomy, 0);
	assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	durable = zf_txn_durable(rig.txn);
	running = zf_txn_running(rig.txn);
	assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	assert_int_equal(zf_txn_sync(rig.txn), 0);
	assert_int_equal(zf_txn_durable(rig.txn), durable);
	assert_int_equal(zf_txn_commit(rig.txn, true), 0);
	assert_int_equal(zf_txn_durable(rig.txn), running);
	rig_close(&rig);
}

/* ---- the order and form of what is written ---- */

struct record {
	uint64_t expected[32]; /* the next address in each zone; 0: any */
	unsigned int nodes, holes, flushes, supers;
	bool node_after_flush;
};

static void record(void *arg, const struct zf_io *io)
{
	struct record *record = arg;
	uint64_t at = io->addr, zone = at / roomy.zone_size;

	if (io->op == ZF_IO_FLUSH) {
		record->flushes++;
		record->node_after_flush = false;
		return;
	}
	if (io->op != ZF_IO_WRITE)
		return;
	assert_int_equal(io->result, 0);
	if (zone < 2) {
		assert_true(io->fua);
		assert_false(record->node_after_flush);
		record->supers++;
		return;
	}
	record->node_after_flush = true;
	if (record->expected[zone])
		assert_int_equal(at, record->expected[zone]);
	record->expected[zone] = at + io->len;
	for (unsigned int i = 0; i < io->iovcnt; i++) {
		const uint8_t *bytes = io->iov[i].iov_base;
		bool zero = true;

		for (size_t b = 0; b < io->iov[i].iov_len; b++)
			zero &= bytes[b] == 0;
		*(zero ? &record->holes : &record->nodes) += 1;
	}
}

static void a_transaction_is_one_gapless_run_with_holes_as_zeroes(void **state)
{
	struct record seen = {0};
	struct zf_txn_stats before, after;
	struct rig rig;

	rig_open(&rig, &roomy, 0);
	zf_txn_get_stats(rig.txn, &before);
	zf_dev_set_recorder(rig.dev, record, &seen);
	for (unsigned int commit = 0; commit < 40; commit++) {
		/* Leaves that are made and merged again within a transaction die before they are
		 * written. */
		for (unsigned int i = 0; i < 128; i++)
			assert_int_equal(rig_put(&rig, i, 500), 0);
		for (unsigned int i = 0; i < 124; i++)
			assert_int_equal(rig_delete(&rig, i), 0);
		assert_int_equal(zf_txn_commit(rig.txn, false), 0);
		assert_int_equal(seen.supers, commit + 1);
		assert_int_equal(seen.flushes, commit + 1);
	}
	zf_dev_set_recorder(rig.dev, NULL, NULL);
	zf_txn_get_stats(rig.txn, &after);
	assert_true(seen.holes > 40);
	assert_int_equal(seen.nodes, after.nodes_written - before.nodes_written);
	assert_int_equal(seen.holes, after.holes_written - before.holes_written);
	rig_assert_sound(&rig);
	rig_close(&rig);
}

/* ---- together ---- */

#define THREADS 8u

struct crowd {
	struct rig *rig;
	atomic_uint left, done;
};

static void *put_and_sync(void *arg)
{
	struct crowd *crowd = arg;
	struct zf_txn *txn = crowd->rig->txn;
	struct zf_key key = ZF_KEY(atomic_fetch_add(&crowd->done, 1) + 1, 1, 0);
	struct zf_trans trans;
	uint64_t generation;

	assert(zf_trans_join(txn, ZF_RESERVE_NORMAL, 1, true, &trans) == 0);
	assert(zf_tree_set(zf_fs_forest(crowd->rig->fs), trans.writer, ZF_TREE_SHARE, &key, "x",
			   1) == 0);
	generation = trans.generation;
	zf_trans_leave(&trans);
	atomic_fetch_sub(&crowd->left, 1);
	assert(zf_txn_sync(txn) == 0);
	assert(zf_txn_durable(txn) >= generation);
	return NULL;
}

static void threads_that_wait_for_a_commit_share_one(void **state)
{
	struct rig rig;
	struct crowd crowd = {.rig = &rig, .left = THREADS};
	pthread_t threads[THREADS];
	struct zf_txn_stats before, after;

	rig_open(&rig, &roomy, 0);
	assert_int_equal(zf_dev_start_thread(rig.dev), 0);
	zf_txn_get_stats(rig.txn, &before);
	zf_txn_pause(rig.txn);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_and_sync, &crowd), 0);
	while (atomic_load(&crowd.left) > 0)
		sched_yield();
	zf_txn_resume(rig.txn);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	zf_txn_get_stats(rig.txn, &after);
	assert_int_equal(after.commits - before.commits, 1);
	rig_close(&rig);
}

static void *commit(void *arg)
{
	return (void *)(intptr_t)zf_txn_commit(arg, true);
}

static void a_transaction_that_was_given_up_while_its_freeze_waited_is_not_committed(void **state)
{
	struct zf_trans trans, other;
	struct rig_table committed;
	struct rig rig;
	uint64_t durable;
	pthread_t thread;
	void *result;
	int r;

	rig_open(&rig, &roomy, 0);
	assert_int_equal(rig_put(&rig, 1, 100), 0);
	assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	committed = rig.now;
	durable = zf_txn_durable(rig.txn);
	assert_int_equal(zf_trans_join(rig.txn, ZF_RESERVE_NORMAL, 2, true, &trans), 0);
	assert_int_equal(rig_put_in(&rig, &trans, 2, 100), 0);
	assert_int_equal(pthread_create(&thread, NULL, commit, rig.txn), 0);
	/* A join is refused as soon as the freeze has begun. */
	zf_rank_leave(ZF_RANK_JOIN);
	while ((r = zf_trans_join(rig.txn, ZF_RESERVE_NORMAL, 1, false, &other)) == 0) {
		zf_trans_leave(&other);
		sched_yield();
	}
	zf_rank_enter(ZF_RANK_JOIN);
	assert_int_equal(r, -EAGAIN);
	zf_trans_abort(&trans, -EIO, "half an operation");
	zf_trans_leave(&trans);
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, -EROFS);
	assert_int_equal(zf_txn_durable(rig.txn), durable);
	assert_int_equal(rig_put(&rig, 3, 100), -EROFS);
	rig_abandon(&rig);
	rig_mount(&rig);
	rig_assert_holds(&rig, &committed);
	rig_close(&rig);
}

/* ---- room that is only promised ---- */

struct joiner {
	struct rig *rig;
	unsigned int items;
};

static void *join_and_leave(void *arg)
{
	const struct joiner *joiner = arg;
	struct zf_trans trans;
	int r = zf_trans_join(joiner->rig->txn, ZF_RESERVE_FREEING, joiner->items, true, &trans);

	if (r == 0)
		zf_trans_leave(&trans);
	return (void *)(intptr_t)r;
}

/* Data that lands joins the transaction like this. If the join failed, answered data would be
 * lost. */
static void a_join_waits_for_room_that_was_only_promised_to_another(void **state)
{
	struct joiner joiner = {.items = 1};
	struct zf_trans trans;
	struct rig rig;
	pthread_t thread;
	void *result;

	rig_open(&rig, &rig_tiny, 0);
	for (unsigned int i = 0; i < 180; i++)
		assert_int_equal(rig_put(&rig, i, 900), 0);
	/* After this a commit has no more room to give back. */
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(zf_txn_commit(rig.txn, false), 0);
		assert_true(zf_txn_tidy(rig.txn, true) >= 0);
	}
	joiner.rig = &rig;
	while (zf_trans_join(rig.txn, ZF_RESERVE_FREEING, joiner.items, false, &trans) == 0) {
		zf_trans_leave(&trans);
		joiner.items++;
	}
	joiner.items--;
	assert_int_equal(zf_trans_join(rig.txn, ZF_RESERVE_FREEING, joiner.items, false, &trans),
			 0);
	assert_int_equal(pthread_create(&thread, NULL, join_and_leave, &joiner), 0);
	/* By then the join has failed, or it waits. */
	usleep(100000);
	zf_trans_leave(&trans);
	pthread_join(thread, &result);
	assert_int_equal((intptr_t)result, 0);
	rig_close(&rig);
}

/* ---- the bound of what is dirty ---- */

#define BOUND (UINT64_C(512) << 10) /* half of the rig's cache */

static uint64_t running_bytes(struct rig *rig)
{
	return zf_forest_running_bytes(zf_fs_forest(rig->fs));
}

static void put_all(struct rig *rig)
{
	for (unsigned int n = 0; n < RIG_ITEMS; n++)
		assert_int_equal(rig_put(rig, n, 900), 0);
}

/* Without this bound, deleting a tree would take as much memory as the tree's leaves. */
static void removals_are_held_to_the_bound_of_dirty_nodes_too(void **state)
{
	uint64_t committed, most = 0;
	struct rig rig;

	rig_open(&rig, &roomy, 0);
	put_all(&rig);
	assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	committed = zf_txn_durable(rig.txn);
	for (unsigned int n = 0; n < RIG_ITEMS; n += 4) {
		assert_int_equal(rig_delete(&rig, n), 0);
		most = running_bytes(&rig) > most ? running_bytes(&rig) : most;
	}
	assert_true(zf_txn_durable(rig.txn) > committed);
	assert_in_range(most, BOUND / 2, BOUND + BOUND / 8);
	rig_close(&rig);
}

static void operations_slow_down_only_while_a_commit_falls_behind(void **state)
{
	struct rig rig;

	rig_open(&rig, &roomy, 0);
	assert_int_equal(rig_put(&rig, 0, 900), 0);
	assert_int_equal(zf_txn_freeze(rig.txn), 0);
	assert_false(zf_txn_is_crowded(rig.txn));
	for (unsigned int n = 0; running_bytes(&rig) <= BOUND / 2 + 16384; n++)
		assert_int_equal(rig_put(&rig, n, 900), 0);
	assert_true(zf_txn_is_crowded(rig.txn));
	assert_int_equal(zf_txn_write(rig.txn), 0);
	assert_int_equal(zf_txn_finish(rig.txn), 0);
	assert_false(zf_txn_is_crowded(rig.txn));
	rig_close(&rig);
}

static void much_that_is_dirty_is_committed_without_being_asked(void **state)
{
	const struct zf_mount_options options = {
		.cache_bytes = 1 << 20, .threads = true, .commit_ms = 3600000};
	uint64_t committed;
	struct rig rig;

	rig_open(&rig, &roomy, 0);
	rig_abandon(&rig);
	assert_int_equal(zf_memory_open(rig.memory, NULL, NULL, &rig.dev), 0);
	assert_int_equal(zf_dev_start_thread(rig.dev), 0);
	assert_int_equal(zf_fs_mount(rig.dev, &options, NULL, &rig.fs), 0);
	rig.txn = zf_fs_txn(rig.fs);
	committed = zf_txn_durable(rig.txn);
	for (unsigned int n = 0; n < RIG_ITEMS && zf_txn_durable(rig.txn) == committed; n++) {
		assert_true(running_bytes(&rig) <= BOUND);
		assert_int_equal(rig_put(&rig, n, 900), 0);
		if (running_bytes(&rig) > BOUND / 4 * 3 + 16384)
			break;
	}
	for (unsigned int i = 0; i < 10000 && zf_txn_durable(rig.txn) == committed; i++)
		usleep(1000);
	assert_true(zf_txn_durable(rig.txn) > committed);
	rig_close(&rig);
}

/* ---- failures ---- */

/* Every command of a commit fails in turn, until a commit has no further command that could
 * fail. */
static void a_failed_command_leaves_the_last_commit_and_nothing_is_written_after_it(void **state)
{
	unsigned int failed = 0;
	bool through = false;

	for (uint64_t nth = 1; !through; nth++) {
		struct zf_sim_fault fault = {.op = ZF_SIM_ANY_OP, .nth = nth, .error = -EIO};
		struct rig_table committed;
		struct rig rig;
		uint64_t commands;
		int r;

		rig_open(&rig, &roomy, nth);
		for (unsigned int i = 0; i < 128; i++)
			assert_int_equal(rig_put(&rig, i, 900), 0);
		assert_int_equal(zf_txn_commit(rig.txn, false), 0);
		committed = rig.now;
		for (unsigned int i = 0; i < 128; i++)
			assert_int_equal(rig_put(&rig, i, 900), 0);
		zf_sim_add_fault(rig.sim, &fault);
		r = zf_txn_commit(rig.txn, false);
		through = zf_sim_faults_left(rig.sim) > 0;
		if (through) {
			assert_int_equal(r, 0);
			rig_close(&rig);
			break;
		}
		failed++;
		assert_int_equal(r, -EIO);
		assert_int_equal(zf_txn_error(rig.txn), -EIO);
		assert_true(rig.complaints > 0);
		commands = zf_sim_commands(rig.sim);
		assert_int_equal(rig_put(&rig, 1, 100), -EROFS);
		assert_int_equal(zf_txn_commit(rig.txn, true), -EROFS);
		assert_int_equal(zf_txn_sync(rig.txn), -EROFS);
		while (zf_txn_tidy(rig.txn, true) == ZF_TIDY_DID)
			;
		assert_int_equal(zf_sim_commands(rig.sim), commands);
		rig_abandon(&rig);
		rig_mount(&rig);
		rig_assert_holds(&rig, &committed);
		rig_close(&rig);
	}
	assert_true(failed >= 3); /* nodes, flush, superblock */
}

static void assert_label(struct rig *rig, const char *expected)
{
	char label[ZF_SUPER_LABEL_SIZE];

	zf_txn_get_label(rig->txn, label);
	assert_string_equal(label, expected);
}

/* Every command of a change of the label fails in turn. The label then is the old one, also at the
 * next mount. */
static void a_label_is_durable_or_stays_the_old_one(void **state)
{
	const char first[ZF_SUPER_LABEL_SIZE] = "first", second[ZF_SUPER_LABEL_SIZE] = "second";
	unsigned int failed = 0;
	bool through = false;

	for (uint64_t nth = 1; !through; nth++) {
		struct zf_sim_fault fault = {.op = ZF_SIM_ANY_OP, .nth = nth, .error = -EIO};
		struct rig_table committed;
		struct rig rig;
		int r;

		rig_open(&rig, &roomy, nth);
		assert_int_equal(rig_put(&rig, 1, 900), 0);
		assert_int_equal(zf_txn_set_label(rig.txn, first), 0);
		committed = rig.now;
		zf_sim_add_fault(rig.sim, &fault);
		r = zf_txn_set_label(rig.txn, second);
		through = zf_sim_faults_left(rig.sim) > 0;
		assert_int_equal(r, through ? 0 : -EIO);
		assert_label(&rig, through ? "second" : "first");
		failed += !through;
		if (!through)
			assert_int_equal(zf_txn_set_label(rig.txn, second), -EROFS);
		rig_abandon(&rig);
		rig_mount(&rig);
		assert_label(&rig, through ? "second" : "first");
		rig_assert_holds(&rig, &committed);
		rig_close(&rig);
	}
	assert_true(failed >= 2); /* nodes, superblock */
}

static void go_on_with_one_copy(struct rig *rig)
{
	rig->complaints = 0;
	for (unsigned int i = 0; i < 300; i++) {
		assert_int_equal(rig_put(rig, 3 + i % 100, 900), 0);
		assert_int_equal(zf_txn_commit(rig->txn, false), 0);
		while (zf_txn_tidy(rig->txn, false) == ZF_TIDY_DID)
			;
		if (i % 100 != 50)
			continue;
		rig_abandon(rig);
		rig_mount(rig);
		rig_assert_holds(rig, &rig->now);
	}
	assert_int_equal(zf_txn_error(rig->txn), 0);
	assert_int_equal(rig->complaints, 0);
}

static unsigned int count_damaged(const struct rig *rig)
{
	unsigned int n = 0;

	for (uint32_t z = 0; z < roomy.zone_count; z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(zf_fs_alloc(rig->fs), z, &zone);
		n += zone.damaged;
	}
	return n;
}

/*
 * Every node write of a commit of so many edits fails in turn, and the other copy carries on.
 * Returns how many writes there are.
 */
static unsigned int fail_writes_of_one_copy(unsigned int edits)
{
	for (unsigned int nth = 1;; nth++) {
		struct zf_sim_fault fault = {.op = ZF_IO_WRITE, .nth = nth, .error = -EIO};
		struct rig rig;

		rig_open_copies(&rig, &roomy, nth, 2);
		for (unsigned int i = 0; i < edits; i++)
			assert_int_equal(rig_put(&rig, i, 900), 0);
		zf_sim_add_fault(rig.sim, &fault);
		/* Two edits of the next transaction follow before this one is finished. */
		assert_int_equal(zf_txn_freeze(rig.txn), 0);
		assert_int_equal(rig_put(&rig, edits, 900), 0);
		assert_int_equal(zf_txn_write(rig.txn), 0);
		if (zf_sim_faults_left(rig.sim) > 0) {
			assert_int_equal(rig.complaints, 0);
			rig_close(&rig);
			return nth - 1;
		}
		assert_int_equal(rig.complaints, 1);
		assert_int_equal(count_damaged(&rig), 1);
		assert_int_equal(rig_put(&rig, edits + 1, 900), 0);
		assert_int_equal(zf_txn_finish(rig.txn), 0);
		assert_int_equal(zf_txn_commit(rig.txn, true), 0);
		go_on_with_one_copy(&rig);
		rig_close(&rig);
	}
}

/* Metadata has two copies, which take one zone each, or several. */
static void with_two_copies_a_failed_write_costs_one_copy_and_no_more(void **state)
{
	unsigned int few = fail_writes_of_one_copy(1);

	assert_true(few > 1);
	assert_true(fail_writes_of_one_copy(MORE_THAN_A_ZONE) > few);
}

/* ---- zones ---- */

struct resets {
	struct rig *rig;
	uint32_t zone_no;
	unsigned int count;
	uint64_t emptied_min; /* generation that must be durable before */
};

static void record_reset(void *arg, const struct zf_io *io)
{
	struct resets *resets = arg;

	if (io->op != ZF_IO_RESET || io->addr / rig_tiny.zone_size != resets->zone_no)
		return;
	resets->count++;
	assert_true(zf_txn_durable(resets->rig->txn) >= resets->emptied_min);
}

static void a_metadata_zone_is_emptied_and_reset_only_after_the_next_commit(void **state)
{
	struct rig rig;
	struct resets resets = {.rig = &rig};
	int r;

	rig_open(&rig, &rig_tiny, 0);
	for (unsigned int i = 0; i < 60; i++) {
		assert_int_equal(rig_put(&rig, i, 400), 0);
		assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	}
	while (zf_alloc_meta_victim(zf_fs_alloc(rig.fs), true, &resets.zone_no) < 0) {
		assert_int_equal(rig_put(&rig, 1, 400), 0);
		assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	}
	zf_alloc_read_end(zf_fs_alloc(rig.fs), resets.zone_no * rig_tiny.zone_size);
	/* First gives back everything else that can be given back. */
	while (zf_txn_tidy(rig.txn, false) == ZF_TIDY_DID)
		;
	zf_dev_set_recorder(rig.dev, record_reset, &resets);
	assert_int_equal(zf_alloc_meta_victim(zf_fs_alloc(rig.fs), true, &resets.zone_no), 0);
	zf_alloc_read_end(zf_fs_alloc(rig.fs), resets.zone_no * rig_tiny.zone_size);
	resets.emptied_min = zf_txn_running(rig.txn) + 1;
	do {
		r = zf_txn_tidy(rig.txn, true);
	} while (r == ZF_TIDY_DID);
	assert_int_equal(r, ZF_TIDY_EMPTIED);
	/* The recorder fails if one of these gives the zone back too early. */
	while (zf_txn_tidy(rig.txn, false) == ZF_TIDY_DID)
		;
	assert_int_equal(zf_txn_commit(rig.txn, true), 0);
	while (zf_txn_tidy(rig.txn, false) == ZF_TIDY_DID)
		;
	assert_int_equal(zf_txn_commit(rig.txn, true), 0);
	while (zf_txn_tidy(rig.txn, false) == ZF_TIDY_DID)
		;
	zf_dev_set_recorder(rig.dev, NULL, NULL);
	assert_int_equal(resets.count, 1);
	rig_assert_holds(&rig, &rig.now);
	rig_assert_sound(&rig);
	rig_close(&rig);
}

/* Commits until a full zone holds nodes of the zone tree. Returns the first such zone. */
static uint32_t fill_zone_of_system(struct rig *rig)
{
	for (unsigned int i = 0;; i++) {
		for (uint32_t z = 2; z < zf_dev_geometry(rig->dev)->zone_count; z++) {
			struct zf_zone zone;

			zf_alloc_get_zone(zf_fs_alloc(rig->fs), z, &zone);
			if (zone.role == ZF_ROLE_META && zone.system_live > 0 &&
			    zone.pointer == zone.capacity)
				return z;
		}
		assert_true(i < 100);
		assert_int_equal(rig_put(rig, i % 8, 400), 0);
		assert_int_equal(zf_txn_commit(rig->txn, false), 0);
	}
}

/* A commit writes a leaf of the zone tree whose zones have not changed only to move the leaf. */
static void leaves_of_the_zone_tree_move_too(void **state)
{
	struct zf_geometry geometry = rig_tiny;
	struct zf_zone zone;
	struct rig rig;
	uint32_t zone_no;

	(void)state;
	geometry.zone_count = 400; /* several leaves */
	rig_open(&rig, &geometry, 0);
	zone_no = fill_zone_of_system(&rig);
	zf_alloc_get_zone(zf_fs_alloc(rig.fs), zone_no, &zone);
	assert_int_equal(
		zf_txn_move_nodes_of(rig.txn, zone_no, zone.pointer << ZF_BLOCK_SHIFT, zone_no), 0);
	assert_int_equal(zf_txn_commit(rig.txn, true), 0);
	assert_int_equal(zf_txn_commit(rig.txn, true), 0);
	zf_alloc_get_zone(zf_fs_alloc(rig.fs), zone_no, &zone);
	assert_int_equal(zone.live + zone.system_live, 0);
	rig_assert_sound(&rig);
	rig_close(&rig);
}

static void the_record_says_clean_after_an_unmount_and_only_then(void **state)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;
	struct rig rig;

	rig_open(&rig, &roomy, 0);
	for (unsigned int round = 0; round < 3; round++) {
		assert_int_equal(rig_put(&rig, 1, 100), 0);
		assert_int_equal(zf_txn_commit(rig.txn, false), 0);
		assert_int_equal(zf_ring_open(rig.dev, NULL, &ring), 0);
		assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
		assert_false(super->clean);
		zf_ring_close(ring);
		assert_int_equal(zf_fs_unmount(rig.fs), 0);
		assert_int_equal(zf_ring_open(rig.dev, NULL, &ring), 0);
		assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
		assert_true(super->clean);
		zf_ring_close(ring);
		zf_dev_close(rig.dev);
		rig_mount(&rig);
	}
	rig_close(&rig);
}

static void commits_of_nothing_do_no_harm_to_a_full_filesystem(void **state)
{
	unsigned int items = 0, refused = 0;
	struct rig rig;
	int r;

	rig_open(&rig, &rig_tiny, 0);
	while (rig_put(&rig, items, 900) == 0)
		items++;
	assert_true(items > 100);
	for (unsigned int i = 0; i < 300; i++) {
		r = zf_txn_commit(rig.txn, true);
		assert_true(r == 0 || r == -ENOSPC);
		refused += r < 0;
	}
	assert_int_equal(zf_txn_error(rig.txn), 0);
	rig_assert_holds(&rig, &rig.now);
	/* P5: removed items make room. */
	while (items > 40)
		assert_int_equal(rig_delete(&rig, --items), 0);
	for (unsigned int i = 0; i < 500; i++)
		assert_int_equal(rig_put(&rig, i % 60, 900), 0);
	assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	rig_abandon(&rig);
	rig_mount(&rig);
	rig_assert_holds(&rig, &rig.now);
	rig_close(&rig);
	print_message("%u items fit, %u commits refused\n", items, refused);
}

static void metadata_gets_its_zone_though_a_crash_left_all_active_ones_in_use(void **state)
{
	static const uint8_t zeroes[ZF_BLOCK_SIZE] __attribute__((aligned(ZF_BLOCK_SIZE)));
	struct zf_memory_options options = {0};
	struct zf_zone_info info;
	unsigned int written = 0;
	struct rig rig;

	rig_open(&rig, &rig_tiny, 0);
	assert_int_equal(rig_put(&rig, 1, 100), 0);
	assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	rig_abandon(&rig);
	/* The zones look as if lost transactions had filled one zone and begun another, several
	 * times. */
	assert_int_equal(zf_memory_open(rig.memory, &options, NULL, &rig.dev), 0);
	for (uint32_t z = 2; z < rig_tiny.zone_count; z++) {
		assert_int_equal(zf_dev_report(rig.dev, z, 1, &info), 0);
		if (info.cond != ZF_ZONE_EMPTY && info.cond != ZF_ZONE_FULL)
			assert_int_equal(zf_dev_finish(rig.dev, z), 0);
		else if (info.cond == ZF_ZONE_EMPTY && written < rig_tiny.max_active - 1) {
			assert_int_equal(zf_dev_write_sync(rig.dev, info.start, zeroes,
							   sizeof(zeroes), false),
					 0);
			written++;
		}
	}
	zf_dev_close(rig.dev);
	rig_mount(&rig);
	assert_int_equal(rig_put(&rig, 2, 100), 0);
	assert_int_equal(zf_txn_commit(rig.txn, false), 0);
	rig_assert_holds(&rig, &rig.now);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_edited_after_the_freeze_belongs_to_the_next_commit),
		cmocka_unit_test(what_was_not_finished_is_not_there_after_a_crash),
		cmocka_unit_test(nothing_is_committed_of_nothing_unless_forced),
		cmocka_unit_test(a_transaction_is_one_gapless_run_with_holes_as_zeroes),
		cmocka_unit_test(threads_that_wait_for_a_commit_share_one),
		cmocka_unit_test(a_join_waits_for_room_that_was_only_promised_to_another),
		cmocka_unit_test(removals_are_held_to_the_bound_of_dirty_nodes_too),
		cmocka_unit_test(operations_slow_down_only_while_a_commit_falls_behind),
		cmocka_unit_test(much_that_is_dirty_is_committed_without_being_asked),
		cmocka_unit_test(
			a_transaction_that_was_given_up_while_its_freeze_waited_is_not_committed),
		cmocka_unit_test(
			a_failed_command_leaves_the_last_commit_and_nothing_is_written_after_it),
		cmocka_unit_test(a_label_is_durable_or_stays_the_old_one),
		cmocka_unit_test(with_two_copies_a_failed_write_costs_one_copy_and_no_more),
		cmocka_unit_test(a_metadata_zone_is_emptied_and_reset_only_after_the_next_commit),
		cmocka_unit_test(commits_of_nothing_do_no_harm_to_a_full_filesystem),
		cmocka_unit_test(metadata_gets_its_zone_though_a_crash_left_all_active_ones_in_use),
		cmocka_unit_test(leaves_of_the_zone_tree_move_too),
		cmocka_unit_test(the_record_says_clean_after_an_unmount_and_only_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

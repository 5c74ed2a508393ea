/* SPDX-License-Identifier: MIT */
/* Reclaim on a device that fails, and of blocks that differ from what was written (P4). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/map/summary.h"
#include "fs/space/reclaim.h"

#define BLOCK  4096u
#define BLOCKS 24u /* of each file */

static const struct data_rig_options tiny = {
	.seed = 1, .zone_size = 256 << 10, .append_limit = 128 << 10, .node_size = 4096};

/* Two files side by side, one of which has a copy that shares its bytes; and garbage. */
struct victim {
	struct data_rig rig;
	uint64_t plain, shared, copy;
	uint32_t zone_no;
	uint64_t
		address; /* of the plain file's first block; the shared one's lie behind its last */
};

static struct zf_zone get_zone(struct data_rig *rig, uint32_t zone_no)
{
	struct zf_zone zone;

	zf_alloc_get_zone(zf_fs_alloc(rig->fs), zone_no, &zone);
	return zone;
}

static uint64_t address_of(struct data_rig *rig, uint64_t ino)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	assert_true(extents.count > 0);
	return extents.at[0].address;
}

static uint64_t make(struct data_rig *rig, const char *name, uint64_t seed, uint64_t blocks)
{
	uint64_t ino = data_rig_make(rig, name);

	data_rig_write_pattern(rig, ino, seed, 0, blocks * BLOCK);
	data_rig_sync(rig);
	return ino;
}

static void victim_init(struct victim *victim, uint64_t seed)
{
	struct data_rig_options options = tiny;
	struct data_rig *rig = &victim->rig;
	uint64_t filler;

	options.seed = seed;
	data_rig_init(rig, &options);
	victim->plain = make(rig, "plain", 1, BLOCKS);
	victim->shared = make(rig, "shared", 2, BLOCKS);
	/* The filler makes the zone full, so that no stream owns it. */
	filler = make(rig, "filler", 3, 64);
	data_rig_unlink(rig, "filler", filler);
	victim->copy = data_rig_make(rig, "copy");
	assert_int_equal(zf_fs_copy_range(rig->fs, &rig->ctx, victim->shared, 0, victim->copy, 0,
					  BLOCKS * BLOCK),
			 BLOCKS * BLOCK);
	data_rig_sync(rig);
	victim->address = address_of(rig, victim->plain);
	assert_int_equal(address_of(rig, victim->shared), victim->address + BLOCKS * BLOCK);
	victim->zone_no = zf_zone_of(zf_dev_geometry(rig->dev), victim->address);
	assert_int_equal(get_zone(rig, victim->zone_no).live, 2 * BLOCKS);
}

static void expect_all(struct victim *victim)
{
	data_rig_expect(&victim->rig, victim->plain, 1, 0, BLOCKS * BLOCK);
	data_rig_expect(&victim->rig, victim->shared, 2, 0, BLOCKS * BLOCK);
	data_rig_expect(&victim->rig, victim->copy, 2, 0, BLOCKS * BLOCK);
}

static void get_back(struct data_rig *rig)
{
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(zf_txn_commit(rig->fs->txn, true), 0);
		while (zf_txn_tidy(rig->fs->txn, true) == ZF_TIDY_DID)
			;
	}
}

/* ---- commands that fail ---- */

/* Moves the zone's data, makes that durable, and resets the zone, as far as the fault allows. */
static void reclaim_and_get_back(struct victim *victim)
{
	struct data_rig *rig = &victim->rig;
	int r = zf_reclaim_zone(rig->fs, victim->zone_no);

	for (unsigned int i = 0; r >= 0 && i < 3; i++) {
		r = zf_txn_commit(rig->fs->txn, true);
		while (r >= 0 && zf_txn_tidy(rig->fs->txn, true) == ZF_TIDY_DID)
			;
	}
}

/* The nth command of a kind fails. False: there was none. */
static bool fail_one(struct zf_sim_fault fault)
{
	struct victim victim;
	struct data_rig *rig = &victim.rig;

	victim_init(&victim, 100 + fault.nth);
	rig->errors_expected = true;
	zf_sim_add_fault(rig->sim, &fault);
	reclaim_and_get_back(&victim);
	if (zf_sim_faults_left(rig->sim) > 0) {
		data_rig_drop(rig);
		return false;
	}
	expect_all(&victim);
	data_rig_crash(rig);
	expect_all(&victim);
	/* The next try works. */
	if (get_zone(rig, victim.zone_no).live > 0)
		(void)zf_reclaim_zone(rig->fs, victim.zone_no);
	data_rig_remount(rig);
	expect_all(&victim);
	data_rig_deinit(rig);
	return true;
}

static void fail_each(struct zf_sim_fault fault, unsigned int least)
{
	fault.error = -EIO;
	for (fault.nth = 1; fail_one(fault);)
		fault.nth++;
	assert_true(fault.nth > least);
}

static void whatever_fails_all_files_are_whole(void **state)
{
	(void)state;
	fail_each((struct zf_sim_fault){.op = ZF_SIM_ANY_OP}, 6);
	fail_each((struct zf_sim_fault){.op = ZF_SIM_ANY_OP, .moves_pointer = true}, 6);
	fail_each((struct zf_sim_fault){.op = ZF_IO_READ}, 2);
}

int __real_zf_summary_insert(struct zf_fs *fs, struct zf_trans *trans, uint64_t ino,
			     uint64_t offset, uint64_t address, const uint64_t *csums,
			     unsigned int count);
int __wrap_zf_summary_insert(struct zf_fs *fs, struct zf_trans *trans, uint64_t ino,
			     uint64_t offset, uint64_t address, const uint64_t *csums,
			     unsigned int count);

static unsigned int summary_fails_in; /* so many calls; 0: never */

int __wrap_zf_summary_insert(struct zf_fs *fs, struct zf_trans *trans, uint64_t ino,
			     uint64_t offset, uint64_t address, const uint64_t *csums,
			     unsigned int count)
{
	if (summary_fails_in > 0 && --summary_fails_in == 0)
		return -EIO;
	return __real_zf_summary_insert(fs, trans, ino, offset, address, csums, count);
}

/* Data is committed at its new place only if the summary tree has an entry for that place. */
static void what_is_moved_by_half_is_not_committed(void **state)
{
	(void)state;
	/* The summary entry of the plain file fails, then that of the shared file. */
	for (unsigned int nth = 1; nth <= 2; nth++) {
		struct victim victim;
		struct data_rig *rig = &victim.rig;

		victim_init(&victim, 4);
		rig->errors_expected = true;
		summary_fails_in = nth;
		(void)zf_reclaim_zone(rig->fs, victim.zone_no);
		assert_int_equal(summary_fails_in, 0);
		assert_int_equal(zf_txn_commit(rig->fs->txn, true), -EROFS);
		data_rig_crash(rig);
		expect_all(&victim);
		data_rig_deinit(rig);
	}
}

int __real_zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
			 bool may_wait, struct zf_trans *ret_trans);
int __wrap_zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
			 bool may_wait, struct zf_trans *ret_trans);

static unsigned int joins_without_room; /* of the next for the system */

int __wrap_zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
			 bool may_wait, struct zf_trans *ret_trans)
{
	if (class == ZF_RESERVE_SYSTEM && joins_without_room > 0) {
		joins_without_room--;
		return -ENOSPC;
	}
	return __real_zf_trans_join(txn, class, items, may_wait, ret_trans);
}

static void where_there_is_no_room_to_swap_a_commit_makes_some(void **state)
{
	struct victim victim;
	struct data_rig *rig = &victim.rig;
	uint64_t durable;

	(void)state;
	victim_init(&victim, 5);
	durable = zf_txn_durable(rig->fs->txn);
	joins_without_room = 1;
	assert_int_equal(zf_reclaim_zone(rig->fs, victim.zone_no), 1);
	assert_int_equal(joins_without_room, 0);
	assert_true(zf_txn_durable(rig->fs->txn) > durable);
	expect_all(&victim);
	data_rig_deinit(rig);
}

/* A failed append is made once more, in another zone. */
static void what_could_not_be_appended_goes_elsewhere(void **state)
{
	(void)state;
	for (unsigned int moves = 0; moves < 2; moves++) {
		const struct zf_sim_fault fault = {
			.op = ZF_IO_APPEND, .nth = 1, .error = -EIO, .moves_pointer = moves};
		struct victim victim;
		struct data_rig *rig = &victim.rig;

		victim_init(&victim, 2);
		zf_sim_add_fault(rig->sim, &fault);
		assert_int_equal(zf_reclaim_zone(rig->fs, victim.zone_no), 1);
		assert_int_equal(zf_sim_faults_left(rig->sim), 0);
		assert_int_equal(get_zone(rig, victim.zone_no).live, 0);
		expect_all(&victim);
		get_back(rig);
		assert_int_equal(get_zone(rig, victim.zone_no).pointer, 0);
		data_rig_crash(rig);
		expect_all(&victim);
		data_rig_deinit(rig);
	}
}

/* Appends to the other zone fail, too. The files stay where they are until the device works
 * again. */
static void what_cannot_be_appended_at_all_stays(void **state)
{
	struct victim victim;
	struct data_rig *rig = &victim.rig;

	(void)state;
	victim_init(&victim, 3);
	for (unsigned int i = 1; i <= 2; i++) {
		const struct zf_sim_fault fault = {.op = ZF_IO_APPEND, .nth = i, .error = -EIO};

		zf_sim_add_fault(rig->sim, &fault);
	}
	assert_int_equal(zf_reclaim_zone(rig->fs, victim.zone_no), -EIO);
	assert_int_equal(zf_sim_faults_left(rig->sim), 0);
	assert_int_equal(get_zone(rig, victim.zone_no).live, 2 * BLOCKS);
	assert_false(get_zone(rig, victim.zone_no).stuck);
	expect_all(&victim);
	get_back(rig);
	assert_int_equal(zf_reclaim_zone(rig->fs, victim.zone_no), 1);
	assert_int_equal(get_zone(rig, victim.zone_no).live, 0);
	expect_all(&victim);
	data_rig_deinit(rig);
}

/* ---- blocks that are not what was written ---- */

static void damage(struct victim *victim, uint64_t address)
{
	uint8_t block[BLOCK];

	zf_sim_peek(victim->rig.sim, address, block);
	block[100] ^= 1;
	zf_sim_poke(victim->rig.sim, address, block);
	victim->rig.errors_expected = true;
}

static void expect_eio(struct data_rig *rig, uint64_t ino, uint64_t block)
{
	uint8_t got[BLOCK];

	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, ino, block * BLOCK, got, BLOCK), -EIO);
}

/* The file has all blocks but one, which cannot be read. */
static void expect_but(struct data_rig *rig, uint64_t ino, uint64_t seed, uint64_t block)
{
	data_rig_expect(rig, ino, seed, 0, block * BLOCK);
	data_rig_expect(rig, ino, seed, (block + 1) * BLOCK, (BLOCKS - 1 - block) * BLOCK);
	expect_eio(rig, ino, block);
}

/* The last report names file, offset and device address. */
static void expect_told(struct data_rig *rig, uint64_t ino, uint64_t block, uint64_t address)
{
	char text[64];

	snprintf(text, sizeof(text), "inode %lu at offset %lu", (unsigned long)ino,
		 (unsigned long)(block * BLOCK));
	assert_non_null(strstr(rig->message, text));
	snprintf(text, sizeof(text), "%lu", (unsigned long)address);
	assert_non_null(strstr(rig->message, text));
}

/* From now on reclaim leaves the victim's zone alone, whatever it is asked to do. */
static void expect_stuck(struct victim *victim, uint32_t live)
{
	struct data_rig *rig = &victim->rig;
	struct zf_reclaim_stats stats;

	zf_reclaim_get_stats(rig->fs, &stats);
	assert_int_equal(stats.stuck, 1);
	assert_true(get_zone(rig, victim->zone_no).stuck);
	assert_int_equal(get_zone(rig, victim->zone_no).live, live);
	assert_int_equal(zf_txn_commit(rig->fs->txn, true), 0);
	assert_int_equal(zf_reclaim_zone(rig->fs, victim->zone_no), -EBUSY);
	rig->errors = 0;
	while (zf_reclaim_make_room(rig->fs) > 0)
		;
	assert_int_equal(rig->errors, 0);
	assert_int_equal(get_zone(rig, victim->zone_no).live, live);
}

static void a_bad_block_is_told_and_stays_alone(void **state)
{
	struct victim victim;
	struct data_rig *rig = &victim.rig;
	uint64_t other;

	(void)state;
	victim_init(&victim, 4);
	damage(&victim, victim.address + 5 * BLOCK);
	assert_int_equal(zf_reclaim_zone(rig->fs, victim.zone_no), 1);
	expect_told(rig, victim.plain, 5, victim.address + 5 * BLOCK);
	expect_stuck(&victim, 1);
	expect_but(rig, victim.plain, 1, 5);
	data_rig_expect(rig, victim.shared, 2, 0, BLOCKS * BLOCK);
	/* Other work goes on. A write over the bad block makes the zone reclaimable again. */
	other = make(rig, "other", 5, BLOCKS);
	data_rig_expect(rig, other, 5, 0, BLOCKS * BLOCK);
	data_rig_write_pattern(rig, victim.plain, 1, 5 * BLOCK, BLOCK);
	data_rig_sync(rig);
	get_back(rig);
	assert_int_equal(get_zone(rig, victim.zone_no).pointer, 0);
	assert_false(get_zone(rig, victim.zone_no).stuck);
	rig->errors = 0;
	rig->errors_expected = false;
	data_rig_crash(rig);
	expect_all(&victim);
	data_rig_deinit(rig);
}

static void a_bad_block_that_several_have_stays_everyones(void **state)
{
	struct victim victim;
	struct data_rig *rig = &victim.rig;

	(void)state;
	victim_init(&victim, 5);
	damage(&victim, victim.address + (BLOCKS + 7) * BLOCK);
	assert_int_equal(zf_reclaim_zone(rig->fs, victim.zone_no), 1);
	expect_told(rig, victim.copy, 7, victim.address + (BLOCKS + 7) * BLOCK);
	expect_stuck(&victim, 1);
	expect_but(rig, victim.shared, 2, 7);
	expect_but(rig, victim.copy, 2, 7);
	data_rig_expect(rig, victim.plain, 1, 0, BLOCKS * BLOCK);
	data_rig_unlink(rig, "shared", victim.shared);
	data_rig_sync(rig);
	assert_int_equal(get_zone(rig, victim.zone_no).live, 1);
	data_rig_unlink(rig, "copy", victim.copy);
	get_back(rig);
	assert_int_equal(get_zone(rig, victim.zone_no).pointer, 0);
	rig->errors = 0;
	rig->errors_expected = false;
	data_rig_deinit(rig);
}

/* The block is read once with its neighbours and once alone before it counts as bad. */
static void a_block_that_cannot_be_read_stays_and_its_neighbours_move(void **state)
{
	const struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = 1, .error = -EIO};
	struct victim victim;
	struct data_rig *rig = &victim.rig;

	(void)state;
	victim_init(&victim, 6);
	/* All nodes are in memory. */
	zf_sim_add_fault(rig->sim, &fault);
	assert_int_equal(zf_reclaim_zone(rig->fs, victim.zone_no), 1);
	assert_int_equal(get_zone(rig, victim.zone_no).live, 0);
	expect_all(&victim);
	data_rig_deinit(rig);

	victim_init(&victim, 7);
	rig->errors_expected = true;
	zf_sim_add_fault(rig->sim, &fault);
	zf_sim_add_fault(rig->sim, &(struct zf_sim_fault){ZF_IO_READ, 2, -EIO, false, false, 0});
	assert_int_equal(zf_reclaim_zone(rig->fs, victim.zone_no), 1);
	assert_int_equal(zf_sim_faults_left(rig->sim), 0);
	expect_told(rig, victim.plain, 0, victim.address);
	assert_int_equal(get_zone(rig, victim.zone_no).live, 1);
	assert_true(get_zone(rig, victim.zone_no).stuck);
	/* The device's error was temporary. */
	expect_all(&victim);
	rig->errors = 0;
	rig->errors_expected = false;
	data_rig_deinit(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_fails_all_files_are_whole),
		cmocka_unit_test(what_is_moved_by_half_is_not_committed),
		cmocka_unit_test(where_there_is_no_room_to_swap_a_commit_makes_some),
		cmocka_unit_test(what_could_not_be_appended_goes_elsewhere),
		cmocka_unit_test(what_cannot_be_appended_at_all_stays),
		cmocka_unit_test(a_bad_block_is_told_and_stays_alone),
		cmocka_unit_test(a_bad_block_that_several_have_stays_everyones),
		cmocka_unit_test(a_block_that_cannot_be_read_stays_and_its_neighbours_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

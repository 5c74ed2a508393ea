/* SPDX-License-Identifier: MIT */
/* fsync through the intent log, when other events come in between. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/data/append.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/data/describe.h"
#include "fs/data/flush.h"
#include "fs/core/inode.h"
#include "fs/data/land.h"
#include "log/log.h"

#define BLOCK 4096u

static void open_rig(struct data_rig *rig)
{
	const struct data_rig_options options = {.seed = 11};

	data_rig_init(rig, &options);
	/* The first commit names the log's zones. */
	assert_int_equal(zf_txn_commit(rig->fs->txn, true), 0);
}

/* After the gate an operation of another thread is lost. The operations listed before it are
 * dropped, too. */
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

/* A record whose data could not be put into the trees at once. */
static struct zf_append *write_record_only(struct data_rig *rig, uint64_t ino)
{
	struct zf_log_part part = {0};
	struct zf_append *rider;
	struct zf_log_body body;
	struct zf_inode *inode;
	uint64_t mark;

	assert_int_equal(zf_inode_get(rig->fs, ino, &inode), 0);
	zf_rwlock_wrlock(&inode->lock);
	assert_true(zf_log_enter(rig->fs->log));
	rider = zf_append_new(rig->fs, 1);
	assert_non_null(rider);
	zf_flush_pack(rider, inode);
	zf_append_sum(rider);
	assert_int_equal(rider->count, 1);
	assert_int_equal(zf_describe_inode(inode, rider, &body, &mark), 0);
	part.body = &body;
	part.iovcnt = zf_append_fill_iov(rider);
	part.iov = rider->iov;
	part.data_blocks = rider->count;
	assert_int_equal(zf_log_append(rig->fs->log, &part), 0);
	zf_append_arrived(rider, &part.grant, part.address);
	zf_log_body_end(&body);
	zf_log_leave(rig->fs->log);
	zf_rwlock_unlock(&inode->lock);
	zf_inode_put(inode);
	return rider;
}

static void a_commit_may_come_before_what_rode_has_landed(void **state)
{
	struct zf_append *rider;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, BLOCK);
	rider = write_record_only(&rig, ino);
	zf_append_again(rider);
	assert_int_equal(zf_txn_commit(rig.fs->txn, true), 0);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	data_rig_write_pattern(&rig, ino, 2, BLOCK, BLOCK);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, BLOCK);
	data_rig_expect(&rig, ino, 2, BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* If the held data did not land, no thread would look at the record again, and an fsync of the file
 * would wait for ever. */
static void what_was_held_because_of_a_rider_lands_after_it(void **state)
{
	struct zf_append *rider;
	struct zf_inode *inode;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, BLOCK);
	rider = write_record_only(&rig, ino);
	data_rig_write_pattern(&rig, ino, 2, BLOCK, BLOCK);
	assert_int_equal(zf_data_flush_all(rig.fs, false), 0);
	zf_dev_poll(rig.dev, true);
	assert_int_equal(zf_data_land(rig.fs), 0);
	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	zf_rwlock_wrlock(&inode->lock);
	assert_int_equal(zf_land_rider(rider), 0);
	zf_rwlock_unlock(&inode->lock);
	assert_int_equal(zf_data_land(rig.fs), 1);
	assert_false(zf_data_is_dirty(inode));
	zf_inode_put(inode);
	data_rig_expect(&rig, ino, 1, 0, BLOCK);
	data_rig_expect(&rig, ino, 2, BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* P2: the new content becomes durable with the truncation, even if the inode left memory
 * between. */
static void what_a_truncated_file_got_follows_when_it_is_closed(void **state)
{
	(void)state;
	for (unsigned int cache = 0; cache < 2; cache++) {
		const struct data_rig_options options = {.seed = 11, .cache_bytes = cache};
		struct data_rig rig;
		uint64_t ino;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		data_rig_write_pattern(&rig, ino, 1, 0, 10 * BLOCK);
		data_rig_sync(&rig);
		data_rig_truncate(&rig, ino, 0);
		data_rig_write_pattern(&rig, ino, 2, 0, 10 * BLOCK);
		assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
		assert_int_equal(zf_fs_close(rig.fs, &rig.ctx, ino), 0);
		data_rig_make(&rig, "other");
		assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ZF_INO_ROOT, false), 0);
		data_rig_crash(&rig);
		assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK);
		data_rig_expect(&rig, ino, 2, 0, 10 * BLOCK);
		data_rig_deinit(&rig);
	}
}

/* P2: the truncation is not durable before all new content has landed, here in several appends. */
static void what_a_truncated_file_got_follows_as_a_whole(void **state)
{
	const struct data_rig_options options = {.seed = 13};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 10 * BLOCK);
	data_rig_sync(&rig);
	data_rig_truncate(&rig, ino, 0);
	data_rig_write_pattern(&rig, ino, 2, 0, 200 * BLOCK);
	assert_int_equal(zf_fs_close(rig.fs, &rig.ctx, ino), 0);
	assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
	data_rig_make(&rig, "other");
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ZF_INO_ROOT, false), 0);
	data_rig_crash(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 200 * BLOCK);
	data_rig_expect(&rig, ino, 2, 0, 200 * BLOCK);
	data_rig_deinit(&rig);
}

/* Afterwards all readers see the actual state: a file with a hole. */
static void a_file_keeps_its_size_when_its_data_is_lost(void **state)
{
	(void)state;
	for (unsigned int crash = 0; crash < 2; crash++) {
		const struct data_rig_options options = {.seed = 12, .cache_bytes = 1 - crash};
		struct zf_sim_fault fault = {.op = ZF_IO_APPEND, .error = -EIO};
		struct zf_error_cursor errors;
		struct data_rig rig;
		uint64_t ino;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		data_rig_sync(&rig);
		rig.errors_expected = true;
		data_rig_write_pattern(&rig, ino, 1, 0, 10 * BLOCK);
		/* The record, and its data in another zone. */
		for (fault.nth = 1; fault.nth <= 2; fault.nth++)
			zf_sim_add_fault(rig.sim, &fault);
		zf_fs_begin_errors(rig.fs, ino, &errors);
		assert_int_equal(data_rig_fsync(&rig, ino, &errors), -EIO);
		assert_int_equal(data_rig_fsync(&rig, ino, &errors), 0);
		if (crash)
			data_rig_crash(&rig);
		assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK);
		data_rig_expect_zeroes(&rig, ino, 0, 10 * BLOCK);
		data_rig_deinit(&rig);
	}
}

/* ---- a log that cannot be read whole ---- */

static void count_unreadable(void *arg, enum zf_report_level level, const char *message)
{
	(void)level;
	*(unsigned int *)arg += strstr(message, "part of the log cannot be read") != NULL;
}

/* The epoch after a mount for which these two reads fail. 0: neither was a read of the log. */
static uint64_t epoch_after(const struct zf_sim *sim, uint64_t nth)
{
	struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = nth, .error = -EIO};
	const struct zf_mount_options options = {.abandon_log = true};
	struct zf_sim *clone = zf_sim_clone(sim);
	const struct zf_super *super;
	unsigned int unreadable = 0, stepped_over;
	struct zf_report report = {count_unreadable, &unreadable};
	struct zf_dev *dev;
	struct zf_fs *fs;
	uint64_t epoch = 0;

	assert_int_equal(zf_sim_open(clone, NULL, &dev), 0);
	zf_sim_add_fault(clone, &fault);
	fault.nth++;
	zf_sim_add_fault(clone, &fault);
	if (zf_fs_mount(dev, &options, &report, &fs) == 0) {
		assert_int_equal(zf_ring_newest(zf_fs_ring(fs), &super, &stepped_over), 0);
		epoch = unreadable > 0 ? super->log_epoch : 0;
		zf_fs_abandon(fs);
	}
	zf_dev_close(dev);
	zf_sim_free(clone);
	return epoch;
}

/* If a later mount can read the block, it must not take the record there for one of this epoch. */
static void a_log_block_that_cannot_be_read_ends_the_epoch(void **state)
{
	const struct zf_super *super;
	unsigned int stepped_over, seen = 0;
	struct data_rig rig;
	uint64_t before, ino;

	(void)state;
	open_rig(&rig);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, BLOCK);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	assert_int_equal(zf_ring_newest(zf_fs_ring(rig.fs), &super, &stepped_over), 0);
	before = super->log_epoch;
	zf_fs_abandon(rig.fs);
	zf_dev_close(rig.dev);
	zf_sim_crash(rig.sim, 1, ZF_SIM_CUT_DEVICE);
	for (uint64_t nth = 1; nth <= 40; nth++) {
		uint64_t epoch = epoch_after(rig.sim, nth);

		seen += epoch > 0;
		assert_true(epoch == 0 || epoch == before + 1);
	}
	assert_true(seen > 0);
	zf_sim_free(rig.sim);
}

/* ---- for one record and no more ---- */

static int sync_by_record(struct data_rig *rig, uint64_t ino)
{
	const struct zf_ctx ctx = {.may_wait_record = true};

	return zf_fs_fsync(rig->fs, &ctx, ino, true);
}

static void a_sync_that_needs_more_than_a_record_is_left_to_a_call_that_may_wait(void **state)
{
	struct zf_dev_stats before, after;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	open_rig(&rig);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, BLOCK);
	zf_dev_get_stats(rig.dev, &before);
	assert_int_equal(sync_by_record(&rig, ino), 0);
	zf_dev_get_stats(rig.dev, &after);
	assert_int_equal(after.appends - before.appends, 1);
	assert_int_equal(after.fua_writes - before.fua_writes, 1);
	assert_int_equal(after.writes + after.flushes, before.writes + before.flushes);
	/* More data than fits into a record. */
	data_rig_write_pattern(&rig, ino, 2, 0, 64 * BLOCK);
	assert_int_equal(sync_by_record(&rig, ino), -EAGAIN);
	zf_dev_get_stats(rig.dev, &before);
	assert_int_equal(before.writes, after.writes);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, true), 0);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 2, 0, 64 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- the first reset of a mount ---- */

struct first {
	unsigned int records; /* of the superblock, made durable ... */
	unsigned int resets;  /* ... before the first of these, of zones behind the ring */
};

static void note(void *arg, const struct zf_io *io)
{
	struct first *first = arg;

	if (io->op == ZF_IO_RESET && io->addr >= 2 * (UINT64_C(1) << 20))
		first->resets++;
	else if (io->fua && io->addr < 2 * (UINT64_C(1) << 20) && first->resets == 0)
		first->records++;
}

/*
 * An earlier mount may have been cut while it wrote a superblock record that names what is now
 * reset. So this mount first writes a record of its own to that place.
 */
static void nothing_is_reset_before_a_record_of_this_mount(void **state)
{
	struct data_rig_options options = {.seed = 11};
	static uint8_t bytes[3 << 20];
	struct first first = {0};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	data_rig_write(&rig, ino, 0, bytes, sizeof(bytes));
	assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
	data_rig_crash(&rig);
	zf_dev_set_recorder(rig.dev, note, &first);
	while (zf_txn_tidy(zf_fs_txn(rig.fs), true) == ZF_TIDY_DID)
		;
	zf_dev_set_recorder(rig.dev, NULL, NULL);
	assert_true(first.resets > 0);
	assert_int_equal(first.records, 1);
	/* The record has the same content as the one before it. */
	data_rig_crash(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 0);
	data_rig_deinit(&rig);
}

/* ---- superblocks that are damaged ---- */

/* The newest `count` of them read as zeroes. */
static void damage_superblocks(struct data_rig *rig, unsigned int count)
{
	static const uint8_t zeroes[BLOCK];
	_Alignas(8) uint8_t block[BLOCK];
	const struct zf_disk_super *disk = (const void *)block;

	for (; count > 0; count--) {
		uint64_t newest = 0, address = 0;

		for (uint64_t at = 0; at < 2 << 20; at += BLOCK) {
			struct zf_super_head head;

			zf_sim_peek(rig->sim, at, block);
			if (zf_super_decode_head(disk, at, NULL, &head) == 0 &&
			    head.generation > newest) {
				newest = head.generation;
				address = at;
			}
		}
		assert_true(newest > 0);
		zf_sim_poke(rig->sim, address, zeroes);
	}
}

static int find_oldest_leaf(void *arg, const struct zf_node_expect *expect, const void *node,
			    int error)
{
	struct zf_node_ptr *oldest = arg;

	assert_int_equal(error, 0);
	if (node && expect->level == 0 &&
	    (oldest->generation == 0 || expect->ptr.generation < oldest->generation))
		*oldest = expect->ptr;
	return 0;
}

/*
 * P4. A power cut tears one superblock record, and the state that the record before it names is
 * valid. If more records are damaged, the medium may be failing: then every node is read before the
 * mount goes on with an older state.
 */
static void several_damaged_superblocks_have_all_nodes_read(void **state)
{
	static const uint8_t zeroes[BLOCK];

	(void)state;
	for (unsigned int damaged = 1; damaged <= 2; damaged++) {
		const struct data_rig_options options = {.seed = 20 + damaged};
		struct zf_node_ptr leaf = {0};
		struct data_rig rig;
		uint64_t ino;
		char name[32];
		int r;

		data_rig_init(&rig, &options);
		for (unsigned int i = 0; i < 400; i++) {
			snprintf(name, sizeof(name), "file %u", i);
			ino = data_rig_make(&rig, name);
		}
		for (unsigned int i = 0; i < 4; i++) {
			data_rig_write_pattern(&rig, ino, i, 0, 10 * BLOCK);
			data_rig_sync(&rig);
		}
		assert_int_equal(zf_tree_walk(rig.fs->forest, ZF_TREE_FS, find_oldest_leaf, &leaf),
				 0);
		assert_int_equal(zf_fs_unmount(rig.fs), 0);
		zf_dev_close(rig.dev);
		zf_sim_poke(rig.sim, leaf.address[0], zeroes);
		damage_superblocks(&rig, damaged);
		rig.errors_expected = true;
		r = data_rig_try_mount(&rig);
		assert_int_equal(r, damaged > 1 ? -EUCLEAN : 0);
		if (r == 0) {
			zf_fs_abandon(rig.fs);
			zf_dev_close(rig.dev);
		} else {
			assert_non_null(strstr(rig.message, "-o generation=N"));
		}
		zf_sim_free(rig.sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_lost_behind_the_gate_are_not_durable),
		cmocka_unit_test(a_commit_may_come_before_what_rode_has_landed),
		cmocka_unit_test(what_was_held_because_of_a_rider_lands_after_it),
		cmocka_unit_test(a_file_keeps_its_size_when_its_data_is_lost),
		cmocka_unit_test(what_a_truncated_file_got_follows_when_it_is_closed),
		cmocka_unit_test(what_a_truncated_file_got_follows_as_a_whole),
		cmocka_unit_test(a_log_block_that_cannot_be_read_ends_the_epoch),
		cmocka_unit_test(
			a_sync_that_needs_more_than_a_record_is_left_to_a_call_that_may_wait),
		cmocka_unit_test(nothing_is_reset_before_a_record_of_this_mount),
		cmocka_unit_test(several_damaged_superblocks_have_all_nodes_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

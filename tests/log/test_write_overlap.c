/* SPDX-License-Identifier: MIT */
/*
 * Log records whose writes overlap, and events between two steps of a record's write. There are no
 * threads: the test acts when the log has dropped its lock to wait for the device.
 */
#include <errno.h>
#include <time.h>

#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "log/log.h"
#include "superblock/ring.h"

#define BLOCK 4096u

static struct data_rig rig;
static void (*while_writing)(void); /* the next record, once */
static void (*while_flushing)(void);
static bool fails; /* the record that is written next */

int __real_zf_dev_run(struct zf_dev *dev, struct zf_io *io);
int __wrap_zf_dev_run(struct zf_dev *dev, struct zf_io *io);
int __real_zf_dev_flush_upto(struct zf_dev *dev, uint64_t mark);
int __wrap_zf_dev_flush_upto(struct zf_dev *dev, uint64_t mark);

void __real_zf_dev_warm(struct zf_dev *dev, uint32_t zone_no);
void __wrap_zf_dev_warm(struct zf_dev *dev, uint32_t zone_no);

static uint32_t warmed; /* the last zone that was */

void __wrap_zf_dev_warm(struct zf_dev *dev, uint32_t zone_no)
{
	warmed = zone_no;
	__real_zf_dev_warm(dev, zone_no);
}

static void run_once(void (**hook)(void))
{
	void (*run)(void) = *hook;

	*hook = NULL;
	if (run)
		run();
}

int __wrap_zf_dev_run(struct zf_dev *dev, struct zf_io *io)
{
	bool fails_now = fails;

	fails = false;
	run_once(&while_writing);
	if (!fails_now)
		return __real_zf_dev_run(dev, io);
	io->result = -EIO;
	return -EIO;
}

int __wrap_zf_dev_flush_upto(struct zf_dev *dev, uint64_t mark)
{
	run_once(&while_flushing);
	return __real_zf_dev_flush_upto(dev, mark);
}

static void begin(uint64_t seed)
{
	const struct data_rig_options options = {.seed = seed};

	data_rig_init(&rig, &options);
	data_rig_make(&rig, "first");
	data_rig_sync(&rig);
	rig.errors_expected = true;
}

/* Writes a record with a new name, and with all operations that wait to be logged. */
static int write_record(const char *name, struct zf_log_part *part)
{
	struct zf_log *log = rig.fs->log;
	int r;

	*part = (struct zf_log_part){0};
	data_rig_make(&rig, name);
	assert_true(zf_log_enter(log));
	r = zf_log_append(log, part);
	zf_log_leave(log);
	return r;
}

static struct zf_log_stats log_stats(void)
{
	struct zf_log_stats stats;

	zf_log_get_stats(rig.fs->log, &stats);
	return stats;
}

static uint64_t commits(void)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(rig.fs->txn, &stats);
	return stats.commits;
}

/* ---- two that fail ---- */

static struct zf_log_part one_between, last;

static void one_succeeds_and_the_next_fails(void)
{
	assert_int_equal(write_record("b", &one_between), 0);
	fails = true;
	assert_int_equal(write_record("c", &last), -EIO);
}

/*
 * The first failed record is the gap: a record between two failed ones is on the device, but will
 * not be replayed, and a thread that waits for it is told to commit.
 */
static void the_first_of_two_records_that_failed_is_the_gap(void **state)
{
	struct zf_log_part first;

	(void)state;
	begin(1);
	fails = true;
	while_writing = one_succeeds_and_the_next_fails;
	assert_int_equal(write_record("a", &first), -EIO);
	assert_int_equal(log_stats().failures, 2);
	assert_int_equal(zf_log_wait(rig.fs->log, one_between.sequence), -EAGAIN);
	data_rig_sync(&rig);
	data_rig_crash(&rig);
	data_rig_deinit(&rig);
}

/* Without this, each fsync would make a commit of its own until another cause makes one. */
static void a_record_that_failed_asks_for_a_commit(void **state)
{
	const struct data_rig_options options = {.seed = 3, .threads = true, .commit_ms = 3600000};
	const struct timespec pause = {.tv_nsec = 1000000};
	struct zf_log_part part;
	uint64_t made;

	(void)state;
	data_rig_init(&rig, &options);
	data_rig_make(&rig, "first");
	data_rig_sync(&rig);
	rig.errors_expected = true;
	made = commits();
	fails = true;
	assert_int_equal(write_record("a", &part), -EIO);
	for (unsigned int i = 0; i < 60000 && commits() == made; i++)
		nanosleep(&pause, NULL);
	assert_true(commits() > made);
	data_rig_deinit(&rig);
}

/* ---- operations that are lost meanwhile ---- */

static void lose_an_operation(void)
{
	zf_log_add(rig.fs->log, NULL, 0);
}

/* P2: a record has all operations up to its own, or it is not written. */
static void no_record_is_written_when_operations_were_lost_before_it(void **state)
{
	struct zf_log_part part;
	uint64_t source;

	(void)state;
	begin(2);
	source = data_rig_make(&rig, "source");
	data_rig_sync(&rig);
	/* Its content is not durable by itself: the record waits for a flush. */
	data_rig_write_pattern(&rig, source, 1, 0, 80 * BLOCK);
	assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
	assert_int_equal(zf_fs_rename(rig.fs, &rig.ctx, ZF_INO_ROOT, "source", ZF_INO_ROOT, "first",
				      0, NULL),
			 0);
	assert_true(zf_log_pending_mark(rig.fs->log) > 0);
	while_flushing = lose_an_operation;
	assert_int_equal(write_record("a", &part), -EAGAIN);
	assert_null(while_flushing);
	assert_int_equal(log_stats().records, 0);
	data_rig_sync(&rig);
	data_rig_crash(&rig);
	data_rig_deinit(&rig);
}

/* ---- the zone that comes next ---- */

static void the_next_zone_is_warmed_when_a_superblock_names_it(void **state)
{
	const struct zf_super *super;
	unsigned int stepped_over;

	(void)state;
	warmed = UINT32_MAX;
	begin(4);
	assert_int_equal(zf_ring_newest(zf_fs_ring(rig.fs), &super, &stepped_over), 0);
	assert_int_not_equal(super->log_zone[1], ZF_SUPER_NO_ZONE);
	assert_int_equal(warmed, super->log_zone[1]);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_two_records_that_failed_is_the_gap),
		cmocka_unit_test(a_record_that_failed_asks_for_a_commit),
		cmocka_unit_test(no_record_is_written_when_operations_were_lost_before_it),
		cmocka_unit_test(the_next_zone_is_warmed_when_a_superblock_names_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

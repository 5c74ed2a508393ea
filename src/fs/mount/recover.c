/* SPDX-License-Identifier: MIT */
#include "fs/mount/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/log_zone.h"
#include "alloc/overwrite.h"
#include "alloc/reserve.h"
#include "base/plant.h"
#include "fs/core/fs_format.h"
#include "fs/core/inode.h"
#include "fs/mount/replay.h"
#include "fs/mount/unfinished.h"
#include "log/log.h"
#include "log/read.h"

/* ---- reading ---- */

static int hold(void *arg, const struct zf_log_range *range)
{
	struct zf_fs *fs = arg;

	if (range->flags & ZF_EXTENT_OVERWRITE)
		return zf_alloc_overwrite_claim(fs->alloc, range->address, range->len);
	if (ZF_PLANTED(ZF_BUG_RECOVERY_RESETS))
		return 0;
	return zf_alloc_hold(fs->alloc, range->address, range->len);
}

/*
 * The numbers can grow from here for longer than any filesystem lives. Only a forged image has
 * larger ones.
 */
static int check_numbers(struct zf_fs *fs, const struct zf_log_found *found)
{
	uint64_t max = ZF_SUPER_COUNTER_MAX / 2;

	if (found->highest_number <= max && found->highest_sequence <= max)
		return 0;
	return zf_report_corrupt(&fs->report, "log", 0,
				 "the highest sequence has %" PRIu64
				 " and the highest number has %" PRIu64
				 ", expected at most %" PRIu64,
				 found->highest_sequence, found->highest_number, max);
}

static int hold_all(struct zf_fs *fs, const struct zf_log_found *found)
{
	int r = check_numbers(fs, found);

	if (r == 0)
		r = zf_log_found_ranges(found, hold, fs);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < 2; i++)
		if (fs->super.log_zone[i] != ZF_SUPER_NO_ZONE)
			zf_alloc_raise_log(fs->alloc, i, found->end[i]);
	return 0;
}

static void tell_not_shown(struct zf_fs *fs, const struct zf_log_found *found)
{
	if (found->body_count == 0)
		return;
	zf_report(&fs->report, ZF_REPORT_WARNING,
		  "%zu changes in %" PRIu64 " records of the log were made durable after the last "
		  "commit and are not shown: a read-write mount replays them",
		  found->body_count, found->records);
}

/*
 * If the unreadable part were ignored, the log would end before it, and acknowledged changes would
 * be lost.
 */
static int check_readable(struct zf_fs *fs, const struct zf_log_found *found)
{
	if (found->unreadable == 0)
		return 0;
	if (fs->read_only || fs->options.abandon_log) {
		zf_report(&fs->report, ZF_REPORT_WARNING,
			  "part of the log cannot be read: %zu changes after generation %" PRIu64
			  " were found, and others that were durable may be lost",
			  found->body_count, fs->super.generation);
		return 0;
	}
	zf_report(&fs->report, ZF_REPORT_ERROR,
		  "part of the log cannot be read: changes that became durable after generation "
		  "%" PRIu64
		  " may be lost. Mount read-only (-o ro) to look at that generation, or with -o "
		  "abandon_log to give up the part that cannot be read (%zu changes before it are "
		  "kept)",
		  fs->super.generation, found->body_count);
	return -EIO;
}

int zf_recover_read(struct zf_fs *fs, struct zf_log_found *ret_found)
{
	int r;

	/* With -o generation=N there is no log for that state any more. */
	if (fs->options.generation)
		return 0;
	r = zf_log_read(fs->dev, &fs->super, &fs->report, ret_found);
	if (r == 0)
		r = check_readable(fs, ret_found);
	if (fs->read_only) {
		if (r == 0)
			tell_not_shown(fs, ret_found);
		else
			zf_report(
				&fs->report, ZF_REPORT_WARNING,
				"the log cannot be read: %s; the state of the last commit is shown",
				strerror(-r));
		return 0;
	}
	return r < 0 ? r : hold_all(fs, ret_found);
}

/* ---- recovering ---- */

static int replay(struct zf_fs *fs, const struct zf_log_found *found)
{
	int r;

	fs->recovering = true;
	r = ZF_PLANTED(ZF_BUG_INTENTS_LAST) ? 0 : zf_unfinished_intents(fs);
	if (r == 0)
		r = zf_replay(fs, found);
	if (r == 0 && ZF_PLANTED(ZF_BUG_INTENTS_LAST))
		r = zf_unfinished_intents(fs);
	fs->recovering = false;
	return r;
}

static int run(struct zf_fs *fs, const struct zf_log_found *found)
{
	/*
	 * A new epoch is needed if any record lies behind S: one that is replayed now, or was
	 * replayed by a recovery that was cut, or lies behind a gap, or in a block that cannot be
	 * read now. Otherwise a later mount could take such a record for one of this mount's.
	 */
	bool new_epoch = zf_log_found_more(found, &fs->super);
	int r = replay(fs, found);

	if (r < 0)
		return r;
	zf_alloc_let_go(fs->alloc);
	if (found->body_count > 0)
		zf_alloc_kept_recount(fs->alloc);
	zf_log_start(fs->log,
		     ZF_PLANTED(ZF_BUG_STALE_RECORD) ? fs->super.log_sequence
						     : found->highest_sequence,
		     found->highest_number, new_epoch);
	r = zf_unfinished_orphans(fs);
	return r == 0 && new_epoch ? zf_txn_commit(fs->txn, true) : r;
}

int zf_recover(struct zf_fs *fs, const struct zf_log_found *found)
{
	int r = run(fs, found);

	/*
	 * The filesystem has become read-only during the recovery, so the error is the one that
	 * caused that.
	 */
	if (r == -EROFS && zf_txn_error(fs->txn))
		r = zf_txn_error(fs->txn);
	if (r < 0)
		zf_report(&fs->report, ZF_REPORT_ERROR, "recovery failed: %s", strerror(-r));
	return r;
}

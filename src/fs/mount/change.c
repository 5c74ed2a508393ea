/* SPDX-License-Identifier: MIT */
#include "fs/mount/change.h"

#include <errno.h>
#include <inttypes.h>

#include "alloc/reclaim.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data/append.h"
#include "fs/data/data.h"
#include "fs/data/delete.h"
#include "fs/data/flush.h"
#include "fs/mount/background.h"
#include "txn/txn.h"

/* How often storing is tried if there is no memory, and the pause between two tries. */
#define STORE_TRIES   10u
#define STORE_WAIT_MS 100u

/* ---- one at a time ---- */

int zf_change_begin(struct zf_fs *fs)
{
	zf_mutex_lock(&fs->change_lock);
	if (!zf_fs_is_read_only(fs))
		return 0;
	zf_mutex_unlock(&fs->change_lock);
	return -EROFS;
}

void zf_change_end(struct zf_fs *fs)
{
	zf_mutex_unlock(&fs->change_lock);
}

/* ---- storing ---- */

static int store_once(struct zf_fs *fs)
{
	int r = zf_data_flush_all(fs, true), committed;
	bool said;

	if (r == 0)
		zf_delete_doomed(fs);
	zf_txn_set_clean(fs->txn, r == 0);
	if (zf_txn_error(fs->txn))
		return zf_txn_error(fs->txn);
	said = fs->super.clean && zf_txn_durable(fs->txn) == fs->super.generation;
	committed = zf_txn_commit(fs->txn, !said || zf_txn_health_is_dirty(fs->txn));
	return committed < 0 ? committed : r;
}

int zf_change_store_all(struct zf_fs *fs)
{
	int r = store_once(fs);

	/*
	 * Data that is dirty again for want of memory needs another flush, and no later one would
	 * come.
	 */
	for (unsigned int i = 1; r == -ENOMEM && !zf_txn_error(fs->txn) && i < STORE_TRIES; i++) {
		zf_append_wait_ms(fs, STORE_WAIT_MS);
		r = store_once(fs);
	}
	return r;
}

/* ---- remounting ---- */

/* The threads rest first, so that all that they have begun is stored, too. */
static int make_read_only(struct zf_fs *fs)
{
	int r;

	zf_background_pause(fs);
	r = zf_change_store_all(fs);
	if (r < 0)
		zf_background_resume(fs);
	else
		atomic_store(&fs->read_only, true);
	return r;
}

static int make_writable(struct zf_fs *fs)
{
	if (fs->options.read_only || zf_txn_error(fs->txn))
		return -EROFS;
	zf_txn_set_clean(fs->txn, false);
	atomic_store(&fs->read_only, false);
	zf_background_resume(fs);
	return 0;
}

int zf_fs_remount(struct zf_fs *fs, bool read_only)
{
	int r = 0;

	zf_mutex_lock(&fs->change_lock);
	if (read_only && !zf_fs_is_read_only(fs))
		r = make_read_only(fs);
	else if (!read_only && zf_fs_is_read_only(fs))
		r = make_writable(fs);
	zf_mutex_unlock(&fs->change_lock);
	return r;
}

/* ---- what else can change ---- */

/*
 * With a larger target, reclaim would move data without end, to empty zones that no writer needs.
 */
int zf_fs_set_reclaim_target(struct zf_fs *fs, uint32_t target_zones, uint32_t percent)
{
	uint64_t zones = fs->super.zone_count - ZF_SUPER_ZONES, target = target_zones;

	if (target > zones / 2) {
		zf_report(&fs->report, ZF_REPORT_ERROR,
			  "reclaim cannot get %" PRIu64 " zones ready: at most %" PRIu64
			  ", which is half of all zones",
			  target, zones / 2);
		return -EINVAL;
	}
	if (target == 0)
		target = (zones * percent + 99) / 100;
	if (target > 0)
		zf_alloc_set_reclaim_target(fs->alloc, (uint32_t)target);
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "fs/data/durable.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "alloc/overwrite.h"
#include "base/bits.h"
#include "base/plant.h"
#include "fs/data/append.h"
#include "fs/core/changes.h"
#include "fs/data/data.h"
#include "fs/data/describe.h"
#include "fs/data/flush.h"
#include "fs/data/in_place.h"
#include "fs/data/inline.h"
#include "fs/core/inode.h"
#include "fs/core/inode_flags.h"
#include "fs/core/sync_share.h"
#include "fs/data/land.h"
#include "log/log.h"
#include "trace/trace.h"

/*
 * The most blocks that ride with a record. Up to this size one write of the device takes about the
 * same time, and the other syncs that share the record wait for it. If more is dirty, it is
 * appended and lands first.
 */
#define RIDE_BLOCKS_MAX 32u

/* How often a sync tries again because other threads have made too much dirty while it waited. */
#define ATTEMPTS_MAX 4u

/* Results of one attempt, besides 0 and -errno. */
enum outcome {
	WANTS_LANDING = 1, /* more is dirty than can ride, or it is on its way already */
	WANTS_COMMIT = 2,
};

/* One fsync. */
struct sync {
	struct zf_inode *inode;
	bool data_only;
	struct zf_append *rider; /* NULL: nothing rides */
	struct zf_log_body body;
	bool described;
	uint64_t size; /* of the file, when it was described */
	uint64_t mark; /* what must be flushed before the record is written */
	struct zf_log_part part;
};

/* ---- commits ---- */

static int commit(struct zf_inode *inode)
{
	int r = zf_data_flush(inode, true);

	return r < 0 ? r : zf_txn_sync(inode->fs->txn);
}

/* ---- what rides ---- */

static enum outcome look(struct zf_inode *inode)
{
	struct zf_data *data = &inode->data;
	enum outcome outcome = 0;

	zf_mutex_lock(&data->lock);
	/* A record cannot describe a file whose truncation is unfinished. */
	if (data->dropping)
		outcome = WANTS_COMMIT;
	else if (!RB_EMPTY(&data->flight) || data->ready > RIDE_BLOCKS_MAX)
		outcome = WANTS_LANDING;
	zf_mutex_unlock(&data->lock);
	return outcome;
}

/* Returns whether blocks other than the rider's are in memory. */
static bool has_others(struct zf_data *data, const struct zf_append *rider)
{
	bool r;

	zf_mutex_lock(&data->lock);
	r = data->blocks != (rider ? rider->count : 0);
	zf_mutex_unlock(&data->lock);
	return r;
}

static int take_rider(struct sync *sync)
{
	struct zf_inode *inode = sync->inode;
	unsigned int ready;

	zf_mutex_lock(&inode->data.lock);
	ready = inode->data.ready;
	zf_mutex_unlock(&inode->data.lock);
	if (ready > 0) {
		sync->rider = zf_append_new(inode->fs, ready);
		if (!sync->rider)
			return WANTS_COMMIT;
		zf_flush_pack(sync->rider, inode);
		zf_append_sum(sync->rider);
	}
	/*
	 * The flusher may have taken blocks before this thread, because it needs no lock of the
	 * inode.
	 */
	return has_others(&inode->data, sync->rider) ? WANTS_LANDING : 0;
}

/*
 * Makes the rider an ordinary append, and wakes the flusher to submit it, because the caller may
 * return before that.
 */
static void dismiss_rider(struct sync *sync)
{
	if (sync->rider && sync->rider->count > 0) {
		zf_append_enqueue(sync->rider);
		zf_flush_event(sync->inode->fs);
	} else {
		zf_append_free(sync->rider);
	}
	sync->rider = NULL;
}

/* ---- one attempt ---- */

static bool has_changed(const struct sync *sync)
{
	struct zf_inode *inode = sync->inode;

	if (sync->rider || zf_changes_any(&inode->data.changes) || inode->essential_dirty)
		return true;
	/* Also access times that may stay in memory for a day (lazytime): an fsync stores them. */
	return inode->item_dirty && !sync->data_only;
}

static int describe(struct sync *sync)
{
	struct zf_inode *inode = sync->inode;
	int r;

	zf_changes_prune(&inode->data.changes, zf_txn_durable(inode->fs->txn));
	if (zf_changes_are_lost(&inode->data.changes))
		return WANTS_COMMIT;
	r = take_rider(sync);
	if (r != 0 || !has_changed(sync))
		return r;
	sync->described = true;
	sync->size = inode->item.size;
	r = zf_describe_inode(inode, sync->rider, &sync->body, &sync->mark);
	/* If the state cannot be described, a commit makes it durable, or reports the error. */
	return r < 0 ? WANTS_COMMIT : 0;
}

static int write_record(struct sync *sync)
{
	struct zf_log_part *part = &sync->part;
	struct zf_inode *inode = sync->inode;
	int r;

	if (sync->described)
		part->body = &sync->body;
	if (sync->rider) {
		part->iovcnt = zf_append_fill_iov(sync->rider);
		part->iov = sync->rider->iov;
		part->data_blocks = sync->rider->count;
	}
	zf_rwlock_keep(&inode->lock);
	/* prepare() has usually done this flush before the lock was taken. */
	r = zf_txn_flush(inode->fs->txn, sync->mark);
	if (r == 0)
		r = zf_log_append(inode->fs->log, part);
	zf_rwlock_resume(&inode->lock);
	return r;
}

/*
 * Puts the record's data into the trees after the record has completed, before the caller is
 * answered. Since the description only new dirty blocks can have come (zf_rwlock_wrlock_beside()).
 * The record described the whole file, so the rider's blocks need not wait for those.
 */
static int settle(struct sync *sync)
{
	struct zf_inode *inode = sync->inode;
	int r = 0;

	if (!sync->described)
		return 0;
	if (sync->rider) {
		sync->rider->io.traced = sync->part.traced;
		zf_append_arrived(sync->rider, &sync->part.grant, sync->part.address);
		r = zf_land_rider(sync->rider);
		sync->rider = NULL;
	} else if (inode->item_dirty) {
		r = zf_land_item(inode);
	}
	assert(r < 0 || inode->disk_size >= sync->size);
	if (r == 0) {
		zf_changes_clear(&inode->data.changes);
		return 0;
	}
	/*
	 * The record has ranges that the trees lack, so a later record cannot describe them. A
	 * commit is needed.
	 */
	zf_changes_lose(&inode->data.changes, zf_txn_running(inode->fs->txn));
	return WANTS_COMMIT;
}

/* Inode locked exclusively, log entered. */
static int log_locked(struct sync *sync)
{
	int r = look(sync->inode);

	if (r == 0)
		r = describe(sync);
	if (r != 0)
		return r;
	r = write_record(sync);
	if (r == 0)
		return settle(sync);
	if (sync->rider && sync->part.grant.len > 0) {
		zf_append_arrived(sync->rider, &sync->part.grant, 0);
		sync->rider->io.result = r;
		if (!zf_append_retry(sync->rider))
			zf_append_fail(sync->rider, r);
		zf_flush_event(sync->inode->fs);
		sync->rider = NULL;
	}
	return WANTS_COMMIT;
}

static int attempt(struct zf_inode *inode, bool data_only, bool may_wait)
{
	struct sync sync = {.inode = inode, .data_only = data_only};
	struct zf_log *log = inode->fs->log;
	int r;

	if (!zf_inode_wrlock(inode, may_wait))
		return -EAGAIN;
	/* chattr +S makes the times durable, too, even for a data sync. */
	sync.data_only &= !zf_inode_is_sync(inode);
	if (!zf_log_enter(log)) {
		zf_rwlock_unlock(&inode->lock);
		return WANTS_COMMIT;
	}
	r = log_locked(&sync);
	if (r == 0 && !inode->essential_dirty) {
		inode->essential = 0;
		inode->essential_record = sync.part.sequence;
	}
	dismiss_rider(&sync);
	zf_log_leave(log);
	zf_data_unlock(inode);
	if (sync.described)
		zf_log_body_end(&sync.body);
	if (r == 0 && zf_log_wait(log, sync.part.sequence) < 0)
		r = WANTS_COMMIT;
	return r;
}

/* The steps that may take long. They come before anything is locked. */
static int prepare(struct zf_inode *inode, bool may_wait)
{
	struct zf_fs *fs = inode->fs;
	uint64_t mark = zf_log_pending_mark(fs->log);
	int r = zf_txn_keep_bound(fs->txn, may_wait);

	if (r == 0)
		r = zf_inline_flush(inode, may_wait);
	if (may_wait) {
		zf_rwlock_rdlock(&inode->lock);
		mark = zf_max_u64(mark, inode->data.write_mark);
		zf_rwlock_unlock(&inode->lock);
	}
	return r < 0 ? r : zf_txn_flush(fs->txn, mark);
}

/* Without may_wait it makes one attempt, which waits for one record only; otherwise -EAGAIN. */
static int sync_file(struct zf_inode *inode, bool data_only, bool may_wait)
{
	unsigned int attempts = may_wait ? ATTEMPTS_MAX : 1;
	int r = WANTS_LANDING;

	for (unsigned int i = 0; i < attempts && r == WANTS_LANDING; i++) {
		r = i > 0 ? zf_flush_land_durably(inode) : 0;
		if (r == 0)
			r = prepare(inode, may_wait);
		if (r == 0)
			r = attempt(inode, data_only, may_wait);
	}
	if (r > 0)
		r = may_wait ? commit(inode) : -EAGAIN;
	return r;
}

/* ---- data syncs, which are shared ---- */

/* The caller has its turn (ZF_SYNC_RUN). */
static int run_shared(struct zf_inode *inode, bool may_wait)
{
	int r = sync_file(inode, true, may_wait);

	zf_sync_share_end(inode, r);
	return r;
}

static int sync_data(struct zf_inode *inode, bool may_wait)
{
	switch (zf_sync_share_begin(inode, may_wait)) {
	case ZF_SYNC_RUN:
		return run_shared(inode, may_wait);
	case ZF_SYNC_SERVED:
		return 0;
	case ZF_SYNC_BUSY:
		break;
	}
	return -EAGAIN;
}

/* ---- names ---- */

/* Writes one record with the operations that wait for one. 0, WANTS_COMMIT or -errno. */
static int log_names(struct zf_fs *fs)
{
	struct zf_log_part part = {0};
	int r = zf_txn_flush(fs->txn, zf_log_pending_mark(fs->log));

	if (r < 0 || !zf_log_enter(fs->log))
		return r < 0 ? r : WANTS_COMMIT;
	r = zf_log_append(fs->log, &part);
	zf_log_leave(fs->log);
	if (r == 0)
		r = zf_log_wait(fs->log, part.sequence);
	return r < 0 ? WANTS_COMMIT : 0;
}

static int sync_names(struct zf_fs *fs, bool may_wait)
{
	int r = log_names(fs);

	if (r > 0)
		r = may_wait ? zf_txn_sync(fs->txn) : -EAGAIN;
	return r;
}

/* ---- every sync ---- */

static int sync_inode(struct zf_inode *inode, bool data_only, bool may_wait)
{
	int r = zf_data_flush_in_place(inode, data_only);

	if (r < 0)
		return r;
	/* The file's data is durable. But an fsync makes names durable, too. */
	if (r > 0)
		return !data_only && zf_log_is_behind(inode->fs->log)
			       ? sync_names(inode->fs, may_wait)
			       : 0;
	return data_only ? sync_data(inode, may_wait) : sync_file(inode, false, may_wait);
}

/* Makes sure that nothing is acknowledged on a filesystem that has failed. */
static int answer(struct zf_fs *fs, int result)
{
	return result == 0 && zf_txn_error(fs->txn) ? -EROFS : result;
}

static int answer_and_tell(struct zf_inode *inode, const struct zf_told *told, int result)
{
	int error = zf_write_error_tell(inode, told);

	return answer(inode->fs, result < 0 ? result : error);
}

static int sync_and_tell(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only,
			 bool may_wait)
{
	int r = sync_inode(inode, data_only, may_wait);

	return r == -EAGAIN ? r : answer_and_tell(inode, &ctx->told, r);
}

int zf_durable_inode(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only)
{
	if (inode->type != S_IFREG)
		return zf_durable_names(inode->fs);
	return sync_and_tell(inode, ctx, data_only, true);
}

int zf_durable_by_record(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only)
{
	/* On a filesystem with data written in place the sync may need a commit. */
	if (inode->type != S_IFREG || zf_alloc_has_overwrite(inode->fs->alloc))
		return -EAGAIN;
	return sync_and_tell(inode, ctx, data_only, false);
}

/* ---- without a thread ---- */

static void wait_ended(struct zf_sync_waiter *waiter, bool served)
{
	struct zf_syncing *syncing = ZF_CONTAINER_OF(waiter, struct zf_syncing, waiter);

	syncing->served = served;
	syncing->ended(syncing, served, syncing->arg);
}

int zf_durable_later(struct zf_inode *inode, const struct zf_ctx *ctx, zf_syncing_ended_fn *ended,
		     void *arg)
{
	struct zf_syncing *syncing;

	/* Data that is written in place is synced in another way (fs/data/in_place.h). */
	if (inode->type != S_IFREG || zf_alloc_has_overwrite(inode->fs->alloc))
		return -EAGAIN;
	syncing = malloc(sizeof(*syncing));
	if (!syncing)
		return -EAGAIN;
	*syncing = (struct zf_syncing){
		.waiter.wait_ended = wait_ended,
		.inode = inode,
		.told = ctx->told,
		.began = zf_trace_began(ZF_OPERATION_FSYNC, inode->ino, 0, 0),
		.ended = ended,
		.arg = arg,
	};
	zf_sync_share_join(inode, &syncing->waiter);
	return -EINPROGRESS;
}

int zf_durable_later_end(struct zf_syncing *syncing)
{
	struct zf_inode *inode = syncing->inode;
	int r = 0;

	if (!syncing->served && zf_sync_share_resume(inode, &syncing->waiter) == ZF_SYNC_RUN)
		r = run_shared(inode, true);
	r = answer_and_tell(inode, &syncing->told, r);
	zf_inode_put(inode);
	free(syncing);
	return r;
}

int zf_durable_names(struct zf_fs *fs)
{
	return answer(fs, sync_names(fs, true));
}

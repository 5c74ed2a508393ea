/* SPDX-License-Identifier: MIT */
#include "fs/data/land.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/reserve.h"
#include "base/plant.h"
#include "fs/core/inode.h"
#include "fs/data/append.h"
#include "fs/data/close.h"
#include "fs/data/data.h"
#include "fs/data/discard.h"
#include "fs/data/flush.h"
#include "fs/data/in_place.h"
#include "fs/data/frontier.h"
#include "fs/data/recent.h"
#include "fs/map/extent.h"
#include "fs/map/summary.h"

/*
 * Tree edits that a join reserves room for. A piece is what one zf_extent_put() takes of a run; it
 * needs the edits of its extents and one for a summary entry. The last edit of a join is for the
 * inode's item. LAND_EDITS is enough for several small pieces, and few enough for the metadata
 * zones of the smallest device. On a full filesystem a join is for one piece only (join()).
 */
#define LAND_EDITS  32u
#define PIECE_EDITS (ZF_EXTENT_PUT_EDITS + 1u)

/* ---- what may land ---- */

/* Blocks of an append that are adjacent in the file and on the device. */
struct run {
	unsigned int first, count; /* of append->blocks */
};

enum look {
	LOOK_FINISHED, /* every block has landed or was revoked */
	LOOK_HELD,     /* a block has to wait for an earlier block of the file */
	LOOK_RUN,
};

static enum look next_run_locked(struct zf_append *append, struct zf_segment *segment,
				 struct run *ret_run)
{
	unsigned int end = segment->first + segment->count, i = segment->first + segment->gone;
	struct zf_block *block;

	/* A block that has left flight does not come back into flight with this append. */
	while (i < end && append->blocks[i]->state != ZF_BLOCK_FLIGHT)
		i++;
	segment->gone = i - segment->first;
	if (i == end)
		return LOOK_FINISHED;
	if (!zf_frontier_may_land_locked(segment->inode, append->blocks[i]->index))
		return LOOK_HELD;
	*ret_run = (struct run){.first = i};
	do {
		block = append->blocks[i++];
		ret_run->count++;
	} while (i < end && append->blocks[i]->state == ZF_BLOCK_FLIGHT &&
		 append->blocks[i]->index == block->index + 1);
	return LOOK_RUN;
}

static enum look next_run(struct zf_append *append, struct zf_segment *segment, struct run *ret_run)
{
	struct zf_data *data = &segment->inode->data;
	enum look look;

	zf_mutex_lock(&data->lock);
	look = next_run_locked(append, segment, ret_run);
	zf_mutex_unlock(&data->lock);
	return look;
}

/* ---- into the trees ---- */

struct landing {
	struct zf_append *append;
	struct zf_segment *segment;
	struct zf_trans *trans;
	struct zf_extent_editor editor;
	unsigned int edits; /* tree edits for which the join has reserved room */
	bool changed;	    /* something has landed, so the item has to be stored */
};

/*
 * The part of a run that zf_extent_put() inserts. Its blocks are no longer lent afterwards
 * (take_lent()).
 */
struct put {
	struct landing *landing;
	unsigned int first; /* of append->blocks */
};

static uint64_t take_lent(void *arg, uint64_t len)
{
	const struct put *put = arg;
	struct zf_data *data = &put->landing->segment->inode->data;
	uint64_t lent = 0;

	zf_mutex_lock(&data->lock);
	for (uint64_t i = 0; i < len >> ZF_BLOCK_SHIFT; i++) {
		struct zf_block *block = put->landing->append->blocks[put->first + i];

		lent += block->lent;
		block->lent = false;
	}
	zf_mutex_unlock(&data->lock);
	return lent;
}

static void keep_partial(struct landing *landing, unsigned int first, unsigned int count)
{
	const struct zf_append *append = landing->append;
	struct zf_fs *fs = append->fs;

	for (unsigned int i = first; i < first + count; i++) {
		struct zf_recent_place place = {.address = append->io.addr +
							   ((uint64_t)i << ZF_BLOCK_SHIFT)};

		if (!append->blocks[i]->partial)
			continue;
		place.resets = zf_alloc_resets(fs->alloc, place.address);
		zf_recent_keep(fs->flush.recent, &place, append->blocks[i]->bytes);
	}
}

static void retire(struct landing *landing, unsigned int first, unsigned int count)
{
	struct zf_inode *inode = landing->segment->inode;

	if (!landing->append->fua &&
	    !(ZF_PLANTED(ZF_BUG_RETRY_WITHOUT_MARK) && landing->append->tries > 0))
		inode->data.write_mark = zf_dev_write_mark(inode->fs->dev);
	keep_partial(landing, first, count);
	zf_mutex_lock(&inode->data.lock);
	for (unsigned int i = 0; i < count; i++)
		zf_block_leave_flight_locked(&inode->data, landing->append->blocks[first + i],
					     true);
	zf_frontier_advance_locked(inode);
	zf_mutex_unlock(&inode->data.lock);
}

/* Lands the run, or only its first blocks. */
static int land_run(struct landing *landing, const struct run *run)
{
	struct zf_append *append = landing->append;
	struct zf_inode *inode = landing->segment->inode;
	unsigned int count = run->count, most = zf_summary_blocks_max(inode->fs);
	struct zf_extent extent = {
		.offset = append->blocks[run->first]->index << ZF_BLOCK_SHIFT,
		.address = append->io.addr + ((uint64_t)run->first << ZF_BLOCK_SHIFT),
		.generation = landing->trans->generation,
		.type = ZF_EXTENT_DATA,
	};
	struct put put = {landing, run->first};
	uint64_t len;
	int r;

	extent.len = (uint64_t)(count < most ? count : most) << ZF_BLOCK_SHIFT;
	landing->editor.take_lent = take_lent;
	landing->editor.take_lent_arg = &put;
	r = zf_extent_put(&landing->editor, &extent, &len);
	if (r < 0)
		return r;
	count = (unsigned int)(len >> ZF_BLOCK_SHIFT);
	r = zf_summary_insert(inode->fs, landing->trans, inode->ino, extent.offset, extent.address,
			      append->csums + run->first, count);
	if (r < 0) {
		landing->editor.torn = true;
		return r;
	}
	landing->editor.edits++;
	ZF_TRACE(extent_fixed, .inode = inode->ino, .offset = extent.offset, .bytes = len,
		 .address = extent.address, .submitted = append->io.traced);
	retire(landing, run->first, count);
	landing->changed = true;
	return 0;
}

/* Lands as many runs as the edits of one join allow. Inode locked, joined. */
static int land_some(struct landing *landing, struct run *run)
{
	int r = 0, stored = 0;

	do {
		r = land_run(landing, run);
	} while (r == 0 && landing->editor.edits + PIECE_EDITS < landing->edits &&
		 next_run(landing->append, landing->segment, run) == LOOK_RUN);
	if (landing->changed && !landing->editor.torn) {
		stored = zf_inode_store(landing->segment->inode, landing->trans);
		landing->editor.torn = stored < 0;
		if (stored == 0)
			zf_close_landed(landing->segment->inode);
	}
	r = r < 0 ? r : stored;
	if (landing->editor.torn)
		zf_trans_abort(landing->trans, r, "recording file data");
	return r;
}

/* ---- failure ---- */

/*
 * Drops a block in flight, and notes the error, which is reported if the inode had no untold error.
 * Returns where the file has to end now, if only the first part of the block's stored version is
 * right; otherwise UINT64_MAX (fs/data/frontier.h).
 */
static uint64_t lose_block(struct zf_inode *inode, struct zf_block *block, int error)
{
	struct zf_data *data = &inode->data;
	uint64_t end;
	bool first;

	zf_mutex_lock(&data->lock);
	first = zf_write_error_note_locked(inode, error);
	end = zf_frontier_without_locked(inode, block);
	zf_block_leave_flight_locked(data, block, false);
	zf_mutex_unlock(&data->lock);
	if (first)
		zf_report(&inode->fs->report, ZF_REPORT_ERROR,
			  "data of inode %" PRIu64 " at offset %" PRIu64
			  " could not be written: %s; the next fsync of the file fails",
			  inode->ino, block->index << ZF_BLOCK_SHIFT, strerror(-error));
	return end;
}

static void end_again(struct zf_inode *inode, uint64_t end)
{
	uint64_t from = zf_align_up(end, ZF_BLOCK_SIZE) >> ZF_BLOCK_SHIFT, used;
	struct zf_data *data = &inode->data;

	data->tail_is_zero = false;
	if (end >= inode->item.size)
		return;
	/*
	 * Loans of blocks behind the end are over: their space counts as kept again. Lent blocks in
	 * flight have used up space that will be garbage, so as many kept blocks become short.
	 */
	used = zf_block_take_back_range(data, from, UINT64_MAX);
	zf_alloc_kept_used(inode->fs->alloc, used);
	zf_discard_blocks(inode, from, UINT64_MAX);
	zf_mutex_lock(&data->lock);
	zf_frontier_shrink_locked(inode, end);
	zf_mutex_unlock(&data->lock);
	zf_inode_note_change(inode, true);
	zf_report(&inode->fs->report, ZF_REPORT_ERROR,
		  "inode %" PRIu64 ": the data behind offset %" PRIu64
		  " is lost, and the file ends there now",
		  inode->ino, end);
}

void zf_land_lose(struct zf_inode *inode, struct zf_block *const *blocks, unsigned int count,
		  int error)
{
	uint64_t end = UINT64_MAX;

	for (unsigned int i = 0; i < count; i++)
		if (blocks[i]->state == ZF_BLOCK_FLIGHT)
			end = zf_min_u64(end, lose_block(inode, blocks[i], error));
	if (end < UINT64_MAX)
		end_again(inode, end);
	zf_frontier_advance(inode);
}

static void fail_segment(struct zf_append *append, struct zf_segment *segment, int error)
{
	struct zf_inode *inode = segment->inode;

	zf_rwlock_wrlock(&inode->lock);
	zf_land_lose(inode, append->blocks + segment->first, segment->count, error);
	zf_data_unlock(inode);
}

/* ---- no memory ---- */

/* A block with a newer dirty version need not be put back. */
static bool is_newest_in_flight(struct zf_data *data, const struct zf_block *block)
{
	return block && block->state == ZF_BLOCK_FLIGHT &&
	       !zf_block_dirty_locked(data, block->index);
}

static void put_back_locked(struct zf_append *append, struct zf_segment *segment)
{
	struct zf_data *data = &segment->inode->data;

	for (unsigned int i = 0; i < segment->count; i++) {
		struct zf_block **block = &append->blocks[segment->first + i];

		if (is_newest_in_flight(data, *block)) {
			zf_block_put_back_locked(data, *block);
			*block = NULL;
			append->put_back++;
		} else if (*block && (*block)->state == ZF_BLOCK_FLIGHT) {
			zf_block_give_way_locked(data, *block);
		}
	}
	data->put_back++;
}

/*
 * Makes the blocks that have not landed dirty again, so that a later flush writes them when there
 * is memory again. False: no room can be reserved for them.
 */
static bool put_back(struct zf_append *append, struct zf_segment *segment)
{
	struct zf_inode *inode = segment->inode;
	unsigned int count = 0;
	bool ok;

	zf_rwlock_wrlock(&inode->lock);
	zf_mutex_lock(&inode->data.lock);
	for (unsigned int i = 0; i < segment->count; i++)
		count += is_newest_in_flight(&inode->data, append->blocks[segment->first + i]);
	/* The grant has used up the reservation. */
	ok = !append->granted ||
	     zf_alloc_reserve(inode->fs->alloc, ZF_RESERVE_SYSTEM, count, 0, 0) == 0;
	if (ok)
		put_back_locked(append, segment);
	zf_mutex_unlock(&inode->data.lock);
	zf_data_unlock(inode);
	return ok;
}

static void give_up(struct zf_append *append, struct zf_segment *segment, int error)
{
	if (error != -ENOMEM || append->in_place || zf_txn_error(append->fs->txn) ||
	    !put_back(append, segment))
		fail_segment(append, segment, error);
}

/* ---- one segment, one append ---- */

void zf_land_let_go(struct zf_inode *inode)
{
	bool held;

	zf_mutex_lock(&inode->data.lock);
	held = inode->data.held > 0;
	zf_mutex_unlock(&inode->data.lock);
	if (held)
		zf_append_retry_held(inode->fs);
}

/* Looks without a join whether something can land, because most held appends stay held. */
static enum look look(struct zf_append *append, struct zf_segment *segment)
{
	struct run run;
	enum look look;

	zf_rwlock_rdlock(&segment->inode->lock);
	look = next_run(append, segment, &run);
	zf_rwlock_unlock(&segment->inode->lock);
	return look;
}

/*
 * On a full filesystem the join is for one piece only, because data of an answered write must find
 * room (P5).
 */
static int join(struct landing *landing, struct zf_trans *trans)
{
	return zf_data_join_some(landing->segment->inode, LAND_EDITS, PIECE_EDITS + 1,
				 &landing->edits, trans);
}

/* Returns whether something landed. */
static bool land_segment(struct zf_append *append, struct zf_segment *segment)
{
	struct zf_inode *inode = segment->inode;
	bool any = false;
	enum look seen;

	while ((seen = look(append, segment)) == LOOK_RUN) {
		struct landing landing = {.append = append, .segment = segment};
		struct zf_trans trans;
		struct run run;
		int r = join(&landing, &trans);

		if (r == 0) {
			landing.trans = &trans;
			zf_extent_editor_init(&landing.editor, inode, &trans);
			if (next_run(append, segment, &run) == LOOK_RUN)
				r = land_some(&landing, &run);
			zf_trans_leave(&trans);
			zf_data_unlock(inode);
		}
		any |= landing.changed;
		if (r < 0) {
			give_up(append, segment, r);
			any = true;
			break;
		}
	}
	segment->finished = seen != LOOK_HELD;
	if (any)
		zf_land_let_go(inode);
	return any;
}

/* ---- with a record of the log ---- */

/*
 * Joins without waiting for a commit, because a freeze waits for the caller, which has entered the
 * log. The call may wait for other joins to leave, which is soon.
 */
static int join_entered(struct zf_txn *txn, unsigned int items, struct zf_trans *ret_trans)
{
	int r = zf_trans_join(txn, ZF_RESERVE_NORMAL, items, false, ret_trans);

	return r == 0 ? 0 : zf_trans_join(txn, ZF_RESERVE_SYSTEM, items, true, ret_trans);
}

static int land_rider(struct zf_append *append, struct zf_segment *segment)
{
	enum look look;
	struct run run;

	while ((look = next_run(append, segment, &run)) == LOOK_RUN) {
		struct landing landing = {
			.append = append, .segment = segment, .edits = PIECE_EDITS + 1};
		struct zf_trans trans;
		int r = join_entered(segment->inode->fs->txn, landing.edits, &trans);

		if (r < 0)
			return r;
		landing.trans = &trans;
		zf_extent_editor_init(&landing.editor, segment->inode, &trans);
		r = land_some(&landing, &run);
		zf_trans_leave(&trans);
		if (r < 0)
			return r;
	}
	assert(look == LOOK_FINISHED);
	return 0;
}

int zf_land_rider(struct zf_append *append)
{
	struct zf_fs *fs = append->fs;
	int r = land_rider(append, &append->segments[0]);

	if (r < 0) {
		zf_append_again(append);
		return r;
	}
	/* An append that completed before the record may be held because of the rider. */
	zf_land_let_go(append->segments[0].inode);
	zf_append_end(append);
	zf_append_event_for_askers(fs);
	return 0;
}

int zf_land_item(struct zf_inode *inode)
{
	struct zf_trans trans;
	int r = join_entered(inode->fs->txn, 1, &trans);

	if (r < 0)
		return r;
	r = zf_inode_store(inode, &trans);
	zf_trans_leave(&trans);
	return r;
}

/* ---- any append ---- */

static void count_held(struct zf_segment *segment, int n)
{
	struct zf_data *data = &segment->inode->data;

	zf_mutex_lock(&data->lock);
	data->held += (uint32_t)n;
	zf_mutex_unlock(&data->lock);
}

static bool fail_append(struct zf_append *append)
{
	if (append->granted && zf_append_retry(append))
		return false;
	/*
	 * The file's next fsync gets EIO, because the device's errno for a failed zone (EROFS,
	 * ENXIO) would mislead a user. append->error, if set, is passed on as it is. (For a rider
	 * it may be the device's errno.)
	 */
	for (unsigned int i = 0; i < append->segment_count; i++) {
		give_up(append, &append->segments[i], append->error ? append->error : -EIO);
		zf_land_let_go(append->segments[i].inode);
	}
	return true;
}

/*
 * A segment is counted as held before it is checked. So a thread that lands, at the same time, the
 * block for which this segment waits sees the count, and has this append tried again.
 */
static bool land_segments(struct zf_append *append, bool *ret_finished)
{
	bool any = false;

	*ret_finished = true;
	for (unsigned int i = 0; i < append->segment_count; i++) {
		struct zf_segment *segment = &append->segments[i];

		if (segment->finished)
			continue;
		if (!append->looked_at)
			count_held(segment, 1);
		any |= land_segment(append, segment);
		if (segment->finished)
			count_held(segment, -1);
		else
			*ret_finished = false;
	}
	append->looked_at = true;
	return any;
}

void zf_land_in_place(struct zf_append *append)
{
	if (append->io.result < 0)
		fail_append(append);
	else
		zf_in_place_landed(append);
	zf_append_end(append);
}

/* Returns whether the append made progress. */
static bool land_append(struct zf_append *append, uint64_t let_go)
{
	struct zf_fs *fs = append->fs;
	bool any, finished;

	if (append->in_place) {
		zf_land_in_place(append);
		zf_append_landed(fs, NULL, let_go);
		return true;
	}
	if (append->error || append->io.result < 0) {
		if (fail_append(append))
			zf_append_end(append);
		zf_append_landed(fs, NULL, let_go);
		return true;
	}
	any = land_segments(append, &finished);
	if (finished)
		zf_append_end(append);
	zf_append_landed(fs, finished ? NULL : append, let_go);
	return any || finished;
}

unsigned int zf_data_land(struct zf_fs *fs)
{
	struct zf_append *append;
	unsigned int n = 0;
	uint64_t let_go;

	while ((append = zf_append_take_done(fs, &let_go)))
		n += land_append(append, let_go);
	if (n > 0)
		zf_append_submit_waiting(fs);
	return n;
}

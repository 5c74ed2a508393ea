/* SPDX-License-Identifier: MIT */
/* Space kept for its owner (P5): alloc.h tells what that is. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "alloc/alloc_internal.h"

static uint64_t sub_blocks(uint64_t from, uint64_t blocks)
{
	return from > blocks ? from - blocks : 0;
}

/* Room for data if `keep` empty zones are left alone. */
static uint64_t room_blocks(const struct zf_alloc *alloc, uint32_t keep)
{
	return zf_alloc_stream_room_locked(alloc, ZF_ROLE_HOT) +
	       sub_blocks(alloc->empty_count, keep) * capacity_blocks(alloc);
}

/*
 * Of what is kept, that for which there is no room beside what a commit needs, and the zone without
 * which reclaim gets nothing back. Metadata may have come to that though nothing is amiss; if it
 * needs more, what is kept gives way then.
 */
static uint64_t missing_blocks(const struct zf_alloc *alloc)
{
	uint32_t keep = zf_alloc_kept_zones_locked(alloc, ZF_RESERVE_SYSTEM) + 1;
	uint64_t room = room_blocks(alloc, keep);
	uint64_t kept = sub_blocks(kept_unlent(alloc), alloc->kept_spent);

	return zf_min_u64(sub_blocks(alloc->reserved_blocks + kept, room), kept);
}

uint64_t zf_alloc_kept_need_locked(const struct zf_alloc *alloc)
{
	uint64_t blocks = kept_unlent(alloc), bytes = blocks * KEPT_ITEM_BYTES * alloc->copies;

	return blocks + ((bytes + ZF_BLOCK_SIZE - 1) >> ZF_BLOCK_SHIFT);
}

uint64_t zf_alloc_kept_claim_locked(const struct zf_alloc *alloc)
{
	return sub_blocks(kept_unlent(alloc), alloc->kept_spent + alloc->kept_short);
}

uint64_t zf_alloc_kept_item_blocks_locked(const struct zf_alloc *alloc)
{
	/* Of what is short the garbage has its entries still. */
	uint64_t bytes = zf_alloc_kept_claim_locked(alloc) * KEPT_ITEM_BYTES;

	return (bytes + ZF_BLOCK_SIZE - 1) >> ZF_BLOCK_SHIFT;
}

/* ---- what is kept ---- */

static void spend_locked(struct zf_alloc *alloc, uint64_t blocks)
{
	alloc->kept_spent = zf_min_u64(alloc->kept_spent + blocks, alloc->kept_blocks);
	alloc->kept_short = zf_min_u64(alloc->kept_short, alloc->kept_blocks - alloc->kept_spent);
}

uint64_t zf_alloc_kept_change(struct zf_alloc *alloc, const struct zf_kept_change *change)
{
	uint64_t used = zf_min_u64(change->added, change->reserved);

	zf_mutex_lock(&alloc->lock);
	assert(alloc->reserved_blocks >= used && alloc->lent_blocks >= change->lent);
	/* A hostile image may count too few. */
	alloc->kept_blocks = sub_blocks(alloc->kept_blocks + change->added, change->removed);
	alloc->reserved_blocks -= used;
	alloc->lent_blocks -= change->lent;
	/* What was lent has been used, and yet is kept. */
	spend_locked(alloc, sub_blocks(change->lent, sub_blocks(change->removed, change->added)));
	zf_mutex_unlock(&alloc->lock);
	return change->reserved - used;
}

void zf_alloc_kept_spend(struct zf_alloc *alloc, uint64_t blocks)
{
	zf_mutex_lock(&alloc->lock);
	spend_locked(alloc, blocks);
	zf_mutex_unlock(&alloc->lock);
}

bool zf_alloc_keeps_any(struct zf_alloc *alloc)
{
	bool any;

	zf_mutex_lock(&alloc->lock);
	any = alloc->kept_blocks > 0;
	zf_mutex_unlock(&alloc->lock);
	return any;
}

int zf_alloc_lend(struct zf_alloc *alloc, uint64_t blocks, uint64_t items)
{
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	if (zf_alloc_kept_claim_locked(alloc) < blocks ||
	    alloc->reserved_blocks + blocks > room_blocks(alloc, 0)) {
		r = -ENOSPC;
	} else {
		alloc->lent_blocks += blocks;
		alloc->reserved_blocks += blocks;
		alloc->reserved_items += items;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_take_back(struct zf_alloc *alloc, uint64_t blocks)
{
	zf_mutex_lock(&alloc->lock);
	assert(alloc->lent_blocks >= blocks);
	alloc->lent_blocks -= blocks;
	zf_mutex_unlock(&alloc->lock);
}

/* ---- when it is not there ---- */

static void tell_short(const struct zf_alloc *alloc)
{
	if (alloc->kept_short > 0)
		zf_report(alloc->report, ZF_REPORT_WARNING,
			  "of the space that is kept for files, %" PRIu64
			  " bytes are not there until zones come back: a crash, or a zone that "
			  "failed, has taken them",
			  alloc->kept_short << ZF_BLOCK_SHIFT);
}

void zf_alloc_kept_start_locked(struct zf_alloc *alloc)
{
	spend_locked(alloc, 0); /* no more than is kept, whatever an image says */
	alloc->kept_short = missing_blocks(alloc);
	tell_short(alloc);
}

void zf_alloc_kept_lost_locked(struct zf_alloc *alloc)
{
	uint64_t missing = missing_blocks(alloc);

	if (missing <= alloc->kept_short)
		return;
	alloc->kept_short = missing;
	tell_short(alloc);
}

void zf_alloc_kept_recount(struct zf_alloc *alloc)
{
	zf_mutex_lock(&alloc->lock);
	zf_alloc_kept_start_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_kept_regain_locked(struct zf_alloc *alloc, uint64_t blocks)
{
	alloc->kept_spent = sub_blocks(alloc->kept_spent, blocks);
	if (alloc->kept_short > 0)
		alloc->kept_short = zf_min_u64(alloc->kept_short, missing_blocks(alloc));
}

bool zf_alloc_kept_give_way(struct zf_alloc *alloc)
{
	uint64_t before, missing;

	zf_mutex_lock(&alloc->lock);
	before = zf_alloc_kept_claim_locked(alloc);
	missing = zf_max_u64(alloc->kept_short + capacity_blocks(alloc), missing_blocks(alloc));
	alloc->kept_short = zf_min_u64(missing, kept_unlent(alloc));
	zf_mutex_unlock(&alloc->lock);
	return before > 0;
}

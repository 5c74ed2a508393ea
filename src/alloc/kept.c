/* SPDX-License-Identifier: MIT */
/*
 * Kept and guaranteed blocks (P5). alloc/reserve.h defines them, and when they are lent or short.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "alloc/alloc_internal.h"

/* Room for data if `keep` empty zones are left alone. */
static uint64_t room_blocks(const struct zf_alloc *alloc, uint32_t keep)
{
	return zf_alloc_stream_room_locked(alloc, ZF_ROLE_HOT) +
	       sub_blocks(alloc->empty_count, keep) * capacity_blocks(alloc);
}

/*
 * The kept blocks for which there is no room besides the zones that a commit needs and the one zone
 * without which reclaim cannot begin. Metadata may use those zones in normal operation, so they are
 * not counted as room. If metadata needs more, zf_alloc_kept_give_way() gives it more.
 */
static uint64_t missing_blocks(const struct zf_alloc *alloc)
{
	uint32_t keep = zf_alloc_kept_zones_locked(alloc, ZF_RESERVE_SYSTEM) + 1;
	uint64_t room = room_blocks(alloc, keep);
	uint64_t kept = kept_unlent(alloc);

	return zf_min_u64(sub_blocks(alloc->reserved_blocks + kept, room), kept);
}

/* ---- keeping and lending ---- */

/* Garbage has taken the place of `blocks` more kept blocks. */
static void use_locked(struct zf_alloc *alloc, uint64_t blocks)
{
	alloc->kept_short = zf_min_u64(alloc->kept_short + blocks, kept_unlent(alloc));
}

uint64_t zf_alloc_kept_change(struct zf_alloc *alloc, const struct zf_kept_change *change)
{
	const struct zf_kept_counts *added = &change->added, *removed = &change->removed;
	uint64_t used = zf_min_u64(added->kept, change->reserved);

	zf_mutex_lock(&alloc->lock);
	assert(alloc->reserved_blocks >= used && alloc->lent_blocks >= change->lent);
	/* A hostile image may count too few blocks. */
	alloc->kept_blocks = sub_blocks(alloc->kept_blocks + added->kept, removed->kept);
	alloc->guaranteed_blocks =
		sub_blocks(alloc->guaranteed_blocks + added->guaranteed, removed->guaranteed);
	alloc->kept_guaranteed_blocks =
		sub_blocks(alloc->kept_guaranteed_blocks + added->both, removed->both);
	alloc->reserved_blocks -= used;
	alloc->lent_blocks -= change->lent;
	/* Lent blocks that are still kept have been written to. */
	use_locked(alloc, sub_blocks(change->lent, sub_blocks(removed->kept, added->kept)));
	zf_mutex_unlock(&alloc->lock);
	return change->reserved - used;
}

void zf_alloc_kept_used(struct zf_alloc *alloc, uint64_t blocks)
{
	zf_mutex_lock(&alloc->lock);
	use_locked(alloc, blocks);
	zf_mutex_unlock(&alloc->lock);
}

bool zf_alloc_keeps_any(struct zf_alloc *alloc)
{
	bool any;

	zf_mutex_lock(&alloc->lock);
	any = alloc->kept_blocks > 0 || alloc->guaranteed_blocks > 0;
	zf_mutex_unlock(&alloc->lock);
	return any;
}

uint64_t zf_alloc_slack_missing(struct zf_alloc *alloc)
{
	uint64_t missing;

	zf_mutex_lock(&alloc->lock);
	missing = slack_max(alloc) - zf_alloc_slack_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
	return missing;
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

/* ---- short blocks ---- */

static void tell_short(const struct zf_alloc *alloc)
{
	if (alloc->kept_short > 0)
		zf_report(alloc->report, ZF_REPORT_WARNING,
			  "%" PRIu64
			  " bytes that fallocate has allocated cannot be written until garbage is "
			  "reclaimed: a crash or a failed zone has taken their space",
			  alloc->kept_short << ZF_BLOCK_SHIFT);
}

void zf_alloc_kept_start_locked(struct zf_alloc *alloc)
{
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

void zf_alloc_kept_regain_locked(struct zf_alloc *alloc)
{
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

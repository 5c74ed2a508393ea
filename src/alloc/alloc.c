/* SPDX-License-Identifier: MIT */
/* The zone table: its life, and the small things that the other files ask of it. */
#include "alloc/alloc.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "alloc/alloc_internal.h"
#include "base/cleanup.h"

#define REPORT_CHUNK 1024u

/* ---- life ---- */

static uint32_t active_max(const struct zf_geometry *geometry)
{
	uint32_t max = geometry->max_active;

	if (geometry->max_open && (!max || geometry->max_open < max))
		max = geometry->max_open;
	return max ? max : UINT32_MAX;
}

/*
 * The ring's zone, one zone a copy of metadata, the log's two, one for data, and one for what
 * reclaim moves: with fewer nothing can be written, or nothing comes back.
 */
static int check_active(const struct zf_alloc *alloc)
{
	uint32_t needed = 1u + alloc->copies + ACTIVE_FOR_LOG + ACTIVE_FOR_COLD + 1u;

	if (alloc->active_max >= needed)
		return 0;
	zf_report(alloc->report, ZF_REPORT_ERROR,
		  "the device allows %u active zones, this filesystem needs %u", alloc->active_max,
		  needed);
	return -EINVAL;
}

static void zone_from_info(struct zf_zone *zone, const struct zf_zone_info *info)
{
	zone->capacity = (uint32_t)(info->capacity >> ZF_BLOCK_SHIFT);
	zone->pointer = (uint32_t)((info->wp - info->start) >> ZF_BLOCK_SHIFT);
	if (info->cond == ZF_ZONE_FULL)
		zone->pointer = zone->capacity;
	zone->reset_count = info->reset_count;
	zone->lost = info->lost;
	zone->warm = info->warm;
	zf_alloc_zone_from_info_locked(zone, info);
}

int zf_alloc_read_report(struct zf_alloc *alloc, uint32_t from, uint32_t end)
{
	_zf_free_ struct zf_zone_info *info = malloc(REPORT_CHUNK * sizeof(*info));

	if (!info)
		return -ENOMEM;
	for (uint32_t first = from; first < end; first += REPORT_CHUNK) {
		uint32_t n = end - first;
		int r;

		if (n > REPORT_CHUNK)
			n = REPORT_CHUNK;
		r = zf_dev_report(alloc->dev, first, n, info);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++) {
			zone_from_info(&alloc->zones[first + i], &info[i]);
			alloc->counts_resets |= info[i].reset_count > 0;
		}
	}
	return 0;
}

int zf_alloc_new(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		 struct zf_alloc **ret_alloc)
{
	struct zf_alloc *alloc = calloc(1, sizeof(*alloc));
	int r;

	if (!alloc)
		return -ENOMEM;
	alloc->dev = dev;
	alloc->geometry = zf_dev_geometry(dev);
	alloc->report = report;
	alloc->node_blocks = super->node_size >> ZF_BLOCK_SHIFT;
	alloc->copies = super->metadata_copies;
	alloc->kept_blocks = super->kept_bytes >> ZF_BLOCK_SHIFT;
	alloc->kept_spent = super->spent_bytes >> ZF_BLOCK_SHIFT;
	alloc->active_max = active_max(alloc->geometry);
	alloc->zone_count = super->zone_count;
	zf_mutex_init(&alloc->lock, ZF_RANK_ALLOC);
	zf_cond_init(&alloc->limits_eased);
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		alloc->meta_zone[c] = NO_ZONE;
	for (unsigned int role = 0; role < ZF_ROLE_COUNT; role++)
		alloc->data_zone[role] = NO_ZONE;
	for (unsigned int i = 0; i < 2; i++)
		alloc->log_named[i] = alloc->log_chosen[i] = NO_ZONE;
	r = zf_alloc_table_new(alloc);
	if (r == 0)
		r = check_active(alloc);
	if (r == 0)
		r = zf_alloc_overwrite_init(alloc);
	if (r == 0)
		r = zf_alloc_read_report(alloc, 0, alloc->zone_count);
	if (r < 0) {
		zf_alloc_free(alloc);
		return r;
	}
	alloc->zones[0].role = ZF_ROLE_SUPER;
	alloc->zones[1].role = ZF_ROLE_SUPER;
	alloc->reclaim_target = zf_alloc_default_target(alloc->zone_count);
	alloc->tally.stale = true;
	*ret_alloc = alloc;
	return 0;
}

void zf_alloc_free(struct zf_alloc *alloc)
{
	if (!alloc)
		return;
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		free(alloc->meta_runs[c].runs);
	zf_alloc_overwrite_deinit(alloc);
	zf_alloc_table_free(alloc);
	zf_cond_deinit(&alloc->limits_eased);
	zf_mutex_deinit(&alloc->lock);
	free(alloc);
}

uint32_t zf_alloc_zone_count(const struct zf_alloc *alloc)
{
	return alloc->zone_count;
}

void zf_alloc_get_zone(struct zf_alloc *alloc, uint32_t zone_no, struct zf_zone *ret_zone)
{
	assert(zone_no < alloc->zone_count);
	zf_mutex_lock(&alloc->lock);
	*ret_zone = alloc->zones[zone_no];
	zf_mutex_unlock(&alloc->lock);
}

/* ---- helpers of the other files ---- */

bool zf_alloc_is_stream_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	for (unsigned int c = 0; c < alloc->copies; c++)
		if (alloc->meta_zone[c] == zone_no)
			return true;
	return alloc->data_zone[ZF_ROLE_HOT] == zone_no ||
	       alloc->data_zone[ZF_ROLE_COLD] == zone_no;
}

void zf_alloc_dirty_locked(struct zf_alloc *alloc, uint32_t zone_no)
{
	alloc->zones[zone_no].dirty = true;
}

void zf_alloc_set_pointer_locked(struct zf_alloc *alloc, uint32_t zone_no, uint32_t pointer)
{
	alloc->zones[zone_no].pointer = pointer;
	zf_alloc_dirty_locked(alloc, zone_no);
}

struct zf_zone *zf_alloc_node_zone_locked(struct zf_alloc *alloc, uint64_t address)
{
	uint64_t zone_no = address / alloc->geometry->zone_size;
	uint64_t end =
		(address % alloc->geometry->zone_size >> ZF_BLOCK_SHIFT) + alloc->node_blocks;
	struct zf_zone *zone;

	if (zone_no < 2 || zone_no >= alloc->zone_count)
		return NULL;
	zone = &alloc->zones[zone_no];
	return zone->role == ZF_ROLE_META && end <= zone->pointer ? zone : NULL;
}

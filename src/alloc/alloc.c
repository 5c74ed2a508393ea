/* SPDX-License-Identifier: MIT */
/* The allocator's state: it is created and freed. */
#include "alloc/alloc.h"

#include <errno.h>
#include <stdlib.h>

#include "alloc/alloc_internal.h"

static uint32_t active_max(const struct zf_geometry *geometry)
{
	uint32_t max = geometry->max_active;

	if (geometry->max_open && (!max || geometry->max_open < max))
		max = geometry->max_open;
	return max ? max : UINT32_MAX;
}

/*
 * A filesystem needs these active zones: the superblock ring's, one for each copy of metadata, two
 * for the log, one for new data, and one for data that reclaim moves.
 */
static int check_active(const struct zf_alloc *alloc)
{
	uint32_t needed = 1u + alloc->copies + ACTIVE_FOR_LOG + ACTIVE_FOR_COLD + 1u;

	if (alloc->active_max >= needed)
		return 0;
	zf_report(alloc->report, ZF_REPORT_ERROR,
		  "the device allows %u active zones, but this filesystem needs %u",
		  alloc->active_max, needed);
	return -EINVAL;
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
	alloc->guaranteed_blocks = super->guaranteed_bytes >> ZF_BLOCK_SHIFT;
	alloc->kept_guaranteed_blocks = super->kept_guaranteed_bytes >> ZF_BLOCK_SHIFT;
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

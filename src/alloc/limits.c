/* SPDX-License-Identifier: MIT */
/* Waiting while as many zones are active as the device allows. */
#include "alloc/alloc_internal.h"

void zf_alloc_limit_event_locked(struct zf_alloc *alloc)
{
	alloc->limit_events++;
	zf_cond_broadcast(&alloc->limits_eased);
}

uint64_t zf_alloc_limit_events(struct zf_alloc *alloc)
{
	uint64_t events;

	zf_mutex_lock(&alloc->lock);
	events = alloc->limit_events;
	zf_mutex_unlock(&alloc->lock);
	return events;
}

/* Is a command to the device under way whose end is an event? */
static bool is_under_way(const struct zf_alloc *alloc)
{
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		if (zone->flight > 0 || zone->finishing ||
		    (zone->resetting && zone_is_partial(zone)))
			return true;
	}
	return false;
}

bool zf_alloc_wait_limits(struct zf_alloc *alloc, uint64_t seen)
{
	bool eased;

	zf_mutex_lock(&alloc->lock);
	while (alloc->limit_events == seen && is_under_way(alloc))
		zf_dev_wait_progress(alloc->dev, &alloc->limits_eased, &alloc->lock);
	eased = alloc->limit_events != seen;
	zf_mutex_unlock(&alloc->lock);
	return eased;
}

/* SPDX-License-Identifier: MIT */
/*
 * Zones that fail for good: the device reports them as read-only or offline.
 *
 *      any zone
 *        |       zf_alloc_suspect(), after a command or a read has failed
 *        v
 *      suspect
 *        |       zf_alloc_pointer_known(), if the device's report says so
 *        v
 *      retired
 *
 * The error of one command does not retire a zone, because it may have had any reason; only the
 * device's report does. A retired zone never becomes usable again.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "alloc/alloc_internal.h"

static bool is_retired(const struct zf_zone_info *info)
{
	return info->cond == ZF_ZONE_READONLY || info->cond == ZF_ZONE_OFFLINE;
}

void zf_alloc_tell_retired_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t live = ((uint64_t)zone->live + zone->system_live) << ZF_BLOCK_SHIFT;

	if (!zone->unusable)
		return;
	if (zone->offline)
		zf_report(alloc->report, live ? ZF_REPORT_ERROR : ZF_REPORT_WARNING,
			  "zone %" PRIu32 " is offline: nothing in it can be read, and %" PRIu64
			  " bytes in it are in use (`fsck.zfuse` lists the files)",
			  zone_no, live);
	else
		zf_report(alloc->report, ZF_REPORT_WARNING,
			  "zone %" PRIu32 " is read-only: it is not written again; the %" PRIu64
			  " bytes of it that are in use are moved when there is room",
			  zone_no, live);
}

static void leave_streams(struct zf_alloc *alloc, uint32_t zone_no)
{
	for (unsigned int role = 0; role < ZF_ROLE_COUNT; role++)
		if (alloc->data_zone[role] == zone_no)
			alloc->data_zone[role] = NO_ZONE;
	for (unsigned int c = 0; c < alloc->copies; c++)
		if (alloc->meta_zone[c] == zone_no)
			alloc->meta_zone[c] = NO_ZONE;
}

static void retire(struct zf_alloc *alloc, uint32_t zone_no, bool offline)
{
	struct zf_zone *zone = &alloc->zones[zone_no];
	bool told = zone->unusable && zone->offline == offline;

	alloc->empty_count -= zone_is_empty(zone);
	leave_streams(alloc, zone_no);
	zone->unusable = true;
	zone->offline = offline;
	/*
	 * Appends granted in the zone fail, and are repeated elsewhere. The zone's true pointer
	 * does not matter any more.
	 */
	zf_alloc_set_pointer_locked(alloc, zone_no, zone->capacity);
	if (told)
		return;
	zf_alloc_tell_retired_locked(alloc, zone_no);
	zf_alloc_kept_lost_locked(alloc);
}

/* A write to the zone failed, but the zone is as usable as before. */
static void set_pointer(struct zf_alloc *alloc, uint32_t zone_no, const struct zf_zone_info *info)
{
	struct zf_zone *zone = &alloc->zones[zone_no];
	uint32_t pointer = (uint32_t)((info->wp - info->start) >> ZF_BLOCK_SHIFT);

	if (info->cond == ZF_ZONE_FULL || zone_is_conventional(alloc, zone_no))
		pointer = zone->capacity;
	zf_alloc_set_pointer_locked(alloc, zone_no, pointer);
	/*
	 * The zone's very first write failed, so the zone is empty. But while appends are pending,
	 * their failure would make the pointer unknown again.
	 */
	if (pointer == 0 && zone->pending == 0 && !zone->unusable &&
	    !zf_alloc_is_log_locked(alloc, zone_no)) {
		zf_alloc_set_role_locked(alloc, zone_no, ZF_ROLE_NONE);
		zone->summary = ZF_SUMMARY_NONE;
		alloc->empty_count++;
	}
}

static bool is_pointer_wanted(const struct zf_zone *zone)
{
	return zone->pointer_unknown && zone->flight == 0;
}

void zf_alloc_suspect(struct zf_alloc *alloc, uint32_t zone_no)
{
	zf_mutex_lock(&alloc->lock);
	alloc->zones[zone_no].suspect = true;
	zf_mutex_unlock(&alloc->lock);
}

int zf_alloc_next_unknown(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	int r = -ENOENT;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count && r < 0; z++) {
		if (!alloc->zones[z].suspect && !is_pointer_wanted(&alloc->zones[z]))
			continue;
		/*
		 * Nothing is written to a zone while its pointer is unknown. But a zone that is
		 * only suspect may be written after the report, and then the reported pointer is
		 * too old.
		 */
		alloc->zones[z].pointer_asked = is_pointer_wanted(&alloc->zones[z]);
		*ret_zone_no = z;
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_pointer_known(struct zf_alloc *alloc, uint32_t zone_no,
			    const struct zf_zone_info *info)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_mutex_lock(&alloc->lock);
	assert(zone->pointer_asked || zone->suspect);
	zone->suspect = false;
	if (is_retired(info))
		retire(alloc, zone_no, info->cond == ZF_ZONE_OFFLINE);
	if (zone->pointer_asked) {
		zone->pointer_asked = zone->pointer_unknown = false;
		if (!is_retired(info))
			set_pointer(alloc, zone_no, info);
		zf_alloc_note_emptied_locked(alloc, zone_no, alloc->running);
	}
	zf_alloc_recount_locked(alloc);
	zf_alloc_limit_event_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_zone_from_info_locked(struct zf_zone *zone, const struct zf_zone_info *info)
{
	zone->unusable = is_retired(info);
	zone->offline = info->cond == ZF_ZONE_OFFLINE;
	/* Devices do not report the pointer of such a zone. */
	if (zone->unusable)
		zone->pointer = zone->capacity;
}

static bool wants_scrub(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	/* The commit first tries to write new nodes at the addresses that they have. */
	return zone->role == ZF_ROLE_META && (zone->unusable || zone->damaged) &&
	       (zone->live || zone->system_live) && !zone->stuck && !zone->passed_over &&
	       !zone->resetting && !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       zone->write_generation <= alloc->committed;
}

int zf_alloc_scrub_begin(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	int r = -ENOENT;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count && r < 0; z++) {
		if (!wants_scrub(alloc, z))
			continue;
		alloc->zones[z].readers++;
		*ret_zone_no = z;
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_scrub_end(struct zf_alloc *alloc, uint32_t zone_no, bool stuck)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_mutex_lock(&alloc->lock);
	zone->passed_over = true;
	zone->stuck |= stuck;
	zone->readers--;
	zf_mutex_unlock(&alloc->lock);
}

uint32_t zf_alloc_retired_zones(struct zf_alloc *alloc, uint64_t *ret_lost)
{
	uint32_t n = 0;
	uint64_t lost = 0;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		n += zone->unusable;
		if (zone->offline)
			lost += (uint64_t)zone->live + zone->system_live;
	}
	zf_mutex_unlock(&alloc->lock);
	*ret_lost = lost << ZF_BLOCK_SHIFT;
	return n;
}

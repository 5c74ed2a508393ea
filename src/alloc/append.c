/* SPDX-License-Identifier: MIT */
/* Data: room for appends, and the count of live bytes. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/alloc_internal.h"

int zf_alloc_append_begin(struct zf_alloc *alloc, enum zf_role role, uint64_t want,
			  struct zf_append_grant *ret_grant)
{
	uint64_t *reserved = role == ZF_ROLE_COLD ? &alloc->cold_blocks : &alloc->reserved_blocks;
	uint32_t *stream = &alloc->data_zone[role];
	uint64_t blocks = want >> ZF_BLOCK_SHIFT;
	uint64_t limit = alloc->geometry->append_limit >> ZF_BLOCK_SHIFT;
	uint64_t start;
	struct zf_zone *zone;
	int r;

	assert(role == ZF_ROLE_HOT || role == ZF_ROLE_COLD);
	assert(blocks > 0 && zf_is_aligned(want, ZF_BLOCK_SIZE));
	zf_mutex_lock(&alloc->lock);
	if (*stream == NO_ZONE) {
		uint32_t empty_count = alloc->empty_count;

		/* The room was reserved, so no other writer has taken it. */
		r = zf_alloc_open_zone_locked(alloc, role, 0, stream);
		if (r < 0) {
			zf_mutex_unlock(&alloc->lock);
			return r;
		}
		if (role == ZF_ROLE_COLD && alloc->empty_count < empty_count)
			zf_alloc_cold_opened_locked(alloc);
	}
	zone = &alloc->zones[*stream];
	blocks = zf_min_u64(blocks, limit);
	blocks = zf_min_u64(blocks, zone->capacity - zone->pointer);
	start = *stream * alloc->geometry->zone_size;
	*ret_grant = (struct zf_append_grant){
		.zone_no = *stream,
		.zone_start = start,
		.len = blocks << ZF_BLOCK_SHIFT,
	};
	if (zone_is_conventional(alloc, *stream))
		ret_grant->address = start + ((uint64_t)zone->pointer << ZF_BLOCK_SHIFT);
	zone->pending += (uint32_t)blocks;
	zone->flight += (uint32_t)blocks;
	zone->summary = ZF_SUMMARY_PRESENT;
	zf_alloc_set_pointer_locked(alloc, *stream, zone->pointer + (uint32_t)blocks);
	assert(*reserved >= blocks);
	*reserved -= blocks;
	if (zone->pointer == zone->capacity)
		*stream = NO_ZONE;
	zf_mutex_unlock(&alloc->lock);
	return 0;
}

static void count_written_locked(struct zf_alloc *alloc, const struct zf_append_grant *grant)
{
	struct zf_zone *zone = &alloc->zones[grant->zone_no];
	uint32_t blocks = (uint32_t)(grant->len >> ZF_BLOCK_SHIFT);

	assert(zone->flight >= blocks);
	zone->flight -= blocks;
	if (zone->flight == 0)
		zf_alloc_limit_event_locked(alloc);
}

void zf_alloc_append_written(struct zf_alloc *alloc, struct zf_append_grant *grant)
{
	zf_mutex_lock(&alloc->lock);
	count_written_locked(alloc, grant);
	grant->written = true;
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_append_end(struct zf_alloc *alloc, const struct zf_append_grant *grant, int result)
{
	struct zf_zone *zone = &alloc->zones[grant->zone_no];
	uint32_t blocks = (uint32_t)(grant->len >> ZF_BLOCK_SHIFT);

	zf_mutex_lock(&alloc->lock);
	assert(zone->pending >= blocks);
	zone->pending -= blocks;
	/* Pending blocks kept the zone from being a victim, and its stream from being closed. */
	if (zone->pending == 0 && zone->live < zone->pointer)
		alloc->freed++;
	if (!grant->written)
		count_written_locked(alloc, grant);
	if (result >= 0) {
		alloc->appended[zone->role] += grant->len;
	} else {
		zone->pointer_unknown = true;
		zone->log_closed = zf_alloc_is_log_locked(alloc, grant->zone_no);
		if (alloc->data_zone[zone->role] == grant->zone_no)
			alloc->data_zone[zone->role] = NO_ZONE;
	}
	zf_alloc_note_emptied_locked(alloc, grant->zone_no, alloc->running);
	if (!zf_alloc_is_stream_locked(alloc, grant->zone_no))
		zf_alloc_recount_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_get_appended(struct zf_alloc *alloc, uint64_t ret_bytes[ZF_ROLE_COUNT])
{
	zf_mutex_lock(&alloc->lock);
	memcpy(ret_bytes, alloc->appended, sizeof(alloc->appended));
	zf_mutex_unlock(&alloc->lock);
}

int zf_alloc_check_extent(struct zf_alloc *alloc, uint64_t address, uint64_t len, bool in_place)
{
	const struct zf_geometry *geometry = alloc->geometry;
	uint64_t zone_no = address / geometry->zone_size;
	uint64_t offset = address % geometry->zone_size;
	uint64_t pointer;
	uint8_t role;

	if (!zf_is_aligned(address, ZF_BLOCK_SIZE) || !zf_is_aligned(len, ZF_BLOCK_SIZE) ||
	    len == 0)
		return zf_report_corrupt(alloc->report, "extent", address,
					 "length has %" PRIu64 ", expected whole blocks", len);
	if (zone_no < 2 || zone_no >= alloc->zone_count)
		return zf_report_corrupt(alloc->report, "extent", address,
					 "zone has %" PRIu64 ", expected 2 to %u", zone_no,
					 alloc->zone_count - 1);
	zf_mutex_lock(&alloc->lock);
	pointer = (uint64_t)alloc->zones[zone_no].pointer << ZF_BLOCK_SHIFT;
	role = alloc->zones[zone_no].role;
	zf_mutex_unlock(&alloc->lock);
	if (role == ZF_ROLE_META || role == ZF_ROLE_NONE || (role == ZF_ROLE_OVERWRITE) != in_place)
		return zf_report_corrupt(alloc->report, "extent", address,
					 "zone has role %s, expected one for data that is %s",
					 zf_zone_role_name(role),
					 in_place ? "written in place" : "appended");
	if (offset >= pointer || len > pointer - offset)
		return zf_report_corrupt(alloc->report, "extent", address,
					 "end has %" PRIu64
					 ", expected at most the pointer, %" PRIu64,
					 offset + len, pointer);
	return 0;
}

static void raise_written(struct zf_zone *zone, uint64_t end)
{
	zone->written = (uint32_t)zf_max_u64(zone->written, end);
}

void zf_alloc_live_add(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	uint32_t zone_no = zf_zone_of(alloc->geometry, address);
	struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t end = (address % alloc->geometry->zone_size + len) >> ZF_BLOCK_SHIFT;
	uint32_t live;

	zf_mutex_lock(&alloc->lock);
	assert(end <= zone->pointer);
	/* A hostile image may count too many live blocks, and its log may name more. */
	live = (uint32_t)zf_min_u64(zone->live + (len >> ZF_BLOCK_SHIFT), zone->pointer);
	zf_alloc_note_live_locked(alloc, zone_no, live);
	zone->live = live;
	zf_alloc_trace_live_locked(alloc, zone_no);
	if (zone->held && zone->role == ZF_ROLE_OVERWRITE)
		zf_alloc_overwrite_live_again_locked(alloc, address, len);
	raise_written(zone, end);
	zone->emptied_generation = 0;
	zone->write_generation = alloc->running;
	zf_alloc_dirty_locked(alloc, zone_no);
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_note_written(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	uint32_t zone_no = zf_zone_of(alloc->geometry, address);
	struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t end = (address % alloc->geometry->zone_size + len) >> ZF_BLOCK_SHIFT;

	zf_mutex_lock(&alloc->lock);
	assert(end <= zone->pointer);
	raise_written(zone, end);
	zf_alloc_dirty_locked(alloc, zone_no);
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_live_sub(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	uint32_t zone_no = zf_zone_of(alloc->geometry, address);
	struct zf_zone *zone = &alloc->zones[zone_no];
	uint32_t blocks = (uint32_t)(len >> ZF_BLOCK_SHIFT);

	zf_mutex_lock(&alloc->lock);
	/* A hostile image may name bytes twice; the count must not wrap. */
	blocks = blocks < zone->live ? blocks : zone->live;
	zf_alloc_note_live_locked(alloc, zone_no, zone->live - blocks);
	zone->live -= blocks;
	zf_alloc_trace_live_locked(alloc, zone_no);
	alloc->freed++;
	if (zone->role == ZF_ROLE_OVERWRITE)
		zf_alloc_overwrite_freed_locked(alloc, address, len);
	zf_alloc_dirty_locked(alloc, zone_no);
	zf_alloc_note_emptied_locked(alloc, zone_no, alloc->running);
	zf_mutex_unlock(&alloc->lock);
}

uint64_t zf_alloc_read_begin(struct zf_alloc *alloc, uint64_t address)
{
	struct zf_zone *zone = &alloc->zones[zf_zone_of(alloc->geometry, address)];
	uint64_t resets;

	zf_mutex_lock(&alloc->lock);
	zone->readers++;
	resets = zone->reset_count;
	zf_mutex_unlock(&alloc->lock);
	return resets;
}

uint64_t zf_alloc_resets(struct zf_alloc *alloc, uint64_t address)
{
	uint64_t resets;

	zf_mutex_lock(&alloc->lock);
	resets = alloc->zones[zf_zone_of(alloc->geometry, address)].reset_count;
	zf_mutex_unlock(&alloc->lock);
	return resets;
}

void zf_alloc_read_end(struct zf_alloc *alloc, uint64_t address)
{
	struct zf_zone *zone = &alloc->zones[zf_zone_of(alloc->geometry, address)];

	zf_mutex_lock(&alloc->lock);
	assert(zone->readers > 0);
	zone->readers--;
	if (zone->readers == 0 && zone->live == 0 && zone->role != ZF_ROLE_META)
		alloc->freed++;
	zf_mutex_unlock(&alloc->lock);
}

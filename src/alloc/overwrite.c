/* SPDX-License-Identifier: MIT */
#include "alloc/overwrite.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "alloc/alloc_internal.h"

/* A free run of this many blocks is long enough: no other zone is opened for a longer run. */
#define RUN_BLOCKS 256u

/* ---- one zone's map ---- */

static uint8_t *map_of(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_overwrite_map *map = &alloc->overwrite.maps[zone_no];

	if (!map->bits)
		map->bits = calloc((alloc->zones[zone_no].capacity + 7) / 8, 1);
	return map->bits;
}

static bool is_taken(const struct zf_overwrite_map *map, uint32_t block)
{
	return map->bits[block / 8] & (1u << block % 8);
}

static void mark(struct zf_alloc *alloc, uint64_t address, uint64_t len, bool taken)
{
	uint32_t zone_no = zf_zone_of(alloc->geometry, address);
	struct zf_overwrite_map *map = &alloc->overwrite.maps[zone_no];
	uint32_t first = (uint32_t)(address % alloc->geometry->zone_size >> ZF_BLOCK_SHIFT);
	uint32_t count = (uint32_t)(len >> ZF_BLOCK_SHIFT);

	/* In a damaged image, extents may lack the summary entries from which the map is loaded. */
	if (!map->bits)
		return;
	for (uint32_t block = first; block < first + count; block++) {
		if (is_taken(map, block) == taken)
			continue;
		map->bits[block / 8] ^= (uint8_t)(1u << block % 8);
		map->used = taken ? map->used + 1 : map->used - 1;
	}
}

struct run {
	uint32_t zone_no, first, count; /* blocks; count 0: none */
};

/* Sets *best to the zone's first free run of `want` blocks, or else to a longer run than *best. */
static void find_run(struct zf_alloc *alloc, uint32_t zone_no, uint32_t want, struct run *best)
{
	const struct zf_overwrite_map *map = &alloc->overwrite.maps[zone_no];
	uint32_t capacity = alloc->zones[zone_no].capacity, from = 0;

	for (uint32_t block = 0; block < capacity && best->count < want; block++) {
		if (is_taken(map, block)) {
			from = block + 1;
			continue;
		}
		if (block + 1 - from > best->count)
			*best = (struct run){zone_no, from, block + 1 - from};
	}
}

/* ---- what was freed ---- */

void zf_alloc_overwrite_freed_locked(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	struct zf_freed *freed = calloc(1, sizeof(*freed));

	/* Without memory for the note, the bytes stay taken until the next mount. */
	if (!freed)
		return;
	freed->address = address;
	freed->len = len;
	freed->generation = alloc->running;
	STAILQ_INSERT_TAIL(&alloc->overwrite.freed, freed, link);
}

static void note_freed(struct zf_alloc *alloc, const struct zf_freed *like, uint64_t from,
		       uint64_t to)
{
	struct zf_freed *freed = from < to ? malloc(sizeof(*freed)) : NULL;

	if (!freed)
		return;
	*freed = *like;
	freed->address = from;
	freed->len = to - from;
	STAILQ_INSERT_HEAD(&alloc->overwrite.freed, freed, link);
}

void zf_alloc_overwrite_live_again_locked(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	struct zf_overwrite *overwrite = &alloc->overwrite;
	struct zf_freed *freed, *next;

	STAILQ_FOREACH_SAFE (freed, &overwrite->freed, link, next) {
		uint64_t end = freed->address + freed->len;

		if (freed->address >= address + len || end <= address)
			continue;
		STAILQ_REMOVE(&overwrite->freed, freed, zf_freed, link);
		/* The bytes on either side of the range stay freed. */
		note_freed(alloc, freed, freed->address, zf_min_u64(address, end));
		note_freed(alloc, freed, zf_max_u64(address + len, freed->address), end);
		free(freed);
	}
}

/*
 * Era N+1 begins only when all holds of era N-1 have ended. So all I/O that was in flight in an era
 * is over two eras later, and newer holds do not delay that.
 */
static void advance_era(struct zf_overwrite *overwrite)
{
	for (unsigned int i = 0; i < 2 && overwrite->holds[(overwrite->era + 1) % 2] == 0; i++)
		overwrite->era++;
}

void zf_alloc_overwrite_release_locked(struct zf_alloc *alloc, bool urgent)
{
	struct zf_overwrite *overwrite = &alloc->overwrite;
	struct zf_freed *freed, *next;

	if (STAILQ_EMPTY(&overwrite->freed))
		return;
	/*
	 * The era is set only now: until the transaction was over, writes to the bytes could begin.
	 */
	STAILQ_FOREACH (freed, &overwrite->freed, link)
		if (!freed->era && freed->generation + (urgent ? 0 : 1) <= alloc->committed)
			freed->era = overwrite->era;
	advance_era(overwrite);
	STAILQ_FOREACH_SAFE (freed, &overwrite->freed, link, next) {
		if (!freed->era || freed->era + 2 > overwrite->era)
			continue;
		mark(alloc, freed->address, freed->len, false);
		STAILQ_REMOVE(&overwrite->freed, freed, zf_freed, link);
		free(freed);
	}
}

unsigned int zf_alloc_overwrite_hold(struct zf_alloc *alloc)
{
	unsigned int hold;

	zf_mutex_lock(&alloc->lock);
	hold = alloc->overwrite.era % 2;
	alloc->overwrite.holds[hold]++;
	zf_mutex_unlock(&alloc->lock);
	return hold;
}

void zf_alloc_overwrite_let_go(struct zf_alloc *alloc, unsigned int hold)
{
	zf_mutex_lock(&alloc->lock);
	assert(alloc->overwrite.holds[hold] > 0);
	alloc->overwrite.holds[hold]--;
	zf_mutex_unlock(&alloc->lock);
}

/* ---- life ---- */

int zf_alloc_overwrite_init(struct zf_alloc *alloc)
{
	STAILQ_INIT(&alloc->overwrite.freed);
	alloc->overwrite.era = 1;
	alloc->overwrite.maps =
		calloc(alloc->geometry->conventional + 1, sizeof(*alloc->overwrite.maps));
	return alloc->overwrite.maps ? 0 : -ENOMEM;
}

void zf_alloc_overwrite_deinit(struct zf_alloc *alloc)
{
	struct zf_overwrite *overwrite = &alloc->overwrite;
	struct zf_freed *freed;

	if (!overwrite->maps)
		return;
	while ((freed = STAILQ_FIRST(&overwrite->freed))) {
		STAILQ_REMOVE_HEAD(&overwrite->freed, link);
		free(freed);
	}
	for (uint32_t z = 0; z < alloc->geometry->conventional; z++)
		free(overwrite->maps[z].bits);
	free(overwrite->maps);
}

bool zf_alloc_has_overwrite(struct zf_alloc *alloc)
{
	return atomic_load_explicit(&alloc->overwrite.zone_count, memory_order_relaxed) > 0;
}

static bool has_role(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zone_is_conventional(alloc, zone_no) &&
	       alloc->zones[zone_no].role == ZF_ROLE_OVERWRITE;
}

/* The range is that of a summary entry: it lies in one zone, unless the image is hostile. */
int zf_alloc_overwrite_load(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	uint64_t zone_no = address / alloc->geometry->zone_size;
	uint64_t end = (address % alloc->geometry->zone_size + len) >> ZF_BLOCK_SHIFT;
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	if (zone_no >= alloc->zone_count || !has_role(alloc, (uint32_t)zone_no) ||
	    end > alloc->zones[zone_no].capacity)
		r = zf_report_corrupt(
			alloc->report, "summary of address", address,
			"flags has OVERWRITE, expected an address in a zone of role overwrite");
	else if (!map_of(alloc, (uint32_t)zone_no))
		r = -ENOMEM;
	else
		mark(alloc, address, len, true);
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/* Gives the zone the role, if it is empty or has another role in the committed state. */
static void give_role_locked(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	if (zone->role == ZF_ROLE_OVERWRITE)
		return;
	zf_alloc_set_role_locked(alloc, zone_no, ZF_ROLE_OVERWRITE);
	zone->emptied_generation = 0;
	zone->written = zone->capacity;
	zf_alloc_set_pointer_locked(alloc, zone_no, zone->capacity);
	zf_alloc_recount_locked(alloc);
	atomic_fetch_add(&alloc->overwrite.zone_count, 1);
}

/*
 * Does the zone have the role, or can it have got the role since, because nothing in it was live?
 */
static bool can_have_role(const struct zf_alloc *alloc, uint64_t zone_no)
{
	return zone_no >= 2 && zone_no < alloc->zone_count &&
	       zone_is_conventional(alloc, (uint32_t)zone_no) &&
	       (alloc->zones[zone_no].role == ZF_ROLE_OVERWRITE ||
		(alloc->zones[zone_no].live == 0 && alloc->zones[zone_no].system_live == 0));
}

int zf_alloc_overwrite_claim(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	uint64_t zone_no = address / alloc->geometry->zone_size;
	uint64_t end = (address % alloc->geometry->zone_size + len) >> ZF_BLOCK_SHIFT;
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	if (!zf_is_aligned(address | len, ZF_BLOCK_SIZE) || len == 0 ||
	    !can_have_role(alloc, zone_no) || len > alloc->geometry->zone_size ||
	    end > alloc->zones[zone_no].capacity) {
		r = zf_report_corrupt(
			alloc->report, "log record's range", address,
			"length has %" PRIu64
			", expected whole blocks in a conventional zone for data written in place",
			len);
	} else if (!map_of(alloc, (uint32_t)zone_no)) {
		r = -ENOMEM;
	} else {
		give_role_locked(alloc, (uint32_t)zone_no);
		mark(alloc, address, len, true);
		alloc->zones[zone_no].held = true;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_overwrite_distrust(struct zf_alloc *alloc)
{
	zf_mutex_lock(&alloc->lock);
	alloc->overwrite.distrusted = true;
	zf_mutex_unlock(&alloc->lock);
}

/* ---- giving out ---- */

static int take_locked(struct zf_alloc *alloc, uint32_t want, struct run *ret_run)
{
	struct run best = {0};

	if (alloc->overwrite.distrusted)
		return -ENOSPC;
	for (uint32_t z = 2; z < alloc->geometry->conventional && best.count < want; z++) {
		if (z >= alloc->zone_count || !has_role(alloc, z) || alloc->zones[z].unusable ||
		    alloc->zones[z].resetting)
			continue;
		if (!map_of(alloc, z))
			return -ENOMEM;
		find_run(alloc, z, want, &best);
	}
	if (best.count == 0)
		return STAILQ_EMPTY(&alloc->overwrite.freed) ? -ENOSPC : -EAGAIN;
	*ret_run = best;
	return 0;
}

int zf_alloc_overwrite_take(struct zf_alloc *alloc, uint64_t want, bool urgent,
			    uint64_t *ret_address, uint64_t *ret_len)
{
	uint32_t blocks = (uint32_t)zf_min_u64(want >> ZF_BLOCK_SHIFT, UINT32_MAX);
	struct run run;
	int r;

	assert(blocks > 0);
	zf_mutex_lock(&alloc->lock);
	zf_alloc_overwrite_release_locked(alloc, urgent);
	r = take_locked(alloc, blocks, &run);
	/* A new zone, if there is one, is better than short runs in old zones. */
	if (r == 0 && !urgent && run.count < blocks && run.count < RUN_BLOCKS)
		r = -EAGAIN;
	if (r == 0) {
		run.count = run.count < blocks ? run.count : blocks;
		*ret_address = run.zone_no * alloc->geometry->zone_size +
			       ((uint64_t)run.first << ZF_BLOCK_SHIFT);
		*ret_len = (uint64_t)run.count << ZF_BLOCK_SHIFT;
		mark(alloc, *ret_address, *ret_len, true);
		alloc->zones[run.zone_no].pending += run.count;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/* One of the claimed zones is the caller's own: the caller has reserved its blocks for this. */
static bool can_spare_zone(const struct zf_alloc *alloc)
{
	uint32_t keep = zf_alloc_kept_zones_locked(alloc, ZF_RESERVE_NORMAL);
	uint32_t claimed = zf_alloc_claimed_zones_locked(alloc);

	return alloc->empty_count > keep + (claimed > 1 ? claimed - 1 : 0);
}

int zf_alloc_overwrite_open(struct zf_alloc *alloc)
{
	int r = -ENOSPC;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->geometry->conventional && r < 0; z++) {
		struct zf_zone *zone = &alloc->zones[z];

		if (z >= alloc->zone_count || !zone_is_empty(zone) || !can_spare_zone(alloc))
			continue;
		alloc->empty_count--;
		give_role_locked(alloc, z);
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/* The bytes are no longer pending: they are live now, or free again. */
static void settle_locked(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	uint32_t zone_no = zf_zone_of(alloc->geometry, address);
	uint32_t blocks = (uint32_t)(len >> ZF_BLOCK_SHIFT);

	assert(alloc->zones[zone_no].pending >= blocks);
	alloc->zones[zone_no].pending -= blocks;
}

void zf_alloc_overwrite_give(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	zf_mutex_lock(&alloc->lock);
	settle_locked(alloc, address, len);
	mark(alloc, address, len, false);
	zf_alloc_note_emptied_locked(alloc, zf_zone_of(alloc->geometry, address), alloc->running);
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_overwrite_named(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	zf_mutex_lock(&alloc->lock);
	settle_locked(alloc, address, len);
	zf_mutex_unlock(&alloc->lock);
}

/* ---- helpers of the other files ---- */

bool zf_alloc_overwrite_in_use_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return has_role(alloc, zone_no) && alloc->overwrite.maps[zone_no].used > 0;
}

void zf_alloc_overwrite_left_locked(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_overwrite_map *map;

	if (!has_role(alloc, zone_no))
		return;
	map = &alloc->overwrite.maps[zone_no];
	free(map->bits);
	*map = (struct zf_overwrite_map){0};
	atomic_fetch_sub(&alloc->overwrite.zone_count, 1);
}

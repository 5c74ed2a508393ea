/* SPDX-License-Identifier: MIT */
/*
 * More zones, while all others are in use.
 *
 *      not there --zf_alloc_grow: coming--> --freeze: their items are in the snapshot-->
 *      --zf_alloc_committed: empty zones like any other, or garbage to be reset
 *
 * The table never moves: its address space is reserved for the largest device there can be, and
 * becomes memory as zones come.
 */
#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc/alloc_internal.h"
#include "io/zone_rules.h"

/* ---- the table ---- */

static uint64_t table_bytes(uint32_t zone_count)
{
	return zf_align_up(zone_count * sizeof(struct zf_zone), (uint64_t)sysconf(_SC_PAGESIZE));
}

static int make_memory(struct zf_alloc *alloc, uint32_t zone_count)
{
	/* What is readable already stays as it is. */
	if (mprotect(alloc->zones, table_bytes(zone_count), PROT_READ | PROT_WRITE) < 0)
		return -ENOMEM;
	return 0;
}

int zf_alloc_table_new(struct zf_alloc *alloc)
{
	void *table = mmap(NULL, table_bytes(ZF_ZONE_COUNT_MAX), PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (table == MAP_FAILED)
		return -ENOMEM;
	alloc->zones = table;
	return alloc->zone_count <= ZF_ZONE_COUNT_MAX ? make_memory(alloc, alloc->zone_count)
						      : -ENOMEM;
}

void zf_alloc_table_free(struct zf_alloc *alloc)
{
	if (alloc->zones)
		munmap(alloc->zones, table_bytes(ZF_ZONE_COUNT_MAX));
}

/* ---- growing ---- */

static int make_room(struct zf_alloc *alloc, unsigned int nodes)
{
	uint64_t need = alloc->promised_nodes + alloc->tail_max + nodes;

	if (zf_alloc_node_room_locked(alloc) < need)
		return -ENOSPC;
	alloc->tail_max += nodes;
	return 0;
}

int zf_alloc_grow(struct zf_alloc *alloc, uint32_t zone_count, unsigned int nodes)
{
	uint32_t first = alloc->zone_count;
	int r;

	assert(zone_count > first && zone_count <= alloc->geometry->zone_count);
	r = make_memory(alloc, zone_count);
	if (r < 0)
		return r;
	r = zf_alloc_read_report(alloc, first, zone_count);
	if (r < 0)
		return r;
	zf_mutex_lock(&alloc->lock);
	r = make_room(alloc, nodes);
	for (uint32_t z = first; r == 0 && z < zone_count; z++)
		alloc->zones[z].dirty = true;
	if (r == 0)
		alloc->zones_coming = zone_count - first;
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_grown_locked(struct zf_alloc *alloc, const struct zf_alloc_frozen *frozen)
{
	uint32_t first = alloc->zone_count;

	if (frozen->zones_total == first)
		return;
	for (uint32_t z = first; z < frozen->zones_total; z++) {
		struct zf_zone *zone = &alloc->zones[z];

		alloc->empty_count += zone_is_empty(zone);
		if (zone->pointer > 0)
			zone->emptied_generation = frozen->generation;
	}
	alloc->zones_coming = 0;
	alloc->zone_count = frozen->zones_total;
	zf_alloc_recount_locked(alloc);
	zf_alloc_kept_regain_locked(alloc, 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * The zone table's memory, and its entries as the device reports them.
 *
 * The table never moves: its address space is reserved for the largest device there can be, and
 * becomes memory when the filesystem gets more zones.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc/alloc_internal.h"
#include "base/cleanup.h"
#include "io/zone_rules.h"

#define REPORT_CHUNK 1024u

static uint64_t table_bytes(uint32_t zone_count)
{
	return zf_align_up(zone_count * sizeof(struct zf_zone), (uint64_t)sysconf(_SC_PAGESIZE));
}

int zf_alloc_table_extend(struct zf_alloc *alloc, uint32_t zone_count)
{
	/* Entries that are readable already stay as they are. */
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
	return alloc->zone_count <= ZF_ZONE_COUNT_MAX
		       ? zf_alloc_table_extend(alloc, alloc->zone_count)
		       : -ENOMEM;
}

void zf_alloc_table_free(struct zf_alloc *alloc)
{
	if (alloc->zones)
		munmap(alloc->zones, table_bytes(ZF_ZONE_COUNT_MAX));
}

/* ---- entries from the device's report ---- */

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

/* SPDX-License-Identifier: MIT */
/*
 * The extents of one file, in the order of their offsets. If two contradict each other, the first
 * stays.
 */
#include <string.h>

#include "repair/state.h"

/* Do the bytes lie where the device may have written data? */
static bool is_written(const struct zf_repair *repair, uint64_t address, uint64_t len)
{
	const struct zf_geometry *geometry = zf_dev_geometry(repair->dev);
	uint64_t zone_no = address / geometry->zone_size, in_zone = address % geometry->zone_size;
	const struct zf_repair_zone *zone;
	uint64_t end;

	if (zone_no < ZF_SUPER_ZONES || zone_no >= repair->zones.count)
		return false;
	zone = zf_vector_at(&repair->zones, zone_no);
	end = geometry->pointers_are_lower_bounds || zone->conventional ? zone->capacity
									: zone->pointer;
	return in_zone <= end && len <= end - in_zone;
}

/* ZERO extents keep space: all of them together cannot be larger than the device. */
static bool can_keep(const struct zf_repair *repair, struct zf_repair_extents *extents,
		     uint64_t len)
{
	uint64_t max = repair->super.zone_count * repair->super.zone_capacity;

	if (len > max - extents->kept)
		return false;
	extents->kept += len;
	return true;
}

void zf_repair_extents_begin(struct zf_repair_extents *extents)
{
	*extents = (struct zf_repair_extents){.kept = extents->kept};
}

bool zf_repair_extent_fits(const struct zf_repair *repair, struct zf_repair_extents *extents,
			   uint64_t offset, const struct zf_disk_extent *disk, const void *bytes)
{
	uint64_t len = zf_item_extent_len(disk);

	if (offset < extents->end)
		return false;
	if (disk->type == ZF_EXTENT_INLINE) {
		if (offset != extents->inline_bytes)
			return false;
		extents->inline_has_zero |= memchr(bytes, '\0', len) != NULL;
		extents->inline_bytes = extents->end = offset + len;
		return true;
	}
	if (extents->inline_bytes && offset < ZF_BLOCK_SIZE)
		return false;
	if (disk->type == ZF_EXTENT_DATA && !is_written(repair, zf_le64_get(disk->address), len))
		return false;
	if (disk->type == ZF_EXTENT_ZERO && !can_keep(repair, extents, len))
		return false;
	extents->end = offset + len;
	return true;
}

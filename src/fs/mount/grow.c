/* SPDX-License-Identifier: MIT */
/* Growing: first the device grows, then, by commits, the filesystem. */
#include <errno.h>
#include <inttypes.h>

#include "alloc/zone.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/mount/change.h"

/* The most zones that one commit adds. */
#define STEP_ZONES (1u << 16)

static int grow_device(struct zf_fs *fs, uint32_t zone_count)
{
	int r;

	if (zone_count != 0 && zone_count <= zf_dev_geometry(fs->dev)->zone_count)
		return 0;
	r = zf_dev_grow(fs->dev, zone_count);
	/* zone_count 0 asks for the device's size, which may be fixed. */
	return r == -EOPNOTSUPP && zone_count == 0 ? 0 : r;
}

/*
 * Each commit makes room for the zone items of the next one. So a full filesystem begins with as
 * few zones as it has room to record.
 */
static int grow_by_steps(struct zf_fs *fs, uint32_t zone_count)
{
	uint32_t count = zf_alloc_zone_count(fs->alloc), step = STEP_ZONES;
	int r = 0;

	while (count < zone_count && step > 0) {
		uint32_t next = zone_count - count < step ? zone_count : count + step;

		r = zf_txn_grow(fs->txn, next);
		if (r == 0)
			fs->super.zone_count = count = next;
		else if (r == -ENOSPC)
			step = (next - count) / 2;
		else
			break;
	}
	return r;
}

static int grow_locked(struct zf_fs *fs, uint32_t zone_count)
{
	int r;

	if (zone_count != 0 && zone_count < zf_alloc_zone_count(fs->alloc))
		return -EINVAL;
	r = grow_device(fs, zone_count);
	if (r < 0)
		return r;
	if (zone_count == 0)
		zone_count = zf_dev_geometry(fs->dev)->zone_count;
	return grow_by_steps(fs, zone_count);
}

int zf_fs_grow(struct zf_fs *fs, uint32_t zone_count)
{
	int r = zf_change_begin(fs);

	if (r < 0)
		return r;
	r = grow_locked(fs, zone_count);
	zf_change_end(fs);
	return r;
}

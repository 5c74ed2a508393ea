/* SPDX-License-Identifier: MIT */
/* Resets zones without live data now, instead of after the next commits. */
#include <errno.h>

#include "alloc/reclaim.h"
#include "fs/core/inode.h"
#include "fs/mount/change.h"
#include "txn/txn.h"

/*
 * A zone comes back two commits after it was emptied. The third is for zones that the first two
 * have emptied.
 */
#define SETTLES_MAX 3u

int zf_fs_settle(struct zf_fs *fs)
{
	int r = zf_change_begin(fs);

	if (r < 0)
		return r;
	r = zf_txn_commit(fs->txn, true);
	while (r == 0 && zf_txn_tidy(fs->txn, false) == ZF_TIDY_DID)
		;
	zf_change_end(fs);
	return r;
}

int zf_fs_trim(struct zf_fs *fs, uint64_t *ret_bytes)
{
	struct zf_dev_stats before, now;
	struct zf_reclaim_room room;
	int r = zf_fs_is_read_only(fs) ? -EROFS : 0;

	zf_dev_get_stats(fs->dev, &before);
	for (unsigned int i = 0; i < SETTLES_MAX && r == 0; i++) {
		zf_alloc_reclaim_room(fs->alloc, &room);
		if (room.coming == 0)
			break;
		r = zf_fs_settle(fs);
	}
	if (r < 0)
		return r;
	zf_dev_get_stats(fs->dev, &now);
	*ret_bytes = (now.resets - before.resets) * zf_dev_geometry(fs->dev)->zone_capacity;
	return 0;
}

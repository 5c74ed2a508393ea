/* SPDX-License-Identifier: MIT */
#include "fs/reclaim.h"

#include "fs/inode.h"

void zf_reclaim_init(struct zf_fs *fs)
{
	zf_mutex_init(&fs->reclaim.lock, ZF_RANK_RECLAIM);
	zf_mutex_init(&fs->reclaim.stats_lock, ZF_RANK_DEV);
}

void zf_reclaim_deinit(struct zf_fs *fs)
{
	zf_mutex_deinit(&fs->reclaim.stats_lock);
	zf_mutex_deinit(&fs->reclaim.lock);
}

void zf_reclaim_get_stats(struct zf_fs *fs, struct zf_reclaim_stats *ret_stats)
{
	zf_mutex_lock(&fs->reclaim.stats_lock);
	*ret_stats = fs->reclaim.stats;
	zf_mutex_unlock(&fs->reclaim.stats_lock);
}

int zf_reclaim_one(struct zf_fs *fs, enum zf_reclaim_need need)
{
	(void)fs;
	(void)need;
	return 0;
}

int zf_reclaim_zone(struct zf_fs *fs, uint32_t zone_no)
{
	(void)fs;
	(void)zone_no;
	return 0;
}

int zf_reclaim_make_room(struct zf_fs *fs)
{
	(void)fs;
	return 0;
}

int zf_reclaim_in_peace(struct zf_fs *fs)
{
	(void)fs;
	return 0;
}

void zf_reclaim_pause(struct zf_fs *fs, bool pause)
{
	atomic_store(&fs->reclaim.paused, pause);
}

bool zf_reclaim_is_paused(struct zf_fs *fs)
{
	return atomic_load(&fs->reclaim.paused);
}

/* SPDX-License-Identifier: MIT */
#include "fs/room.h"

#include "fs/inode.h"

int zf_room_reserve(struct zf_fs *fs, uint64_t data_blocks, uint64_t items, bool may_wait)
{
	return zf_txn_reserve(fs->txn, ZF_RESERVE_NORMAL, data_blocks, items, may_wait);
}

bool zf_room_wait(struct zf_fs *fs)
{
	return zf_reclaim_make_room(fs) > 0;
}

int zf_room_pace(struct zf_fs *fs, unsigned int blocks, bool may_wait)
{
	(void)fs;
	(void)blocks;
	(void)may_wait;
	return 0;
}

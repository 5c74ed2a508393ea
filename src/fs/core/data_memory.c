/* SPDX-License-Identifier: MIT */
#include "fs/core/data_memory.h"

#include "fs/core/inode.h"

void zf_data_init(struct zf_data *data)
{
	*data = (struct zf_data){0};
	zf_mutex_init(&data->lock, ZF_RANK_BLOCKS);
	RB_INIT(&data->dirty);
	RB_INIT(&data->flight);
	TAILQ_INIT(&data->age);
	zf_changes_init(&data->changes);
}

void zf_data_deinit(struct zf_data *data)
{
	zf_changes_deinit(&data->changes);
	zf_mutex_deinit(&data->lock);
}

uint64_t zf_data_memory_bytes(struct zf_inode *inode, bool *ret_settling)
{
	struct zf_data *data = &inode->data;
	uint64_t blocks;

	zf_mutex_lock(&data->lock);
	blocks = data->blocks - data->in_place;
	*ret_settling = blocks > 0 && (inode->item.bytes > 0 || !RB_EMPTY(&data->flight));
	zf_mutex_unlock(&data->lock);
	return blocks * ZF_BLOCK_SIZE;
}

bool zf_data_is_dirty(struct zf_inode *inode)
{
	bool r;

	zf_mutex_lock(&inode->data.lock);
	r = inode->data.blocks > 0;
	zf_mutex_unlock(&inode->data.lock);
	return r;
}

uint64_t zf_flush_events(struct zf_fs *fs)
{
	uint64_t events;

	zf_mutex_lock(&fs->flush.lock);
	events = fs->flush.events;
	zf_mutex_unlock(&fs->flush.lock);
	return events;
}

void zf_flush_event(struct zf_fs *fs)
{
	zf_mutex_lock(&fs->flush.lock);
	fs->flush.events++;
	zf_cond_broadcast(&fs->flush.progress);
	zf_mutex_unlock(&fs->flush.lock);
}

void zf_flush_want_all(struct zf_fs *fs)
{
	if (!atomic_exchange(&fs->flush.wanted, true))
		zf_flush_event(fs);
}

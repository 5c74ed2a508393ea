/* SPDX-License-Identifier: MIT */
/* Packs dirty blocks into appends, and waits until they have landed. */
#include "fs/data/flush.h"

#include <errno.h>
#include <stdlib.h>

#include "alloc/reserve.h"
#include "fs/core/access.h"
#include "fs/core/inode.h"
#include "fs/data/append.h"
#include "fs/data/data.h"
#include "fs/data/in_place.h"
#include "fs/data/inline.h"
#include "fs/data/frontier.h"
#include "fs/map/extent.h"

/* ---- packing ---- */

/* The append that is being packed. */
struct packer {
	struct zf_fs *fs;
	bool fua;		  /* the blocks have to be durable when they land */
	struct zf_append *append; /* NULL: none is being packed */
};

static void pack_submit(struct packer *packer)
{
	if (!packer->append)
		return;
	if (packer->append->count > 0)
		zf_append_enqueue(packer->append);
	else
		zf_append_free(packer->append);
	packer->append = NULL;
	/* If no zone has room now, the thread that lands the next append submits the rest. */
	zf_append_submit_waiting(packer->fs);
}

/* Moves ready blocks, from index *from on, into the append until it is full. Returns how many. */
static unsigned int pack_blocks(struct zf_append *append, struct zf_inode *inode, uint64_t *from)
{
	struct zf_data *data = &inode->data;
	struct zf_block key = {.index = *from}, *block, *next;
	unsigned int first = append->count, count;

	zf_mutex_lock(&data->lock);
	for (block = RB_NFIND(zf_block_tree, &data->dirty, &key);
	     block && data->ready > 0 && append->count < append->capacity; block = next) {
		next = RB_NEXT(zf_block_tree, &data->dirty, block);
		*from = block->index + 1;
		if (block->blocked || block->address)
			continue;
		zf_block_take_off_locked(data, block);
		append->blocks[append->count++] = block;
	}
	zf_mutex_unlock(&data->lock);
	count = append->count - first;
	if (count == 0)
		return 0;
	append->segments[append->segment_count++] =
		(struct zf_segment){.inode = zf_inode_ref(inode), .first = first, .count = count};
	atomic_fetch_add(&append->fs->flush.flight_bytes, (uint64_t)count << ZF_BLOCK_SHIFT);
	return count;
}

void zf_flush_pack(struct zf_append *append, struct zf_inode *inode)
{
	uint64_t from = 0;

	pack_blocks(append, inode, &from);
}

/* Packs the inode's ready blocks; with `whole`, only while they fill a whole append. */
static int pack_inode(struct packer *packer, struct zf_inode *inode, bool whole)
{
	struct zf_data *data = &inode->data;
	uint32_t limit = packer->fs->flush.limit_blocks, ready;
	uint64_t from = 0;

	for (;;) {
		zf_mutex_lock(&data->lock);
		ready = data->ready;
		zf_mutex_unlock(&data->lock);
		if (ready == 0 || (whole && ready < limit))
			return 0;
		if (!packer->append)
			packer->append = zf_append_new(packer->fs, limit);
		if (!packer->append)
			return -ENOMEM;
		packer->append->fua = packer->fua;
		if (pack_blocks(packer->append, inode, &from) == 0)
			return 0;
		if (packer->append->count == packer->append->capacity)
			pack_submit(packer);
	}
}

static int start(struct packer *packer, struct zf_inode *inode)
{
	int r = zf_inline_flush(inode, true);

	if (r == 0)
		r = zf_in_place_start(inode, packer->fua);
	return r < 0 ? r : pack_inode(packer, inode, false);
}

/* ---- joining and settling ---- */

/*
 * Joins with the room kept for removals before it waits for commits. If data has used all room that
 * it may, commits would not help, and each landing would make several of them.
 */
static int join(struct zf_txn *txn, unsigned int items, bool may_wait, struct zf_trans *ret_trans)
{
	int r = zf_trans_join(txn, ZF_RESERVE_NORMAL, items, false, ret_trans);

	if (r == -EAGAIN)
		r = zf_trans_join(txn, ZF_RESERVE_FREEING, items, may_wait, ret_trans);
	return r;
}

/* Joins for `most` items, or for `least` if there is no room for `most` now. */
static int join_some(struct zf_txn *txn, unsigned int most, unsigned int least,
		     unsigned int *ret_items, struct zf_trans *ret_trans)
{
	int r = join(txn, most, false, ret_trans);

	*ret_items = most;
	if (r == -EAGAIN && least < most) {
		*ret_items = least;
		r = join(txn, least, false, ret_trans);
	}
	return r;
}

int zf_data_join_some(struct zf_inode *inode, unsigned int most, unsigned int least,
		      unsigned int *ret_items, struct zf_trans *ret_trans)
{
	struct zf_txn *txn = inode->fs->txn;
	int r;

	for (unsigned int attempt = 0; attempt < 4; attempt++) {
		zf_rwlock_wrlock(&inode->lock);
		r = join_some(txn, most, least, ret_items, ret_trans);
		if (r == 0)
			return 0;
		zf_rwlock_unlock(&inode->lock);
		if (r == -EAGAIN)
			r = join(txn, least, true, ret_trans);
		if (r < 0)
			return r;
		zf_trans_leave(ret_trans);
	}
	*ret_items = least;
	zf_rwlock_wrlock(&inode->lock);
	r = join(txn, least, true, ret_trans);
	if (r < 0)
		zf_rwlock_unlock(&inode->lock);
	return r;
}

int zf_data_join(struct zf_inode *inode, unsigned int items, struct zf_trans *ret_trans)
{
	unsigned int joined;

	return zf_data_join_some(inode, items, items, &joined, ret_trans);
}

int zf_data_try_join(struct zf_inode *inode, unsigned int items, struct zf_trans *ret_trans)
{
	int r;

	if (!zf_rwlock_trywrlock(&inode->lock))
		return -EAGAIN;
	r = join(inode->fs->txn, items, false, ret_trans);
	if (r < 0)
		zf_rwlock_unlock(&inode->lock);
	return r;
}

static bool has_blocks(struct zf_data *data)
{
	bool r;

	zf_mutex_lock(&data->lock);
	r = !RB_EMPTY(&data->dirty) || !RB_EMPTY(&data->flight);
	zf_mutex_unlock(&data->lock);
	return r;
}

void zf_data_unlock(struct zf_inode *inode)
{
	bool off =
		!inode->item_dirty && !has_blocks(&inode->data) && zf_inode_leave_dirty_list(inode);

	zf_rwlock_unlock(&inode->lock);
	if (off)
		zf_inode_put(inode);
}

/*
 * An operation may have stored the item meanwhile. Then the inode has to leave the list of dirty
 * inodes.
 */
static void settle(struct zf_inode *inode)
{
	bool listed;

	zf_mutex_lock(&inode->fs->lock);
	listed = inode->on_dirty_list;
	zf_mutex_unlock(&inode->fs->lock);
	if (!listed)
		return;
	zf_rwlock_wrlock(&inode->lock);
	zf_data_unlock(inode);
}

static int store(struct zf_inode *inode, struct zf_trans *trans)
{
	uint64_t essential = inode->essential, record = inode->essential_record;
	bool times_only = !inode->essential_dirty;
	int r = zf_inode_store(inode, trans);

	if (r == 0 && times_only) {
		inode->essential = essential;
		inode->essential_record = record;
	}
	return r;
}

static int store_item(struct zf_inode *inode, bool in_passing)
{
	struct zf_trans trans;
	bool dirty, later;
	int r;

	zf_rwlock_rdlock(&inode->lock);
	dirty = inode->item_dirty;
	later = in_passing && zf_access_is_lazy(inode);
	zf_rwlock_unlock(&inode->lock);
	if (!dirty)
		settle(inode);
	if (!dirty || later)
		return 0;
	r = zf_data_join(inode, 1, &trans);
	if (r < 0)
		return r;
	if (inode->item_dirty)
		r = store(inode, &trans);
	zf_trans_leave(&trans);
	zf_data_unlock(inode);
	return r;
}

/* ---- one inode ---- */

static bool has_landed(struct zf_data *data, uint64_t seq)
{
	const struct zf_block *oldest;
	bool r;

	zf_mutex_lock(&data->lock);
	oldest = TAILQ_FIRST(&data->age);
	r = !oldest || oldest->seq >= seq;
	zf_mutex_unlock(&data->lock);
	return r;
}

static bool was_put_back(struct zf_data *data, uint64_t before)
{
	bool r;

	zf_mutex_lock(&data->lock);
	r = data->put_back != before;
	zf_mutex_unlock(&data->lock);
	return r;
}

/* FUA is used if one append is enough; for several appends, one flush afterwards is cheaper. */
static bool fits_one_append(struct zf_inode *inode)
{
	bool r;

	zf_mutex_lock(&inode->data.lock);
	r = inode->data.ready <= inode->fs->flush.limit_blocks;
	zf_mutex_unlock(&inode->data.lock);
	return r;
}

static int start_one(struct zf_inode *inode, bool durably)
{
	struct packer packer = {.fs = inode->fs, .fua = durably && fits_one_append(inode)};
	int r = start(&packer, inode);

	pack_submit(&packer);
	return r;
}

static int land(struct zf_inode *inode, bool durably)
{
	struct zf_data *data = &inode->data;
	uint64_t seq, seen, put_back;

	zf_mutex_lock(&data->lock);
	seq = data->next_seq;
	put_back = data->put_back;
	zf_mutex_unlock(&data->lock);
	for (;;) {
		int r;

		seen = zf_flush_events(inode->fs);
		r = start_one(inode, durably);
		if (r < 0 || has_landed(data, seq))
			return r;
		if (was_put_back(data, put_back))
			return -ENOMEM;
		zf_append_progress(inode->fs, seen);
	}
}

int zf_flush_land(struct zf_inode *inode)
{
	return land(inode, false);
}

int zf_flush_land_durably(struct zf_inode *inode)
{
	return land(inode, true);
}

int zf_data_flush(struct zf_inode *inode, bool wait)
{
	int r;

	if (!wait) {
		r = start_one(inode, false);
		return r < 0 || has_blocks(&inode->data) ? r : store_item(inode, false);
	}
	r = zf_flush_land(inode);
	return r < 0 ? r : store_item(inode, false);
}

/* ---- many ---- */

struct inodes {
	struct zf_inode **at;
	size_t count;
};

static int snapshot_dirty(struct zf_fs *fs, struct inodes *ret_inodes)
{
	struct inodes inodes = {0};
	struct zf_inode *inode;
	size_t room = 0;

	zf_mutex_lock(&fs->lock);
	TAILQ_FOREACH (inode, &fs->dirty, dirty_link)
		room++;
	zf_mutex_unlock(&fs->lock);
	inodes.at = malloc((room + 1) * sizeof(*inodes.at));
	if (!inodes.at)
		return -ENOMEM;
	/*
	 * Inodes that joined the list since the count stand at its end, and became dirty after this
	 * call began.
	 */
	zf_mutex_lock(&fs->lock);
	TAILQ_FOREACH (inode, &fs->dirty, dirty_link) {
		if (inodes.count == room)
			break;
		inodes.at[inodes.count++] = zf_inode_ref(inode);
	}
	zf_mutex_unlock(&fs->lock);
	*ret_inodes = inodes;
	return 0;
}

static bool is_younger(struct zf_data *data, uint64_t born_ms)
{
	const struct zf_block *oldest;
	bool r;

	zf_mutex_lock(&data->lock);
	oldest = TAILQ_FIRST(&data->age);
	r = oldest && oldest->born_ms > born_ms;
	zf_mutex_unlock(&data->lock);
	return r;
}

int zf_flush_land_all(struct zf_fs *fs)
{
	struct packer packer = {.fs = fs};
	struct inodes inodes;
	int r = snapshot_dirty(fs, &inodes);

	if (r < 0)
		return r;
	/* A loss is noted in the inode, so the result is not needed. */
	for (size_t i = 0; i < inodes.count; i++)
		(void)start(&packer, inodes.at[i]);
	pack_submit(&packer);
	for (size_t i = 0; i < inodes.count; i++) {
		(void)zf_flush_land(inodes.at[i]);
		zf_inode_put(inodes.at[i]);
	}
	free(inodes.at);
	return 0;
}

static int flush_many(struct zf_fs *fs, bool wait, uint64_t born_ms)
{
	struct packer packer = {.fs = fs};
	struct inodes inodes;
	int r = snapshot_dirty(fs, &inodes), first = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; i < inodes.count; i++) {
		struct zf_inode *inode = inodes.at[i];

		if (is_younger(&inode->data, born_ms))
			continue;
		r = start(&packer, inode);
		if (r == 0 && !has_blocks(&inode->data))
			r = store_item(inode, !wait);
		first = first ? first : r;
	}
	pack_submit(&packer);
	for (size_t i = 0; i < inodes.count; i++) {
		r = wait ? zf_data_flush(inodes.at[i], true) : 0;
		first = first ? first : r;
		zf_inode_put(inodes.at[i]);
	}
	free(inodes.at);
	return first;
}

int zf_data_flush_all(struct zf_fs *fs, bool wait)
{
	return flush_many(fs, wait, UINT64_MAX);
}

int zf_flush_run_aged(struct zf_fs *fs, uint64_t born_ms)
{
	return flush_many(fs, false, born_ms);
}

/* ---- whole appends at once ---- */

void zf_flush_want_eager(struct zf_inode *inode)
{
	struct zf_fs *fs = inode->fs;
	struct zf_flush *flush = &fs->flush;
	struct zf_data *data = &inode->data;

	if (!fs->background)
		return;
	zf_mutex_lock(&flush->lock);
	if (!data->eager) {
		data->eager = true;
		zf_inode_ref(inode);
		STAILQ_INSERT_TAIL(&flush->eager, data, eager_link);
		flush->events++;
		zf_cond_broadcast(&flush->progress);
	}
	zf_mutex_unlock(&flush->lock);
}

static struct zf_inode *take_eager(struct zf_fs *fs)
{
	struct zf_flush *flush = &fs->flush;
	struct zf_data *data;

	zf_mutex_lock(&flush->lock);
	data = STAILQ_FIRST(&flush->eager);
	if (data) {
		STAILQ_REMOVE_HEAD(&flush->eager, eager_link);
		data->eager = false;
	}
	zf_mutex_unlock(&flush->lock);
	return data ? ZF_CONTAINER_OF(data, struct zf_inode, data) : NULL;
}

void zf_flush_run_eager(struct zf_fs *fs)
{
	struct packer packer = {.fs = fs};
	struct zf_inode *inode;

	while ((inode = take_eager(fs))) {
		/* If there is no memory now, zf_flush_run_aged() starts these blocks later. */
		(void)pack_inode(&packer, inode, true);
		(void)zf_in_place_start(inode, false);
		pack_submit(&packer);
		zf_inode_put(inode);
	}
}

void zf_flush_drop_eager(struct zf_fs *fs)
{
	struct zf_inode *inode;

	while ((inode = take_eager(fs)))
		zf_inode_put(inode);
}

/* ---- the bound ---- */

static bool try_admit(struct zf_fs *fs, uint64_t bytes)
{
	uint64_t used = atomic_load(&fs->flush.used_bytes);

	do {
		if (used > 0 && used + bytes > fs->options.dirty_bytes)
			return false;
	} while (!atomic_compare_exchange_weak(&fs->flush.used_bytes, &used, used + bytes));
	return true;
}

/*
 * The caller is counted in writers_waiting before it tries again. A thread that gives room back
 * changes used_bytes first and then reads the count. So one of the two sees the other's change.
 * Returns whether the blocks were admitted.
 */
static bool wait_for_room(struct zf_fs *fs, uint64_t bytes)
{
	uint64_t seen = zf_flush_events(fs);
	bool admitted;

	atomic_fetch_add(&fs->flush.writers_waiting, 1);
	admitted = try_admit(fs, bytes);
	if (!admitted) {
		zf_flush_want_all(fs);
		zf_append_wait(fs, seen);
	}
	atomic_fetch_sub(&fs->flush.writers_waiting, 1);
	return admitted;
}

int zf_flush_admit(struct zf_fs *fs, unsigned int blocks, bool may_wait)
{
	uint64_t bytes = (uint64_t)blocks << ZF_BLOCK_SHIFT, seen;

	while (!try_admit(fs, bytes)) {
		if (zf_txn_error(fs->txn))
			return -EROFS;
		if (fs->background)
			zf_flush_want_all(fs);
		if (!may_wait)
			return -EAGAIN;
		if (fs->background) {
			if (wait_for_room(fs, bytes))
				return 0;
			continue;
		}
		seen = zf_flush_events(fs);
		if (zf_data_flush_all(fs, false) == -ENOMEM)
			return -ENOMEM;
		zf_append_progress(fs, seen);
	}
	return 0;
}

void zf_flush_admit_always(struct zf_fs *fs, unsigned int blocks)
{
	atomic_fetch_add(&fs->flush.used_bytes, (uint64_t)blocks << ZF_BLOCK_SHIFT);
}

void zf_flush_release(struct zf_fs *fs, unsigned int blocks)
{
	if (blocks == 0)
		return;
	atomic_fetch_sub(&fs->flush.used_bytes, (uint64_t)blocks << ZF_BLOCK_SHIFT);
	if (atomic_load(&fs->flush.writers_waiting) > 0)
		zf_append_event_for_askers(fs);
}

/*
 * Returns whether the dirty blocks that no append has taken are more than a quarter of the bound.
 */
static bool is_much(struct zf_fs *fs)
{
	uint64_t used = atomic_load_explicit(&fs->flush.used_bytes, memory_order_relaxed);
	uint64_t flight = atomic_load_explicit(&fs->flush.flight_bytes, memory_order_relaxed);

	return used > flight && used - flight > fs->options.dirty_bytes / 4;
}

void zf_flush_check(struct zf_fs *fs)
{
	if (!fs->background || atomic_load_explicit(&fs->flush.wanted, memory_order_relaxed))
		return;
	if (atomic_load(&fs->flush.writers_waiting) > 0 || is_much(fs))
		zf_flush_want_all(fs);
}

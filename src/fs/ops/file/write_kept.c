/* SPDX-License-Identifier: MIT */
/*
 * Writing on a full filesystem into blocks that are kept or guaranteed for the file (P5): kept
 * blocks are lent to the write, and guaranteed blocks use the slack (alloc/reserve.h).
 */
#include <errno.h>
#include <string.h>

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/map/extent.h"
#include "fs/ops/file/write_internal.h"

static int mark_promised(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct write *write = arg;
	/*
	 * Overwriting shared bytes leaves no garbage, so the slack cannot be restored. (Older
	 * versions of zfuse have shared guaranteed blocks.)
	 */
	bool guaranteed = zf_extent_is_guaranteed(extent) && !(extent->flags & ZF_EXTENT_SHARED);
	uint64_t first = extent->offset >> ZF_BLOCK_SHIFT;
	uint64_t end = zf_extent_end(extent) >> ZF_BLOCK_SHIFT;

	(void)bytes;
	first = zf_max_u64(first, write->first);
	end = zf_min_u64(end, write->first + write->count);
	for (; first < end; first++) {
		write->kept[first - write->first] = zf_extent_is_kept(extent);
		write->guaranteed[first - write->first] = guaranteed;
	}
	return 0;
}

static int find_promised(struct write *write)
{
	uint64_t from = write->first << ZF_BLOCK_SHIFT;
	uint64_t last = ((write->first + write->count) << ZF_BLOCK_SHIFT) - 1;
	struct zf_extent_reader reader;
	struct zf_extent covering;
	int r;

	memset(write->kept, 0, write->count * sizeof(write->kept[0]));
	memset(write->guaranteed, 0, write->count * sizeof(write->guaranteed[0]));
	zf_extent_reader_init(&reader, write->inode);
	r = zf_extent_find(&reader, from, &covering);
	if (r == 0 && covering.offset <= last)
		r = zf_extent_scan(&reader, covering.offset, last, mark_promised, write);
	return r == -ENOENT ? 0 : r;
}

struct need {
	unsigned int lent;	 /* kept blocks */
	unsigned int overwrites; /* guaranteed blocks, which need slack */
};

bool zf_write_takes_kept(const struct write *write, unsigned int i, const struct zf_block *flight)
{
	return write->kept[i] && !flight;
}

/*
 * Returns how many blocks, from the first on, need no other room, because they replace kept,
 * guaranteed or dirty blocks, or are written in place. *ret_need: the room that kept and guaranteed
 * blocks need.
 */
static unsigned int count_promised_locked(struct write *write, struct need *ret_need)
{
	struct zf_data *data = &write->inode->data;
	unsigned int i;

	*ret_need = (struct need){0};
	for (i = 0; i < write->count; i++) {
		const struct zf_block *dirty = zf_block_dirty_locked(data, write->first + i);

		if (dirty || write->address[i])
			continue;
		if (zf_write_takes_kept(write, i, zf_block_flight_locked(data, write->first + i)))
			ret_need->lent++;
		else if (write->guaranteed[i])
			ret_need->overwrites++;
		else
			break;
	}
	return i;
}

/* ---- slack ---- */

static void hold(struct write *write, unsigned int blocks)
{
	if (write->overwrites == 0)
		atomic_fetch_add(&write->inode->fs->room->overwriting, 1);
	write->overwrites += blocks;
}

static void let_go(struct write *write, unsigned int blocks)
{
	write->overwrites -= blocks;
	if (blocks > 0 && write->overwrites == 0)
		atomic_fetch_sub(&write->inode->fs->room->overwriting, 1);
}

static int reserve_slack(struct write *write, unsigned int blocks, struct zf_room_search *search)
{
	int r = zf_room_reserve(write->inode->fs, ZF_RESERVE_OVERWRITE, blocks,
				(uint64_t)blocks * ZF_BLOCK_ITEMS, search);

	if (r == 0)
		hold(write, blocks);
	return r;
}

void zf_write_give_up_slack(struct write *write)
{
	unsigned int blocks = write->overwrites;

	zf_alloc_unreserve(write->inode->fs->alloc, blocks, (uint64_t)blocks * ZF_BLOCK_ITEMS);
	let_go(write, blocks);
}

/* Reserves the slack in one step, so that no writer waits for slack while it holds a part of it. */
int zf_write_wait_for_slack(struct write *write)
{
	if (write->overwrites > 0)
		zf_write_give_up_slack(write);
	return reserve_slack(write, write->overwrites_wanted, &write->search);
}

static int try_for_slack(struct write *write, unsigned int wanted)
{
	write->overwrites_wanted = wanted;
	if (wanted <= write->overwrites)
		return 0;
	return reserve_slack(write, wanted - write->overwrites, NULL) < 0 ? ROUND_NO_SLACK : 0;
}

/* ---- the round ---- */

static void shorten(struct write *write, unsigned int count)
{
	for (unsigned int i = count; i < write->count; i++) {
		write->block[i]->next = write->chain;
		write->chain = write->block[i];
	}
	if (count == write->count)
		return;
	write->count = count;
	write->len = ((write->first + count) << ZF_BLOCK_SHIFT) - write->offset;
}

int zf_write_shorten_to_promised(struct write *write)
{
	struct zf_data *data = &write->inode->data;
	unsigned int count;
	struct need need;
	int r = find_promised(write);

	if (r < 0)
		return r;
	zf_mutex_lock(&data->lock);
	count = count_promised_locked(write, &need);
	zf_mutex_unlock(&data->lock);
	if (count == 0)
		return ROUND_NOT_PROMISED;
	if (count < write->count && !write->ctx->may_wait)
		return -EAGAIN;
	shorten(write, count);
	return try_for_slack(write, need.overwrites);
}

int zf_write_lend_locked(struct write *write)
{
	struct zf_alloc *alloc = write->inode->fs->alloc;
	struct need need;

	/* A flush may have taken blocks into flight since the count. */
	if (count_promised_locked(write, &need) < write->count)
		return ROUND_NOT_PROMISED;
	write->overwrites_wanted = need.overwrites;
	if (need.overwrites > write->overwrites)
		return ROUND_NO_SLACK;
	write->short_of_kept =
		need.lent > 0 &&
		zf_alloc_lend(alloc, need.lent, (uint64_t)need.lent * ZF_BLOCK_ITEMS) < 0;
	if (write->short_of_kept)
		return ROUND_NOT_PROMISED;
	let_go(write, need.overwrites);
	return 0;
}

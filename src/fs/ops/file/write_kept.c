/* SPDX-License-Identifier: MIT */
/* Writing on a full filesystem, into space that is kept for the file (P5): alloc/reserve.h. */
#include <errno.h>
#include <string.h>

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/map/extent.h"
#include "fs/ops/file/write_internal.h"

static int mark_kept(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct write *write = arg;
	uint64_t first = extent->offset >> ZF_BLOCK_SHIFT;
	uint64_t end = zf_extent_end(extent) >> ZF_BLOCK_SHIFT;

	(void)bytes;
	if (!zf_extent_keeps(extent))
		return 0;
	first = zf_max_u64(first, write->first);
	end = zf_min_u64(end, write->first + write->count);
	for (; first < end; first++)
		write->kept[first - write->first] = true;
	return 0;
}

static int find_kept(struct write *write)
{
	uint64_t from = write->first << ZF_BLOCK_SHIFT;
	uint64_t last = ((write->first + write->count) << ZF_BLOCK_SHIFT) - 1;
	struct zf_extent_reader reader;
	struct zf_extent covering;
	int r;

	memset(write->kept, 0, write->count * sizeof(write->kept[0]));
	zf_extent_reader_init(&reader, write->inode);
	r = zf_extent_find(&reader, from, &covering);
	if (r == 0 && covering.offset <= last)
		r = zf_extent_scan(&reader, covering.offset, last, mark_kept, write);
	return r == -ENOENT ? 0 : r;
}

/*
 * How many blocks from the first on need no room but what is kept: for what they replace, or they
 * replace what is dirty there. *ret_need: the former. A block in flight is about to take what is
 * kept.
 */
static unsigned int count_kept_locked(struct write *write, unsigned int *ret_need)
{
	struct zf_data *data = &write->inode->data;
	unsigned int i;

	*ret_need = 0;
	for (i = 0; i < write->count; i++) {
		const struct zf_block *dirty = zf_block_dirty_locked(data, write->first + i);

		if (dirty || write->address[i])
			continue;
		if (!write->kept[i] || zf_block_flight_locked(data, write->first + i))
			break;
		(*ret_need)++;
	}
	return i;
}

int zf_write_shorten_to_kept(struct write *write)
{
	struct zf_data *data = &write->inode->data;
	unsigned int count, need;
	int r = find_kept(write);

	if (r < 0)
		return r;
	zf_mutex_lock(&data->lock);
	count = count_kept_locked(write, &need);
	zf_mutex_unlock(&data->lock);
	if (count == 0)
		return ROUND_NOT_KEPT;
	if (count == write->count)
		return 0;
	for (unsigned int i = count; i < write->count; i++) {
		write->block[i]->next = write->chain;
		write->chain = write->block[i];
	}
	write->count = count;
	write->len = ((write->first + count) << ZF_BLOCK_SHIFT) - write->offset;
	return 0;
}

int zf_write_lend_locked(struct write *write)
{
	unsigned int need;

	/* A flush may have taken something since. */
	if (count_kept_locked(write, &need) < write->count)
		return ROUND_NOT_KEPT;
	write->short_of_kept = need > 0 && zf_alloc_lend(write->inode->fs->alloc, need,
							 (uint64_t)need * ZF_BLOCK_ITEMS) < 0;
	return write->short_of_kept ? ROUND_NOT_KEPT : 0;
}

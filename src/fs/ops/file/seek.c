/* SPDX-License-Identifier: MIT */
/* Finding data and holes of a file, and listing its extents. */
#include <errno.h>
#include <unistd.h>

#include "fs/data/block.h"
#include "fs/data/data.h"
#include "fs/map/extent.h"
#include "fs/core/inode.h"
#include "fs/ops/file/file.h"

/* Returns the first byte at or behind `offset` that has data in memory. UINT64_MAX: none. */
static uint64_t next_in_memory(struct zf_data *data, uint64_t offset)
{
	struct zf_block *block;
	uint64_t next = UINT64_MAX;

	zf_mutex_lock(&data->lock);
	block = zf_block_next_locked(data, offset >> ZF_BLOCK_SHIFT);
	if (block)
		next = zf_max_u64(offset, block->index << ZF_BLOCK_SHIFT);
	zf_mutex_unlock(&data->lock);
	return next;
}

/* Works like zf_extent_find(), but skips unwritten extents. */
static int find_written(struct zf_extent_reader *reader, uint64_t offset,
			struct zf_extent *ret_extent)
{
	int r;

	while ((r = zf_extent_find(reader, offset, ret_extent)) == 0 &&
	       (ret_extent->flags & ZF_EXTENT_UNWRITTEN))
		offset = zf_extent_end(ret_extent);
	return r;
}

/*
 * Finds the first byte at or behind `offset` that is data, and the end of that run of data.
 * -ENOENT: there is none.
 */
static int next_data(struct zf_extent_reader *reader, uint64_t offset, uint64_t *ret_from,
		     uint64_t *ret_to)
{
	uint64_t memory = next_in_memory(&reader->inode->data, offset);
	struct zf_extent extent;
	int r = find_written(reader, offset, &extent);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && zf_max_u64(extent.offset, offset) <= memory) {
		*ret_from = zf_max_u64(extent.offset, offset);
		*ret_to = zf_extent_end(&extent);
		return 0;
	}
	if (memory == UINT64_MAX)
		return -ENOENT;
	*ret_from = memory;
	*ret_to = (memory | (ZF_BLOCK_SIZE - 1)) + 1;
	return 0;
}

static int seek_locked(struct zf_inode *inode, uint64_t offset, int whence, uint64_t *ret_offset)
{
	uint64_t size = inode->item.size, from, to;
	struct zf_extent_reader reader;
	int r;

	if (offset >= size)
		return -ENXIO;
	zf_extent_reader_init(&reader, inode);
	for (;;) {
		r = next_data(&reader, offset, &from, &to);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == -ENOENT || from >= size)
			from = to = size;
		if (whence == SEEK_DATA && from == size)
			return -ENXIO;
		if (whence == SEEK_DATA) {
			*ret_offset = from;
			return 0;
		}
		if (from > offset || offset >= size) {
			*ret_offset = zf_min_u64(offset, size);
			return 0;
		}
		offset = to;
	}
}

int zf_file_seek(struct zf_inode *inode, uint64_t offset, int whence, uint64_t *ret_offset)
{
	int r;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	zf_rwlock_rdlock(&inode->lock);
	r = seek_locked(inode, offset, whence, ret_offset);
	zf_rwlock_unlock(&inode->lock);
	return r;
}

/* ---- for zfusectl ---- */

struct listing {
	struct zf_extent_info *at;
	unsigned int count, max;
};

static int list_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct listing *listing = arg;

	(void)bytes;
	listing->at[listing->count++] = (struct zf_extent_info){
		.offset = extent->offset,
		.len = extent->len,
		.address = extent->address,
		.generation = extent->generation,
		.type = (uint8_t)extent->type,
		.flags = extent->flags,
	};
	return listing->count == listing->max;
}

int zf_file_extents(struct zf_inode *inode, uint64_t offset, struct zf_extent_info *extents,
		    unsigned int max)
{
	struct listing listing = {.at = extents, .max = max};
	struct zf_extent_reader reader;
	struct zf_extent first;
	int r = inode->fs->read_only ? 0 : zf_data_flush(inode, true);

	if (r < 0 || max == 0)
		return r;
	zf_rwlock_rdlock(&inode->lock);
	zf_extent_reader_init(&reader, inode);
	r = zf_extent_find(&reader, offset, &first);
	if (r == 0)
		r = zf_extent_scan(&reader, first.offset, UINT64_MAX, list_extent, &listing);
	zf_rwlock_unlock(&inode->lock);
	return r < 0 && r != -ENOENT ? r : (int)listing.count;
}

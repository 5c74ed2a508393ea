/* SPDX-License-Identifier: MIT */
#include "fs/data/describe.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/data/append.h"
#include "fs/map/extent.h"
#include "fs/core/inode.h"
#include "fs/core/inode_item.h"
#include "fs/map/summary.h"
#include "log/body.h"

_Static_assert((int)ZF_LOG_RANGE_INLINE == (int)ZF_EXTENT_INLINE &&
		       (int)ZF_LOG_RANGE_DATA == (int)ZF_EXTENT_DATA &&
		       (int)ZF_LOG_RANGE_ZERO == (int)ZF_EXTENT_ZERO,
	       "a range has the type of its extent");

struct description {
	struct zf_inode *inode;
	struct zf_extent_reader reader;
	struct zf_log_body *body;
};

static void add_hole(struct description *description, uint64_t from, uint64_t to)
{
	struct zf_log_range range = {.type = ZF_LOG_RANGE_HOLE, .offset = from, .len = to - from};

	if (from < to)
		zf_log_body_range(description->body, &range);
}

/* ---- extents ---- */

static int add_inline(struct description *description, const struct zf_extent *extent)
{
	struct zf_inode *inode = description->inode;
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, 0);
	uint8_t value[sizeof(struct zf_disk_extent) + ZF_INLINE_MAX];
	struct zf_log_range range = {
		.type = ZF_LOG_RANGE_INLINE,
		.len = ZF_BLOCK_SIZE,
		.bytes = value + sizeof(struct zf_disk_extent),
		.inline_len = (uint32_t)extent->len,
	};
	int r = zf_tree_lookup(inode->fs->forest, ZF_TREE_FS, &key, value, sizeof(value), NULL);

	if (r == 0)
		zf_log_body_range(description->body, &range);
	return r;
}

static int add_data(struct description *description, const struct zf_extent *part)
{
	struct zf_log_range range = {
		.type = ZF_LOG_RANGE_DATA,
		.flags = part->flags,
		.offset = part->offset,
		.len = part->len,
		.address = part->address,
	};
	unsigned int count = (unsigned int)(part->len >> ZF_BLOCK_SHIFT);
	uint64_t *csums;
	int r;

	if (part->flags & ZF_EXTENT_OVERWRITE) {
		zf_log_body_range(description->body, &range);
		return 0;
	}
	if (count > ZF_LOG_BODY_MAX / sizeof(*csums))
		return -E2BIG;
	csums = malloc(count * sizeof(*csums));
	if (!csums)
		return -ENOMEM;
	r = zf_summary_fetch(&description->reader, part->address, count, csums);
	if (r == 0) {
		range.csums = csums;
		zf_log_body_range(description->body, &range);
	}
	free(csums);
	return r;
}

static int add_extent(struct description *description, const struct zf_extent *part)
{
	struct zf_log_range range = {
		.type = ZF_LOG_RANGE_ZERO,
		.flags = part->flags,
		.offset = part->offset,
		.len = part->len,
	};

	switch (part->type) {
	case ZF_EXTENT_INLINE:
		return add_inline(description, part);
	case ZF_EXTENT_DATA:
		return add_data(description, part);
	case ZF_EXTENT_ZERO:
		zf_log_body_range(description->body, &range);
		break;
	}
	return 0;
}

static int add_change(struct description *description, const struct zf_change *change)
{
	uint64_t at = change->from;
	struct zf_extent extent;

	while (at < change->to) {
		int r = zf_extent_find(&description->reader, at, &extent);

		if (r == -ENOENT || (r == 0 && extent.offset >= change->to)) {
			add_hole(description, at, change->to);
			return 0;
		}
		if (r == 0 && extent.offset > at)
			add_hole(description, at, extent.offset);
		if (r == 0 && extent.type != ZF_EXTENT_INLINE)
			extent = zf_extent_part(&extent, at, change->to);
		if (r == 0)
			r = add_extent(description, &extent);
		if (r == 0)
			r = zf_log_body_error(description->body);
		if (r < 0)
			return r;
		at = zf_extent_end(&extent);
	}
	return 0;
}

/* ---- what rides ---- */

static void add_riders(struct description *description, const struct zf_append *rider)
{
	unsigned int i = 0;

	while (i < rider->count) {
		unsigned int first = i;

		do {
			i++;
		} while (i < rider->count &&
			 rider->blocks[i]->index == rider->blocks[i - 1]->index + 1);
		zf_log_body_range(description->body,
				  &(struct zf_log_range){
					  .type = ZF_LOG_RANGE_DATA,
					  .riding = true,
					  .offset = rider->blocks[first]->index << ZF_BLOCK_SHIFT,
					  .len = (uint64_t)(i - first) << ZF_BLOCK_SHIFT,
					  .address = (uint64_t)first << ZF_BLOCK_SHIFT,
					  .csums = rider->csums + first,
				  });
	}
}

int zf_describe_inode(struct zf_inode *inode, const struct zf_append *rider,
		      struct zf_log_body *body, uint64_t *ret_mark)
{
	const struct zf_changes *changes = &inode->data.changes;
	struct description description = {.inode = inode, .body = body};
	struct zf_disk_inode item;
	int r = 0;

	*ret_mark = inode->data.write_mark;
	zf_log_body_begin(body, ZF_LOG_EXTENTS);
	if (zf_changes_are_lost(changes))
		return -E2BIG;
	zf_extent_reader_init(&description.reader, inode);
	zf_inode_item_describe(inode, &item);
	/*
	 * With a rider there are no other blocks in memory, so the whole size is described.
	 * Otherwise blocks in memory are not described, and the size is disk_size.
	 */
	if (rider)
		item.size = zf_le64_from(inode->item.size);
	zf_log_body_inode(body, inode->ino, &item, sizeof(item));
	for (unsigned int i = 0; r == 0 && i < changes->count; i++)
		r = add_change(&description, &changes->at[i]);
	if (r == 0 && rider)
		add_riders(&description, rider);
	return r < 0 ? r : zf_log_body_error(body);
}

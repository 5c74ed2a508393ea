/* SPDX-License-Identifier: MIT */
#include "fs/space/resolve.h"

#include <errno.h>

#include "alloc/zone.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/map/extent.h"
#include "fs/map/summary.h"
#include "fs/space/reclaim_internal.h"

static int tell_pieces(const struct zf_pieces *pieces, uint64_t address, zf_resolve_fn *fn,
		       void *arg)
{
	int r = 0;

	for (size_t i = 0; i < pieces->count && r == 0; i++) {
		const struct zf_piece *piece = &pieces->at[i];
		uint64_t len = (uint64_t)piece->count << ZF_BLOCK_SHIFT;

		if (address >= piece->address && address - piece->address < len)
			r = fn(arg, piece->ino, piece->offset + (address - piece->address));
	}
	return r;
}

/* The zone counts as having a reader. A piece that covers the address may begin before it. */
static int resolve_data(struct zf_fs *fs, uint32_t zone_no, uint64_t address, zf_resolve_fn *fn,
			void *arg)
{
	uint64_t start = zone_no * zf_dev_geometry(fs->dev)->zone_size, at = address - start;
	uint64_t entry_max = (uint64_t)zf_summary_blocks_max(fs) << ZF_BLOCK_SHIFT;
	uint64_t before = zf_min_u64(at, zf_max_u64(entry_max, ZF_SHARE_MAX));
	struct zf_found found;
	int r = zf_reclaim_find(fs, zone_no, at - before, at + 1, &found);

	if (r == 0)
		r = tell_pieces(&found.files, address, fn, arg);
	if (r == 0)
		r = tell_pieces(&found.shared, address, fn, arg);
	zf_found_free(&found);
	return r;
}

/*
 * For data that is written in place the summary is exact. A reader needs an inode, but any will do.
 */
static int resolve_in_place(struct zf_fs *fs, uint64_t address, zf_resolve_fn *fn, void *arg)
{
	struct zf_extent_reader reader;
	struct zf_summary_entry entry;
	struct zf_inode *root;
	int r = zf_inode_get(fs, ZF_INO_ROOT, &root);

	if (r < 0)
		return r;
	zf_extent_reader_init(&reader, root);
	r = zf_summary_find(&reader, address, &entry);
	zf_inode_put(root);
	if (r == -ENOENT || (r == 0 && entry.address > address))
		return 0;
	return r < 0 ? r : fn(arg, entry.ino, entry.offset + (address - entry.address));
}

int zf_resolve(struct zf_fs *fs, uint64_t address, zf_resolve_fn *fn, void *arg)
{
	uint64_t zone_size = zf_dev_geometry(fs->dev)->zone_size;
	struct zf_zone zone;
	uint32_t zone_no;
	int r = 0;

	if (address / zone_size >= zf_alloc_zone_count(fs->alloc))
		return -EINVAL;
	zone_no = (uint32_t)(address / zone_size);
	zf_alloc_read_begin(fs->alloc, zone_no * zone_size);
	zf_alloc_get_zone(fs->alloc, zone_no, &zone);
	if (zone.role == ZF_ROLE_OVERWRITE)
		r = resolve_in_place(fs, address, fn, arg);
	else if (zone.role != ZF_ROLE_META && zone.role != ZF_ROLE_SUPER)
		r = resolve_data(fs, zone_no, address, fn, arg);
	zf_alloc_read_end(fs->alloc, zone_no * zone_size);
	return r;
}

/* SPDX-License-Identifier: MIT */
/*
 * Finds the extents that name the bytes of a zone. The summary tree and the share tree say which
 * inodes may name them. The extents of those inodes say which inodes do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/zone.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/map/extent.h"
#include "fs/map/share.h"
#include "fs/map/summary.h"
#include "fs/space/reclaim.h"
#include "fs/space/reclaim_internal.h"

/* How many entries are checked before the inode's lock is released for a moment. */
#define LOOKS_MAX 64u

/* ---- lists ---- */

static int add_piece(struct zf_pieces *pieces, const struct zf_piece *piece)
{
	if (pieces->count == pieces->room) {
		size_t room = pieces->room ? pieces->room * 2 : 256;
		struct zf_piece *grown = realloc(pieces->at, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		pieces->at = grown;
		pieces->room = room;
	}
	pieces->at[pieces->count++] = *piece;
	return 0;
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_file(const void *a, const void *b)
{
	const struct zf_piece *x = a, *y = b;
	int r = compare_u64(x->ino, y->ino);

	return r ? r : compare_u64(x->offset, y->offset);
}

static int by_address(const void *a, const void *b)
{
	const struct zf_piece *x = a, *y = b;

	return compare_u64(x->address, y->address);
}

static void sort(struct zf_pieces *pieces, int (*compare)(const void *, const void *))
{
	if (pieces->count > 1)
		qsort(pieces->at, pieces->count, sizeof(pieces->at[0]), compare);
}

/* ---- pieces that may be live ---- */

struct gather {
	struct zf_found *found;
	struct zf_pieces *pieces;
	uint64_t end;	   /* of the zone's written part */
	uint64_t from, to; /* entries that begin in this range are wanted */
};

/* Only a damaged image has entries that reach outside the zone. */
static bool lies_within(const struct gather *gather, uint64_t address, uint64_t len)
{
	return address >= gather->found->start && address < gather->end &&
	       len <= gather->end - address;
}

static int take_entry(void *arg, const struct zf_summary_entry *entry, const struct zf_le64 *csums)
{
	struct gather *gather = arg;
	struct zf_found *found = gather->found;
	uint64_t first = (entry->address - found->start) >> ZF_BLOCK_SHIFT;
	struct zf_piece piece = {
		.ino = entry->ino,
		.offset = entry->offset,
		.address = entry->address,
		.count = (uint32_t)(entry->len >> ZF_BLOCK_SHIFT),
	};

	if (!lies_within(gather, entry->address, entry->len))
		return 0;
	for (uint32_t i = 0; i < piece.count; i++) {
		found->csums[first + i] = zf_le64_get(csums[i]);
		found->known[first + i] = true;
	}
	return entry->address >= gather->from ? add_piece(gather->pieces, &piece) : 0;
}

static int take_name(void *arg, const struct zf_share_name *name)
{
	struct gather *gather = arg;
	struct zf_piece piece = {
		.ino = name->ino,
		.offset = name->offset,
		.address = name->address,
		.count = (uint32_t)(name->len >> ZF_BLOCK_SHIFT),
	};

	return lies_within(gather, name->address, name->len) ? add_piece(gather->pieces, &piece)
							     : 0;
}

/* ---- pieces that are live ---- */

struct look {
	struct zf_inode *inode; /* NULL: none */
	unsigned int looks;	/* made under the inode's lock; 0: it is not locked */
	bool shared;
	const struct zf_piece *may;
	struct zf_pieces *does;
	struct zf_found *found;
};

static bool names_it(const struct look *look, const struct zf_extent *extent)
{
	const struct zf_data *data = &look->inode->data;
	bool shared = extent->flags & ZF_EXTENT_SHARED;

	return extent->type == ZF_EXTENT_DATA && shared == look->shared &&
	       !(extent->flags & ZF_EXTENT_OVERWRITE) &&
	       extent->offset - look->may->offset == extent->address - look->may->address &&
	       !(data->dropping && extent->offset < data->drop_to &&
		 zf_extent_end(extent) > data->drop_from);
}

/* A piece that begins where the last one ends is appended to the last one. */
static int add_live(struct look *look, const struct zf_piece *piece)
{
	struct zf_pieces *does = look->does;
	struct zf_piece *last = does->count ? &does->at[does->count - 1] : NULL;
	uint64_t len = last ? (uint64_t)last->count << ZF_BLOCK_SHIFT : 0;

	if (!look->shared && last && last->ino == piece->ino &&
	    last->offset + len == piece->offset && last->address + len == piece->address) {
		last->count += piece->count;
		return 0;
	}
	return add_piece(does, piece);
}

static int take_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct look *look = arg;
	const struct zf_piece *may = look->may;
	uint64_t len = (uint64_t)may->count << ZF_BLOCK_SHIFT;
	struct zf_extent part = zf_extent_part(extent, may->offset, may->offset + len);
	struct zf_piece piece = {
		.ino = may->ino,
		.offset = part.offset,
		.address = part.address,
		.count = (uint32_t)(part.len >> ZF_BLOCK_SHIFT),
	};

	(void)bytes;
	if (extent->type != ZF_EXTENT_DATA || part.len == 0 || !names_it(look, extent))
		return 0;
	return add_live(look, &piece);
}

static void unlock(struct look *look)
{
	if (look->looks > 0)
		zf_rwlock_unlock(&look->inode->lock);
	look->looks = 0;
}

static void put_inode(struct look *look)
{
	unlock(look);
	zf_inode_put(look->inode);
	look->inode = NULL;
}

/* -ESTALE: the inode was deleted. */
static int get_inode(struct look *look, struct zf_fs *fs, uint64_t ino)
{
	if (look->inode && look->inode->ino == ino)
		return 0;
	put_inode(look);
	return zf_inode_get(fs, ino, &look->inode);
}

/*
 * Shared bytes are found in the share tree, after the summary was scanned. Bytes that were written
 * and shared between the two scans have an entry there, but the scan did not see their checksums.
 * While the inode is locked the summary has them. If it does not, the summary is damaged, and these
 * bytes are not moved.
 */
static int learn_csums(struct look *look, struct zf_extent_reader *reader,
		       const struct zf_piece *piece)
{
	struct zf_found *found = look->found;
	uint64_t first = (piece->address - found->start) >> ZF_BLOCK_SHIFT;

	for (uint64_t i = first; i < first + piece->count; i++) {
		uint64_t address = found->start + (i << ZF_BLOCK_SHIFT);
		int r = found->known[i] ? 0
					: zf_summary_fetch(reader, address, 1, &found->csums[i]);

		if (r < 0 && r != -EUCLEAN)
			return r;
		found->known[i] = r == 0;
	}
	return 0;
}

static int look_at(struct look *look)
{
	const struct zf_piece *may = look->may;
	uint64_t last = may->offset + ((uint64_t)may->count << ZF_BLOCK_SHIFT) - 1;
	size_t first = look->does->count;
	struct zf_extent_reader reader;
	int r;

	if (look->looks == LOOKS_MAX)
		unlock(look);
	if (look->looks == 0)
		zf_rwlock_rdlock(&look->inode->lock);
	look->looks++;
	zf_extent_reader_init(&reader, look->inode);
	r = zf_extent_scan_le(&reader, may->offset, last, take_extent, look);
	for (size_t i = first; look->shared && r >= 0 && i < look->does->count; i++)
		r = learn_csums(look, &reader, &look->does->at[i]);
	return r < 0 ? r : 0;
}

/*
 * Keeps the pieces that an extent names now. If an inode cannot be read, its data is left where it
 * is.
 */
static int find_live(struct zf_fs *fs, const struct zf_pieces *may, bool shared,
		     struct zf_found *found)
{
	struct look look = {
		.shared = shared,
		.does = shared ? &found->shared : &found->files,
		.found = found,
	};
	uint64_t failed = 0; /* no inode has this number */
	int r = 0;

	for (size_t i = 0; r != -ENOMEM && i < may->count; i++) {
		look.may = &may->at[i];
		if (look.may->ino == failed)
			continue;
		r = get_inode(&look, fs, look.may->ino);
		if (r == 0)
			r = look_at(&look);
		if (r == 0)
			continue;
		found->left |= r != -ESTALE;
		failed = look.may->ino;
	}
	put_inode(&look);
	return r == -ENOMEM ? r : 0;
}

/* ---- the whole ---- */

/* The checksums of wanted shared bytes may be in a summary entry that begins before the range. */
static uint64_t first_entry(struct zf_fs *fs, const struct gather *gather)
{
	uint64_t longest = (uint64_t)zf_summary_blocks_max(fs) << ZF_BLOCK_SHIFT;

	return gather->from - zf_min_u64(longest, gather->from - gather->found->start);
}

static int find_files(struct zf_fs *fs, struct gather *gather)
{
	struct zf_found *found = gather->found;
	struct zf_pieces may = {0};
	int r;

	gather->pieces = &may;
	r = zf_summary_scan(fs, first_entry(fs, gather), gather->to, take_entry, gather);
	if (r == 0) {
		sort(&may, by_file);
		r = find_live(fs, &may, false, found);
	}
	free(may.at);
	return r;
}

static int find_shared(struct zf_fs *fs, struct gather *gather)
{
	struct zf_found *found = gather->found;
	struct zf_pieces may = {0};
	int r;

	gather->pieces = &may;
	r = zf_share_scan(fs, gather->from, gather->to, take_name, gather);
	if (r == 0) {
		sort(&may, by_file);
		r = find_live(fs, &may, true, found);
		sort(&found->shared, by_address);
	}
	free(may.at);
	return r;
}

int zf_reclaim_find(struct zf_fs *fs, uint32_t zone_no, uint64_t from, uint64_t to,
		    struct zf_found *ret_found)
{
	struct gather gather = {.found = ret_found};
	struct zf_zone zone;
	int r;

	zf_alloc_get_zone(fs->alloc, zone_no, &zone);
	*ret_found = (struct zf_found){
		.start = zone_no * zf_dev_geometry(fs->dev)->zone_size,
		.csums = calloc(zone.pointer + 1, sizeof(uint64_t)),
		.known = calloc(zone.pointer + 1, sizeof(bool)),
	};
	if (!ret_found->csums || !ret_found->known)
		return -ENOMEM;
	gather.end = ret_found->start + ((uint64_t)zone.pointer << ZF_BLOCK_SHIFT);
	gather.from = zf_min_u64(ret_found->start + from, gather.end);
	gather.to = zf_min_u64(ret_found->start + zf_min_u64(to, gather.end), gather.end);
	r = find_files(fs, &gather);
	return r < 0 ? r : find_shared(fs, &gather);
}

void zf_found_free(struct zf_found *found)
{
	free(found->files.at);
	free(found->shared.at);
	free(found->csums);
	free(found->known);
}

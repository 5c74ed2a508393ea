/* SPDX-License-Identifier: MIT */
/* Editing the extent map. A change is planned first, then made: errors of the plan leave all as it
 * was. */
#include <assert.h>
#include <errno.h>

#include "fs/extent.h"
#include "fs/inode.h"

/* Old extents that one put may replace. */
#define REPLACED_MAX 4u
/* Old extents that one drop looks at: a few leaves. */
#define DROPPED_MAX 128u

void zf_extent_editor_init(struct zf_extent_editor *editor, struct zf_inode *inode,
			   struct zf_trans *trans)
{
	*editor = (struct zf_extent_editor){.trans = trans};
	zf_extent_reader_init(&editor->reader, inode);
}

/* ---- single edits ---- */

static struct zf_inode *inode_of(const struct zf_extent_editor *editor)
{
	return editor->reader.inode;
}

static int count_edit(struct zf_extent_editor *editor, int r)
{
	if (r < 0 && editor->edits > editor->began)
		editor->torn = true;
	if (r == 0)
		editor->edits++;
	return r;
}

static void encode(const struct zf_extent *extent, struct zf_disk_extent *ret_disk)
{
	*ret_disk = (struct zf_disk_extent){
		.type = (uint8_t)extent->type,
		.flags = extent->flags,
		.generation = zf_le64_from(extent->generation),
		.address = zf_le64_from(extent->address),
		.disk_len = zf_le64_from(extent->type == ZF_EXTENT_ZERO ? 0 : extent->len),
		.memory_len = zf_le64_from(extent->len),
		.len = zf_le64_from(extent->len),
	};
}

static int set(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_inode *inode = inode_of(editor);
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, extent->offset);
	struct zf_disk_extent disk;

	encode(extent, &disk);
	return count_edit(editor, zf_tree_set(inode->fs->forest, editor->trans->writer, ZF_TREE_FS,
					      &key, &disk, sizeof(disk)));
}

static int delete (struct zf_extent_editor *editor, uint64_t offset)
{
	struct zf_inode *inode = inode_of(editor);
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, offset);

	return count_edit(
		editor, zf_tree_delete(inode->fs->forest, editor->trans->writer, ZF_TREE_FS, &key));
}

/* ---- what the counts say ---- */

static void count_removed(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_inode *inode = inode_of(editor);

	if (extent->type == ZF_EXTENT_INLINE || extent->len == 0)
		return;
	if (extent->type == ZF_EXTENT_DATA)
		zf_alloc_live_sub(inode->fs->alloc, extent->address, extent->len);
	else
		zf_alloc_kept_sub(inode->fs->alloc, extent->len >> ZF_BLOCK_SHIFT);
	/* A hostile image may count too few. */
	inode->item.bytes -= zf_min_u64(inode->item.bytes, extent->len);
}

static void count_added(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_inode *inode = inode_of(editor);

	if (extent->type == ZF_EXTENT_DATA)
		zf_alloc_live_add(inode->fs->alloc, extent->address, extent->len);
	else
		editor->reserved_blocks = zf_alloc_kept_add(
			inode->fs->alloc, extent->len >> ZF_BLOCK_SHIFT, editor->reserved_blocks);
	inode->item.bytes += extent->len;
}

/* ---- pieces ---- */

/* The part of the extent that lies in [from, to); blocks only. */
static struct zf_extent cut(const struct zf_extent *extent, uint64_t from, uint64_t to)
{
	struct zf_extent part = *extent;
	uint64_t end = zf_min_u64(to, extent->offset + extent->len);

	part.offset = zf_max_u64(from, extent->offset);
	part.len = end > part.offset ? end - part.offset : 0;
	if (part.type == ZF_EXTENT_DATA)
		part.address += part.offset - extent->offset;
	return part;
}

static bool can_merge(const struct zf_extent_editor *editor, const struct zf_extent *left,
		      const struct zf_extent *right)
{
	const struct zf_geometry *geometry = zf_dev_geometry(inode_of(editor)->fs->dev);

	if (left->type == ZF_EXTENT_ZERO)
		return right->type == ZF_EXTENT_ZERO && left->flags == right->flags &&
		       left->offset + left->len == right->offset &&
		       left->len + right->len <= ZF_EXTENT_ZERO_MAX;
	return left->type == ZF_EXTENT_DATA && right->type == ZF_EXTENT_DATA &&
	       left->offset + left->len == right->offset &&
	       left->address + left->len == right->address &&
	       left->len + right->len <= ZF_EXTENT_MAX &&
	       zf_zone_of(geometry, left->address) == zf_zone_of(geometry, right->address);
}

/* The extent that begins before `offset`, nearest to it. -ENOENT. */
static int find_before(struct zf_extent_editor *editor, uint64_t offset,
		       struct zf_extent *ret_extent)
{
	int r = offset == 0 ? -ENOENT : zf_extent_find(&editor->reader, offset - 1, ret_extent);

	return r == 0 && ret_extent->offset >= offset ? -ENOENT : r;
}

struct extents {
	unsigned int count, max;
	struct zf_extent *at;
};

static int collect(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct extents *extents = arg;

	(void)bytes;
	extents->at[extents->count++] = *extent;
	return extents->count == extents->max;
}

/* Those that begin in [from, to], at most extents->max. */
static int collect_from(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
			struct extents *extents)
{
	int r = zf_extent_scan(&editor->reader, from, to, collect, extents);

	return r < 0 ? r : 0;
}

/* ---- put ---- */

struct put {
	struct zf_extent extent; /* to go in */
	struct zf_extent before; /* begins before it; len 0: none */
	struct zf_extent old[REPLACED_MAX + 2];
	unsigned int replaced; /* how many of old[] begin in the range ... */
	bool has_neighbour;    /* ... and old[replaced] right behind it */
	struct zf_extent rest; /* of the last one replaced, behind the range; len 0: none */
};

static int plan_put(struct zf_extent_editor *editor, struct put *put)
{
	struct extents extents = {.max = REPLACED_MAX + 2, .at = put->old};
	uint64_t end = put->extent.offset + put->extent.len;
	const struct zf_extent *last;
	int r = find_before(editor, put->extent.offset, &put->before);

	if (r == -ENOENT)
		put->before.len = 0;
	else if (r < 0)
		return r;
	r = collect_from(editor, put->extent.offset, end, &extents);
	if (r < 0)
		return r;
	while (put->replaced < extents.count && put->old[put->replaced].offset < end)
		put->replaced++;
	if (put->replaced > REPLACED_MAX) {
		put->replaced = REPLACED_MAX;
		end = zf_extent_end(&put->old[REPLACED_MAX - 1]);
		put->extent.len = end - put->extent.offset;
	}
	put->has_neighbour = put->replaced < extents.count && put->old[put->replaced].offset == end;
	last = put->replaced ? &put->old[put->replaced - 1] : &put->before;
	put->rest = (struct zf_extent){0};
	if (last->len > 0 && last->type != ZF_EXTENT_INLINE)
		put->rest = cut(last, end, UINT64_MAX);
	return 0;
}

static void count_put(struct zf_extent_editor *editor, const struct put *put)
{
	uint64_t from = put->extent.offset, to = from + put->extent.len;
	struct zf_extent part;

	/* First, or what is kept could be given away while it changes its extent. */
	count_added(editor, &put->extent);
	if (put->before.len > 0) {
		part = cut(&put->before, from, to);
		count_removed(editor, &part);
	}
	for (unsigned int i = 0; i < put->replaced; i++) {
		part = cut(&put->old[i], from, to);
		count_removed(editor, &part);
	}
}

/* The tree's part of a planned put. */
static int apply_put(struct zf_extent_editor *editor, const struct put *put)
{
	struct zf_extent whole = put->extent, left = {0};
	bool merged = false;
	int r = 0;

	if (put->before.len > 0 && put->before.type != ZF_EXTENT_INLINE)
		left = cut(&put->before, 0, whole.offset);
	if (put->has_neighbour && can_merge(editor, &whole, &put->old[put->replaced])) {
		r = delete (editor, put->old[put->replaced].offset);
		whole.len += put->old[put->replaced].len;
	}
	if (r == 0 && left.len > 0 && can_merge(editor, &left, &whole)) {
		whole.offset = left.offset;
		whole.address = left.address;
		whole.len += left.len;
		merged = true;
	} else if (r == 0 && left.len > 0 && left.len < put->before.len) {
		r = set(editor, &left);
	}
	for (unsigned int i = 0; r == 0 && i < put->replaced; i++)
		if (merged || put->old[i].offset != whole.offset)
			r = delete (editor, put->old[i].offset);
	if (r == 0)
		r = set(editor, &whole);
	if (r == 0 && put->rest.len > 0)
		r = set(editor, &put->rest);
	return r;
}

int zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
		  uint64_t *ret_len)
{
	struct put put = {.extent = *extent};
	int r = plan_put(editor, &put);

	editor->began = editor->edits;
	if (r == 0)
		r = apply_put(editor, &put);
	if (r < 0)
		return r;
	count_put(editor, &put);
	*ret_len = put.extent.len;
	return 0;
}

/* ---- drop ---- */

static int drop_range(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		      unsigned int max_edits)
{
	struct zf_inode *inode = inode_of(editor);
	struct zf_key first = ZF_KEY(inode->ino, ZF_KEY_EXTENT, from);
	struct zf_key last = ZF_KEY(inode->ino, ZF_KEY_EXTENT, to);
	int r = zf_tree_delete_range(inode->fs->forest, editor->trans->writer, ZF_TREE_FS, &first,
				     &last, max_edits);

	count_edit(editor, r < 0 ? r : 0);
	return r;
}

/* Of what was to go, some may still be there: those are not counted as removed. */
static int count_dropped(struct zf_extent_editor *editor, const struct extents *planned)
{
	struct zf_extent left[DROPPED_MAX];
	struct extents still = {.max = DROPPED_MAX, .at = left};
	unsigned int next = 0;
	int r = collect_from(editor, planned->at[0].offset, planned->at[planned->count - 1].offset,
			     &still);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < planned->count; i++) {
		if (next < still.count && left[next].offset == planned->at[i].offset)
			next++;
		else
			count_removed(editor, &planned->at[i]);
	}
	return 0;
}

/* Whole extents, in one sweep. 1: there are more. */
static int drop_whole(struct zf_extent_editor *editor, struct extents *extents, bool more,
		      unsigned int max_edits)
{
	int r, counted = 0;

	if (extents->count == 0)
		return more;
	r = drop_range(editor, extents->at[0].offset, extents->at[extents->count - 1].offset,
		       max_edits);
	if (r == 1)
		counted = count_dropped(editor, extents);
	else if (r == 0)
		for (unsigned int i = 0; i < extents->count; i++)
			count_removed(editor, &extents->at[i]);
	if (counted < 0) {
		editor->torn = true;
		return counted;
	}
	return r == 0 ? more : r;
}

/* The part of an extent that lies in [from, to) goes; what stands on either side stays. */
static int drop_part(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		     uint64_t to)
{
	struct zf_extent left = cut(extent, 0, from), gone = cut(extent, from, to);
	struct zf_extent right = cut(extent, to, UINT64_MAX);
	int r;

	r = left.len > 0 ? set(editor, &left) : delete (editor, extent->offset);
	if (r == 0 && right.len > 0)
		r = set(editor, &right);
	if (r == 0)
		count_removed(editor, &gone);
	return r;
}

int zf_extent_drop(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		   unsigned int max_edits)
{
	struct zf_extent at[DROPPED_MAX], before, *last;
	struct extents extents = {.max = DROPPED_MAX, .at = at};
	bool more;
	int r;

	if (from >= to)
		return 0;
	editor->began = editor->edits;
	r = find_before(editor, from, &before);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && zf_extent_end(&before) > from && before.type != ZF_EXTENT_INLINE) {
		r = drop_part(editor, &before, from, to);
		if (r < 0)
			return r;
	}
	r = collect_from(editor, from, to - 1, &extents);
	if (r < 0)
		return r;
	more = extents.count == DROPPED_MAX;
	last = extents.count ? &at[extents.count - 1] : NULL;
	if (last && last->type != ZF_EXTENT_INLINE && zf_extent_end(last) > to) {
		r = drop_part(editor, last, from, to);
		if (r < 0)
			return r;
		extents.count--;
		more = false;
	}
	assert(max_edits > editor->edits);
	return drop_whole(editor, &extents, more, max_edits - editor->edits);
}

int zf_data_drop_extents(struct zf_inode *inode, struct zf_trans *trans, uint64_t from, uint64_t to,
			 unsigned int max_items)
{
	struct zf_extent_editor editor;
	int r;

	zf_extent_editor_init(&editor, inode, trans);
	r = zf_extent_drop(&editor, from, to, max_items);
	if (editor.torn)
		zf_trans_abort(trans, r, "dropping extents");
	return r;
}

/* ---- inline ---- */

static int set_inline(struct zf_extent_editor *editor, const uint8_t *bytes, uint64_t len,
		      uint64_t generation)
{
	struct zf_inode *inode = inode_of(editor);
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, 0);
	struct zf_extent extent = {.len = len, .generation = generation, .type = ZF_EXTENT_INLINE};
	uint8_t value[sizeof(struct zf_disk_extent) + ZF_INLINE_MAX];

	assert(len > 0 && len <= ZF_INLINE_MAX);
	encode(&extent, (struct zf_disk_extent *)value);
	memcpy(value + sizeof(struct zf_disk_extent), bytes, len);
	return count_edit(editor, zf_tree_set(inode->fs->forest, editor->trans->writer, ZF_TREE_FS,
					      &key, value, sizeof(struct zf_disk_extent) + len));
}

int zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len)
{
	int r = zf_extent_drop(editor, 0, ZF_BLOCK_SIZE, 6);

	assert(r <= 0); /* one block: one extent */
	if (r < 0)
		return r;
	return set_inline(editor, bytes, len, editor->trans->generation);
}

int zf_extent_trim_inline(struct zf_extent_editor *editor, uint64_t len)
{
	struct zf_inode *inode = inode_of(editor);
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, 0);
	uint8_t value[sizeof(struct zf_disk_extent) + ZF_INLINE_MAX];
	struct zf_extent extent;
	int r = zf_extent_find(&editor->reader, 0, &extent);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (extent.type != ZF_EXTENT_INLINE || extent.offset > 0 || extent.len <= len)
		return 0;
	if (len == 0)
		return delete (editor, 0);
	r = zf_tree_lookup(inode->fs->forest, ZF_TREE_FS, &key, value, sizeof(value), NULL);
	if (r < 0)
		return r;
	return set_inline(editor, value + sizeof(struct zf_disk_extent), len, extent.generation);
}

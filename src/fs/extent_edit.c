/* SPDX-License-Identifier: MIT */
/* Editing the extent map. A change is planned first, then made: errors of the plan leave all as it
 * was. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "fs/extent.h"
#include "fs/inode.h"
#include "fs/share.h"

/* Old extents that one put may replace. */
#define REPLACED_MAX 4u
/* Old extents that one drop looks at: a few leaves. */
#define DROPPED_MAX 128u
/* The fewest nodes to which it makes sense to sweep. */
#define DROP_NODES_MIN 2u

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

int zf_extent_editor_count(struct zf_extent_editor *editor, int result)
{
	if (result == 0)
		editor->edits++;
	return result;
}

/* What failed in the middle of a change has torn it, wherever that was. */
static int end_change(struct zf_extent_editor *editor, int r)
{
	if (r < 0 && editor->edits > editor->began)
		editor->torn = true;
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
	return zf_extent_editor_count(editor, zf_tree_set(inode->fs->forest, editor->trans->writer,
							  ZF_TREE_FS, &key, &disk, sizeof(disk)));
}

static int delete (struct zf_extent_editor *editor, uint64_t offset)
{
	struct zf_inode *inode = inode_of(editor);
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, offset);

	return zf_extent_editor_count(
		editor, zf_tree_delete(inode->fs->forest, editor->trans->writer, ZF_TREE_FS, &key));
}

/* ---- shared extents ---- */

static bool is_shared(const struct zf_extent *extent)
{
	return extent->flags & ZF_EXTENT_SHARED;
}

/* Before the first edit of a change: what it will ask of the share tree is there. */
static int check_name(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	return is_shared(extent) ? zf_share_check(editor, extent) : 0;
}

/* The part in [from, to) is given up: *ret_dead bytes of it nobody else names. At most 2 edits. */
static int give_up(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		   uint64_t to, uint64_t *ret_dead)
{
	if (is_shared(extent))
		return zf_share_cut(editor, extent, from, to, ret_dead);
	*ret_dead = zf_extent_part(extent, from, to).len;
	return 0;
}

/* ---- what the counts say ---- */

/* A part of an extent is gone; nobody names `dead` bytes of it any more. */
static void count_removed(struct zf_extent_editor *editor, const struct zf_extent *part,
			  uint64_t dead)
{
	struct zf_inode *inode = inode_of(editor);

	if (part->type == ZF_EXTENT_INLINE || part->len == 0)
		return;
	if (part->type == ZF_EXTENT_ZERO)
		zf_alloc_kept_sub(inode->fs->alloc, part->len >> ZF_BLOCK_SHIFT);
	else if (dead > 0)
		zf_alloc_live_sub(inode->fs->alloc, part->address, dead);
	/* A hostile image may count too few. */
	inode->item.bytes -= zf_min_u64(inode->item.bytes, part->len);
}

static void count_added(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_inode *inode = inode_of(editor);

	if (extent->type == ZF_EXTENT_ZERO)
		editor->reserved_blocks = zf_alloc_kept_add(
			inode->fs->alloc, extent->len >> ZF_BLOCK_SHIFT, editor->reserved_blocks);
	else if (!is_shared(extent))
		zf_alloc_live_add(inode->fs->alloc, extent->address, extent->len);
	inode->item.bytes += extent->len;
}

/* ---- pieces ---- */

static bool can_merge(const struct zf_extent_editor *editor, const struct zf_extent *left,
		      const struct zf_extent *right)
{
	const struct zf_geometry *geometry = zf_dev_geometry(inode_of(editor)->fs->dev);

	if (left->type == ZF_EXTENT_ZERO)
		return right->type == ZF_EXTENT_ZERO && left->flags == right->flags &&
		       left->offset + left->len == right->offset &&
		       left->len + right->len <= ZF_EXTENT_ZERO_MAX;
	return left->type == ZF_EXTENT_DATA && right->type == ZF_EXTENT_DATA && !is_shared(left) &&
	       !is_shared(right) && left->offset + left->len == right->offset &&
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
	unsigned int count;    /* of old[] */
	unsigned int replaced; /* how many of them begin in the range ... */
	bool has_neighbour;    /* ... and old[replaced] right behind it */
	struct zf_extent rest; /* of the last one replaced, behind the range; len 0: none */
	/* What dies with the part of each that is replaced; the last is that of `before`. */
	uint64_t dead[REPLACED_MAX + 1];
};

/* The range ends at `end`. */
static void lay_out_put(struct put *put, uint64_t end)
{
	const struct zf_extent *last;

	put->extent.len = end - put->extent.offset;
	put->replaced = 0;
	while (put->replaced < put->count && put->old[put->replaced].offset < end)
		put->replaced++;
	put->has_neighbour = put->replaced < put->count && put->old[put->replaced].offset == end;
	last = put->replaced ? &put->old[put->replaced - 1] : &put->before;
	put->rest = (struct zf_extent){0};
	if (last->len > 0 && last->type != ZF_EXTENT_INLINE)
		put->rest = zf_extent_part(last, end, UINT64_MAX);
}

static bool reaches_in(const struct put *put)
{
	return put->before.len > 0 && zf_extent_end(&put->before) > put->extent.offset;
}

/* An item, and its name if it is shared. */
static unsigned int edits_of(const struct zf_extent *extent)
{
	return 1u + is_shared(extent);
}

static unsigned int count_put_edits(const struct zf_extent_editor *editor, const struct put *put)
{
	unsigned int edits = edits_of(&put->extent);

	if (reaches_in(put))
		edits += edits_of(&put->before);
	for (unsigned int i = 0; i < put->replaced; i++)
		edits += edits_of(&put->old[i]);
	if (put->rest.len > 0)
		edits += edits_of(&put->rest);
	if (put->has_neighbour && can_merge(editor, &put->extent, &put->old[put->replaced]))
		edits++;
	return edits;
}

/* With one extent replaced it is few enough edits in any case. */
static void bound_put(struct zf_extent_editor *editor, struct put *put)
{
	lay_out_put(put, put->extent.offset + put->extent.len);
	while (put->replaced > REPLACED_MAX || count_put_edits(editor, put) > ZF_EXTENT_PUT_EDITS)
		lay_out_put(put, zf_extent_end(&put->old[put->replaced - 2]));
}

static int check_put_names(struct zf_extent_editor *editor, const struct put *put)
{
	int r = reaches_in(put) ? check_name(editor, &put->before) : 0;

	for (unsigned int i = 0; r == 0 && i < put->replaced; i++)
		r = check_name(editor, &put->old[i]);
	return r;
}

/* Only a damaged image has extents that overlap; what is planned here relies on none. */
static int check_order(struct zf_extent_editor *editor, const struct extents *extents)
{
	for (unsigned int i = 1; i < extents->count; i++) {
		const struct zf_extent *extent = &extents->at[i - 1];
		uint64_t end = zf_extent_end(extent), next = extents->at[i].offset;

		if (end > next)
			return zf_report_corrupt(editor->reader.check.report, "extent of inode",
						 inode_of(editor)->ino,
						 "end has %" PRIu64 ", expected at most %" PRIu64
						 ", where the next one begins (key offset %" PRIu64
						 ")",
						 end, next, extent->offset);
	}
	return 0;
}

/*
 * Fills put->before and put->old: the extent that reaches to the range, those that begin in it, and
 * the one right behind; or so many that the put takes part of its range only.
 */
static int collect_old(struct zf_extent_editor *editor, struct put *put)
{
	struct zf_extent at[REPLACED_MAX + 3];
	struct extents extents = {.max = REPLACED_MAX + 3, .at = at};
	uint64_t from = put->extent.offset, to = from + put->extent.len;
	unsigned int first = 0;
	int r = zf_extent_scan_le(&editor->reader, from > 0 ? from - 1 : 0, to, collect, &extents);

	r = r < 0 ? r : check_order(editor, &extents);
	if (r < 0)
		return r;
	if (extents.count > 0 && at[0].offset < from) {
		if (zf_extent_end(&at[0]) >= from)
			put->before = at[0];
		first = 1;
	}
	put->count = (unsigned int)zf_min_u64(extents.count - first, REPLACED_MAX + 2);
	memcpy(put->old, &at[first], put->count * sizeof(put->old[0]));
	return 0;
}

static int plan_put(struct zf_extent_editor *editor, struct put *put)
{
	int r = collect_old(editor, put);

	if (r < 0)
		return r;
	bound_put(editor, put);
	return check_put_names(editor, put);
}

static void count_put(struct zf_extent_editor *editor, const struct put *put)
{
	uint64_t from = put->extent.offset, to = from + put->extent.len;
	struct zf_extent part;

	/* First, or what is kept could be given away while it changes its extent. */
	count_added(editor, &put->extent);
	if (put->before.len > 0) {
		part = zf_extent_part(&put->before, from, to);
		count_removed(editor, &part, put->dead[REPLACED_MAX]);
	}
	for (unsigned int i = 0; i < put->replaced; i++) {
		part = zf_extent_part(&put->old[i], from, to);
		count_removed(editor, &part, put->dead[i]);
	}
}

/* What the range held gives up its names. */
static int give_up_replaced(struct zf_extent_editor *editor, struct put *put)
{
	uint64_t from = put->extent.offset, to = from + put->extent.len;
	int r = 0;

	if (reaches_in(put))
		r = give_up(editor, &put->before, from, to, &put->dead[REPLACED_MAX]);
	for (unsigned int i = 0; r == 0 && i < put->replaced; i++)
		r = give_up(editor, &put->old[i], from, to, &put->dead[i]);
	return r;
}

/* The tree's part of a planned put. */
static int apply_put(struct zf_extent_editor *editor, const struct put *put)
{
	struct zf_extent whole = put->extent, left = {0};
	bool merged = false;
	int r = 0;

	if (put->before.len > 0 && put->before.type != ZF_EXTENT_INLINE)
		left = zf_extent_part(&put->before, 0, whole.offset);
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
		r = give_up_replaced(editor, &put);
	if (r == 0)
		r = apply_put(editor, &put);
	if (r == 0 && is_shared(&put.extent))
		r = zf_share_add(editor, &put.extent);
	assert(editor->edits - editor->began <= ZF_EXTENT_PUT_EDITS);
	if (r < 0)
		return end_change(editor, r);
	count_put(editor, &put);
	*ret_len = put.extent.len;
	return 0;
}

/* ---- share ---- */

int zf_extent_share(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		    uint64_t to)
{
	struct zf_extent left = zf_extent_part(extent, 0, from);
	struct zf_extent piece = zf_extent_part(extent, from, to);
	struct zf_extent right = zf_extent_part(extent, to, UINT64_MAX);
	int r = 0;

	assert(extent->type == ZF_EXTENT_DATA && !is_shared(extent));
	assert(piece.len > 0 && piece.len <= ZF_SHARE_MAX);
	piece.flags |= ZF_EXTENT_SHARED;
	editor->began = editor->edits;
	if (left.len > 0)
		r = set(editor, &left);
	if (r == 0)
		r = set(editor, &piece);
	if (r == 0 && right.len > 0)
		r = set(editor, &right);
	if (r == 0)
		r = zf_share_add(editor, &piece);
	return end_change(editor, r);
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

	zf_extent_editor_count(editor, r < 0 ? r : 0);
	return r;
}

/* An extent's item is gone. */
static int forget(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	uint64_t dead;
	int r = give_up(editor, extent, 0, UINT64_MAX, &dead);

	if (r == 0)
		count_removed(editor, extent, dead);
	return r;
}

/* Of what was to go, some may still be there: those are not forgotten. */
static int forget_dropped(struct zf_extent_editor *editor, const struct extents *planned)
{
	struct zf_extent left[DROPPED_MAX];
	struct extents still = {.max = DROPPED_MAX, .at = left};
	unsigned int next = 0;
	int r = collect_from(editor, planned->at[0].offset, planned->at[planned->count - 1].offset,
			     &still);

	for (unsigned int i = 0; r == 0 && i < planned->count; i++) {
		if (next < still.count && left[next].offset == planned->at[i].offset)
			next++;
		else
			r = forget(editor, &planned->at[i]);
	}
	return r;
}

/* Keeps as many from the front as have at most `names` names. Returns how many names those have. */
static unsigned int bound_names(struct extents *extents, unsigned int names)
{
	unsigned int shared = 0;

	for (unsigned int i = 0; i < extents->count; i++) {
		if (is_shared(&extents->at[i]) && shared++ == names) {
			extents->count = i;
			return names;
		}
	}
	return shared;
}

/* Whole extents, in one sweep over `nodes` nodes. 1: there are more. */
static int drop_whole(struct zf_extent_editor *editor, struct extents *extents, unsigned int nodes)
{
	int more, r = 0;

	for (unsigned int i = 0; r == 0 && i < extents->count; i++)
		r = check_name(editor, &extents->at[i]);
	if (r < 0 || extents->count == 0)
		return r;
	more = drop_range(editor, extents->at[0].offset, extents->at[extents->count - 1].offset,
			  nodes);
	if (more < 0)
		return more;
	if (more)
		r = forget_dropped(editor, extents);
	else
		for (unsigned int i = 0; r == 0 && i < extents->count; i++)
			r = forget(editor, &extents->at[i]);
	return r < 0 ? r : more;
}

/* The tree edits of drop_part(). */
static unsigned int part_edits(const struct zf_extent *extent)
{
	return 2 * edits_of(extent);
}

/* The part of an extent that lies in [from, to) goes; what stands on either side stays. */
static int drop_part(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		     uint64_t to)
{
	struct zf_extent left = zf_extent_part(extent, 0, from);
	struct zf_extent gone = zf_extent_part(extent, from, to);
	struct zf_extent right = zf_extent_part(extent, to, UINT64_MAX);
	uint64_t dead;
	int r = check_name(editor, extent);

	if (r == 0)
		r = left.len > 0 ? set(editor, &left) : delete (editor, extent->offset);
	if (r == 0 && right.len > 0)
		r = set(editor, &right);
	if (r == 0)
		r = give_up(editor, extent, from, to, &dead);
	if (r == 0)
		count_removed(editor, &gone, dead);
	return r;
}

/* What begins in the range: whole ones, then the part of the last one that lies in it. */
static int drop_beginning(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
			  unsigned int max_edits)
{
	unsigned int left = max_edits - editor->edits, names;
	struct zf_extent at[DROPPED_MAX], last = {0};
	struct extents extents = {.max = DROPPED_MAX, .at = at};
	int r = collect_from(editor, from, to - 1, &extents);
	bool more = extents.count == DROPPED_MAX;

	if (r < 0 || extents.count == 0)
		return r;
	last = at[extents.count - 1];
	if (last.type == ZF_EXTENT_INLINE || zf_extent_end(&last) <= to)
		last.len = 0;
	else
		extents.count--;
	if (extents.count > 0) {
		unsigned int planned = extents.count;

		if (left < DROP_NODES_MIN)
			return 1;
		names = bound_names(&extents, left - DROP_NODES_MIN);
		more |= extents.count < planned;
		left -= names;
		if (last.len > 0 && !more && left >= DROP_NODES_MIN + part_edits(&last))
			left -= part_edits(&last);
		else if (last.len > 0)
			more = true;
		r = drop_whole(editor, &extents, left);
	} else if (left < part_edits(&last)) {
		more = true;
	}
	if (r != 0 || more)
		return r < 0 ? r : 1;
	return last.len > 0 ? drop_part(editor, &last, from, to) : 0;
}

int zf_extent_drop(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		   unsigned int max_edits)
{
	struct zf_extent before;
	int r;

	if (from >= to)
		return 0;
	assert(max_edits >= editor->edits + ZF_EXTENT_DROP_EDITS);
	editor->began = editor->edits;
	r = find_before(editor, from, &before);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && zf_extent_end(&before) > from && before.type != ZF_EXTENT_INLINE) {
		r = drop_part(editor, &before, from, to);
		if (r < 0)
			return end_change(editor, r);
	}
	r = drop_beginning(editor, from, to, max_edits);
	assert(editor->edits <= max_edits);
	return end_change(editor, r);
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
	return zf_extent_editor_count(editor, zf_tree_set(inode->fs->forest, editor->trans->writer,
							  ZF_TREE_FS, &key, value,
							  sizeof(struct zf_disk_extent) + len));
}

int zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len)
{
	int r = zf_extent_drop(editor, 0, ZF_BLOCK_SIZE, ZF_EXTENT_DROP_EDITS);

	/* One block, one extent: that is gone, even where a sweep ends without having looked on. */
	if (r < 0)
		return r;
	return end_change(editor, set_inline(editor, bytes, len, editor->trans->generation));
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

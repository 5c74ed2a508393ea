/* SPDX-License-Identifier: MIT */
/* Puts an extent in the place of all that its range held; makes a part of an extent shared. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/zone.h"
#include "base/plant.h"
#include "fs/map/extent_edit.h"
#include "fs/map/share.h"

/* The most old extents that one put may replace. */
#define REPLACED_MAX 4u

/* The generations may differ, because no snapshot lies between them (docs/format.md). */
static bool can_merge(const struct zf_extent_editor *editor, const struct zf_extent *left,
		      const struct zf_extent *right)
{
	const struct zf_geometry *geometry =
		zf_dev_geometry(zf_extent_editor_inode(editor)->fs->dev);

	if (left->type == ZF_EXTENT_ZERO)
		return right->type == ZF_EXTENT_ZERO && left->flags == right->flags &&
		       left->offset + left->len == right->offset &&
		       left->len + right->len <= ZF_EXTENT_ZERO_MAX;
	return left->type == ZF_EXTENT_DATA && right->type == ZF_EXTENT_DATA &&
	       left->flags == right->flags && !zf_extent_has_name(left) &&
	       left->offset + left->len == right->offset &&
	       left->address + left->len == right->address &&
	       left->len + right->len <= ZF_EXTENT_MAX &&
	       zf_zone_of(geometry, left->address) == zf_zone_of(geometry, right->address);
}

/* ---- put ---- */

struct put {
	struct zf_extent extent; /* the new extent */
	struct zf_extent before; /* begins before the range and reaches to it; len 0: none */
	struct zf_extent old[REPLACED_MAX + 2];
	unsigned int count;    /* of old[] */
	unsigned int replaced; /* how many of old[] begin in the range */
	bool has_neighbour;    /* old[replaced] begins right behind the range */
	struct zf_extent rest; /* the last replaced extent's part behind it; len 0: none */
	/* *ret_dead of zf_extent_give_up(), for each replaced old[]; the last: for `before`. */
	uint64_t dead[REPLACED_MAX + 1];
};

/* Sets the fields that depend on the end of the range: it ends at `end`. */
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

static unsigned int count_put_edits(const struct zf_extent_editor *editor, const struct put *put)
{
	unsigned int edits = zf_extent_edits(&put->extent);

	if (reaches_in(put))
		edits += zf_extent_edits(&put->before);
	for (unsigned int i = 0; i < put->replaced; i++)
		edits += zf_extent_edits(&put->old[i]);
	if (put->rest.len > 0)
		edits += zf_extent_edits(&put->rest);
	if (put->has_neighbour && can_merge(editor, &put->extent, &put->old[put->replaced]))
		edits++;
	return edits;
}

/* ---- the guarantee ---- */

static bool guaranteed_at(const struct put *put, uint64_t offset)
{
	const struct zf_extent *at = reaches_in(put) ? &put->before : NULL;

	for (unsigned int i = 0; i < put->count && put->old[i].offset <= offset; i++)
		at = &put->old[i];
	return at && zf_extent_end(at) > offset && (at->flags & ZF_EXTENT_GUARANTEED);
}

/* The first offset behind `offset` at which an old extent begins or ends; at most `end`. */
static uint64_t next_bound(const struct put *put, uint64_t offset, uint64_t end)
{
	uint64_t bound = end, at;

	if (reaches_in(put) && zf_extent_end(&put->before) > offset)
		bound = zf_min_u64(bound, zf_extent_end(&put->before));
	for (unsigned int i = 0; i < put->count; i++) {
		at = put->old[i].offset;
		if (at <= offset)
			at = zf_extent_end(&put->old[i]);
		if (at > offset)
			bound = zf_min_u64(bound, at);
	}
	return bound;
}

/*
 * A range that was guaranteed stays guaranteed when it is overwritten. An extent that is written in
 * place needs no guarantee.
 */
static void inherit_guarantee(struct put *put)
{
	uint64_t at = put->extent.offset, end = at + put->extent.len;
	bool guaranteed = guaranteed_at(put, at);

	if (put->extent.flags & (ZF_EXTENT_GUARANTEED | ZF_EXTENT_OVERWRITE))
		return;
	do {
		at = next_bound(put, at, end);
	} while (at < end && guaranteed_at(put, at) == guaranteed);
	lay_out_put(put, at);
	if (guaranteed)
		put->extent.flags |= ZF_EXTENT_GUARANTEED;
}

/* ---- planning ---- */

/* Shortens the range until the edits are few enough. With one replaced extent they always are. */
static void bound_put(struct zf_extent_editor *editor, struct put *put)
{
	lay_out_put(put, put->extent.offset + put->extent.len);
	while (put->replaced > REPLACED_MAX || count_put_edits(editor, put) > ZF_EXTENT_PUT_EDITS)
		lay_out_put(put, zf_extent_end(&put->old[put->replaced - 2]));
}

static int check_put_names(struct zf_extent_editor *editor, const struct put *put)
{
	int r = reaches_in(put) ? zf_extent_check_name(editor, &put->before) : 0;

	for (unsigned int i = 0; r == 0 && i < put->replaced; i++)
		r = zf_extent_check_name(editor, &put->old[i]);
	return r;
}

/* The plan relies on extents that do not overlap. Only in a damaged image they do. */
static int check_order(struct zf_extent_editor *editor, const struct zf_extents *extents)
{
	for (unsigned int i = 1; i < extents->count; i++) {
		const struct zf_extent *extent = &extents->at[i - 1];
		uint64_t end = zf_extent_end(extent), next = extents->at[i].offset;

		if (end > next)
			return zf_report_corrupt(editor->reader.check.report, "extent of inode",
						 zf_extent_editor_inode(editor)->ino,
						 "end has %" PRIu64 ", expected at most %" PRIu64
						 ", where the next one begins (key offset %" PRIu64
						 ")",
						 end, next, extent->offset);
	}
	return 0;
}

/*
 * Fills put->before and put->old: the extent that reaches to the range, those that begin in it, and
 * the one right behind it. If these are too many, it takes the first ones, and the put takes only
 * the front of its range.
 */
static int collect_old(struct zf_extent_editor *editor, struct put *put)
{
	struct zf_extent at[REPLACED_MAX + 3];
	struct zf_extents extents = {.max = REPLACED_MAX + 3, .at = at};
	uint64_t from = put->extent.offset, to = from + put->extent.len;
	unsigned int first = 0;
	int r = zf_extent_scan_le(&editor->reader, from > 0 ? from - 1 : 0, to,
				  zf_extent_collect_one, &extents);

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
	inherit_guarantee(put);
	return check_put_names(editor, put);
}

static void count_put(struct zf_extent_editor *editor, const struct put *put)
{
	uint64_t from = put->extent.offset, to = from + put->extent.len;
	struct zf_extent part;

	zf_extent_count_added(editor, &put->extent);
	if (put->before.len > 0) {
		part = zf_extent_part(&put->before, from, to);
		zf_extent_count_removed(editor, &part, put->dead[REPLACED_MAX]);
	}
	for (unsigned int i = 0; i < put->replaced; i++) {
		part = zf_extent_part(&put->old[i], from, to);
		zf_extent_count_removed(editor, &part, put->dead[i]);
	}
	/* In one step: otherwise kept blocks could be given away while their extent changes. */
	zf_extent_count_kept(
		editor,
		editor->take_lent ? editor->take_lent(editor->take_lent_arg, put->extent.len) : 0);
}

/* Gives up the names of the replaced parts. */
static int give_up_replaced(struct zf_extent_editor *editor, struct put *put)
{
	uint64_t from = put->extent.offset, to = from + put->extent.len;
	int r = 0;

	if (reaches_in(put))
		r = zf_extent_give_up(editor, &put->before, from, to, &put->dead[REPLACED_MAX]);
	for (unsigned int i = 0; r == 0 && i < put->replaced; i++)
		r = zf_extent_give_up(editor, &put->old[i], from, to, &put->dead[i]);
	return r;
}

/* `right` begins where `left` ends, in the file and on the device. */
static struct zf_extent merge(const struct zf_extent_editor *editor, const struct zf_extent *left,
			      const struct zf_extent *right)
{
	struct zf_extent whole = *left;

	whole.len += right->len;
	whole.generation = zf_max_u64(left->generation, right->generation);
	ZF_TRACE(extents_merged, .inode = zf_extent_editor_inode(editor)->ino,
		 .offset = whole.offset, .bytes = whole.len, .address = whole.address);
	return whole;
}

/* Makes the edits of the extent items for a planned put. */
static int apply_put(struct zf_extent_editor *editor, const struct put *put)
{
	struct zf_extent whole = put->extent, left = {0};
	bool merged = false;
	int r = 0;

	if (put->before.len > 0 && put->before.type != ZF_EXTENT_INLINE)
		left = zf_extent_part(&put->before, 0, whole.offset);
	if (put->has_neighbour && can_merge(editor, &whole, &put->old[put->replaced])) {
		r = zf_extent_delete(editor, put->old[put->replaced].offset);
		whole = merge(editor, &whole, &put->old[put->replaced]);
	}
	if (r == 0 && left.len > 0 && can_merge(editor, &left, &whole)) {
		whole = merge(editor, &left, &whole);
		merged = true;
	} else if (r == 0 && left.len > 0 && left.len < put->before.len) {
		r = zf_extent_set(editor, &left);
	}
	for (unsigned int i = 0; r == 0 && i < put->replaced; i++)
		if (merged || put->old[i].offset != whole.offset)
			r = zf_extent_delete(editor, put->old[i].offset);
	if (r == 0)
		r = zf_extent_set(editor, &whole);
	if (r == 0 && put->rest.len > 0)
		r = zf_extent_set(editor, &put->rest);
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
	if (r == 0 && !ZF_PLANTED(ZF_BUG_CLONE_WITHOUT_SHARE))
		r = zf_extent_add_name(editor, &put.extent);
	assert(editor->edits - editor->began <= ZF_EXTENT_PUT_EDITS);
	if (r < 0)
		return zf_extent_end_change(editor, r);
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

	assert(extent->type == ZF_EXTENT_DATA && !zf_extent_has_name(extent));
	assert(piece.len > 0 && piece.len <= ZF_SHARE_MAX);
	piece.flags |= ZF_EXTENT_SHARED;
	editor->began = editor->edits;
	if (left.len > 0)
		r = zf_extent_set(editor, &left);
	if (r == 0)
		r = zf_extent_set(editor, &piece);
	if (r == 0 && right.len > 0)
		r = zf_extent_set(editor, &right);
	if (r == 0)
		r = zf_share_add(editor, &piece);
	return zf_extent_end_change(editor, r);
}

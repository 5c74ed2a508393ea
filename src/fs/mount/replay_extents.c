/* SPDX-License-Identifier: MIT */
/*
 * Replaying the state of a file: the ranges of its map that had changed, then its item.
 *
 * The ranges may take several joins. The last join stores the item; only then the size covers the
 * new extents, and a commit counts the body as done. The whole body is checked before the first
 * edit.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/zone.h"
#include "fs/core/item.h"
#include "fs/core/item_check.h"
#include "fs/mount/replay_internal.h"

/* Tree edits of one join, besides that of the inode's item. */
#define RANGE_EDITS 16u

struct state {
	struct zf_replay *replay;
	struct zf_inode *inode; /* as the trees have it so far */
	struct zf_inode_item item;
};

/* ---- checking ---- */

static int check_item(struct state *state)
{
	struct zf_fs *fs = state->replay->fs;
	struct zf_log_inode logged;
	struct zf_disk_inode disk;
	struct zf_key key;
	int r;

	zf_log_view_inode(state->replay->body, &logged);
	if (logged.item_len != sizeof(disk))
		return zf_replay_misfit(state->replay,
					"inode %" PRIu64 " has %zu bytes, expected %zu", logged.ino,
					logged.item_len, sizeof(disk));
	memcpy(&disk, logged.item, sizeof(disk));
	zf_replay_settle_item(&disk, zf_txn_running(fs->txn));
	key = ZF_KEY(logged.ino, ZF_KEY_INODE, 0);
	r = zf_fs_check_item(fs, &key, &disk, sizeof(disk));
	if (r < 0)
		return r;
	zf_item_decode_inode(&disk, &state->item);
	if (!S_ISREG(state->item.mode) || !S_ISREG(state->inode->type))
		return zf_replay_misfit(state->replay,
					"inode %" PRIu64 " has mode %#o, expected a file's",
					logged.ino, state->item.mode);
	return 0;
}

static int check_flags(struct state *state, const struct zf_log_range *range, uint8_t known)
{
	if ((range->flags & ~known) == 0)
		return 0;
	return zf_replay_misfit(state->replay,
				"range at %" PRIu64 " has flags %#x, expected bits of %#x",
				range->offset, range->flags, known);
}

static int check_data(struct state *state, const struct zf_log_range_view *view)
{
	const struct zf_log_range *range = &view->range;
	uint8_t known = range->flags & ZF_EXTENT_SHARED ? ZF_EXTENT_SHARED : ZF_EXTENT_OVERWRITE;
	int r = check_flags(state, range, known | ZF_EXTENT_GUARANTEED);

	if (r < 0)
		return r;
	if (!view->csums && !(range->flags & ZF_EXTENT_OVERWRITE))
		return zf_replay_misfit(state->replay,
					"range at %" PRIu64 " has no checksums, expected some",
					range->offset);
	return zf_alloc_check_extent(state->replay->fs->alloc, range->address, range->len,
				     range->flags & ZF_EXTENT_OVERWRITE);
}

static int check_inline(struct state *state, const struct zf_log_range *range)
{
	uint32_t max = zf_inode_inline_max(state->replay->fs);
	int r = check_flags(state, range, 0);

	if (r < 0 || (range->offset == 0 && range->len == ZF_BLOCK_SIZE && range->inline_len > 0 &&
		      range->inline_len <= max))
		return r;
	return zf_replay_misfit(state->replay,
				"range at %" PRIu64 " has %u inline bytes, expected 1 to %u at 0",
				range->offset, range->inline_len, max);
}

/* A ZERO range cannot be larger than the device. */
static int check_zero(struct state *state, const struct zf_log_range *range)
{
	const struct zf_geometry *geometry = zf_dev_geometry(state->replay->fs->dev);
	uint64_t max = geometry->zone_size * geometry->zone_count;
	int r = check_flags(state, range, ZF_EXTENT_UNWRITTEN | ZF_EXTENT_GUARANTEED);

	if (r < 0 || range->len <= max)
		return r;
	return zf_replay_misfit(state->replay,
				"range at %" PRIu64 " has %" PRIu64
				" bytes, expected at most %" PRIu64,
				range->offset, range->len, max);
}

static int check_range(struct state *state, const struct zf_log_range_view *view)
{
	switch (view->range.type) {
	case ZF_LOG_RANGE_HOLE:
		return check_flags(state, &view->range, 0);
	case ZF_LOG_RANGE_INLINE:
		return check_inline(state, &view->range);
	case ZF_LOG_RANGE_DATA:
		return check_data(state, view);
	case ZF_LOG_RANGE_ZERO:
		return check_zero(state, &view->range);
	}
	return -EUCLEAN;
}

static int check(struct state *state)
{
	struct zf_log_range_view view;
	size_t at = 0;
	int r = check_item(state);

	while (r == 0 && zf_log_next_range(state->replay->body, &at, &view))
		r = check_range(state, &view);
	return r;
}

/* ---- one join ---- */

struct edit {
	struct zf_trans trans;
	struct zf_extent_editor editor;
};

static int begin(struct state *state, struct edit *edit)
{
	int r;

	zf_rwlock_wrlock(&state->inode->lock);
	r = zf_replay_join(state->replay, RANGE_EDITS + 1, &edit->trans);
	if (r < 0)
		zf_rwlock_unlock(&state->inode->lock);
	else
		zf_extent_editor_init(&edit->editor, state->inode, &edit->trans);
	return r;
}

/*
 * Stores the item unless the edits failed. `r`: the result of the edits; returned unless storing
 * fails.
 */
static int end(struct state *state, struct edit *edit, int r)
{
	int stored = 0;

	if (r >= 0)
		stored = zf_inode_store(state->inode, &edit->trans);
	if (edit->editor.torn || stored < 0)
		zf_trans_abort(&edit->trans, r < 0 ? r : stored, "replaying a file's extents");
	zf_trans_leave(&edit->trans);
	zf_rwlock_unlock(&state->inode->lock);
	return stored < 0 ? stored : r;
}

/* ---- ranges ---- */

static int put_hole(struct state *state, const struct zf_log_range *range)
{
	struct edit edit;
	int r;

	do {
		r = begin(state, &edit);
		if (r < 0)
			return r;
		r = zf_extent_drop(&edit.editor, range->offset, range->offset + range->len,
				   RANGE_EDITS);
		r = end(state, &edit, r);
	} while (r > 0);
	return r;
}

/*
 * The replay reserves no room for kept blocks; zf_alloc_kept_recount() counts later how many are
 * short.
 */
static int put_zeroes(struct state *state, const struct zf_log_range *range)
{
	uint64_t done = 0;
	int r = 0;

	while (r == 0 && done < range->len) {
		struct zf_extent extent = {
			.offset = range->offset + done,
			.len = zf_min_u64(range->len - done, ZF_EXTENT_ZERO_MAX),
			.type = ZF_EXTENT_ZERO,
			.flags = range->flags,
		};
		struct edit edit;
		uint64_t len = 0;

		r = begin(state, &edit);
		if (r < 0)
			return r;
		extent.generation = edit.trans.generation;
		r = zf_extent_put(&edit.editor, &extent, &len);
		r = end(state, &edit, r);
		done += len;
	}
	return r;
}

static int put_inline(struct state *state, const struct zf_log_range *range)
{
	/* No more bytes than the file's size, even if a forged record has more. */
	size_t len = zf_min_u64(range->inline_len, state->item.size);
	struct edit edit;
	int r;

	if (len == 0)
		return 0;
	r = begin(state, &edit);
	if (r < 0)
		return r;
	return end(state, &edit, zf_extent_put_inline(&edit.editor, range->bytes, len));
}

/* Puts the part of the range before the end of the file, because no extent may lie behind that. */
static int put_data(struct state *state, const struct zf_log_range_view *view)
{
	uint64_t end_of_file = zf_align_up(state->item.size, ZF_BLOCK_SIZE), done = 0, len;
	const struct zf_log_range *range = &view->range;
	int r = 0;

	if (range->offset >= end_of_file)
		return 0;
	len = zf_min_u64(range->len, end_of_file - range->offset);
	while (r == 0 && done < len) {
		uint64_t put = 0;

		r = zf_replay_piece(state->replay, state->inode, view, done, len - done, &put);
		done += put;
	}
	return r;
}

static int put_range(struct state *state, const struct zf_log_range_view *view)
{
	switch (view->range.type) {
	case ZF_LOG_RANGE_HOLE:
		return put_hole(state, &view->range);
	case ZF_LOG_RANGE_INLINE:
		return put_inline(state, &view->range);
	case ZF_LOG_RANGE_DATA:
		return put_data(state, view);
	case ZF_LOG_RANGE_ZERO:
		return put_zeroes(state, &view->range);
	}
	return -EUCLEAN;
}

static int put_ranges(struct state *state)
{
	struct zf_log_range_view view;
	size_t at = 0;
	int r = 0;

	while (r == 0 && zf_log_next_range(state->replay->body, &at, &view))
		r = put_range(state, &view);
	return r;
}

/* ---- the item ---- */

/*
 * Takes the item of the body, but keeps the generation and the number of blocks that the trees
 * have.
 */
static void take_item(struct state *state)
{
	struct zf_inode_item *item = &state->inode->item, old = *item;

	*item = state->item;
	item->generation = old.generation;
	item->bytes = old.bytes;
	state->inode->disk_size = item->size;
}

static int put_item(struct state *state)
{
	struct zf_trans trans;
	int r;

	zf_rwlock_wrlock(&state->inode->lock);
	r = zf_replay_join(state->replay, 1, &trans);
	if (r == 0) {
		take_item(state);
		r = zf_inode_store(state->inode, &trans);
		if (r == 0)
			zf_replay_done(state->replay);
		zf_trans_leave(&trans);
	}
	zf_rwlock_unlock(&state->inode->lock);
	return r;
}

/* ---- the whole ---- */

static int apply(struct state *state)
{
	int r = check(state);

	/*
	 * Only an operation makes a file shorter, a state never does. So only a forged record gets
	 * here.
	 */
	if (r == 0 && state->item.size < state->inode->item.size)
		r = zf_replay_resize(state->inode, state->item.size);
	if (r == 0)
		r = put_ranges(state);
	return r == 0 ? put_item(state) : r;
}

int zf_replay_extents(struct zf_replay *replay)
{
	struct state state = {.replay = replay};
	struct zf_log_inode logged;
	int r;

	zf_log_view_inode(replay->body, &logged);
	r = zf_inode_get(replay->fs, logged.ino, &state.inode);
	if (r == -ESTALE)
		return zf_replay_misfit(replay, "inode %" PRIu64 " has no item, expected one",
					logged.ino);
	if (r < 0)
		return r;
	r = apply(&state);
	zf_inode_put(state.inode);
	return r;
}

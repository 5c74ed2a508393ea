/* SPDX-License-Identifier: MIT */
/*
 * Rename, over an existing name or not, exchange, and leaving a whiteout.
 *
 * Order (P2). A rename over an existing name is answered only when all data that was written to the
 * source before it is in the trees, so no crash leaves the new name with less. Such data is flushed
 * before the rename's own transaction, without a lock.
 *
 * Loops. A directory must not become its own descendant. Only a rename that gives a directory
 * another parent could do that. It holds fs->rename_lock from the check to the edit.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc/reserve.h"
#include "base/plant.h"
#include "fs/core/inode_flags.h"
#include "fs/data/close.h"
#include "fs/ops/names/make.h"

/* 2 places of 2; the source's refs 2; the target's refs 2, orphan; inodes 4. */
#define RENAME_EDITS 13u

struct rename {
	uint64_t from_parent, to_parent;
	struct zf_name from_name, to_name;
	bool no_replace, exchange, whiteout;

	struct zf_inode *from_dir, *to_dir, *source;
	struct zf_inode *target; /* NULL: the new name is free */
	uint8_t source_type, target_type;

	struct zf_dir_place from, to;
	struct zf_ref_place source_old, source_new;
	struct zf_ref_place target_old, target_new; /* target_new: for an exchange only */
	struct zf_acl_inherited acls;		    /* the whiteout's */
	uint64_t moved[2];
};

static bool source_is_dir(const struct rename *rename)
{
	return rename->source_type == DT_DIR;
}

static bool target_is_dir(const struct rename *rename)
{
	return rename->target && rename->target_type == DT_DIR;
}

/* ---- ancestors ---- */

static int get_parent(struct zf_fs *fs, uint64_t *dir)
{
	struct zf_inode *inode;
	int r = zf_inode_get(fs, *dir, &inode);

	if (r < 0)
		return r;
	zf_rwlock_rdlock(&inode->lock);
	r = zf_dir_ref_parent(inode, dir);
	zf_rwlock_unlock(&inode->lock);
	zf_inode_put(inode);
	return r;
}

/*
 * -EINVAL: `ino` is `dir` or an ancestor of it. The caller holds fs->rename_lock and no inode's
 * lock.
 */
static int check_not_above(struct zf_fs *fs, uint64_t ino, uint64_t dir)
{
	uint64_t mark = 0, steps = 0, mark_at = 1;

	while (dir != ino && dir != ZF_INO_ROOT) {
		int r = get_parent(fs, &dir);

		if (r < 0)
			return r;
		/* In a damaged tree directories may form a ring: then the walk meets its mark. */
		if (dir == mark)
			return zf_report_corrupt(&fs->report, "inode", dir,
						 "the directory is its own ancestor");
		if (++steps == mark_at) {
			mark = dir;
			mark_at *= 2;
		}
	}
	return dir == ino ? -EINVAL : 0;
}

static int check_loops(struct zf_op *op, struct rename *rename)
{
	bool source_moves = source_is_dir(rename);
	bool target_moves = rename->exchange && target_is_dir(rename);
	int r = 0;

	if (rename->from_dir == rename->to_dir || !(source_moves || target_moves))
		return 0;
	zf_mutex_lock(&op->fs->rename_lock);
	op->rename_locked = true;
	if (source_moves)
		r = check_not_above(op->fs, rename->source->ino, rename->to_dir->ino);
	if (r == 0 && target_moves)
		r = check_not_above(op->fs, rename->target->ino, rename->from_dir->ino);
	return r;
}

/* ---- before the join ---- */

static int get_inodes(struct zf_op *op, struct rename *rename)
{
	int r = zf_op_get(op, rename->from_parent, &rename->from_dir);

	if (r == 0)
		r = zf_op_get(op, rename->to_parent, &rename->to_dir);
	if (r == 0)
		r = zf_names_get_child(op, rename->from_dir, &rename->from_name, &rename->source,
				       &rename->source_type);
	if (r < 0)
		return r;
	rename->target = NULL;
	r = zf_names_get_child(op, rename->to_dir, &rename->to_name, &rename->target,
			       &rename->target_type);
	return r == -ENOENT ? 0 : r;
}

static int find_places(struct rename *rename)
{
	int r = zf_names_find_same(rename->from_dir, &rename->from_name, rename->source,
				   &rename->from);

	return r != 0 ? r
		      : zf_names_find_same(rename->to_dir, &rename->to_name, rename->target,
					   &rename->to);
}

static int check_replace(const struct rename *rename)
{
	if (rename->exchange)
		return 0;
	if (source_is_dir(rename) && !target_is_dir(rename))
		return -ENOTDIR;
	if (!source_is_dir(rename) && target_is_dir(rename))
		return -EISDIR;
	return target_is_dir(rename) ? zf_dir_check_empty(rename->target) : 0;
}

static int check_flags(const struct rename *rename)
{
	int r = zf_inode_check_remove(rename->from_dir, rename->source);

	if (r == 0)
		r = zf_inode_check_project(rename->to_dir, rename->source);
	if (r == 0 && rename->exchange)
		r = zf_inode_check_project(rename->from_dir, rename->target);
	if (r < 0)
		return r;
	return rename->target ? zf_inode_check_remove(rename->to_dir, rename->target)
			      : zf_inode_check_add(rename->to_dir);
}

static int check(const struct rename *rename)
{
	int r;

	if (rename->to_dir->item.nlink == 0)
		return -ENOENT;
	if (rename->exchange && !rename->target)
		return -ENOENT;
	if (rename->no_replace && rename->target)
		return -EEXIST;
	/* Both names name the same inode, so nothing will be done. */
	if (rename->source == rename->target)
		return 0;
	r = check_flags(rename);
	if (r < 0)
		return r;
	if (source_is_dir(rename) && rename->to_dir->item.nlink == UINT32_MAX)
		return -EMLINK;
	return rename->target ? check_replace(rename) : zf_dir_check_room(&rename->to);
}

/* Finds the ref that an inode will get for a name that is not its own yet. */
static int find_new_ref(struct zf_inode *inode, const struct zf_dir_place *place,
			struct zf_ref_place *ret_ref)
{
	int r = zf_dir_ref_find(inode, place->dir->ino, &place->name, ret_ref);

	if (r == 0 && ret_ref->exists)
		return zf_names_corrupt(inode->fs, place->dir,
					"an inode has a ref for a name that names another inode");
	return r < 0 ? r : zf_dir_ref_check_room(ret_ref);
}

static int find_refs(struct rename *rename)
{
	int r = zf_names_find_ref(rename->source, &rename->from, &rename->source_old);

	if (r == 0)
		r = find_new_ref(rename->source, &rename->to, &rename->source_new);
	if (r == 0 && rename->target)
		r = zf_names_find_ref(rename->target, &rename->to, &rename->target_old);
	if (r == 0 && rename->exchange)
		r = find_new_ref(rename->target, &rename->from, &rename->target_new);
	return r;
}

/*
 * Returns whether a regular file takes the name of another file. P2: the source's data is durable
 * together with such a rename.
 */
static bool carries_source(const struct rename *rename)
{
	return rename->target && !rename->exchange && rename->source_type == DT_REG;
}

/* P2: data that was written to the source must be in the trees first. */
static bool must_flush(struct zf_op *op, const struct rename *rename)
{
	if (!carries_source(rename))
		return false;
	/* One flush is enough: P2 does not cover data that is written after the call began. */
	if (op->flushed_ino == rename->source->ino || !zf_data_is_dirty(rename->source))
		return false;
	op->flush_ino = rename->source->ino;
	return true;
}

/* P2: a source that has lost data must not replace another file. */
static int check_source(const struct rename *rename)
{
	return carries_source(rename) ? zf_write_error_before_rename(rename->source) : 0;
}

/* ---- edits ---- */

/* Moves one of the inode's refs. The old and the new ref may stand in the same item. */
static int move_ref(struct zf_op *op, struct zf_ref_place *old, struct zf_ref_place *new,
		    uint64_t cookie)
{
	int r = zf_dir_ref_remove(op, old);

	if (r == 0 && zf_key_cmp(&old->chain.key, &new->chain.key) == 0)
		r = zf_dir_ref_find(new->inode, new->parent, &new->name, new);
	return r < 0 ? r : zf_dir_ref_add(op, new, cookie);
}

/* Finds `place` again after an edit of `edited`, if both stand in the same item. */
static int refresh(const struct zf_dir_place *edited, struct zf_dir_place *place)
{
	if (zf_key_cmp(&edited->chain.key, &place->chain.key) != 0)
		return 0;
	return zf_dir_find(place->dir, &place->name, place);
}

static int edit_entries(struct zf_op *op, struct rename *rename)
{
	uint8_t type = rename->from.entry.type;
	uint64_t ino = rename->source->ino;
	int r;

	if (!rename->target && !rename->whiteout && rename->from_dir == rename->to_dir)
		return zf_dir_move(op, &rename->from, &rename->to);
	if (rename->target)
		r = zf_dir_replace(op, &rename->to, ino, type);
	else
		r = zf_dir_add(op, &rename->to, ino, type);
	if (r == 0)
		r = refresh(&rename->to, &rename->from);
	if (r == 0)
		r = rename->whiteout ? zf_make_whiteout(op, &rename->from, &rename->acls)
				     : zf_dir_remove(op, &rename->from);
	return r;
}

static int exchange_entries(struct zf_op *op, struct rename *rename)
{
	struct zf_dir_entry source = rename->from.entry, target = rename->to.entry;
	int r = zf_dir_replace(op, &rename->to, source.ino, source.type);

	if (r == 0)
		r = refresh(&rename->to, &rename->from);
	if (r == 0)
		r = zf_dir_replace(op, &rename->from, target.ino, target.type);
	if (r == 0)
		r = move_ref(op, &rename->target_old, &rename->target_new,
			     rename->from.entry.cookie);
	if (r < 0)
		return r;
	rename->target->item.ctime = op->now;
	return zf_op_store(op, rename->target);
}

static int drop_target(struct zf_op *op, struct rename *rename)
{
	int r = zf_dir_ref_remove(op, &rename->target_old);

	return r < 0 ? r : zf_names_drop_link(op, rename->target);
}

static int touch_dirs(struct zf_op *op, struct rename *rename)
{
	int source = source_is_dir(rename), target = target_is_dir(rename);
	int from = rename->exchange ? target - source : -source;
	int to = source - target;
	int r;

	if (rename->from_dir == rename->to_dir)
		return zf_names_touch_dir(op, rename->from_dir, from + to);
	r = zf_names_touch_dir(op, rename->from_dir, from);
	return r < 0 ? r : zf_names_touch_dir(op, rename->to_dir, to);
}

static int rename_edits(struct zf_op *op, struct rename *rename)
{
	int r = rename->exchange ? exchange_entries(op, rename) : edit_entries(op, rename);

	if (r == 0)
		r = move_ref(op, &rename->source_old, &rename->source_new, rename->to.entry.cookie);
	if (r == 0 && rename->target && !rename->exchange)
		r = drop_target(op, rename);
	if (r < 0)
		return r;
	rename->source->item.ctime = op->now;
	rename->moved[0] = rename->source->ino;
	rename->moved[1] = rename->exchange ? rename->target->ino : 0;
	r = zf_op_store(op, rename->source);
	return r < 0 ? r : touch_dirs(op, rename);
}

static unsigned int count_edits(const struct rename *rename)
{
	return RENAME_EDITS + (rename->whiteout ? ZF_WHITEOUT_EDITS + rename->acls.edits : 0);
}

static int rename_once(struct zf_op *op, struct rename *rename)
{
	int r = zf_op_check_writable(op);

	if (r == 0)
		r = get_inodes(op, rename);
	if (r == 0)
		r = check_loops(op, rename);
	if (r < 0)
		return r;
	zf_op_lock(op);
	r = find_places(rename);
	if (r == 0)
		r = check(rename);
	if (r != 0 || rename->source == rename->target)
		return r;
	r = find_refs(rename);
	if (r == 0 && must_flush(op, rename))
		r = ZF_OP_WAIT_FLUSH;
	if (r == 0)
		r = check_source(rename);
	if (r == 0 && rename->whiteout)
		r = zf_acl_inherit(rename->from_dir, ZF_WHITEOUT_MODE, op->ctx->umask,
				   &rename->acls);
	if (r == 0)
		r = zf_op_join(op, ZF_RESERVE_NORMAL, count_edits(rename));
	if (r != 0)
		return r;
	if (carries_source(rename) && !ZF_PLANTED(ZF_BUG_RENAME_WITHOUT_SOURCE)) {
		zf_close_announce(rename->source);
		/*
		 * Data that was written in place changes no extent, so zf_close_announce() does not
		 * cover it.
		 */
		if (!ZF_PLANTED(ZF_BUG_SOURCE_WITHOUT_MARK))
			op->mark = rename->source->data.write_mark;
	}
	r = rename_edits(op, rename);
	return zf_op_leave(op, r, "renaming");
}

/*
 * There is no initializer, because it would also clear the places, 50 KiB, which are all filled in
 * before they are used.
 */
static void init(struct rename *rename, uint64_t from_parent, uint64_t to_parent,
		 unsigned int flags)
{
	rename->from_parent = from_parent;
	rename->to_parent = to_parent;
	rename->no_replace = flags & RENAME_NOREPLACE;
	rename->exchange = flags & RENAME_EXCHANGE;
	rename->whiteout = flags & RENAME_WHITEOUT;
	rename->moved[0] = rename->moved[1] = 0;
}

static int rename_name(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent,
		       const char *name, uint64_t new_parent, const char *new_name,
		       unsigned int flags, uint64_t ret_moved[2])
{
	struct zf_op op = ZF_OP(fs, ctx);
	struct rename rename;
	int r;

	if (flags & ~(RENAME_NOREPLACE | RENAME_WHITEOUT | RENAME_EXCHANGE) ||
	    (flags & RENAME_EXCHANGE && flags != RENAME_EXCHANGE))
		return -EINVAL;
	init(&rename, parent, new_parent, flags);
	r = flags & RENAME_WHITEOUT ? zf_make_check_owner(ctx) : 0;
	if (r == 0)
		r = zf_name_check(name, &rename.from_name);
	if (r == 0)
		r = zf_name_check(new_name, &rename.to_name);
	if (r < 0)
		return r;
	if (zf_name_is_dots(&rename.from_name) || zf_name_is_dots(&rename.to_name))
		return -EBUSY;
	do {
		r = rename_once(&op, &rename);
	} while (zf_op_again(&op, &r));
	if (ret_moved)
		memcpy(ret_moved, rename.moved, sizeof(rename.moved));
	return r;
}

int zf_fs_rename(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
		 uint64_t new_parent, const char *new_name, unsigned int flags,
		 uint64_t ret_moved[2])
{
	uint64_t began = zf_trace_began(ZF_OPERATION_RENAME, parent, 0, 0);
	int r = rename_name(fs, ctx, parent, name, new_parent, new_name, flags, ret_moved);

	return (int)zf_trace_ended(began, ZF_OPERATION_RENAME, new_parent, r);
}

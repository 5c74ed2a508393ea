/* SPDX-License-Identifier: MIT */
/*
 * Replaying an operation: the edits that it made, in one join.
 *
 * All edits are checked before the first one is made, by the checker of items
 * (fs/core/item_check.h), so a forged record cannot put an impossible item into the tree. The item
 * of a file keeps the size and the blocks that the tree has; only a RESIZE changes them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "fs/data/data.h"
#include "fs/data/drop.h"
#include "fs/core/item_check.h"
#include "fs/mount/replay_internal.h"
#include "fs/ops/file/file.h"
#include "superblock/super_format.h"

/* No filesystem lives long enough to reach inode numbers from here on. */
#define INO_MAX (ZF_SUPER_COUNTER_MAX / 2)

/* Gets the inode's item from the tree. -ENOENT. */
static int lookup_inode(struct zf_replay *replay, uint64_t ino, struct zf_disk_inode *ret_disk)
{
	struct zf_key key = ZF_KEY(ino, ZF_KEY_INODE, 0);
	size_t len;
	int r = zf_tree_lookup(replay->fs->forest, ZF_TREE_FS, &key, ret_disk, sizeof(*ret_disk),
			       &len);

	return r < 0 ? r : zf_fs_check_item(replay->fs, &key, ret_disk, len);
}

/* ---- an inode's item ---- */

/* Makes the item that transaction `generation` will store. *ret_new: the tree has no item yet. */
static int make_item(struct zf_replay *replay, const struct zf_log_edit *edit, uint64_t generation,
		     struct zf_disk_inode *ret_disk, bool *ret_new)
{
	struct zf_disk_inode old;
	uint32_t mode;
	int r;

	if (edit->len != sizeof(*ret_disk))
		return zf_replay_misfit(replay, "inode %" PRIu64 " has %zu bytes, expected %zu",
					edit->key.objectid, edit->len, sizeof(*ret_disk));
	memcpy(ret_disk, edit->value, sizeof(*ret_disk));
	zf_replay_settle_item(ret_disk, generation);
	mode = zf_le32_get(ret_disk->mode);
	r = lookup_inode(replay, edit->key.objectid, &old);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_new = r == -ENOENT;
	if (*ret_new)
		old = (struct zf_disk_inode){0};
	else if ((zf_le32_get(old.mode) & S_IFMT) != (mode & S_IFMT))
		return zf_replay_misfit(replay,
					"inode %" PRIu64 " has mode %#o, expected the type of %#o",
					edit->key.objectid, mode, zf_le32_get(old.mode));
	else
		ret_disk->generation = old.generation;
	if (S_ISREG(mode)) {
		ret_disk->size = old.size;
		ret_disk->bytes = old.bytes;
	}
	return 0;
}

static int check_inode(struct zf_replay *replay, const struct zf_log_edit *edit)
{
	struct zf_disk_inode disk;
	bool is_new;
	int r;

	if (edit->key.objectid >= INO_MAX)
		return zf_replay_misfit(replay,
					"inode has number %" PRIu64 ", expected a smaller one",
					edit->key.objectid);
	r = make_item(replay, edit, zf_txn_running(replay->fs->txn), &disk, &is_new);
	return r < 0 ? r : zf_fs_check_item(replay->fs, &edit->key, &disk, sizeof(disk));
}

static void count_new(struct zf_fs *fs, uint64_t ino)
{
	struct zf_counters *counters = zf_txn_counters(fs->txn);

	atomic_fetch_add(&counters->inode_count, 1);
	if (atomic_load(&counters->next_ino) <= ino)
		atomic_store(&counters->next_ino, ino + 1);
}

static int set_inode(struct zf_replay *replay, struct zf_trans *trans,
		     const struct zf_log_edit *edit)
{
	struct zf_disk_inode disk;
	bool is_new;
	int r = make_item(replay, edit, trans->generation, &disk, &is_new);

	if (r == 0)
		r = zf_tree_set(replay->fs->forest, trans->writer, ZF_TREE_FS, &edit->key, &disk,
				sizeof(disk));
	if (r == 0 && is_new)
		count_new(replay->fs, edit->key.objectid);
	return r;
}

/* ---- checking ---- */

/* *ret_mode: the mode that the inode will have after the body; 0: it will not exist. */
static int find_mode(struct zf_replay *replay, uint64_t ino, uint32_t *ret_mode)
{
	struct zf_disk_inode disk;
	struct zf_log_edit edit;
	size_t at = 0;
	int r;

	while (zf_log_next_edit(replay->body, &at, &edit)) {
		if (edit.kind != ZF_LOG_SET || edit.key.type != ZF_KEY_INODE ||
		    edit.key.objectid != ino || edit.len != sizeof(disk))
			continue;
		memcpy(&disk, edit.value, sizeof(disk));
		*ret_mode = zf_le32_get(disk.mode);
		return 0;
	}
	r = lookup_inode(replay, ino, &disk);
	*ret_mode = r == 0 ? zf_le32_get(disk.mode) : 0;
	return r == -ENOENT ? 0 : r;
}

/* The item of a symbolic link's target, in a buffer of its own. */
struct target {
	uint8_t value[sizeof(struct zf_disk_extent) + ZF_SYMLINK_MAX];
};

/* As with an inode's item, the generation may be that of a later transaction that was lost. */
static int settle_target(struct zf_replay *replay, const struct zf_log_edit *edit,
			 uint64_t generation, struct target *target)
{
	struct zf_disk_extent disk;

	if (edit->len < sizeof(disk) || edit->len > sizeof(target->value))
		return zf_replay_misfit(
			replay, "extent of inode %" PRIu64 " has %zu bytes, expected %zu to %zu",
			edit->key.objectid, edit->len, sizeof(disk), sizeof(target->value));
	memcpy(&disk, edit->value, sizeof(disk));
	disk.generation = zf_le64_from(zf_min_u64(zf_le64_get(disk.generation), generation));
	memcpy(target->value, edit->value, edit->len);
	memcpy(target->value, &disk, sizeof(disk));
	return 0;
}

static int set_target(struct zf_replay *replay, struct zf_trans *trans,
		      const struct zf_log_edit *edit)
{
	struct target target;
	int r = settle_target(replay, edit, trans->generation, &target);

	return r < 0 ? r
		     : zf_tree_set(replay->fs->forest, trans->writer, ZF_TREE_FS, &edit->key,
				   target.value, edit->len);
}

/* The only extents that an operation may insert are those of a symbolic link's target. */
static int check_extent(struct zf_replay *replay, const struct zf_log_edit *edit)
{
	const struct zf_disk_extent *extent = edit->value;
	struct target target;
	uint32_t mode;
	int r = settle_target(replay, edit, zf_txn_running(replay->fs->txn), &target);

	if (r == 0)
		r = zf_fs_check_item(replay->fs, &edit->key, target.value, edit->len);

	if (r == 0)
		r = find_mode(replay, edit->key.objectid, &mode);
	if (r < 0)
		return r;
	if (extent->type == ZF_EXTENT_INLINE && S_ISLNK(mode))
		return 0;
	return zf_replay_misfit(replay,
				"extent of inode %" PRIu64
				" has type %u, expected the target of a symbolic link",
				edit->key.objectid, extent->type);
}

static int check_set(struct zf_replay *replay, const struct zf_log_edit *edit)
{
	switch ((enum zf_fs_key)edit->key.type) {
	case ZF_KEY_INODE:
		return check_inode(replay, edit);
	case ZF_KEY_EXTENT:
		return check_extent(replay, edit);
	case ZF_KEY_REF:
	case ZF_KEY_XATTR:
	case ZF_KEY_XATTR_VALUE:
	case ZF_KEY_DIR_NAME:
	case ZF_KEY_DIR_COOKIE:
	case ZF_KEY_ORPHAN:
		return zf_fs_check_item(replay->fs, &edit->key, edit->value, edit->len);
	case ZF_KEY_INTENT:
	case ZF_KEY_SUMMARY:
	case ZF_KEY_SHARE:
		break;
	}
	return zf_replay_misfit(replay, "edit has key type %u, expected one of a name or attribute",
				edit->key.type);
}

/*
 * An operation never deletes inodes or extents: that is the deletion of an orphan, which is not
 * logged.
 */
static int check_delete(struct zf_replay *replay, const struct zf_log_edit *edit)
{
	bool of_inode = edit->key.objectid == ZF_INO_ROOT || edit->key.objectid >= ZF_INO_FIRST;

	switch ((enum zf_fs_key)edit->key.type) {
	case ZF_KEY_REF:
	case ZF_KEY_XATTR:
	case ZF_KEY_XATTR_VALUE:
	case ZF_KEY_DIR_NAME:
	case ZF_KEY_DIR_COOKIE:
		if (of_inode)
			return 0;
		break;
	case ZF_KEY_ORPHAN:
		if (edit->key.objectid == ZF_INO_ORPHANS)
			return 0;
		break;
	case ZF_KEY_INODE:
	case ZF_KEY_EXTENT:
	case ZF_KEY_INTENT:
	case ZF_KEY_SUMMARY:
	case ZF_KEY_SHARE:
		break;
	}
	return zf_replay_misfit(replay,
				"deletion has key (%" PRIu64 ", %u), expected that of a name or "
				"attribute",
				edit->key.objectid, edit->key.type);
}

static int check_resize(struct zf_replay *replay, const struct zf_log_edit *edit)
{
	uint64_t ino = edit->key.objectid;
	struct zf_disk_inode disk;
	int r;

	if (ino < ZF_INO_FIRST || edit->key.offset > ZF_FILE_SIZE_MAX)
		return zf_replay_misfit(replay,
					"inode %" PRIu64 " has a new size of %" PRIu64
					", expected at most %" PRIu64,
					ino, edit->key.offset, (uint64_t)ZF_FILE_SIZE_MAX);
	r = lookup_inode(replay, ino, &disk);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == -ENOENT || !S_ISREG(zf_le32_get(disk.mode)))
		return zf_replay_misfit(
			replay, "inode %" PRIu64 " has a new size, expected a file for it", ino);
	return 0;
}

static int check(struct zf_replay *replay, unsigned int *ret_edits)
{
	struct zf_log_edit edit;
	size_t at = 0;
	int r = 0;

	*ret_edits = 0;
	while (r == 0 && zf_log_next_edit(replay->body, &at, &edit)) {
		switch (edit.kind) {
		case ZF_LOG_SET:
			r = check_set(replay, &edit);
			break;
		case ZF_LOG_DELETE:
			r = check_delete(replay, &edit);
			break;
		case ZF_LOG_RESIZE:
			r = check_resize(replay, &edit);
			break;
		}
		*ret_edits += 1;
	}
	return r;
}

/* ---- a file's size ---- */

/*
 * Lands the blocks that the truncation wrote, because the replay needs all of the inode in the
 * trees.
 */
static int settle(struct zf_inode *inode)
{
	int r = zf_data_flush(inode, true);

	if (r == 0)
		r = zf_write_error_since(inode, 0);
	if (zf_inode_leave_dirty_list(inode))
		zf_inode_put(inode);
	return r;
}

int zf_replay_resize(struct zf_inode *inode, uint64_t size)
{
	const struct zf_ctx ctx = {.may_wait = true};
	int r;

	zf_rwlock_wrlock(&inode->lock);
	r = zf_file_set_size(inode, &ctx, size);
	/*
	 * zf_file_set_size() may leave extents to be dropped later. The next body edits extents, so
	 * all are dropped now.
	 */
	if (r == 0)
		r = zf_drop_finish(inode, true);
	zf_rwlock_unlock(&inode->lock);
	return r < 0 ? r : settle(inode);
}

/* Takes as many joins as needed. Doing it twice gives the same result. */
static int resize(struct zf_replay *replay)
{
	struct zf_log_edit edit;
	struct zf_inode *inode;
	size_t at = 0;
	int r;

	if (!zf_log_next_edit(replay->body, &at, &edit) || edit.kind != ZF_LOG_RESIZE)
		return 0;
	r = zf_inode_get(replay->fs, edit.key.objectid, &inode);
	if (r < 0)
		return r;
	r = zf_replay_resize(inode, edit.key.offset);
	zf_inode_put(inode);
	return r;
}

/* ---- applying ---- */

static int apply_edit(struct zf_replay *replay, struct zf_trans *trans,
		      const struct zf_log_edit *edit)
{
	struct zf_forest *forest = replay->fs->forest;
	int r;

	switch (edit->kind) {
	case ZF_LOG_SET:
		if (edit->key.type == ZF_KEY_INODE)
			return set_inode(replay, trans, edit);
		if (edit->key.type == ZF_KEY_EXTENT)
			return set_target(replay, trans, edit);
		return zf_tree_set(forest, trans->writer, ZF_TREE_FS, &edit->key, edit->value,
				   edit->len);
	case ZF_LOG_DELETE:
		r = zf_tree_delete(forest, trans->writer, ZF_TREE_FS, &edit->key);
		return r == -ENOENT ? 0 : r;
	case ZF_LOG_RESIZE:
		break;
	}
	return 0;
}

static int apply(struct zf_replay *replay, struct zf_trans *trans)
{
	struct zf_log_edit edit;
	size_t at = 0;
	int r = 0;

	while (r == 0 && zf_log_next_edit(replay->body, &at, &edit))
		r = apply_edit(replay, trans, &edit);
	if (r < 0)
		zf_trans_abort(trans, r, "replaying an operation");
	else
		zf_replay_done(replay);
	return r;
}

int zf_replay_operation(struct zf_replay *replay)
{
	struct zf_trans trans;
	unsigned int edits;
	int r = check(replay, &edits);

	if (r == 0)
		r = resize(replay);
	if (r == 0)
		r = zf_replay_join(replay, edits, &trans);
	if (r < 0)
		return r;
	r = apply(replay, &trans);
	zf_trans_leave(&trans);
	return r;
}

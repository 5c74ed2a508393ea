/* SPDX-License-Identifier: MIT */
#include "fs/ops/names/names.h"
#include "fs/ops/orphan.h"

#include <errno.h>
#include <sys/stat.h>

int zf_names_corrupt(struct zf_fs *fs, const struct zf_inode *dir, const char *what)
{
	return zf_report_corrupt(&fs->report, "entry of directory", dir->ino, "%s", what);
}

int zf_names_peek(struct zf_inode *dir, const struct zf_name *name, struct zf_dir_entry *ret_entry)
{
	struct zf_dir_place place;
	int r;

	zf_rwlock_rdlock(&dir->lock);
	r = zf_dir_find(dir, name, &place);
	zf_rwlock_unlock(&dir->lock);
	if (r < 0)
		return r;
	if (!place.exists)
		return -ENOENT;
	*ret_entry = place.entry;
	return 0;
}

int zf_names_get_child(struct zf_op *op, struct zf_inode *dir, const struct zf_name *name,
		       struct zf_inode **ret_child, uint8_t *ret_type)
{
	uint64_t stale = 0;

	for (;;) {
		struct zf_dir_entry entry;
		int r = zf_names_peek(dir, name, &entry);

		if (r < 0)
			return r;
		/*
		 * The inode may have been deleted since the peek; the same inode twice means
		 * damage.
		 */
		if (entry.ino == stale)
			return zf_names_corrupt(op->fs, dir,
						"ino names no inode, expected one that exists");
		r = zf_op_get(op, entry.ino, ret_child);
		if (r == 0 && ret_type)
			*ret_type = entry.type;
		if (r != -ESTALE)
			return r;
		stale = entry.ino;
	}
}

int zf_names_find_same(struct zf_inode *dir, const struct zf_name *name, struct zf_inode *child,
		       struct zf_dir_place *ret_place)
{
	int r = zf_dir_find(dir, name, ret_place);

	if (r < 0)
		return r;
	if (!child)
		return ret_place->exists ? ZF_OP_CHANGED : 0;
	if (!ret_place->exists || ret_place->entry.ino != child->ino)
		return ZF_OP_CHANGED;
	if (ret_place->entry.type != zf_dir_type_of(child->item.mode))
		return zf_names_corrupt(dir->fs, dir, "its type is not that of its inode");
	if (child->item.nlink == 0)
		return zf_names_corrupt(dir->fs, dir, "its inode has nlink 0, expected more");
	return 0;
}

int zf_names_find_ref(struct zf_inode *child, const struct zf_dir_place *place,
		      struct zf_ref_place *ret_ref)
{
	int r = zf_dir_ref_find(child, place->dir->ino, &place->name, ret_ref);

	if (r == 0 && !ret_ref->exists)
		return zf_names_corrupt(child->fs, place->dir,
					"its inode has no ref for the name, expected one");
	return r;
}

int zf_names_drop_link(struct zf_op *op, struct zf_inode *child)
{
	int r;

	child->item.nlink = S_ISDIR(child->item.mode) ? 0 : child->item.nlink - 1;
	child->item.ctime = op->now;
	if (child->item.nlink == 0) {
		r = zf_orphan_add(op, child);
		if (r < 0)
			return r;
		op->unlinked_ino = child->ino;
	}
	return zf_op_store(op, child);
}

int zf_names_touch_dir(struct zf_op *op, struct zf_inode *dir, int subdirs)
{
	/* Only a damaged directory has a link count that is too low. */
	if (subdirs >= 0 || dir->item.nlink > 2)
		dir->item.nlink += (uint32_t)subdirs;
	dir->item.mtime = op->now;
	dir->item.ctime = op->now;
	return zf_op_store(op, dir);
}

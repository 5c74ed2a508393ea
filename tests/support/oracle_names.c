/* SPDX-License-Identifier: MIT */
/* Operations on names, as Linux defines them. */
#include "support/oracle_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- entries ---- */

static void add_entry(struct oracle_inode *dir, const char *name, uint64_t ino)
{
	if (dir->entry_count == dir->entry_room) {
		dir->entry_room = dir->entry_room * 2 + 8;
		dir->entries = realloc(dir->entries, dir->entry_room * sizeof(*dir->entries));
		assert(dir->entries);
	}
	dir->entries[dir->entry_count++] = (struct oracle_entry){.name = name, .ino = ino};
}

static void remove_entry(struct oracle_inode *dir, const char *name)
{
	const struct oracle_entry *entry = oracle_entry(dir, name);

	dir->entries[entry - dir->entries] = dir->entries[--dir->entry_count];
}

static void set_entry(struct oracle_inode *dir, const char *name, uint64_t ino)
{
	const struct oracle_entry *entry = oracle_entry(dir, name);

	dir->entries[entry - dir->entries].ino = ino;
}

/* ---- what many operations do ---- */

static int64_t check_name(const char *name)
{
	return strlen(name) > ZF_NAME_MAX ? -ENAMETOOLONG : 0;
}

static int64_t find_dir(struct oracle *oracle, uint64_t ino, struct oracle_inode **ret_dir)
{
	*ret_dir = oracle_find(oracle, ino);
	if (!*ret_dir)
		return -ESTALE;
	return S_ISDIR((*ret_dir)->mode) ? 0 : -ENOTDIR;
}

/* Finds a directory and the inode of a name in it: NULL if the name does not exist. */
static int64_t find_child(struct oracle *oracle, uint64_t dir_ino, const char *name,
			  struct oracle_inode **ret_dir, struct oracle_inode **ret_child)
{
	const struct oracle_entry *entry;
	int64_t r = check_name(name);

	if (r == 0)
		r = find_dir(oracle, dir_ino, ret_dir);
	if (r < 0)
		return r;
	entry = oracle_entry(*ret_dir, name);
	*ret_child = entry ? oracle_find(oracle, entry->ino) : NULL;
	assert(!entry || *ret_child);
	return 0;
}

static void drop_link(struct oracle *oracle, struct oracle_inode *inode)
{
	oracle_change(oracle, inode);
	inode->nlink = S_ISDIR(inode->mode) ? 0 : inode->nlink - 1;
	oracle_drop_unused(oracle, inode);
}

/* ---- names ---- */

int64_t oracle_lookup(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *child;
	int64_t r = find_child(oracle, op->dir, op->name, &dir, &child);

	if (r < 0)
		return r;
	if (!child)
		return -ENOENT;
	child->held += op->hold;
	return 0;
}

int64_t oracle_forget(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);

	inode->held--;
	oracle_drop_unused(oracle, inode);
	return 0;
}

static void inherit(const struct oracle_inode *dir, const struct zf_op *op,
		    struct oracle_inode *inode)
{
	inode->uid = op->uid;
	inode->gid = op->gid;
	if (dir->mode & S_ISGID) {
		inode->gid = dir->gid;
		if (S_ISDIR(inode->mode))
			inode->mode |= S_ISGID;
	}
	inode->flags = dir->flags & ~(uint32_t)(ZF_INODE_IMMUTABLE | ZF_INODE_APPEND);
	if (S_ISREG(inode->mode))
		inode->flags &= ZF_INODE_FLAGS_FILE;
	else if (!S_ISDIR(inode->mode))
		inode->flags &= ZF_INODE_FLAGS_OTHER;
	inode->mode |= op->umask;
	oracle_acl_inherit(dir, op->umask, inode);
}

static int64_t check_add(const struct oracle_inode *dir)
{
	return dir->flags & ZF_INODE_IMMUTABLE ? -EPERM : 0;
}

static int64_t check_remove(const struct oracle_inode *dir, const struct oracle_inode *child)
{
	int64_t r = oracle_check_change(dir);

	return r < 0 ? r : oracle_check_change(child);
}

int64_t oracle_make(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *inode;
	int64_t r = find_child(oracle, op->dir, op->name, &dir, &inode);

	if (r < 0)
		return r;
	if (inode)
		return -EEXIST;
	if (dir->nlink == 0)
		return -ENOENT;
	if (check_add(dir) < 0)
		return -EPERM;
	/* No number is used twice: each new one must be above all others. */
	if (op->result == 0 && op->attr.ino <= oracle->highest_ino)
		return -EUCLEAN;
	inode = oracle_add_inode(oracle, op->attr.ino, op->mode);
	inherit(dir, op, inode);
	inode->rdev = op->rdev;
	inode->target = op->target;
	if (op->target)
		oracle_data_truncate(&inode->data, strlen(op->target), false);
	inode->parent = dir->ino;
	inode->held = op->hold;
	add_entry(dir, op->name, inode->ino);
	dir->nlink += S_ISDIR(op->mode);
	oracle_change_dir(oracle, dir);
	return 0;
}

/* The file gets no entry, so the directory does not change. */
int64_t oracle_tmpfile(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *inode;
	int64_t r = find_dir(oracle, op->dir, &dir);

	if (r < 0)
		return r;
	if (dir->nlink == 0)
		return -ENOENT;
	if (check_add(dir) < 0)
		return -EPERM;
	if (op->result == 0 && op->attr.ino <= oracle->highest_ino)
		return -EUCLEAN;
	inode = oracle_add_inode(oracle, op->attr.ino, op->mode);
	inherit(dir, op, inode);
	inode->nlink = 0;
	inode->held = 1;
	return 0;
}

int64_t oracle_link(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir = oracle_find(oracle, op->dir),
			    *inode = oracle_find(oracle, op->ino);
	int64_t r = check_name(op->name);

	if (r < 0)
		return r;
	if (!dir || !inode)
		return -ESTALE;
	if (S_ISDIR(inode->mode))
		return -EPERM;
	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	if (dir->nlink == 0)
		return -ENOENT;
	if (oracle_entry(dir, op->name))
		return -EEXIST;
	if (check_add(dir) < 0 || oracle_check_change(inode) < 0)
		return -EPERM;
	/* The count may have been 0: of a file that was removed, or made without a name. */
	inode->nlink++;
	oracle_change(oracle, inode);
	inode->held += op->hold;
	add_entry(dir, op->name, inode->ino);
	oracle_change_dir(oracle, dir);
	return 0;
}

int64_t oracle_unlink(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *child;
	int64_t r = find_child(oracle, op->dir, op->name, &dir, &child);

	if (r < 0)
		return r;
	if (!child)
		return -ENOENT;
	if (check_remove(dir, child) < 0)
		return -EPERM;
	if (S_ISDIR(child->mode))
		return -EISDIR;
	remove_entry(dir, op->name);
	oracle_change_dir(oracle, dir);
	drop_link(oracle, child);
	return 0;
}

int64_t oracle_rmdir(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *child;
	int64_t r = find_child(oracle, op->dir, op->name, &dir, &child);

	if (r < 0)
		return r;
	if (!child)
		return -ENOENT;
	if (check_remove(dir, child) < 0)
		return -EPERM;
	if (!S_ISDIR(child->mode))
		return -ENOTDIR;
	if (child->entry_count > 0)
		return -ENOTEMPTY;
	remove_entry(dir, op->name);
	dir->nlink--;
	oracle_change_dir(oracle, dir);
	drop_link(oracle, child);
	return 0;
}

/* Is `below` the directory `above`, or anywhere below it? A removed directory has no parent. */
static bool is_below(struct oracle *oracle, const struct oracle_inode *below,
		     const struct oracle_inode *above)
{
	while (below != above) {
		if (below->ino == ZF_INO_ROOT || below->nlink == 0)
			return false;
		below = oracle_find(oracle, below->parent);
	}
	return true;
}

/* A directory must not move below itself. */
static bool makes_loop(struct oracle *oracle, const struct zf_op *op,
		       const struct oracle_inode *dir, const struct oracle_inode *source,
		       const struct oracle_inode *dir2, const struct oracle_inode *target)
{
	if (S_ISDIR(source->mode) && is_below(oracle, dir2, source))
		return true;
	return target && S_ISDIR(target->mode) && (op->flags & RENAME_EXCHANGE) &&
	       is_below(oracle, dir, target);
}

static int64_t check_rename(struct oracle *oracle, const struct zf_op *op,
			    const struct oracle_inode *dir, const struct oracle_inode *source,
			    const struct oracle_inode *dir2, const struct oracle_inode *target)
{
	/* This comes before the check for loops: a removed directory is not below any other. */
	if (dir2->nlink == 0)
		return -ENOENT;
	if (makes_loop(oracle, op, dir, source, dir2, target))
		return -EINVAL;
	if (!target && (op->flags & RENAME_EXCHANGE))
		return -ENOENT;
	if (target && (op->flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (source == target)
		return 0;
	if (check_remove(dir, source) < 0 ||
	    (target ? check_remove(dir2, target) : check_add(dir2)) < 0)
		return -EPERM;
	if (!target || (op->flags & RENAME_EXCHANGE))
		return 0;
	if (S_ISDIR(source->mode) && !S_ISDIR(target->mode))
		return -ENOTDIR;
	if (!S_ISDIR(source->mode) && S_ISDIR(target->mode))
		return -EISDIR;
	return target->entry_count > 0 ? -ENOTEMPTY : 0;
}

/* Finds the directories first, then their children, because errors have this order. */
static int64_t find_both(struct oracle *oracle, const struct zf_op *op, struct oracle_inode **dir,
			 struct oracle_inode **source, struct oracle_inode **dir2,
			 struct oracle_inode **target)
{
	int64_t r = check_name(op->name);

	if ((op->flags & RENAME_EXCHANGE) && op->flags != RENAME_EXCHANGE)
		return -EINVAL;
	if (r == 0)
		r = check_name(op->name2);
	if (r == 0 && (!oracle_find(oracle, op->dir) || !oracle_find(oracle, op->dir2)))
		r = -ESTALE;
	if (r == 0)
		r = find_child(oracle, op->dir, op->name, dir, source);
	if (r == 0 && !*source)
		r = -ENOENT;
	return r < 0 ? r : find_child(oracle, op->dir2, op->name2, dir2, target);
}

static void move_dir(struct oracle_inode *inode, struct oracle_inode *from, struct oracle_inode *to)
{
	if (!S_ISDIR(inode->mode))
		return;
	from->nlink--;
	to->nlink++;
	inode->parent = to->ino;
}

static void exchange(const struct zf_op *op, struct oracle_inode *dir, struct oracle_inode *source,
		     struct oracle_inode *dir2, struct oracle_inode *target)
{
	set_entry(dir, op->name, target->ino);
	set_entry(dir2, op->name2, source->ino);
	move_dir(source, dir, dir2);
	move_dir(target, dir2, dir);
}

/* The old name goes, or names a whiteout. False: the whiteout's number is not new. */
static bool leave_name(struct oracle *oracle, const struct zf_op *op, struct oracle_inode *dir)
{
	struct oracle_inode *whiteout;

	if (!(op->flags & RENAME_WHITEOUT)) {
		remove_entry(dir, op->name);
		return true;
	}
	if (op->result == 0 && op->attr.ino <= oracle->highest_ino)
		return false;
	whiteout = oracle_add_inode(oracle, op->attr.ino, S_IFCHR);
	inherit(dir, op, whiteout);
	set_entry(dir, op->name, whiteout->ino);
	return true;
}

int64_t oracle_rename(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir, *dir2, *source, *target;
	int64_t r = find_both(oracle, op, &dir, &source, &dir2, &target);

	if (r == 0)
		r = check_rename(oracle, op, dir, source, dir2, target);
	if (r < 0 || source == target)
		return r;
	oracle_change(oracle, source);
	oracle_change_dir(oracle, dir);
	oracle_change_dir(oracle, dir2);
	if (op->flags & RENAME_EXCHANGE) {
		oracle_change(oracle, target);
		exchange(op, dir, source, dir2, target);
		return 0;
	}
	if (!leave_name(oracle, op, dir))
		return -EUCLEAN;
	move_dir(source, dir, dir2);
	if (!target) {
		add_entry(dir2, op->name2, source->ino);
		return 0;
	}
	set_entry(dir2, op->name2, source->ino);
	dir2->nlink -= S_ISDIR(target->mode);
	drop_link(oracle, target);
	oracle_settle(
		source); /* P2: a rename over a file is answered when its source's data are there */
	return 0;
}

int64_t oracle_readlink(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *inode = oracle_find(oracle, op->ino);

	if (!inode)
		return -ESTALE;
	if (!S_ISLNK(inode->mode))
		return -EINVAL;
	oracle_access(oracle, inode);
	return (int64_t)strlen(inode->target);
}

int64_t oracle_readdir(struct oracle *oracle, const struct zf_op *op)
{
	struct oracle_inode *dir;
	int64_t r = find_dir(oracle, op->ino, &dir);

	if (r < 0)
		return r;
	oracle_access(oracle, dir);
	return dir->nlink == 0 ? 0 : dir->entry_count + 2;
}

/* SPDX-License-Identifier: MIT */
/*
 * Directories as items: entries by hash and by cookie, and the names that an inode knows of itself.
 *
 * Every name stands three times: (dir, DIR_NAME, hash) answers lookups, (dir, DIR_COOKIE, cookie)
 * gives listings a stable order, (ino, REF, hash) leads from the inode back to its directory. The
 * functions here edit items, and the sizes and cookies of the directories; names.c changes link
 * counts and times.
 *
 * Locking. The caller has locked the inodes: shared for functions that read; exclusively, and
 * joined, for functions that edit. The *_find and *_check_room functions are called before the
 * join, so that afterwards no edit fails because of the items, unless these are damaged. (It may
 * still fail for want of memory, or because a node cannot be read.)
 */
#ifndef ZF_FS_DIR_H
#define ZF_FS_DIR_H

#include <dirent.h>

#include "fs/ops/chain.h"

/* A name as it came with a request. */
struct zf_name {
	const char *bytes;
	size_t len;
};

/*
 * -ENOENT: the name is empty; -ENAMETOOLONG; -EINVAL: it has a slash. The caller checks for dots.
 */
int zf_name_check(const char *name, struct zf_name *ret_name);
bool zf_name_is_dots(const struct zf_name *name); /* "." or ".." */

/* ---- entries ---- */

/* The DT_* of a mode. */
static inline uint8_t zf_dir_type_of(uint32_t mode)
{
	return (uint8_t)IFTODT(mode);
}

struct zf_dir_entry {
	uint64_t ino, cookie;
	uint8_t type; /* DT_* */
};

/* Where an entry stands, or would stand. */
struct zf_dir_place {
	struct zf_inode *dir;
	struct zf_name name;
	bool exists;
	struct zf_dir_entry entry; /* if it exists */
	size_t at;		   /* in the chain, if it exists */
	struct zf_chain chain;
};

/* Sets place->exists. -ENOTDIR; -EUCLEAN. */
int zf_dir_find(struct zf_inode *dir, const struct zf_name *name, struct zf_dir_place *ret_place);
/* -ENOSPC: the chain is full, or the directory's cookies are used up. The entry does not exist. */
int zf_dir_check_room(const struct zf_dir_place *place);

/*
 * Each makes two edits, and changes the directory's item in memory, which the caller then stores.
 */
int zf_dir_add(struct zf_op *op, struct zf_dir_place *place, uint64_t ino, uint8_t type);
int zf_dir_remove(struct zf_op *op, struct zf_dir_place *place);
/* Makes the name, which keeps its cookie, name another inode. Two edits. */
int zf_dir_replace(struct zf_op *op, struct zf_dir_place *place, uint64_t ino, uint8_t type);
/*
 * Gives an entry another name in the same directory. The entry keeps its cookie, so a program that
 * renames all entries that it lists comes to an end. Three edits at most. `from` exists, `to` does
 * not.
 */
int zf_dir_move(struct zf_op *op, struct zf_dir_place *from, struct zf_dir_place *to);

/* 0 if the directory has no entry, else -ENOTEMPTY. */
int zf_dir_check_empty(struct zf_inode *dir);

/* Lists the entries behind the cookie, without "." and "..". Returns how many. */
int zf_dir_list(struct zf_inode *dir, uint64_t cookie, struct zf_dirent *entries, unsigned int max);

/* ---- refs ---- */

struct zf_ref_place {
	struct zf_inode *inode;
	uint64_t parent;
	struct zf_name name;
	bool exists;
	size_t at;
	struct zf_chain chain;
};

int zf_dir_ref_find(struct zf_inode *inode, uint64_t parent, const struct zf_name *name,
		    struct zf_ref_place *ret_place);
/* For an inode that is being made, which has no refs yet. */
void zf_dir_ref_of_new(struct zf_inode *inode, uint64_t parent, const struct zf_name *name,
		       struct zf_ref_place *ret_place);
int zf_dir_ref_check_room(const struct zf_ref_place *place); /* -ENOSPC */
/* Each one edit. */
int zf_dir_ref_add(struct zf_op *op, struct zf_ref_place *place, uint64_t cookie);
int zf_dir_ref_remove(struct zf_op *op, struct zf_ref_place *place);

/* Finds the inode that ".." names. -ENOENT: the directory has been removed. */
int zf_dir_ref_parent(struct zf_inode *dir, uint64_t *ret_parent);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Directories as items: entries by hash and by cookie, and the names that an inode knows of itself.
 *
 * Every name stands three times: (dir, DIR_NAME, hash) answers lookups, (dir, DIR_COOKIE, cookie)
 * gives listings a stable order, (ino, REF, hash) leads from the inode back to its directory. The
 * functions here edit items, and the sizes and cookies of the directories; link counts and times
 * are names.c's.
 *
 * Locking. The inodes' locks: shared for what reads, exclusive (and a join) for what edits.
 * Whatever may fail for a reason of the items is found by the *_find functions, before the join.
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

/* -ENOENT if empty, -ENAMETOOLONG, -EINVAL if it has a slash. Dots are the caller's. */
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
/* -ENOSPC if the chain, or the directory's cookies, are used up. The entry does not exist. */
int zf_dir_check_room(const struct zf_dir_place *place);

/* Each two edits, and the directory's item changed in memory: the caller stores it. */
int zf_dir_add(struct zf_op *op, struct zf_dir_place *place, uint64_t ino, uint8_t type);
int zf_dir_remove(struct zf_op *op, struct zf_dir_place *place);
/* The name stays, with its cookie, and names another inode. */
int zf_dir_replace(struct zf_op *op, struct zf_dir_place *place, uint64_t ino, uint8_t type);
/*
 * Another name for the same inode in the same directory, keeping the cookie, so that a listing that
 * renames what it sees comes to an end. Three edits at most. `from` exists, `to` does not.
 */
int zf_dir_move(struct zf_op *op, struct zf_dir_place *from, struct zf_dir_place *to);

/* 0 if the directory has no entry, else -ENOTEMPTY. */
int zf_dir_check_empty(struct zf_inode *dir);

/* The entries behind the cookie, without "." and "..". Returns how many. */
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
/* Of an inode that is being made: it has none yet. */
void zf_dir_ref_of_new(struct zf_inode *inode, uint64_t parent, const struct zf_name *name,
		       struct zf_ref_place *ret_place);
int zf_dir_ref_check_room(const struct zf_ref_place *place); /* -ENOSPC */
/* Each one edit. */
int zf_dir_ref_add(struct zf_op *op, struct zf_ref_place *place, uint64_t cookie);
int zf_dir_ref_remove(struct zf_op *op, struct zf_ref_place *place);

/* What ".." names. -ENOENT if the directory has been removed. */
int zf_dir_ref_parent(struct zf_inode *dir, uint64_t *ret_parent);

#endif

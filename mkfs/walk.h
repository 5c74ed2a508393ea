/* SPDX-License-Identifier: MIT */
/*
 * The tree that --rootdir names, walked in an order that depends on nothing but its names.
 *
 * Every entry is visited once, a directory once more after what is in it (FTS_DP). Symbolic links
 * are not followed; what is mounted below the directory belongs to it. The working directory moves
 * with the walk, so that few files are open however deep the tree is: entry->fts_accpath is
 * the name to use for calls, entry->fts_path is the one for people.
 */
#ifndef ZF_MKFS_WALK_H
#define ZF_MKFS_WALK_H

#include <fts.h>

struct mkfs_tree {
	const char *dir;    /* absolute, no symbolic link */
	const char *device; /* where the filesystem is made: must not be in the tree */
};

/* -EEXIST and the like are told by mkfs_error(); so is an error of visit() by visit() itself. */
int mkfs_walk(const struct mkfs_tree *tree, int (*visit)(void *arg, FTSENT *entry), void *arg);

/* SIGINT, SIGTERM and SIGHUP end a walk, with -EINTR, instead of the program. */
void mkfs_catch_signals(void);
/* One of them has come: told. */
int mkfs_check_signals(void);

/* "PATH: WHAT: the error", and returns `error`, which is negative. */
int mkfs_entry_error(const FTSENT *entry, const char *what, int error);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The tree that --rootdir names, walked in an order that depends only on its names.
 *
 * Every entry is visited once, and a directory a second time after its content (FTS_DP). Symbolic
 * links are not followed. Filesystems that are mounted below the directory are part of the tree.
 * The working directory moves with the walk, so that few files are open however deep the tree is:
 * entry->fts_accpath is the name to use for calls, entry->fts_path is the name for people.
 */
#ifndef ZF_MKFS_WALK_H
#define ZF_MKFS_WALK_H

#include <fts.h>

struct mkfs_tree {
	const char *dir;    /* absolute, no symbolic link */
	const char *device; /* where the filesystem is made; must not be in the tree */
};

/* Walks the tree. mkfs_walk() reports its errors by mkfs_error(); visit() reports its own. */
int mkfs_walk(const struct mkfs_tree *tree, int (*visit)(void *arg, FTSENT *entry), void *arg);

/* SIGINT, SIGTERM and SIGHUP end a walk, with -EINTR, instead of the program. */
void mkfs_catch_signals(void);
/* -EINTR: one of these signals has come, which is reported. */
int mkfs_check_signals(void);

/* Reports "PATH: WHAT: the error", and returns `error`, which is negative. */
int mkfs_entry_error(const FTSENT *entry, const char *what, int error);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * One entry of the tree that is copied: its data and its extended attributes, in an order that
 * depends only on them. Errors are reported by mkfs_error(), with the path.
 */
#ifndef ZF_MKFS_SOURCE_H
#define ZF_MKFS_SOURCE_H

#include <fts.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Opens the regular file that the walk has seen. If another file has taken its name since, that is
 * an error.
 */
int mkfs_source_open(const FTSENT *entry, int *ret_fd);

/* Calls visit() for each range that holds data, in order; holes are left out. */
int mkfs_source_ranges(const FTSENT *entry, int fd,
		       int (*visit)(void *arg, int fd, uint64_t offset, uint64_t len), void *arg);

/* Checks that the file was not written since the walk saw it. */
int mkfs_source_is_unchanged(const FTSENT *entry, int fd);

/*
 * Calls visit() for each attribute that a filesystem can keep: user, trusted and security ones, and
 * the POSIX access control lists. Other attributes under "system." belong to the filesystem that
 * the tree is on.
 */
int mkfs_source_attributes(const FTSENT *entry,
			   int (*visit)(void *arg, const char *name, const void *value, size_t len),
			   void *arg);

#endif

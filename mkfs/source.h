/* SPDX-License-Identifier: MIT */
/*
 * One entry of the tree that is copied: its data and its extended attributes, in an order that
 * depends on nothing but them. Errors are told by mkfs_error(), with the path.
 */
#ifndef ZF_MKFS_SOURCE_H
#define ZF_MKFS_SOURCE_H

#include <fts.h>
#include <stddef.h>
#include <stdint.h>

/* The regular file that the walk has seen, and no other that took its name since. */
int mkfs_source_open(const FTSENT *entry, int *ret_fd);

/* Each range that holds data, in order; holes are left out. */
int mkfs_source_ranges(const FTSENT *entry, int fd,
		       int (*visit)(void *arg, int fd, uint64_t offset, uint64_t len), void *arg);

/* Nothing was written to it since the walk saw it. */
int mkfs_source_is_unchanged(const FTSENT *entry, int fd);

/*
 * Each attribute that a filesystem can keep: user, trusted and security ones, and the POSIX access
 * control lists. What else is under "system." belongs to the filesystem that the tree is on.
 */
int mkfs_source_attributes(const FTSENT *entry,
			   int (*visit)(void *arg, const char *name, const void *value, size_t len),
			   void *arg);

#endif

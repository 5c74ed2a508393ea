/* SPDX-License-Identifier: MIT */
/*
 * The summary tree: for each run of written blocks, by device address, the file that it was written
 * for and its checksums. A run is contiguous in the file and on the device. Entries do not overlap.
 */
#ifndef ZF_FS_SUMMARY_H
#define ZF_FS_SUMMARY_H

#include <stdint.h>

#include "base/le.h"

struct zf_extent_reader;
struct zf_fs;
struct zf_trans;

/* The most blocks of one entry. */
unsigned int zf_summary_blocks_max(struct zf_fs *fs);

/* `count` blocks of `ino` from `offset` on were written at `address`. One tree edit. */
int zf_summary_insert(struct zf_fs *fs, struct zf_trans *trans, uint64_t ino, uint64_t offset,
		      uint64_t address, const uint64_t *csums, unsigned int count);

/*
 * Gets the checksums of `count` blocks at `address`. The caller holds the inode's lock, which keeps
 * an extent that names these blocks in the tree. So the entries must exist. -EUCLEAN: they do not.
 */
int zf_summary_fetch(struct zf_extent_reader *reader, uint64_t address, unsigned int count,
		     uint64_t *ret_csums);

/* An entry: the file that `len` bytes at `address` were first written for. */
struct zf_summary_entry {
	uint64_t address, len;
	uint64_t ino, offset;
};
/* Calls fn for each entry with checksums that begins in [from, to), in order, as zf_tree_scan(). */
typedef int zf_summary_scan_fn(void *arg, const struct zf_summary_entry *entry,
			       const struct zf_le64 *csums);
int zf_summary_scan(struct zf_fs *fs, uint64_t from, uint64_t to, zf_summary_scan_fn *fn,
		    void *arg);

/* For the mount: the entry that covers `address`, or else the first one behind it. -ENOENT. */
int zf_summary_find(struct zf_extent_reader *reader, uint64_t address,
		    struct zf_summary_entry *ret_entry);

#endif

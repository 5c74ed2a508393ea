/* SPDX-License-Identifier: MIT */
/*
 * --rootdir: the new filesystem is filled with a copy of a directory, without mounting it.
 *
 * The tree is walked twice: first nothing is written and its needs are counted, so that most of
 * what can go wrong does so before anything is lost; then it is copied. With a fixed time, the same
 * tree gives the same bytes: one thread, one append in flight, names in order.
 *
 * Until the copy is whole the device holds no superblock: whatever ends it before, a power cut
 * too, leaves no filesystem.
 */
#ifndef ZF_MKFS_ROOTDIR_H
#define ZF_MKFS_ROOTDIR_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/mount/format.h"
#include "walk.h"

/* What a tree holds. */
struct mkfs_content {
	uint64_t files;		 /* names below the directory: files, directories and all others */
	uint64_t bytes;		 /* of regular files, holes left out */
	uint64_t block_bytes;	 /* the same in whole blocks */
	uint64_t metadata_bytes; /* about so many, of one copy */
};

/* Errors here and below are told by mkfs_error(). */
int mkfs_count_tree(const struct mkfs_tree *tree, struct mkfs_content *ret_content);

/* How many zones of this kind hold it, with what a filesystem needs besides. */
uint64_t mkfs_zones_for(const struct mkfs_content *content, const struct zf_geometry *geometry,
			const struct zf_format_plan *plan);

/* "DEVICE is too small for DIR", and which size would do. */
void mkfs_tell_size(const struct mkfs_tree *tree, const struct mkfs_content *content,
		    const struct zf_geometry *geometry, const struct zf_format_plan *plan);

/* Certainly too large for the device: refused with these words. */
int mkfs_check_room(const struct mkfs_tree *tree, const struct mkfs_content *content,
		    const struct zf_geometry *geometry, const struct zf_format_plan *plan);

struct mkfs_fill {
	const struct mkfs_tree *tree;
	int64_t latest_ns; /* of a file's times, since 1970; then it is "now", too. -1: no limit */
};

/*
 * Fills a device on which zf_fs_format() has made a filesystem. ret_copied is set on success only;
 * on failure there is no filesystem any more.
 */
int mkfs_fill(struct zf_dev *dev, const struct mkfs_fill *fill, const struct zf_report *report,
	      struct mkfs_content *ret_copied);

#endif

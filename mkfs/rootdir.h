/* SPDX-License-Identifier: MIT */
/*
 * --rootdir: the new filesystem is filled with a copy of a directory, without mounting it.
 *
 * The tree is walked twice. The first walk writes nothing and counts what the tree needs, so that
 * most errors occur before any data is lost. The second walk copies. With a fixed time, the same
 * tree gives the same bytes: one thread, one append in flight, names in order.
 *
 * Until the copy is complete the device holds no superblock. If the copy ends earlier for any
 * reason, also by a power cut, there is no filesystem.
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
	uint64_t bytes;		 /* of regular files, without holes */
	uint64_t block_bytes;	 /* the same, in whole blocks */
	uint64_t metadata_bytes; /* an estimate, for one copy */
};

/* These functions report their errors by mkfs_error(). */
int mkfs_count_tree(const struct mkfs_tree *tree, struct mkfs_content *ret_content);

/*
 * The number of zones of this geometry that hold the content and what a filesystem needs besides.
 */
uint64_t mkfs_zones_for(const struct mkfs_content *content, const struct zf_geometry *geometry,
			const struct zf_format_plan *plan);

/* Reports "DEVICE is too small for DIR", and which size would do. */
void mkfs_tell_size(const struct mkfs_tree *tree, const struct mkfs_content *content,
		    const struct zf_geometry *geometry, const struct zf_format_plan *plan);

/* Refuses content that is certainly too large for the device, by mkfs_tell_size(): -ENOSPC. */
int mkfs_check_room(const struct mkfs_tree *tree, const struct mkfs_content *content,
		    const struct zf_geometry *geometry, const struct zf_format_plan *plan);

struct mkfs_fill {
	const struct mkfs_tree *tree;
	int64_t latest_ns; /* limit for file times, since 1970, and the time "now"; -1: none */
};

/*
 * Fills a device on which zf_fs_format() has made a filesystem. *ret_copied is set on success only.
 * After a failure the device has no filesystem any more.
 */
int mkfs_fill(struct zf_dev *dev, const struct mkfs_fill *fill, const struct zf_report *report,
	      struct mkfs_content *ret_copied);

#endif

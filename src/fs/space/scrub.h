/* SPDX-License-Identifier: MIT */
/*
 * Scrub: reads what a mounted filesystem holds on its device, and verifies all of it, in small steps.
 *
 *      place 0: root tree, zone tree, fs tree, ... top level first --> data, by address --> done
 *
 * A step takes some nodes, or the data that begins in a few MiB of one zone, from the device and not
 * from a cache. Nothing is held between two steps; within one step the zones concerned are held as by
 * a reader, so they are not reset. No step keeps a commit or a writer waiting. What the filesystem
 * writes behind the place of a scrub is left to the next scrub.
 *
 * Nodes. Each copy is read and compared with what its parent says. A copy that is wrong is written
 * anew, at another place, if another copy or the node in memory is good. The step that has found
 * such copies ends with the commit that writes them, and only then tells that they are repaired.
 * Nodes that are not durable yet are left out.
 *
 * Data. Who names the bytes is found as reclaim finds it (reclaim_internal.h): by the summary tree, so
 * bytes that this tree fails to name are left to the checker (check/check.h). There is one copy of
 * data, so damage is told and nothing is repaired. Not read: what is written in place, which has no
 * checksums (fs/map/overwrite.h), the superblock ring, and records of the log, which the next commit
 * makes superfluous.
 *
 * Any thread; no lock and no join held. Several scrubs may run, each with a place of its own.
 */
#ifndef ZF_FS_SCRUB_H
#define ZF_FS_SCRUB_H

#include <stdbool.h>
#include <stdint.h>

#include "btree/tree.h"
#include "txn/health.h"

struct zf_fs;

/* Damaged bytes of one file that lie together there, or a node of a tree. */
struct zf_scrub_error {
	uint64_t address, len;
	bool is_node;
	uint64_t ino, offset; /* of data: the file's */
	enum zf_tree_id tree; /* of a node */
	bool repaired;	      /* and durably so */
};

struct zf_scrub_step {
	uint64_t data_bytes, node_bytes; /* that were read and verified, good or bad */
	uint64_t skipped; /* nodes, pieces of zones and zones that could not be looked at */
	/* Called when the step has read all; it may wait: a zone is held as by a reader, no lock. */
	void (*error)(void *arg, const struct zf_scrub_error *error);
	void *arg;
};

/*
 * Goes on from *place, and moves it. 1: there is more; 0: that was the end. -ENOMEM, or an error of
 * the device that concerns all. Damage is no error. `repair`: nodes may be written anew, which the
 * caller has made sure of: the filesystem is writable, and stays so until the step ends.
 */
int zf_scrub_step(struct zf_fs *fs, bool repair, struct zf_scrub_place *place,
		  struct zf_scrub_step *step);

#endif

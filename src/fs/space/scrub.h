/* SPDX-License-Identifier: MIT */
/*
 * Scrub: reads what a mounted filesystem holds on its device, and verifies all of it, in small
 * steps.
 *
 *      place 0: root tree, zone tree, fs tree, ... top level first --> data, by address --> done
 *
 * A step reads some nodes, or the data that begins in a few MiB of one zone, from the device and
 * not from a cache. During a step its zones count as having a reader, so they are not reset.
 * Between two steps nothing is held. No step keeps a commit or a writer waiting. Data that is
 * written to addresses that the scrub has passed is left to the next scrub.
 *
 * Nodes. Each copy is read and compared with what its parent says. A copy that is wrong is written
 * anew, at another place, if another copy or the node in memory is good. The step that has found
 * such copies ends with the commit that writes them, and only then reports them as repaired. Nodes
 * that are not durable yet are left out.
 *
 * Data. A scrub finds the extents that name the bytes as reclaim does (reclaim_internal.h): by the
 * summary tree. So bytes that the summary tree fails to name are left to the checker
 * (check/check.h). Data has one copy, so damage is reported and not repaired. A scrub does not
 * read: data that is written in place, which has no checksums (fs/map/overwrite.h); the superblock
 * ring; and records of the log, which the next commit makes superfluous.
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

/* A run of damaged bytes of one file, or a damaged node. */
struct zf_scrub_error {
	uint64_t address, len;
	bool is_node;
	uint64_t ino, offset; /* of data: its place in a file */
	enum zf_tree_id tree; /* of a node */
	bool repaired;	      /* and the repair is durable */
};

struct zf_scrub_step {
	uint64_t data_bytes, node_bytes; /* that were read and verified, good or bad */
	uint64_t skipped; /* nodes, pieces of zones and zones that could not be looked at */
	/*
	 * Called after the step has read everything. It may wait: no lock is held, and only the
	 * zone of the data is kept from being reset.
	 */
	void (*error)(void *arg, const struct zf_scrub_error *error);
	void *arg;
};

/*
 * Makes one step from *place, and moves *place on. 1: there is more; 0: the scrub has ended.
 * -ENOMEM, or an error of the whole device. Damage is no error. `repair`: damaged nodes are written
 * again. Then the caller makes sure that the filesystem is writable until the step ends.
 */
int zf_scrub_step(struct zf_fs *fs, bool repair, struct zf_scrub_place *place,
		  struct zf_scrub_step *step);

#endif

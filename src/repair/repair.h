/* SPDX-License-Identifier: MIT */
/*
 * Repair: writes all trees anew from what can be read of a damaged filesystem.
 *
 *      read     every tree as a list of its leaves, every item checked by itself (salvage/salvage.h)
 *      decide   which inodes, names, extents and attributes are kept, and what is made up for them
 *      write    new trees, from their first node on, into zones that are empty
 *      commit   one superblock record: *** the commit point ***
 *
 * There is one way for all damage. A wrong link count and a lost root are repaired by the same code:
 * nothing of the old trees is edited, so nothing in them has to be in order.
 *
 * What is derived, and from what:
 *   - inodes' link counts, sizes of directories, counts of bytes: from the names and extents kept;
 *   - a name: from any of the three items that tell it (entry by name, entry by age, reference); where
 *     they contradict each other, from those that agree;
 *   - the summary tree: from the extents, with the checksums that the old one has for them; where it
 *     has none, with checksums of the data as it is now, which is *unverified* then;
 *   - the share tree and live bytes: from the extents;
 *   - the zone tree: from the live bytes, the device's report, and the old items as far as these agree;
 *   - the counters of faults, and the place of a scrub: as the root tree has them, if it can be read;
 *   - the superblock: from the newest record, and the two before it where that one is contradicted.
 *
 * Invariants.
 *   - Nothing that the old superblock names is overwritten or reset before the new record is durable.
 *     Before that the old state stands, behind it the new one: a repair that was cut is run again.
 *   - What was read of a newer generation than the state that is repaired was left by a repair, or a
 *     commit, that was cut. It is never part of that state: where the ring does not name the state, a
 *     record that names it is written first.
 *   - The log stays as it is, for a mount to replay. If that leaves errors, it is replayed on the new
 *     trees, and these are repaired again; if a mount fails, it is given up, and a message says so.
 *
 * Every repair is tried out on an overlay first (io/overlay.h), and what it makes there is checked;
 * the device is written to only if no error is left, or fewer than before (of data that the device has
 * lost). Where the new trees take more memory than that may, it is done without.
 *
 * Memory: about 100 bytes an inode, 60 a name, 50 an extent, and the nodes that wait to be written, of
 * which there are 32 MiB at most unless it is told otherwise; for the try, the new trees, compressed, up
 * to 256 MiB.
 *
 * One thread. Nothing else may have the device open. May use all layers from src/salvage down.
 */
#ifndef ZF_REPAIR_REPAIR_H
#define ZF_REPAIR_REPAIR_H

#include "base/progress.h"
#include "base/report.h"
#include "io/dev.h"

struct zf_repair_options {
	uint64_t generation;  /* the state to repair; 0: the newest */
	uint64_t dirty_bytes; /* of nodes that wait in memory to be written; 0: 32 MiB */
	uint64_t try_bytes;   /* of memory for the try; 0: 256 MiB */
	/* Of the whole, in parts of it; it never goes back. May be NULL. */
	const struct zf_progress *progress;
};

struct zf_repair_counts {
	uint64_t generation;		 /* of the new superblock */
	uint64_t inodes, names, extents; /* kept, or made up */
	uint64_t changes;		 /* messages about what was changed or lost */
	uint64_t lost_and_found;	 /* inodes that have a name there only */
	uint64_t unverified_blocks;	 /* whose checksums were made anew */
	bool log_dropped;
};

/*
 * Repairs, whatever is wrong; a filesystem in order is written anew, too. Each thing that was changed
 * or lost is a message of level WARNING. One about an inode names its path in the new fs tree, and is
 * told when that is written: of a repair that fails before it only the reason is told.
 *
 * 0: done, and durable. Otherwise nothing that was there has changed, and the reason is reported:
 * -ENOSPC: there are too few empty zones for the new trees; -EUCLEAN: nothing can be made of it;
 * -ENODEV: no filesystem; -EPROTONOSUPPORT: a format that this version does not know; -ENOENT: no such
 * generation; -ENOMEM; -errno of the device.
 */
int zf_repair_run(struct zf_dev *dev, const struct zf_repair_options *options,
		  const struct zf_report *report, struct zf_repair_counts *ret_counts);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Repair: writes all trees anew from the readable parts of a damaged filesystem.
 *
 *      read     every tree as a list of its leaves, every item checked by itself (src/salvage)
 *      decide   which inodes, names, extents and attributes are kept, and which are made up
 *      write    new trees, from their first node on, into zones that are empty
 *      commit   one superblock record: *** the commit point ***
 *
 * All damage is repaired in this one way. A wrong link count and a lost root are repaired by the
 * same code: the old trees are not edited, so no part of them has to be in order.
 *
 * What is derived, and from what:
 *   - inodes' link counts, sizes of directories, counts of bytes: from the names and extents kept;
 *   - a name: from any of its three items (entry by name, entry by cookie, reference); if the items
 *     contradict each other, from those that agree;
 *   - the summary tree: from the extents, with the checksums of the old summary tree; for blocks
 *     that it does not cover, with checksums of the data as it is now. Such data is *unverified*;
 *   - the share tree and live bytes: from the extents;
 *   - the zone tree: from the live bytes, the device's report, and the old items that agree with
 *     these;
 *   - the counters of faults, and the place of a scrub: from the root tree, if it can be read;
 *   - the superblock: from the newest record; values of it that the device or the two records
 *     before it contradict are corrected.
 *
 * Invariants.
 *   - Nothing that the old superblock names is overwritten or reset before the new record is
 *     durable. Until then the old state is valid, afterwards the new one. A repair that was
 *     interrupted is simply run again.
 *   - Nodes that are newer than the state to repair were written by an interrupted repair or
 *     commit, and are never part of that state. If the ring does not name the state, a record that
 *     names it is written first.
 *   - The log stays as it is, for a mount to replay. If that leaves errors, the repair replays the
 *     log on the new trees, and repairs these again. If the replay fails or that leaves errors,
 *     too, the log is given up, and a message says so.
 *
 * Every repair is tried out on an overlay in memory first (io/overlay.h), and the checker judges
 * the result. The device is written to only if no error is left, or fewer than before (data that
 * the device has lost). If the new trees take more memory than the try may use, the repair is done
 * without a try.
 *
 * Memory: about 100 bytes an inode, 60 a name, 50 an extent; the nodes that wait to be written, by
 * default at most 32 MiB; for the try, the new trees, compressed, by default up to 256 MiB.
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
	uint64_t dirty_bytes; /* nodes in memory that trigger a commit; 0: 32 MiB */
	uint64_t try_bytes;   /* most memory for the try; 0: 256 MiB */
	/* Of the whole repair, in 10000ths. The number never decreases. May be NULL. */
	const struct zf_progress *progress;
};

struct zf_repair_counts {
	uint64_t generation;		 /* of the new superblock */
	uint64_t inodes, names, extents; /* kept, or made up */
	uint64_t changes;		 /* messages about what was changed or lost */
	uint64_t lost_and_found;	 /* inodes that got a name in /lost+found */
	uint64_t unverified_blocks;	 /* whose checksums were made from the data as it is */
	bool log_dropped;
};

/*
 * Repairs the filesystem, and writes it anew even if nothing is wrong. Each change or loss is a
 * message of level WARNING. A message about an inode names the inode's path in the new fs tree, so
 * it waits until that tree is written. If the repair fails before, only the reason is reported.
 *
 * 0: the repair is done and durable. On an error the old state is unchanged, unless the log was to
 * be replayed on the new trees: then the new trees are durable already. The reason is reported:
 * -ENOSPC: too few zones are empty for the new trees; -EUCLEAN: the fs tree is lost, or no repair
 * would leave fewer errors; -ENODEV: no filesystem; -EPROTONOSUPPORT: a format that this version
 * does not know; -ENOENT: no such generation; -ENOMEM; -errno of the device.
 */
int zf_repair_run(struct zf_dev *dev, const struct zf_repair_options *options,
		  const struct zf_report *report, struct zf_repair_counts *ret_counts);

#endif

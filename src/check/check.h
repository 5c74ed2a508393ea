/* SPDX-License-Identifier: MIT */
/*
 * The checker: walks everything that a superblock names and verifies what a transaction promises.
 *
 * The checker trusts nothing but the superblock record that the caller passes, and shares no state
 * with a mounted filesystem: it reads every copy of every node from the device, and recounts
 * everything. So the result is the same for a mounted and an unmounted device. For a mounted one
 * the caller prevents commits and resets meanwhile (zf_txn_pause()), because the durable state is
 * checked.
 *
 * What it verifies, in this order:
 *
 *      super.c    the superblock's geometry against the device, its counters, the ring behind it
 *      check.c    the roots of the trees
 *      walk.c     every node, every copy: fields, checksum, key order; no node has two parents
 *      inode.c    every item's fields (fs/core/item_check.h); size, bytes, extents, orphans,
 *                 intents
 *      xattr.c    attributes' long values
 *      dir.c      a directory's entries by name and by cookie agree; its link count
 *      names.c    entries and references agree; all directories hang below the root
 *      space.c    no byte is named twice unless shared; the summary covers every extent
 *      verify.c   on request: all data against its checksums
 *      zone.c     live bytes, pointers, roles
 *      log.c      the log can be read
 *      replay.c   on request: a mount with recovery, on an overlay, and the state that it makes
 *
 * Hostile input (P7). The work is bounded by the size of the device: no node is entered twice, and
 * data is read once. Memory: about 32 bytes an inode, 64 a name, 40 an extent, one bit a block of
 * metadata zones; for a recovery on an overlay, all that the recovery writes, up to a limit
 * (recovered.h).
 *
 * Each violation is one message of level ERROR. If part of a tree cannot be read, checks that need
 * the whole tree are skipped, and a warning says so.
 */
#ifndef ZF_CHECK_CHECK_H
#define ZF_CHECK_CHECK_H

#include "base/progress.h"
#include "io/dev.h"
#include "superblock/super.h"

struct zf_check_options {
	bool data; /* read all data and compare the checksums */
	/*
	 * Try a writable mount, whose changes stay in memory. Only if `super` is the newest record
	 * and the device is not mounted.
	 */
	bool replay;
	const struct zf_progress *progress; /* in bytes that were read; may be NULL */
};

struct zf_check_counts {
	uint64_t errors;
	uint64_t data_errors; /* of them: data that cannot be read or has a wrong checksum */
	uint64_t nodes, inodes, names, extents;
	uint64_t data_bytes;	 /* on the device, named by extents */
	uint64_t verified_bytes; /* of data_bytes: compared with their checksums */
};

/*
 * Checks the state that `super` names. 0: the check is complete; ret_counts->errors has the number
 * of errors found. -ENOMEM, or -errno of the device's zone report.
 */
int zf_check_run(struct zf_dev *dev, const struct zf_super *super,
		 const struct zf_check_options *options, const struct zf_report *report,
		 struct zf_check_counts *ret_counts);

#endif

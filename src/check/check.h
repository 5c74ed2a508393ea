/* SPDX-License-Identifier: MIT */
/*
 * The checker: walks everything that a superblock names and verifies what a transaction promises.
 *
 * It trusts nothing but the superblock record handed in, and shares no state with a mounted
 * filesystem: it reads nodes from the device itself, every copy of them, and recounts everything.
 * So it says the same of a device whether it is mounted or not; on a mounted one the caller keeps
 * commits and resets away meanwhile (zf_txn_pause()), because the durable state is what is checked.
 *
 * What it verifies, in this order:
 *
 *      super.c    the superblock's geometry against the device, its counters, the ring behind it
 *      check.c    the roots of the trees
 *      walk.c     every node, every copy: fields, checksum, key order; none is named twice
 *      inode.c    every item's fields (fs/core/item_check.h); size, bytes, extents, orphans, intents
 *      xattr.c    attributes' long values
 *      dir.c      a directory's entries by hash and by cookie tell the same; its link count
 *      names.c    entries and references agree; all directories hang below the root
 *      space.c    no byte is named twice unless shared; the summary covers every extent
 *      verify.c   on request: all data against its checksums
 *      zone.c     live bytes, pointers, roles
 *      log.c      the log can be read
 *      replay.c   on request: a mount, with its recovery, on an overlay, and what that makes
 *
 * Hostile input (P7). The work is bounded by the size of the device: a node that was met before is
 * not entered again, and data is read once. Memory: about 32 bytes an inode, 64 a name, 40 an
 * extent, one bit a block of metadata zones; of a recovery that is tried out, what it writes, up to a
 * limit.
 *
 * Each violation is one message of level ERROR. Where part of a tree cannot be read, what can only
 * be judged from all of it is skipped, and a warning says so.
 */
#ifndef ZF_CHECK_CHECK_H
#define ZF_CHECK_CHECK_H

#include "base/progress.h"
#include "io/dev.h"
#include "superblock/super.h"

struct zf_check_options {
	bool data; /* read all data and compare the checksums */
	/*
	 * Try a mount that may write: `super` is the newest, and nobody has the device mounted. Its
	 * changes stay in memory.
	 */
	bool replay;
	const struct zf_progress *progress; /* in bytes that were read; may be NULL */
};

struct zf_check_counts {
	uint64_t errors;
	uint64_t data_errors; /* of them: data that cannot be read, or is not what it was */
	uint64_t nodes, inodes, names, extents;
	uint64_t data_bytes;	 /* on the device, named by extents */
	uint64_t verified_bytes; /* of them, compared with their checksums */
};

/*
 * Checks the state that `super` names. Returns 0 when the check was carried out, whatever it
 * found: ret_counts->errors tells. -ENOMEM, or -errno of the device's zone report.
 */
int zf_check_run(struct zf_dev *dev, const struct zf_super *super,
		 const struct zf_check_options *options, const struct zf_report *report,
		 struct zf_check_counts *ret_counts);

#endif

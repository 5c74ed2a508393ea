/* SPDX-License-Identifier: MIT */
/*
 * Reads what can be read of a filesystem that need not mount, and writes nothing.
 *
 * A mount needs everything that its superblock names; here a node that cannot be read costs what it
 * holds, and a block of data costs itself. Each tree is used as a list of its leaves (leaves.h),
 * each item is checked by itself (fs/core/item_check.h), each block by its checksum.
 *
 * Which state. That of the newest superblock record; where newer slots of the ring are damaged,
 * that of the newest root which the metadata zones have, for its commit was complete before its
 * superblock was written; where there is no record at all, likewise, and the first node tells what
 * the superblock would. What the log has beyond the commit is not
 * in it: check/recovered.h makes a device that has it, if a mount can.
 *
 * One thread. Nothing else may write the device meanwhile.
 */
#ifndef ZF_SALVAGE_SALVAGE_H
#define ZF_SALVAGE_SALVAGE_H

#include "base/progress.h"
#include "btree/key.h"
#include "io/dev.h"
#include "superblock/super.h"
#include "txn/health.h"

struct zf_salvage;

struct zf_salvage_options {
	uint64_t generation; /* that of a commit; 0: the newest */
	/* The record that names the state, in the place of those in the ring; NULL: by the ring. */
	const struct zf_super *super;
	/* In bytes, of searching zones for nodes; may be NULL. Outlives the salvage. */
	const struct zf_progress *progress;
	const struct zf_progress *walk_progress; /* of zf_salvage_walk(), in leaves. Likewise. */
};

/*
 * `dev` outlives it. Reported: -ENODEV: neither a superblock nor a node; -ENOENT: nothing has that
 * generation; -EPROTONOSUPPORT: a format that this version does not know; -EUCLEAN: no root and no
 * leaf of the files' tree; -ENOMEM; -errno of the device.
 */
int zf_salvage_open(struct zf_dev *dev, const struct zf_salvage_options *options,
		    const struct zf_report *report, struct zf_salvage **ret_salvage);
void zf_salvage_close(struct zf_salvage *salvage); /* takes NULL */

/* The state that is read. */
struct zf_salvage_state {
	uint64_t generation;
	bool has_super; /* by its superblock record; else by a root or by leaves that were found */
	uint64_t record_generation; /* of the newest record that can be read; 0: there is none */
	bool searched; /* the metadata zones were searched: some node could not be read */
	/*
	 * Of the newest leaf of the tree of files, where that was one leaf and cannot be read: what
	 * changed in a later generation is lost. 0: the state's own.
	 */
	uint64_t files_generation;
	bool files_guessed; /* then its leaves are those that were found; deleted files may be back */
};
void zf_salvage_get_state(const struct zf_salvage *salvage, struct zf_salvage_state *ret_state);
/*
 * What tells of that state: its record; or, where that cannot be read, an older record with the
 * root that was found; or, without any record, what nodes tell (no seed, and no root if none was
 * found: then its address is 0). Valid until zf_salvage_close().
 */
const struct zf_super *zf_salvage_get_super(const struct zf_salvage *salvage);
/* Counters of faults and the newest scrub; zeroes where they cannot be read. Valid as long. */
const struct zf_health *zf_salvage_get_health(const struct zf_salvage *salvage);

/*
 * Calls fn() for each item of a tree that can be read, in ascending order of the keys. `is_sound`:
 * its values can be (fs/core/item_check.h); of the zone tree's items nothing is checked. Another
 * result than 0 ends it and is returned. *ret_lost: some item may be missing. fn() may read data and
 * look up checksums; it may walk no tree.
 */
typedef int zf_salvage_walk_fn(void *arg, const struct zf_key *key, const void *value, size_t len,
			       bool is_sound);
int zf_salvage_walk(struct zf_salvage *salvage, enum zf_tree_id tree, zf_salvage_walk_fn *fn,
		    void *arg, bool *ret_lost);

/* The first inode from number `ino` on of which any item can be read; 0: there is none. */
uint64_t zf_salvage_next_inode(struct zf_salvage *salvage, uint64_t ino);

/* Bytes of the longest value of an item: so many of an extended attribute's are in each chunk. */
uint32_t zf_salvage_value_max(const struct zf_salvage *salvage);

/*
 * Calls fn() for each item of the inode that can be read and is sound, in the order of the keys (enum
 * zf_fs_key). Another result than 0 ends it and is returned. *ret_lost: some item may be missing.
 * fn() may read data, but no other items.
 */
typedef int zf_salvage_item_fn(void *arg, const struct zf_key *key, const void *value, size_t len);
int zf_salvage_items(struct zf_salvage *salvage, uint64_t ino, zf_salvage_item_fn *fn, void *arg,
		     bool *ret_lost);

enum zf_salvage_verdict {
	ZF_SALVAGE_GOOD, /* as its checksum says, or it has none because it is written in place */
	ZF_SALVAGE_UNVERIFIED, /* read, but its checksum is lost */
	ZF_SALVAGE_UNREADABLE, /* the device fails, or its address is none */
	ZF_SALVAGE_WRONG,      /* other bytes than its checksum says */
};

/*
 * Reads `blocks` blocks of data at a device address; ret_verdicts[i] says of each what came of it.
 * `buf` is aligned as a block is.
 */
void zf_salvage_read(struct zf_salvage *salvage, uint64_t address, uint32_t blocks, void *buf,
		     enum zf_salvage_verdict *ret_verdicts);

/*
 * For a ring whose newest records are damaged: a commit after `generation` of which the root and all
 * of the files' tree can be read, or 0 if there is none. Reads all metadata zones. Nothing is
 * reported. 0, or -ENOMEM.
 */
int zf_salvage_find_newer(struct zf_dev *dev, uint64_t generation, uint64_t *ret_generation);

/* What the summary tree says of a run of blocks. */
struct zf_salvage_promise {
	uint64_t end;		     /* address behind the run */
	bool known;		     /* an entry has it */
	uint64_t ino, offset;	     /* of its first block, as that entry says */
	const struct zf_le64 *csums; /* of its blocks; NULL: written in place, without checksums */
};

/* The run that begins at `address`, and ends at `end` at the latest. Valid until the next call. */
void zf_salvage_look_up(struct zf_salvage *salvage, uint64_t address, uint64_t end,
			struct zf_salvage_promise *ret_promise);

#endif

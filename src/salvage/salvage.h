/* SPDX-License-Identifier: MIT */
/*
 * Salvage reads what is readable of a filesystem, even if the filesystem cannot be mounted. It
 * writes nothing.
 *
 * A mount fails if any node that its superblock names is missing. In a salvage an unreadable node
 * loses only what is stored in it, and an unreadable data block loses only itself. The salvage uses
 * each tree as a list of its leaves (leaves.h), and checks each item by itself
 * (fs/core/item_check.h) and each data block by its checksum.
 *
 * Which state is read:
 *   - that of the newest superblock record;
 *   - if newer slots of the ring are damaged: that of the newest root node in the metadata zones,
 *     because a commit writes all its nodes before its superblock record;
 *   - if the ring has no record at all: likewise. The filesystem's id, node size and number of
 *     copies are then those of the first valid node.
 * Log records behind the commit are not part of the state. check/recovered.h replays them into an
 * overlay device, if a mount succeeds.
 *
 * One thread. Nothing else may write to the device meanwhile.
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
	uint64_t generation; /* of the commit to read; 0: the newest */
	/* The superblock record to use instead of those in the ring; NULL: use the ring. */
	const struct zf_super *super;
	/* Of the search of zones for nodes, in bytes; may be NULL. Outlives the salvage. */
	const struct zf_progress *progress;
	/* Of zf_salvage_walk(), in leaves; may be NULL. Outlives the salvage. */
	const struct zf_progress *walk_progress;
};

/*
 * `dev` outlives the salvage. Returns 0 or an error. Reported: -ENODEV: neither a superblock nor a
 * node was found; -ENOENT: no superblock and no root has that generation; -EPROTONOSUPPORT: a format
 * that this version does not know; -EUCLEAN: no pointer to a leaf of the fs tree is left and no leaf
 * was found. Not reported: -ENOMEM, and some errors of the device (-errno).
 */
int zf_salvage_open(struct zf_dev *dev, const struct zf_salvage_options *options,
		    const struct zf_report *report, struct zf_salvage **ret_salvage);
void zf_salvage_close(struct zf_salvage *salvage); /* takes NULL */

/* The state that is read. */
struct zf_salvage_state {
	uint64_t generation;
	bool has_super; /* a superblock record names the state; else a root or leaves found do */
	uint64_t record_generation; /* of the newest record that can be read; 0: there is none */
	bool searched; /* the metadata zones were searched: some node could not be read */
	/*
	 * Set if the fs tree was a single leaf that cannot be read: the generation of the older
	 * leaf that was found instead. Changes of later generations are lost. 0: nothing is older.
	 */
	uint64_t files_generation;
	/*
	 * The leaf of such an fs tree is a guess from the nodes found; deleted files may be back.
	 */
	bool files_guessed;
};
void zf_salvage_get_state(const struct zf_salvage *salvage, struct zf_salvage_state *ret_state);
/*
 * The superblock of that state: its record; or, if that cannot be read, an older record with the
 * root that was found; or, without any record, one made from the headers of nodes. The last has no
 * hash seed, and if no root was found its root's address is 0. Valid until zf_salvage_close().
 */
const struct zf_super *zf_salvage_get_super(const struct zf_salvage *salvage);
/*
 * Counters of faults and the newest scrub; unreadable ones are 0. Valid until zf_salvage_close().
 */
const struct zf_health *zf_salvage_get_health(const struct zf_salvage *salvage);

/*
 * Calls fn() for each readable item of a tree, in ascending order of the keys. `is_sound`: the item
 * passes fs/core/item_check.h; items of the zone tree are not checked. If fn() returns another
 * value than 0, the walk ends and returns it. *ret_lost: some item may be missing. fn() may read
 * data and look up checksums, but must not walk a tree.
 */
typedef int zf_salvage_walk_fn(void *arg, const struct zf_key *key, const void *value, size_t len,
			       bool is_sound);
int zf_salvage_walk(struct zf_salvage *salvage, enum zf_tree_id tree, zf_salvage_walk_fn *fn,
		    void *arg, bool *ret_lost);

/* The lowest inode number >= `ino` of which some item can be read; 0: there is none. */
uint64_t zf_salvage_next_inode(struct zf_salvage *salvage, uint64_t ino);

/* The most bytes in an item's value. A chunk of an extended attribute has that many. */
uint32_t zf_salvage_value_max(const struct zf_salvage *salvage);

/*
 * Calls fn() for each readable and sound item of the inode, in the order of the keys (enum
 * zf_fs_key). If fn() returns another value than 0, zf_salvage_items() ends and returns it.
 * *ret_lost: some item may be missing. fn() may read data, but no other items.
 */
typedef int zf_salvage_item_fn(void *arg, const struct zf_key *key, const void *value, size_t len);
int zf_salvage_items(struct zf_salvage *salvage, uint64_t ino, zf_salvage_item_fn *fn, void *arg,
		     bool *ret_lost);

enum zf_salvage_verdict {
	ZF_SALVAGE_GOOD, /* matches its checksum, or is written in place and has no checksum */
	ZF_SALVAGE_UNVERIFIED, /* read, but its checksum is lost */
	ZF_SALVAGE_UNREADABLE, /* the device fails, or has no such address */
	ZF_SALVAGE_WRONG,      /* does not match its checksum */
};

/*
 * Reads `blocks` blocks of data at a device address; ret_verdicts[i] is the result for block i.
 * `buf` is aligned to a block.
 */
void zf_salvage_read(struct zf_salvage *salvage, uint64_t address, uint32_t blocks, void *buf,
		     enum zf_salvage_verdict *ret_verdicts);

/*
 * For a ring whose newest records are damaged: finds a commit newer than `generation` whose root
 * and whole fs tree can be read. *ret_generation is 0 if there is none. Reads all metadata zones
 * and reports nothing. 0, or -ENOMEM.
 */
int zf_salvage_find_newer(struct zf_dev *dev, uint64_t generation, uint64_t *ret_generation);

/* The summary tree's entry for a run of blocks. */
struct zf_salvage_promise {
	uint64_t end;		     /* address behind the run */
	bool known;		     /* an entry covers the run; else only `end` is set */
	uint64_t ino, offset;	     /* of the run's first block, according to the entry */
	const struct zf_le64 *csums; /* of the blocks; NULL: written in place, without checksums */
};

/* The run from `address` on, cut off at `end`. Valid until the next call. */
void zf_salvage_look_up(struct zf_salvage *salvage, uint64_t address, uint64_t end,
			struct zf_salvage_promise *ret_promise);

#endif

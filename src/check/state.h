/* SPDX-License-Identifier: MIT */
/* What the files of src/check/ share: the tables that one run fills and compares. */
#ifndef ZF_CHECK_STATE_H
#define ZF_CHECK_STATE_H

#include <inttypes.h>

#include "alloc/zone_format.h"
#include "base/bits.h"
#include "btree/node.h"
#include "check/check.h"
#include "base/vector.h"
#include "fs/core/fs_format.h"
#include "fs/core/item_check.h"

/* No counter exceeds this by counting: higher values are damaged. */
#define ZF_CHECK_COUNTER_MAX (ZF_SUPER_COUNTER_MAX / 2)

/* A zone, by the device, the zone tree and the recount. */
struct zf_check_zone {
	bool has_item;
	uint8_t role;	  /* this to reset_count: the item's; NONE and 0 without an item */
	uint64_t pointer; /* bytes from the zone's start */
	uint64_t live;
	uint64_t reset_count;

	uint64_t wp, capacity; /* of the device; bytes from the zone's start */
	uint64_t device_resets;
	bool conventional;
	bool offline; /* cannot be read */
	bool lost;    /* the device's entry is damaged: there is nothing to compare with */
	bool guessed; /* the device's entry was damaged, and its report of the zone is a guess */

	uint64_t node_bytes, system_bytes; /* recounted */
	uint64_t data_bytes;
	uint64_t node_end, data_end; /* behind the last live byte; from the zone's start */
	uint8_t *node_map;	     /* one bit for each block with a node; NULL: no node was met */
};

struct zf_check_inode {
	uint64_t ino;
	uint64_t parent; /* the last reference's directory; 0: no reference was found */
	uint32_t mode, nlink;
	uint32_t walk; /* see names.c */
};

/* A name in a reference or a directory entry. */
struct zf_check_name {
	uint64_t ino, parent, cookie;
	uint32_t name_hash;
	uint8_t type; /* DT_* of an entry; 0 for references */
};

/* Bytes of the device that an extent names. */
struct zf_check_claim {
	uint64_t address, ino, offset;
	uint32_t blocks, covered; /* `covered` blocks from the start on are in the summary */
	uint8_t flags;
};

struct zf_check_intent {
	uint64_t ino, from, to;
};

struct zf_check {
	struct zf_dev *dev;
	const struct zf_geometry *geometry;
	const struct zf_super *super;
	const struct zf_check_options *options;
	const struct zf_report *outer;
	struct zf_report report; /* counts errors and hands on to `outer` */
	struct zf_check_counts counts;
	struct zf_node_shape shape;

	struct zf_check_zone *zones;
	bool counts_resets; /* the device counts resets: some zone's count is not 0 */
	struct {
		struct zf_node_ptr ptr;
		uint8_t level;
		bool named; /* the root tree has an item of this tree */
		bool found; /* the item is sound */
		bool lost;  /* part of the tree could not be read */
	} trees[ZF_TREE_COUNT];
	uint64_t bytes_total; /* to be read, according to the zone items */
	uint64_t gaps;	      /* nodes and items that could not be used, so far */

	uint64_t kept_bytes;		/* of the ZERO extents seen */
	uint64_t guaranteed_bytes;	/* of the GUARANTEED extents seen */
	uint64_t kept_guaranteed_bytes; /* of the extents seen that are both */

	struct zf_vector inodes;  /* struct zf_check_inode, by ino */
	struct zf_vector refs;	  /* struct zf_check_name, by ino; sorted further in names.c */
	struct zf_vector entries; /* struct zf_check_name */
	struct zf_vector orphans; /* uint64_t, ascending */
	struct zf_vector intents; /* struct zf_check_intent */
	struct zf_vector claims;  /* struct zf_check_claim */

	struct zf_check_data {
		uint8_t *buf;
		uint64_t start, end; /* `buf` has the data of these addresses */
	} data;			     /* verify.c */
};

/*
 * "corrupt <what> at <address>: <field> has <value>, expected <range>", counted. For an inode or a
 * zone, `address` is its number.
 */
#define zf_check_corrupt(check, what, address, ...)                                                \
	((void)zf_report_corrupt(&(check)->report, what, address, __VA_ARGS__))

/* ---- walk.c ---- */

/* Called for each item of a tree, in key order. Negative results end the walk and the check. */
typedef int zf_check_item_fn(struct zf_check *check, void *arg, const struct zf_key *key,
			     const void *value, size_t len);
int zf_check_walk_tree(struct zf_check *check, enum zf_tree_id tree, zf_check_item_fn *fn,
		       void *arg);

/* ---- the parts, in the order in which zf_check_run() calls them ---- */

/*
 * super.c: the superblock record. 1: it describes another device, so nothing more can be checked.
 */
int zf_check_super(struct zf_check *check);
int zf_check_ring(struct zf_check *check);	 /* super.c: the slots behind the record */
int zf_check_load_zones(struct zf_check *check); /* zone.c: the device's report */
int zf_check_zone_tree(struct zf_check *check);	 /* zone.c */
int zf_check_inodes(struct zf_check *check);	 /* inode.c: the fs tree */
int zf_check_names(struct zf_check *check);	 /* names.c */
int zf_check_space(struct zf_check *check);	 /* space.c: extents, summary and share tree */
int zf_check_log(struct zf_check *check);	 /* log.c */
void zf_check_zones(struct zf_check *check);	 /* zone.c: recount against items and device */
int zf_check_replay(struct zf_check *check);	 /* replay.c: the state after a mount's recovery */

/* ---- helpers of the parts ---- */

/* check.c: what zf_item_check() must know. */
struct zf_item_check zf_check_item_limits(struct zf_check *check);

/* check.c: reports the progress; called after each node and each piece of data. */
void zf_check_progress(const struct zf_check *check);

/* inode.c */
struct zf_check_inode *zf_check_find_inode(struct zf_check *check, uint64_t ino);

/* zone.c: 0, or 1 if [address, address + len) is not block-aligned within the capacity of one zone.
 */
int zf_check_place(struct zf_check *check, uint64_t address, uint64_t len);

/* verify.c: compares data with its checksums. */
int zf_check_verify(struct zf_check *check, const struct zf_check_claim *claim, uint64_t address,
		    uint64_t len, const struct zf_le64 *csums);

/* xattr.c: the attribute values of one inode that are stored in chunks. */
struct zf_check_xattr_value {
	uint32_t id;
	uint32_t len;	 /* in the attribute's entry */
	uint32_t chunks; /* seen so far */
	uint64_t seen;	 /* bytes in these chunks */
};

struct zf_check_xattrs {
	uint64_t ino;
	struct zf_vector values; /* struct zf_check_xattr_value */
	bool sorted;		 /* all entries were seen */
};
int zf_check_xattr_entry(struct zf_check *check, struct zf_check_xattrs *xattrs, uint32_t value_id,
			 uint32_t value_len);
void zf_check_xattr_chunk(struct zf_check *check, struct zf_check_xattrs *xattrs, uint64_t offset,
			  size_t len);
void zf_check_xattr_end(struct zf_check *check, struct zf_check_xattrs *xattrs);

#endif

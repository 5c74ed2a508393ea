/* SPDX-License-Identifier: MIT */
/* What the files of src/repair share: the tables of one repair, in the order in which they are made. */
#ifndef ZF_REPAIR_STATE_H
#define ZF_REPAIR_STATE_H

#include <inttypes.h>

#include "alloc/zone_format.h"
#include "base/bits.h"
#include "base/vector.h"
#include "btree/tree.h"
#include "fs/core/inode.h"
#include "fs/core/item.h"
#include "fs/core/item_check.h"
#include "repair/progress.h"
#include "repair/repair.h"
#include "salvage/salvage.h"
#include "superblock/ring.h"

/* Numbers of inodes, intents and generations end here: nobody has come there by counting. */
#define ZF_REPAIR_NUMBER_MAX (ZF_SUPER_COUNTER_MAX / 2)
/* Cookies likewise; what checks them allows twice as much. */
#define ZF_REPAIR_COOKIE_MAX ((uint64_t)INT64_MAX / 4)

/* A zone: what the device and its old item tell, and what is live in it. */
struct zf_repair_zone {
	uint64_t pointer, capacity; /* the device's; bytes from the zone's start */
	uint64_t resets;	    /* the device's */
	bool conventional, lost;
	bool unwritable; /* read-only or offline */
	bool held;	 /* a record of the log names bytes in it (left.c) */
	bool has_item;
	struct zf_disk_zone item;
	uint64_t live, data_end; /* of extents that are kept; bytes, from the zone's start */
	int64_t in_place_votes;	 /* extents that are OVERWRITE, less those that are not */
	bool in_place;		 /* what is decided of them */
};

struct zf_repair_name;

struct zf_repair_inode {
	uint64_t ino;
	uint64_t generation;	     /* of its item */
	uint64_t next_cookie;	     /* as its item says; then of the next new entry */
	uint64_t inline_bytes;	     /* of its INLINE extents */
	bool inline_has_zero;	     /* likewise */
	uint64_t bytes, data_end;    /* of its other extents that are kept */
	uint64_t entry_bytes;	     /* a directory's size */
	struct zf_repair_name *name; /* a directory's, or NULL */
	uint32_t mode;		     /* as its item says; then with the type that is decided */
	uint32_t nlink;		     /* likewise; then by its names */
	uint32_t names, subdirs, entries;
	uint32_t walk; /* see names.c */
	bool has_item, has_entries, has_extents;
	bool named_as_parent; /* by a reference */
	bool is_orphan;	      /* an orphan's item says so; then: it stays one */
	bool kept;
};

/* Who tells of a name. */
enum {
	ZF_REPAIR_BY_REF = 1,
	ZF_REPAIR_BY_NAME = 2,
	ZF_REPAIR_BY_AGE = 4,
};

struct zf_repair_name {
	uint64_t dir, hash, ino, cookie; /* these four tell one from another; hash: of the name */
	uint64_t new_cookie;
	uint16_t len;
	uint8_t sources;
	uint8_t type_by_name, type_by_age; /* DT_*; 0: not told */
	bool kept;
	bool seen; /* its text has passed by: it is written, or told to be dropped */
};

/* Bytes of the device that an extent names. */
struct zf_repair_claim {
	uint64_t address, ino, offset;
	uint32_t blocks;
	uint8_t flags; /* enum zf_extent_flag; SHARED is added where others name the same bytes */
	bool dropped;
};

/* A name that nobody tells. */
struct zf_repair_made_name {
	uint64_t dir, ino, cookie;
	char text[40];
};

struct zf_repair_xattr {
	uint64_t ino;
	uint32_t id; /* of a value that is not whole, or that nobody names */
};

struct zf_repair {
	struct zf_dev *dev;
	const struct zf_report *report;
	const struct zf_repair_options *options;
	struct zf_repair_counts counts;
	bool keep_log;
	bool is_try; /* nobody hears what is told */
	struct zf_repair_meter *meter;

	/* tell.c */
	bool has_new_names;	  /* the new fs tree is whole */
	struct zf_vector waiting; /* what is told then */
	size_t waiting_bytes;

	/* super.c */
	struct zf_ring *ring;  /* NULL: no slot holds anything like a record */
	struct zf_super super; /* in the end: what the new record begins with */
	struct zf_super state; /* as the state was found */
	bool must_pin;	       /* the ring does not name the state that is repaired */
	struct zf_salvage *salvage;

	/* gather.c */
	struct zf_vector zones;	     /* struct zf_repair_zone, by number */
	bool counts_resets;	     /* the device does */
	struct zf_vector inodes;     /* struct zf_repair_inode, by ino */
	struct zf_vector names;	     /* struct zf_repair_name */
	size_t names_merged;	     /* of them: sorted, each once (names.c) */
	struct zf_vector claims;     /* struct zf_repair_claim, by inode and offset */
	struct zf_vector xattrs;     /* struct zf_repair_xattr, by inode and id */
	struct zf_vector orphans;    /* uint64_t */
	struct zf_vector intents;    /* struct zf_disk_intent */
	struct zf_vector by_address; /* struct zf_repair_claim *, that are not dropped (space.c) */
	struct zf_vector made_names; /* struct zf_repair_made_name (found.c) */

	/* write.c */
	struct zf_alloc *alloc;
	struct zf_forest *forest;
	struct zf_txn *txn;
	struct zf_writer writer; /* of the fs, summary and share trees */
	uint64_t kept_blocks, guaranteed_blocks, kept_guaranteed_blocks;
};

/* tell.c: something was changed or lost: one line, counted. */
void zf_repair_tell(struct zf_repair *repair, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same of an inode, by its number and path: what is said of it follows these. */
void zf_repair_tell_of(struct zf_repair *repair, uint64_t ino, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void zf_repair_tell_init(struct zf_repair *repair);
/* The new fs tree is whole: tells what waits for paths. */
void zf_repair_tell_waiting(struct zf_repair *repair);
void zf_repair_forget_waiting(struct zf_repair *repair);

/* super.c: the record to begin with, and the state that is read by it. As zf_repair_run(). */
int zf_repair_open(struct zf_repair *repair);
/* newest.c: the newest record, corrected. 1; 0: a newer slot is damaged, or there is none. */
int zf_repair_newest(struct zf_repair *repair, struct zf_super *ret_super);
/* super.c: writes a record that names that state, if the ring does not. */
int zf_repair_pin(struct zf_repair *repair);

/* gather.c: one pass over the fs tree and the zone tree fills the tables. */
int zf_repair_gather(struct zf_repair *repair);
struct zf_repair_inode *zf_repair_find_inode(struct zf_repair *repair, uint64_t ino);

/*
 * extents.c: which extents of one file can stand beside each other. Zeroed before the first file; both
 * passes show it all extents, so that they decide the same.
 */
struct zf_repair_extents {
	uint64_t kept; /* bytes, of all ZERO extents so far */
	uint64_t end, inline_bytes;
	bool inline_has_zero; /* a symbolic link's target has none */
};
void zf_repair_extents_begin(struct zf_repair_extents *extents); /* the next file */
/* `bytes`: what follows the struct in the item. */
bool zf_repair_extent_fits(const struct zf_repair *repair, struct zf_repair_extents *extents,
			   uint64_t offset, const struct zf_disk_extent *disk, const void *bytes);

/* names.c: what an item tells; pointers to others may become void. */
int zf_repair_add_name(struct zf_repair *repair, const struct zf_repair_name *name);
/* names.c: which inodes and names are kept. */
int zf_repair_decide_names(struct zf_repair *repair);
/* found.c: who has none stays an orphan, or gets one in lost+found; then the names are counted. */
int zf_repair_decide_lost(struct zf_repair *repair);
/* names.c: an inode that has no item, of a type that is known. The tables are sorted. */
int zf_repair_make_inode(struct zf_repair *repair, uint64_t ino, uint32_t mode);
/* The name that these four tell, or NULL. */
struct zf_repair_name *zf_repair_find_name(struct zf_repair *repair, uint64_t dir, uint64_t hash,
					   uint64_t ino, uint64_t cookie);

/* space.c: which claims are kept; what that makes of files and zones. */
int zf_repair_decide_space(struct zf_repair *repair);
/* summary.c: writes the summary and share trees. */
int zf_repair_write_space(struct zf_repair *repair);

/* zones.c: the item of a zone as the new state begins with it. */
void zf_repair_zone_item(const struct zf_repair *repair, uint32_t zone_no,
			 struct zf_disk_zone *ret_item);
/* zones.c: how far zones are written of which nothing tells that. After zf_repair_gather(). */
int zf_repair_find_nodes(struct zf_repair *repair);
/* super.c: that of the nodes. */
void zf_repair_shape(const struct zf_repair *repair, struct zf_node_shape *ret_shape);
/* zones.c: may the log's zones stay what they are? Corrects what the superblock says of them. */
void zf_repair_decide_log(struct zf_repair *repair);

/* left.c: resets the zones that a repair before this one was writing when it was cut. */
int zf_repair_reset_left(struct zf_repair *repair);

/* files.c: writes the fs tree. */
int zf_repair_write_files(struct zf_repair *repair);

/* entries.c: writes the names that an item of references, or of entries, tells, if they are kept. */
int zf_repair_take_refs(struct zf_repair *repair, uint64_t ino, const char *value, size_t len);
int zf_repair_take_entries(struct zf_repair *repair, uint64_t dir, const char *value, size_t len);
/* entries.c: and those that no item tells. */
int zf_repair_write_made_names(struct zf_repair *repair);

/* write.c */
int zf_repair_begin(struct zf_repair *repair);
int zf_repair_put(struct zf_repair *repair, enum zf_tree_id tree, const struct zf_key *key,
		  const void *value, size_t len);
/* The same of an entry of a chain: what stands under the key already stays before it. */
int zf_repair_put_entry(struct zf_repair *repair, enum zf_tree_id tree, const struct zf_key *key,
			const void *entry, size_t len);
int zf_repair_finish(struct zf_repair *repair); /* *** the commit point *** */
void zf_repair_end(struct zf_repair *repair);

#endif

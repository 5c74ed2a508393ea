/* SPDX-License-Identifier: MIT */
/* What the files of src/repair share: the tables of one repair, in the order of their making. */
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

/* No inode number, intent or generation reaches this by counting: higher numbers are damaged. */
#define ZF_REPAIR_NUMBER_MAX (ZF_SUPER_COUNTER_MAX / 2)
/* The same for cookies. The checker allows twice as much. */
#define ZF_REPAIR_COOKIE_MAX ((uint64_t)INT64_MAX / 4)

/* A zone: the device's report, the old item, and the live bytes. */
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
	bool in_place;		 /* decided: all extents in the zone are OVERWRITE, or none is */
};

struct zf_repair_name;

struct zf_repair_inode {
	uint64_t ino;
	uint64_t generation;	     /* of its item */
	uint64_t next_cookie;	     /* its item's; then that of the next new entry */
	uint64_t inline_bytes;	     /* of its INLINE extents */
	bool inline_has_zero;	     /* some INLINE extent has a zero byte */
	uint64_t bytes, data_end;    /* of its other extents that are kept */
	uint64_t entry_bytes;	     /* a directory's size */
	struct zf_repair_name *name; /* a directory's only name, or NULL */
	uint32_t mode;		     /* at first that of its item; then with the type decided */
	uint32_t nlink;		     /* at first that of its item; then counted from its names */
	uint32_t names, subdirs, entries;
	uint32_t walk; /* see names.c */
	bool has_item, has_entries, has_extents;
	bool named_as_parent; /* a reference of another inode names it as the directory */
	bool is_orphan;	      /* it stays an orphan, which a mount deletes */
	bool kept;
};

/* The items that contain a name. */
enum {
	ZF_REPAIR_BY_REF = 1,
	ZF_REPAIR_BY_NAME = 2,
	ZF_REPAIR_BY_COOKIE = 4,
};

struct zf_repair_name {
	uint64_t dir, hash, ino, cookie; /* these four identify it; hash: zf_hash64() of the name */
	uint64_t new_cookie;
	uint16_t len;
	uint8_t sources;
	uint8_t type_by_name, type_by_cookie; /* DT_* in these entries; 0: there is none */
	bool kept;
	bool seen; /* the second pass has met its text, and has written it or reported its loss */
};

/* Bytes of the device that an extent names. */
struct zf_repair_claim {
	uint64_t address, ino, offset;
	uint32_t blocks;
	uint8_t flags; /* enum zf_extent_flag; the repair adds SHARED if others name these bytes */
	bool dropped;
};

/* A name that the repair invents, for an entry in /lost+found or for that folder. */
struct zf_repair_made_name {
	uint64_t dir, ino, cookie;
	char text[40];
};

struct zf_repair_xattr {
	uint64_t ino;
	uint32_t id; /* of a value that is incomplete, or that no attribute names */
};

struct zf_repair {
	struct zf_dev *dev;
	const struct zf_report *report;
	const struct zf_repair_options *options;
	struct zf_repair_counts counts;
	bool keep_log;
	bool is_try; /* changes are counted, and not reported */
	struct zf_repair_meter *meter;

	/* tell.c */
	bool has_new_names;	  /* the new fs tree is whole */
	struct zf_vector waiting; /* messages that wait for has_new_names */
	size_t waiting_bytes;

	/* super.c */
	struct zf_ring *ring;  /* NULL: no slot holds anything like a record */
	struct zf_super super; /* corrected step by step; the new record is made from it */
	struct zf_super state; /* the superblock of the old state, as the salvage gave it */
	bool must_pin;	       /* the ring does not name the state that is repaired */
	struct zf_salvage *salvage;

	/* gather.c */
	struct zf_vector zones;	     /* struct zf_repair_zone, by number */
	bool counts_resets;	     /* the device counts resets */
	struct zf_vector inodes;     /* struct zf_repair_inode, by ino */
	struct zf_vector names;	     /* struct zf_repair_name */
	size_t names_merged;	     /* count of `names` after the last merge (names.c) */
	struct zf_vector claims;     /* struct zf_repair_claim, by inode and offset */
	struct zf_vector xattrs;     /* struct zf_repair_xattr, by inode and id */
	struct zf_vector orphans;    /* uint64_t */
	struct zf_vector intents;    /* struct zf_disk_intent */
	struct zf_vector by_address; /* struct zf_repair_claim *: those not dropped (space.c) */
	struct zf_vector made_names; /* struct zf_repair_made_name (found.c) */

	/* write.c */
	struct zf_alloc *alloc;
	struct zf_forest *forest;
	struct zf_txn *txn;
	struct zf_writer writer; /* of the fs, summary and share trees */
	uint64_t kept_blocks, guaranteed_blocks, kept_guaranteed_blocks;
};

/* tell.c: reports that something was changed or lost: one line, counted in counts.changes. */
void zf_repair_tell(struct zf_repair *repair, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for an inode. The message begins with the inode's number and path. */
void zf_repair_tell_of(struct zf_repair *repair, uint64_t ino, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void zf_repair_tell_init(struct zf_repair *repair);
/* The new fs tree is whole: reports the messages that waited for paths. */
void zf_repair_tell_waiting(struct zf_repair *repair);
void zf_repair_forget_waiting(struct zf_repair *repair);

/* super.c: chooses the superblock record, and opens the state that it names. Errors: repair.h. */
int zf_repair_open(struct zf_repair *repair);
/* newest.c: the newest record, corrected. 1; 0: a newer slot is damaged, or there is no record. */
int zf_repair_newest(struct zf_repair *repair, struct zf_super *ret_super);
/* super.c: writes a record that names the old state, if the ring has none that does. */
int zf_repair_pin(struct zf_repair *repair);

/* gather.c: one pass over the fs tree and the zone tree fills the tables. */
int zf_repair_gather(struct zf_repair *repair);
struct zf_repair_inode *zf_repair_find_inode(struct zf_repair *repair, uint64_t ino);

/*
 * extents.c: decides which extents of a file fit beside each other. Zeroed before the first file.
 * Both passes call it for all extents in the same order, so both decide the same.
 */
struct zf_repair_extents {
	uint64_t kept; /* bytes, of all ZERO extents so far */
	uint64_t end, inline_bytes;
	bool inline_has_zero; /* an INLINE extent has a zero byte: no link's target has */
};
void zf_repair_extents_begin(struct zf_repair_extents *extents); /* the next file */
/* `bytes`: the item's bytes behind *disk. */
bool zf_repair_extent_fits(const struct zf_repair *repair, struct zf_repair_extents *extents,
			   uint64_t offset, const struct zf_disk_extent *disk, const void *bytes);

/* names.c: adds what one item says of a name. Invalidates pointers into repair->names. */
int zf_repair_add_name(struct zf_repair *repair, const struct zf_repair_name *name);
/* names.c: which inodes and names are kept. */
int zf_repair_decide_names(struct zf_repair *repair);
/*
 * found.c: an inode without a name stays an orphan, or gets a name in /lost+found. Then counts the
 * names.
 */
int zf_repair_decide_lost(struct zf_repair *repair);
/* names.c: adds an inode that has no item. repair->inodes stays sorted, but may move. */
int zf_repair_make_inode(struct zf_repair *repair, uint64_t ino, uint32_t mode);
/* The name that these four identify, or NULL. repair->names is sorted. */
struct zf_repair_name *zf_repair_find_name(struct zf_repair *repair, uint64_t dir, uint64_t hash,
					   uint64_t ino, uint64_t cookie);

/* space.c: decides which claims are kept, and adds them up for files and zones. */
int zf_repair_decide_space(struct zf_repair *repair);
/* summary.c: writes the summary and share trees. */
int zf_repair_write_space(struct zf_repair *repair);

/* zones.c: the zone's item in the new zone tree, before the repair writes to the zone. */
void zf_repair_zone_item(const struct zf_repair *repair, uint32_t zone_no,
			 struct zf_disk_zone *ret_item);
/*
 * zones.c: zones of unknown write pointer that have nodes count as full. After zf_repair_gather().
 */
int zf_repair_find_nodes(struct zf_repair *repair);
/* super.c: the shape of the nodes, old and new. */
void zf_repair_shape(const struct zf_repair *repair, struct zf_node_shape *ret_shape);
/*
 * zones.c: decides whether the log's zones stay or the log is given up. Corrects their fields in
 * repair->super.
 */
void zf_repair_decide_log(struct zf_repair *repair);

/* left.c: resets the zones that an interrupted earlier repair or commit has written. */
int zf_repair_reset_left(struct zf_repair *repair);

/* files.c: writes the fs tree. */
int zf_repair_write_files(struct zf_repair *repair);

/* entries.c: writes the kept names of an item of references, or of an item of entries. */
int zf_repair_take_refs(struct zf_repair *repair, uint64_t ino, const char *value, size_t len);
int zf_repair_take_entries(struct zf_repair *repair, uint64_t dir, const char *value, size_t len);
/* entries.c: writes repair->made_names. */
int zf_repair_write_made_names(struct zf_repair *repair);

/* write.c */
int zf_repair_begin(struct zf_repair *repair);
int zf_repair_put(struct zf_repair *repair, enum zf_tree_id tree, const struct zf_key *key,
		  const void *value, size_t len);
/* The same for an entry of a chain: it is appended to the entries that the key already has. */
int zf_repair_put_entry(struct zf_repair *repair, enum zf_tree_id tree, const struct zf_key *key,
			const void *entry, size_t len);
int zf_repair_finish(struct zf_repair *repair); /* *** the commit point *** */
void zf_repair_end(struct zf_repair *repair);

#endif

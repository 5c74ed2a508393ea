/* SPDX-License-Identifier: MIT */
/*
 * What the files of `zfusectl restore` share.
 *
 *      restore.c        the command: opens, counts, reports
 *      restore_tree.c   which inode goes where: by directories first, then by the inodes' own names
 *      restore_inode.c  one inode: makes it, with its content
 *      restore_attr.c   owner, mode, extended attributes, times
 *
 * Damage of the source is listed, and the copy goes on. An error of the destination ends the copy,
 * because the next file would meet the same error.
 */
#ifndef ZF_TOOLS_RESTORE_INTERNAL_H
#define ZF_TOOLS_RESTORE_INTERNAL_H

#include <json-c/json.h>

#include "args.h"
#include "base/vector.h"
#include "fs/core/inode.h"
#include "meter.h"
#include "salvage/salvage.h"

struct restore_xattr {
	char *name;
	uint8_t *value;
	uint32_t len;	/* bytes of the value */
	uint32_t id;	/* of the value's chunks; 0: the value was in the entry */
	uint64_t there; /* bytes that were read */
};

/* The destination of an inode: a name in a directory. */
struct restore_place {
	size_t dir; /* index in restore.dirs */
	const char *name;
};

/* A directory that is restored. The first one is the destination given by the user. */
struct restore_dir {
	uint64_t ino;
	size_t parent; /* index; the first directory has its own index */
	char *name;
	bool has_inode;
	struct zf_inode_item item;
	struct zf_vector xattrs; /* struct restore_xattr */
};

struct restore {
	const struct zf_args *args;
	const struct zf_report *report;
	struct zf_salvage *salvage;
	struct zf_meter meter;
	struct zf_progress progress; /* of the salvage, shown by the meter */
	bool replayed;		     /* the log records after the last commit were replayed */
	int base;	 /* the destination directory; -1: none, everything is only read */
	size_t open_dir; /* index of the directory that dir_fd has open; SIZE_MAX: none */
	int dir_fd;
	uint32_t chunk_size; /* bytes of an extended attribute's value in one item */
	uint8_t *buf;	     /* RESTORE_CHUNK bytes */

	struct zf_vector dirs; /* struct restore_dir */
	void *seen;	       /* tsearch(3): struct restore_seen */

	uint64_t files, bytes;	      /* restored: names of all kinds; bytes of file data */
	uint64_t damaged;	      /* lines of the list */
	uint64_t unverified;	      /* bytes of data whose checksums are lost */
	uint64_t refused;	      /* attributes that the destination did not take */
	struct json_object *problems; /* with --format=json */
};

#define RESTORE_CHUNK (UINT32_C(1) << 20)

/* ---- restore.c ---- */

/* Adds a line to the list of problems: what is lost or changed at the place. */
void restore_tell(struct restore *restore, const struct restore_place *place, const char *format,
		  ...) __attribute__((format(printf, 3, 4)));
/* Reports an error of the destination, and returns -errno. */
int restore_fail(struct restore *restore, const struct restore_place *place, const char *what);

/* ---- restore_tree.c ---- */

struct restore_seen {
	uint64_t ino;
	size_t dir; /* index of the directory of its first name */
	char *name;
	bool is_dir;
};

/* Restores everything. 0, -EINTR, or the error that ended the copy, reported. */
int restore_tree(struct restore *restore);
void restore_free_tree(struct restore *restore);
/* Opens the directory; restore.c closes *ret_fd. 0, or -errno, reported. */
int restore_open_dir(struct restore *restore, size_t dir, int *ret_fd);

/* ---- restore_inode.c ---- */

struct restore_entry {
	uint64_t ino;
	uint64_t cookie; /* a newer entry has a greater one */
	char *name;
	uint8_t type; /* DT_* */
};

/* An inode, from its items. */
struct restore_inode {
	struct restore *restore;
	const struct restore_place *place; /* NULL: the inode is only read, not restored */
	uint64_t ino;
	uint8_t type; /* DT_* in its entry; used until its inode item is met */
	bool has_inode;
	struct zf_inode_item item;
	struct zf_vector xattrs;  /* struct restore_xattr */
	struct zf_vector entries; /* struct restore_entry, of a directory */
	uint64_t parent;	  /* of one of its names; 0: none was found */
	char *name;
	bool lost; /* items may be missing */

	int fd;		     /* of a file that is written; -1: none */
	uint64_t end;	     /* behind its last extent */
	uint64_t bytes;	     /* in its extents, without inline ones */
	uint64_t unverified; /* bytes whose checksums are lost */
	uint64_t target_len; /* of a symbolic link: bytes of its target that were read */
	char target[ZF_SYMLINK_MAX + 1];
};

/* Reads all items of the inode, and restores its content at the same time. */
int restore_read_inode(struct restore_inode *inode);
void restore_free_inode(struct restore_inode *inode);
/*
 * Makes the inode, or ends a file that was made before, and sets its attributes. A directory gets
 * its attributes when everything is restored.
 */
int restore_end_inode(struct restore_inode *inode);
/* By the inode's item; if that is lost, by the inode's own entries or its entry's type. */
bool restore_is_dir(const struct restore_inode *inode);

/* ---- restore_attr.c ---- */

/* An item of an extended attribute or of its value. 0 or -ENOMEM. */
int restore_take_xattr(struct restore *restore, struct zf_vector *xattrs, const struct zf_key *key,
		       const void *value, size_t len);
void restore_free_xattrs(struct zf_vector *xattrs);
/* An attribute that the destination refuses is listed or counted. `fd`: place->name is in it. */
void restore_set_attrs(struct restore *restore, int fd, const struct restore_place *place,
		       const struct zf_inode_item *item, const struct zf_vector *xattrs);

#endif

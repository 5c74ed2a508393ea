/* SPDX-License-Identifier: MIT */
/*
 * The items of the fs, summary and share trees as they lie on disk.
 *
 *   fs tree          key (objectid, type, offset)                value
 *     inode          (ino, INODE, 0)                             struct zf_disk_inode
 *     name of it     (ino, REF, hash(parent, name))              one or more struct zf_disk_ref + name
 *     attribute      (ino, XATTR, hash(name))                    one or more struct zf_disk_xattr + name [+ value]
 *     its value      (ino, XATTR_VALUE, id << 16 | chunk)        bytes, when too long to stand in the entry
 *     entry by name  (dir, DIR_NAME, hash(name))                 one or more struct zf_disk_dirent + name
 *     entry by cookie (dir, DIR_COOKIE, cookie)                  one struct zf_disk_dirent + name
 *     extent         (ino, EXTENT, file offset)                  struct zf_disk_extent [+ inline bytes]
 *     orphan         (ZF_INO_ORPHANS, ORPHAN, ino)               empty
 *     intent         (ZF_INO_INTENTS, INTENT, number)            struct zf_disk_intent
 *   summary tree
 *     summary        (address, SUMMARY, 0)                       struct zf_disk_summary + checksums
 *   share tree
 *     name           (address, SHARE, hash(inode, offset))       one or more struct zf_disk_share
 *
 * Entries with the same hash are in one item, one behind the other. A name that does not fit into
 * that item any more is refused with -ENOSPC. Nobody can provoke this, because names are hashed
 * with a secret seed.
 *
 * A directory has exactly one ref; its parent is what ".." names. The root's ref has the root as
 * its parent, no name, and cookie 0. A directory's size is the sum over its entries of
 * sizeof(struct zf_disk_dirent) + name_len, so it is 0 if and only if the directory is empty. A
 * directory's nlink is 2 + the number of its subdirectories.
 *
 * The target of a symbolic link (`size` bytes) is in inline extents, one behind the other. Each but
 * the last has zf_node_value_max() - sizeof(struct zf_disk_extent) bytes. Several are needed with
 * small nodes, where one item cannot hold 4095 bytes.
 */
#ifndef ZF_FS_FS_FORMAT_H
#define ZF_FS_FS_FORMAT_H

#include "base/fields.h"
#include "base/le.h"

#define ZF_INO_ROOT 1u
/* Objectids that are not inode numbers: below the number of every inode but the root. */
#define ZF_INO_ORPHANS 2u
#define ZF_INO_INTENTS 3u
#define ZF_INO_FIRST   256u

enum zf_fs_key {
	ZF_KEY_INODE = 1,
	ZF_KEY_REF = 2,
	ZF_KEY_XATTR = 3,
	ZF_KEY_XATTR_VALUE = 4,
	ZF_KEY_DIR_NAME = 5,
	ZF_KEY_DIR_COOKIE = 6,
	ZF_KEY_EXTENT = 7,
	ZF_KEY_ORPHAN = 8,
	ZF_KEY_INTENT = 9,
	ZF_KEY_SUMMARY = 10,
	ZF_KEY_SHARE = 11,
};

#define ZF_COOKIE_FIRST	   3u /* "." and ".." have 1 and 2, and no item */

#define ZF_NAME_MAX	   255u
#define ZF_SYMLINK_MAX	   4095u
#define ZF_LINK_MAX	   UINT32_C(65000)     /* names of a file, as ext4; directories: no limit */
#define ZF_FILE_SIZE_MAX   INT64_MAX	       /* bytes: 2^63-1 */
#define ZF_FILE_END_MAX	   (UINT64_C(1) << 63) /* bytes: the end of its last block */
#define ZF_XATTR_VALUE_MAX 65536u
#define ZF_INLINE_MAX	   2048u		/* bytes; less where zf_node_value_max() is less */
#define ZF_EXTENT_MAX	   (UINT64_C(16) << 20) /* bytes of one extent item ... */
#define ZF_SHARE_MAX	   (UINT64_C(1) << 20)	/* ... of one that is shared ... */
#define ZF_EXTENT_ZERO_MAX (UINT64_C(1) << 40)	/* ... and of a ZERO one */

/*
 * The flags that chattr(1) sets, with the values of FS_*_FL in <linux/fs.h>. Other flags are
 * refused, because a flag is a promise, and code that does not know the flag would break it.
 */
enum zf_inode_flag {
	ZF_INODE_SYNC = 0x8, /* changes are durable when answered */
	ZF_INODE_IMMUTABLE = 0x10,
	ZF_INODE_APPEND = 0x20, /* grows at its end, and changes in no other way */
	ZF_INODE_NODUMP = 0x40,
	ZF_INODE_NOATIME = 0x80,
	ZF_INODE_DIRSYNC = 0x10000, /* directory: changes of its names are durable when answered */
	ZF_INODE_PROJINHERIT =
		0x20000000, /* directory: inodes that are made in it get its project */
};
#define ZF_INODE_FLAGS_OTHER                                                                       \
	(ZF_INODE_NODUMP | ZF_INODE_NOATIME) /* of symbolic links, devices, ... */
#define ZF_INODE_FLAGS_FILE                                                                        \
	(ZF_INODE_FLAGS_OTHER | ZF_INODE_SYNC | ZF_INODE_IMMUTABLE | ZF_INODE_APPEND)
#define ZF_INODE_FLAGS_DIR (ZF_INODE_FLAGS_FILE | ZF_INODE_DIRSYNC | ZF_INODE_PROJINHERIT)

struct zf_disk_time {
	struct zf_le64 seconds; /* signed, since 1970 */
	struct zf_le32 nanoseconds;
};

struct zf_disk_inode {
	struct zf_le64 generation; /* transaction that made the inode */
	struct zf_le64 change;	   /* transaction that last changed the item */
	struct zf_le64 size;
	struct zf_le64 bytes; /* allocated to the file, for st_blocks */
	struct zf_le64 rdev;
	struct zf_le32 mode;
	struct zf_le32 nlink;
	struct zf_le32 uid;
	struct zf_le32 gid;
	struct zf_le32 project; /* 0: none in particular; not 2^32-1 */
	struct zf_le32 flags;	/* enum zf_inode_flag */
	struct zf_disk_time atime, mtime, ctime, btime;
	struct zf_le64 next_cookie; /* directories: of the next entry, >= 3 */
	struct zf_le64 tree;	    /* the inode's tree: ZF_TREE_FS, until there are snapshots */
	uint8_t reserved[32];
};

struct zf_disk_ref {
	struct zf_le64 parent;
	struct zf_le64 cookie; /* of the entry in the parent */
	struct zf_le16 name_len;
};

struct zf_disk_dirent {
	struct zf_le64 ino;
	struct zf_le64 tree; /* ZF_TREE_FS, until there are snapshots */
	struct zf_le64 cookie;
	uint8_t type; /* DT_* */
	uint8_t reserved;
	struct zf_le16 name_len;
};

struct zf_disk_xattr {
	struct zf_le32 value_len;
	struct zf_le32 value_id; /* 0: the value follows the name */
	struct zf_le16 name_len; /* with its prefix, as the user gives it */
	uint8_t reserved[2];
};

enum zf_extent_type {
	ZF_EXTENT_INLINE = 1, /* its bytes follow; in a file: block 0, filled up with zeroes */
	ZF_EXTENT_DATA = 2,   /* on the device */
	ZF_EXTENT_ZERO =
		3, /* reads as zeroes: no device blocks, but kept space; also beyond the size */
};

#define ZF_EXTENT_SHARED     0x01u /* may be shared: it has an entry in the share tree */
#define ZF_EXTENT_OVERWRITE  0x02u /* in an overwritable zone: no checksums */
#define ZF_EXTENT_UNWRITTEN  0x04u /* ZERO: allocated, not written; SEEK_HOLE finds it */
#define ZF_EXTENT_GUARANTEED 0x08u /* overwriting it never fails for want of space */

/*
 * A file that is overwritten at random places has an extent for each block, and extents are most of
 * the metadata. So this struct has only what such an extent needs. Fields for packed extents, or
 * for extents on another device, will be in a second part of the item (docs/format.md); no extent
 * has one yet.
 */
struct zf_disk_extent {
	uint8_t type;
	uint8_t flags;
	uint8_t compression;	   /* 0: none */
	uint8_t encryption;	   /* 0: none */
	struct zf_le32 count;	   /* INLINE: bytes, which follow; else: blocks of the file */
	struct zf_le64 generation; /* transaction in which its newest bytes got this place */
	struct zf_le64 address;	   /* bytes on the device; 0 for INLINE and ZERO */
};

enum zf_intent_type {
	ZF_INTENT_TRUNCATE = 1, /* drop the extents of `ino` in [from, to) */
};

struct zf_disk_intent {
	uint8_t type;
	uint8_t reserved_a[7];
	struct zf_le64 ino;
	struct zf_le64 from, to; /* file offsets */
	struct zf_le64 source_ino, source_from;
	uint8_t reserved_b[16];
};

/*
 * One piece of an append. `count` checksums (zf_le64) follow, one for each block; with OVERWRITE,
 * none.
 */
struct zf_disk_summary {
	struct zf_le64 ino;
	struct zf_le64 offset; /* in the file, bytes */
	struct zf_le32 tree;
	struct zf_le16 count; /* blocks */
	struct zf_le16 flags;
};

#define ZF_SUMMARY_OVERWRITE                                                                       \
	0x1u /* belongs to one ZF_EXTENT_OVERWRITE extent: same length, removed with it */

/* An extent flagged SHARED that names the bytes at the key's address. */
struct zf_disk_share {
	struct zf_le64 tree;
	struct zf_le64 ino;
	struct zf_le64 offset;
	struct zf_le64 len;
};

#define ZF_DISK_TIME_FIELDS(F, T)                                                                  \
	F(T, seconds, 0, 8, U64)                                                                   \
	F(T, nanoseconds, 8, 4, U32)

#define ZF_DISK_INODE_FIELDS(F, T)                                                                 \
	F(T, generation, 0, 8, U64)                                                                \
	F(T, change, 8, 8, U64)                                                                    \
	F(T, size, 16, 8, U64)                                                                     \
	F(T, bytes, 24, 8, U64)                                                                    \
	F(T, rdev, 32, 8, U64)                                                                     \
	F(T, mode, 40, 4, U32)                                                                     \
	F(T, nlink, 44, 4, U32)                                                                    \
	F(T, uid, 48, 4, U32)                                                                      \
	F(T, gid, 52, 4, U32)                                                                      \
	F(T, project, 56, 4, U32)                                                                  \
	F(T, flags, 60, 4, U32)                                                                    \
	F(T, atime.seconds, 64, 8, U64)                                                            \
	F(T, atime.nanoseconds, 72, 4, U32)                                                        \
	F(T, mtime.seconds, 76, 8, U64)                                                            \
	F(T, mtime.nanoseconds, 84, 4, U32)                                                        \
	F(T, ctime.seconds, 88, 8, U64)                                                            \
	F(T, ctime.nanoseconds, 96, 4, U32)                                                        \
	F(T, btime.seconds, 100, 8, U64)                                                           \
	F(T, btime.nanoseconds, 108, 4, U32)                                                       \
	F(T, next_cookie, 112, 8, U64)                                                             \
	F(T, tree, 120, 8, U64)                                                                    \
	F(T, reserved, 128, 32, ZERO)

#define ZF_DISK_REF_FIELDS(F, T)                                                                   \
	F(T, parent, 0, 8, U64)                                                                    \
	F(T, cookie, 8, 8, U64)                                                                    \
	F(T, name_len, 16, 2, U16)

#define ZF_DISK_DIRENT_FIELDS(F, T)                                                                \
	F(T, ino, 0, 8, U64)                                                                       \
	F(T, tree, 8, 8, U64)                                                                      \
	F(T, cookie, 16, 8, U64)                                                                   \
	F(T, type, 24, 1, U8)                                                                      \
	F(T, reserved, 25, 1, ZERO)                                                                \
	F(T, name_len, 26, 2, U16)

#define ZF_DISK_XATTR_FIELDS(F, T)                                                                 \
	F(T, value_len, 0, 4, U32)                                                                 \
	F(T, value_id, 4, 4, U32)                                                                  \
	F(T, name_len, 8, 2, U16)                                                                  \
	F(T, reserved, 10, 2, ZERO)

#define ZF_DISK_EXTENT_FIELDS(F, T)                                                                \
	F(T, type, 0, 1, U8)                                                                       \
	F(T, flags, 1, 1, U8)                                                                      \
	F(T, compression, 2, 1, U8)                                                                \
	F(T, encryption, 3, 1, U8)                                                                 \
	F(T, count, 4, 4, U32)                                                                     \
	F(T, generation, 8, 8, U64)                                                                \
	F(T, address, 16, 8, U64)

#define ZF_DISK_INTENT_FIELDS(F, T)                                                                \
	F(T, type, 0, 1, U8)                                                                       \
	F(T, reserved_a, 1, 7, ZERO)                                                               \
	F(T, ino, 8, 8, U64)                                                                       \
	F(T, from, 16, 8, U64)                                                                     \
	F(T, to, 24, 8, U64)                                                                       \
	F(T, source_ino, 32, 8, U64)                                                               \
	F(T, source_from, 40, 8, U64)                                                              \
	F(T, reserved_b, 48, 16, ZERO)

#define ZF_DISK_SUMMARY_FIELDS(F, T)                                                               \
	F(T, ino, 0, 8, U64)                                                                       \
	F(T, offset, 8, 8, U64)                                                                    \
	F(T, tree, 16, 4, U32)                                                                     \
	F(T, count, 20, 2, U16)                                                                    \
	F(T, flags, 22, 2, U16)

#define ZF_DISK_SHARE_FIELDS(F, T)                                                                 \
	F(T, tree, 0, 8, U64)                                                                      \
	F(T, ino, 8, 8, U64)                                                                       \
	F(T, offset, 16, 8, U64)                                                                   \
	F(T, len, 24, 8, U64)

ZF_FIELDS_ASSERT(struct zf_disk_time, ZF_DISK_TIME_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_inode, ZF_DISK_INODE_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_ref, ZF_DISK_REF_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_dirent, ZF_DISK_DIRENT_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_xattr, ZF_DISK_XATTR_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_extent, ZF_DISK_EXTENT_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_intent, ZF_DISK_INTENT_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_summary, ZF_DISK_SUMMARY_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_share, ZF_DISK_SHARE_FIELDS);

extern const struct zf_fields zf_disk_time_fields;
extern const struct zf_fields zf_disk_inode_fields;
extern const struct zf_fields zf_disk_ref_fields;
extern const struct zf_fields zf_disk_dirent_fields;
extern const struct zf_fields zf_disk_xattr_fields;
extern const struct zf_fields zf_disk_extent_fields;
extern const struct zf_fields zf_disk_intent_fields;
extern const struct zf_fields zf_disk_summary_fields;
extern const struct zf_fields zf_disk_share_fields;

#endif

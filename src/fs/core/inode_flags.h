/* SPDX-License-Identifier: MIT */
/*
 * The flags of inodes that chattr(1) sets (enum zf_inode_flag): which changes they forbid, and when
 * they ask for a durable answer.
 *
 * The kernel enforces these flags for filesystems that can tell it about them; FUSE cannot. So
 * every operation that changes something checks them here first, also for root. The rules are those
 * of the Linux VFS.
 *
 *      immutable       nothing changes but the access time, and the number of reads
 *      append-only     a file takes writes at its end; a directory takes new names, and loses none
 *
 * Linux checks once, when a file is opened; a process that has it open may go on. Here every write
 * checks, also one that comes from a mapping, because nothing keeps an append-only file from being
 * mapped. Only writes that the kernel has collected in its cache are not checked (ZF_WRITE_CACHE):
 * they were accepted before.
 *
 * Locking. The caller holds the inode's lock, at least shared. Between check and change it keeps
 * the lock, or the kernel holds its own lock of the inode, which keeps changes of flags and of
 * attributes apart.
 */
#ifndef ZF_FS_INODE_FLAGS_H
#define ZF_FS_INODE_FLAGS_H

#include "fs/core/inode.h"

/* Those that an inode of this mode's type can have. */
uint32_t zf_inode_flags_of_type(uint32_t mode);

/*
 * Each 0 or -EPERM. Data:
 *
 * Bytes from `offset` on are to be written, or given room (fallocate): append-only files have none
 * to lose before their end. For fallocate, which changes no byte that there is, give the size.
 */
int zf_inode_check_write(const struct zf_inode *inode, uint64_t offset);
/* Anything else is to change: attributes, extended attributes, size, ranges punched or zeroed,
 * links to it. */
int zf_inode_check_change(const struct zf_inode *inode);

/* The file is to be opened: open(2)'s flags. */
int zf_inode_check_open(const struct zf_inode *inode, int flags);

/* Names: one is to be added to the directory ... */
int zf_inode_check_add(const struct zf_inode *dir);
/* ... or taken out of it. */
int zf_inode_check_remove(const struct zf_inode *dir, const struct zf_inode *child);
/* -EXDEV: what enters a directory that hands down its project must belong to that. */
int zf_inode_check_project(const struct zf_inode *dir, const struct zf_inode *inode);

/* What a new inode takes over from the directory that it is made in; its mode is set. */
void zf_inode_inherit_flags(const struct zf_inode *dir, struct zf_inode *inode);

/*
 * Returns whether a change of the inode, or of the names in a directory, must be durable when it is
 * answered. Operations do this in fs/ops/op.h. A function that changes data asks, and calls
 * zf_durable_inode() at its end.
 */
bool zf_inode_is_sync(const struct zf_inode *inode);

#endif

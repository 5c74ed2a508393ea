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

/* The flags that an inode of this mode's type can have. */
uint32_t zf_inode_flags_of_type(uint32_t mode);

/*
 * The checks return 0 or -EPERM. Data:
 *
 * Checks whether bytes from `offset` on may be written, or get room (fallocate). An append-only
 * file must not be written before its end. fallocate changes no existing byte, so its caller passes
 * the file's size.
 */
int zf_inode_check_write(const struct zf_inode *inode, uint64_t offset);
/* Checks any other change: attributes, extended attributes, size, ranges punched or zeroed, links
 * to the inode. */
int zf_inode_check_change(const struct zf_inode *inode);

/* Checks whether the file may be opened with these flags of open(2). */
int zf_inode_check_open(const struct zf_inode *inode, int flags);

/* Names. Checks whether a name may be added to the directory. */
int zf_inode_check_add(const struct zf_inode *dir);
/* Checks whether the name of `child` may be removed from the directory. */
int zf_inode_check_remove(const struct zf_inode *dir, const struct zf_inode *child);
/* -EXDEV: `dir` has PROJINHERIT, and the inode that enters it belongs to another project. */
int zf_inode_check_project(const struct zf_inode *dir, const struct zf_inode *inode);

/* Gives a new inode the flags and the project that it inherits from `dir`. Its mode is set. */
void zf_inode_inherit_flags(const struct zf_inode *dir, struct zf_inode *inode);

/*
 * Returns whether a change of the inode, or of the names in a directory, must be durable when it is
 * answered. fs/ops/op.h does this for operations on names and attributes. A function that changes
 * data calls this one, and if it returns true, zf_durable_inode() at its end.
 */
bool zf_inode_is_sync(const struct zf_inode *inode);

#endif

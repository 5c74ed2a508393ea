/* SPDX-License-Identifier: MIT */
/*
 * The flags of inodes that chattr(1) sets (enum zf_inode_flag): what they forbid, and what they ask
 * for.
 *
 * The kernel enforces flags for the filesystems that tell it of them; FUSE has no way to. So every
 * operation that changes something asks here first, for everybody, root too: the rules are those of
 * Linux' VFS.
 *
 *      immutable       nothing changes but the access time, and the number of reads
 *      append-only     a file takes writes at its end; a directory takes new names, and loses none
 *
 * Linux asks once, when a file is opened; whoever has it open then may go on. Here every write
 * asks, also what comes from a mapping: nothing kept an append-only file from being mapped. Only
 * what the kernel has collected is let through (ZF_WRITE_CACHE): it was accepted before.
 *
 * Locking. The inodes' locks, shared will do. From check to change a lock is held, or it is known
 * that the kernel holds its own: it keeps changes of flags and of attributes apart.
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
 * Whether a change of the inode (of the names in a directory) is to be durable when it is answered.
 * Operations need not ask (fs/ops/op.h); who changes data does, and calls zf_durable_inode() at
 * the end.
 */
bool zf_inode_is_sync(const struct zf_inode *inode);

#endif

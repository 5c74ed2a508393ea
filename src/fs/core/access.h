/* SPDX-License-Identifier: MIT */
/*
 * Access times: what reading changes.
 *
 * The rules are Linux': with relatime, the default, reading moves the access time only if that is
 * not newer than the last change, or a day old. Reads that the kernel answers from its caches do
 * not come here and move nothing.
 *
 * The time is set in memory and marks the item dirty, so it is stored with whatever stores the item
 * next, at the latest by the next flush. With lazytime that flush passes over inodes that have
 * nothing else to store, for a day; what syncs, and the unmount, does not. They stay in memory
 * until then, so there is a bound on them.
 *
 * Locking. Whether a read counts is found with the inode's lock held shared, as reading has it
 * anyway; where it does not, which is the common case, nothing else is taken. Where it does, the
 * lock is taken exclusively for a moment; a caller that may not wait does not wait for it: the next
 * read makes up for that.
 */
#ifndef ZF_FS_ACCESS_H
#define ZF_FS_ACCESS_H

#include "fs/core/inode.h"

/* Whether a read now moves the access time. Inode locked. */
bool zf_access_counts(const struct zf_inode *inode, const struct zf_ctx *ctx);

/* It was read, and that counted. No lock held. */
void zf_access_note(struct zf_inode *inode, const struct zf_ctx *ctx);

/* Whether a flush in passing may leave the item for later. Inode locked. */
bool zf_access_is_lazy(const struct zf_inode *inode);

#endif

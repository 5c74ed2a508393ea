/* SPDX-License-Identifier: MIT */
/*
 * Access times: what reading changes.
 *
 * The rules are those of Linux: with relatime, the default, reading moves the access time only if
 * the access time is not newer than the last change, or is a day old. Reads that the kernel answers
 * from its caches never reach the filesystem, so they do not move the access time.
 *
 * The time is set in memory and marks the item dirty, so it is stored with whatever stores the item
 * next, at the latest by the next flush. With lazytime that flush skips, for a day, an inode whose
 * item has changed only in its access time. A sync and the unmount store it. Such inodes stay in
 * memory until then, so their number is bounded.
 *
 * Locking. A read decides whether it moves the access time while it holds the inode's lock shared,
 * which it needs anyway. In the common case the time does not move, and no other lock is taken. If
 * the time moves, the lock is taken exclusively for a moment. A caller that may not wait skips
 * this; the next read sets the time.
 */
#ifndef ZF_FS_ACCESS_H
#define ZF_FS_ACCESS_H

#include "fs/core/inode.h"

/* Whether a read now moves the access time. Inode locked. */
bool zf_access_counts(const struct zf_inode *inode, const struct zf_ctx *ctx);

/* Sets the access time after a read for which zf_access_counts() was true. No lock held. */
void zf_access_note(struct zf_inode *inode, const struct zf_ctx *ctx);

/* Whether a flush that no caller waits for may leave the item for later. Inode locked. */
bool zf_access_is_lazy(const struct zf_inode *inode);

#endif

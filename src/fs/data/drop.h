/* SPDX-License-Identifier: MIT */
/*
 * Dropping the extents of a range of a file, for truncating and punching.
 *
 * The first transaction drops some extents, makes the change in memory and stores the item. From
 * then on the range reads as zeroes. If extents are left, the first transaction also records an
 * intent and sets data->dropping, and further transactions drop the rest; after a crash the next
 * mount does. The inode stays locked during all of them. If one of them fails, data->dropping stays
 * set: until the rest is dropped, nothing may be written to the file, its extents may not be shared,
 * and readers take the range for a hole.
 */
#ifndef ZF_FS_DROP_H
#define ZF_FS_DROP_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/core/inode.h"

struct zf_drop {
	struct zf_inode *inode;
	bool may_wait;
	uint64_t from, to;   /* bytes, block multiples */
	uint64_t inline_max; /* an INLINE extent before the range is shortened to this length */
	/* Changes the memory, including the item, once the first extents are gone. Cannot fail. */
	void (*change)(struct zf_drop *drop);
	/* Called after the transaction that makes the change has stored the item. May be NULL. */
	void (*stored)(struct zf_drop *drop);
	void *arg;
};

/*
 * 0; -EAGAIN without may_wait, -ENOSPC, -errno: nothing has changed, unless the filesystem is
 * read-only now. Inode locked exclusively, no join.
 */
int zf_drop_run(struct zf_drop *drop);
/* Drops the extents that an interrupted drop has left. Locks and errors as for zf_drop_run(). */
int zf_drop_finish_rest(struct zf_inode *inode, bool may_wait);

/* The same, if a drop was interrupted at all. Every write calls it; mostly it has nothing to do. */
static inline int zf_drop_finish(struct zf_inode *inode, bool may_wait)
{
	return inode->data.dropping ? zf_drop_finish_rest(inode, may_wait) : 0;
}

#endif

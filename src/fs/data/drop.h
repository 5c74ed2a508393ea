/* SPDX-License-Identifier: MIT */
/*
 * Dropping the extents of a range of a file: what truncating and punching have in common.
 *
 * The first transaction drops some, makes the change in memory and stores the item; from then on
 * the range reads as zeroes to whoever reads the file behind us. If extents are left, it also
 * records an intent, and the following ones drop the rest; a mount finishes what a crash cuts off.
 * The inode stays locked for all of them. If one fails, data->dropping says that the rest is still
 * to go: nothing may be written to the file, nor its extents shared, before that; and readers take
 * the range for a hole.
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
	uint64_t inline_max; /* an INLINE extent before the range is shortened to that */
	/* What changes in memory, item included, once the first extents are gone. Cannot fail. */
	void (*change)(struct zf_drop *drop);
	/* The item is stored by the transaction that makes the change. May be NULL. */
	void (*stored)(struct zf_drop *drop);
	void *arg;
};

/*
 * 0; -EAGAIN without may_wait, -ENOSPC, -errno: nothing has changed, unless the filesystem is
 * read-only now. Inode locked exclusively, no join.
 */
int zf_drop_run(struct zf_drop *drop);
/* Drops what an interrupted one has left. As zf_drop_run(). */
int zf_drop_finish_rest(struct zf_inode *inode, bool may_wait);

/* Drops what an interrupted one has left. Every write calls it, and mostly nothing is left. */
static inline int zf_drop_finish(struct zf_inode *inode, bool may_wait)
{
	return inode->data.dropping ? zf_drop_finish_rest(inode, may_wait) : 0;
}

#endif

/* SPDX-License-Identifier: MIT */
/* What truncation leaves to be done before a file may grow again. Inode locked exclusively, no
 * join. */
#ifndef ZF_FS_TRUNCATE_H
#define ZF_FS_TRUNCATE_H

#include <stdbool.h>

struct zf_inode;

/* Drops the extents that an interrupted truncation left (data->dropping). */
int zf_truncate_finish(struct zf_inode *inode);
/* That, and zf_tail_settle(). -EAGAIN. */
int zf_truncate_before_growth(struct zf_inode *inode, bool may_wait);

#endif

/* SPDX-License-Identifier: MIT */
/* What must be done before a file may grow. Inode locked exclusively, no join. */
#ifndef ZF_FS_TRUNCATE_H
#define ZF_FS_TRUNCATE_H

#include <stdbool.h>

struct zf_inode;

/* zf_drop_finish() and zf_tail_settle(). -EAGAIN. */
int zf_truncate_before_growth(struct zf_inode *inode, bool may_wait);
/*
 * Before a greater size stands in the trees, whatever has landed until then. 1: the lock was
 * dropped meanwhile, and all has to be looked at again. -EAGAIN; the error of data that was lost.
 */
int zf_truncate_before_size(struct zf_inode *inode, bool may_wait);

#endif

/* SPDX-License-Identifier: MIT */
/* Steps before a file may grow. Inode locked exclusively, no join. */
#ifndef ZF_FS_TRUNCATE_H
#define ZF_FS_TRUNCATE_H

#include <stdbool.h>

struct zf_inode;

/*
 * Calls zf_drop_finish() and zf_tail_settle(). -EAGAIN: it would have to wait, and may_wait is
 * false.
 */
int zf_truncate_before_growth(struct zf_inode *inode, bool may_wait);
/*
 * Makes sure that a greater size may be stored in the trees, and lands data if that is needed. 1:
 * the lock was released meanwhile, and the caller has to check everything again. -EAGAIN: as above.
 * If data was lost meanwhile, the error of that data.
 */
int zf_truncate_before_size(struct zf_inode *inode, bool may_wait);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A filesystem moves to another device as it is, zone by zone: the bytes below each write pointer,
 * the pointers, and which zones are finished. So it is the same filesystem, with the same
 * addresses, wherever its zones have the same size and capacity.
 *
 * Order. First the target's superblocks go, then all else on it. Then the superblock zones are
 * copied, while nothing else is there that an older record in them could name; then all other
 * zones; and last, in each copy of the metadata, the newest root node and what lies behind it. So a
 * mount refuses whatever an interrupted copy leaves; but for the second copy of those few nodes,
 * without which all can be read. (The obvious order, the
 * superblocks last, has one where a ring that is half there shows an older record, some of whose
 * zones have been reset since, while others are whole.)
 */
#ifndef ZF_TRANSFER_COPY_H
#define ZF_TRANSFER_COPY_H

#include "base/progress.h"
#include "base/report.h"
#include "io/dev.h"

/* Whether there is a filesystem on `from` that can be copied; the errors are those below. */
int zf_transfer_check(struct zf_dev *from, const struct zf_report *report);

/*
 * Copies the filesystem on `from` to `to`, and everything that was there is lost. `from` is only
 * read. The progress is in bytes. Both without a thread of their own. Durable when it returns 0.
 *
 * Checked before anything is written, and reported with numbers: -ENODEV: no filesystem on `from`;
 * -EUCLEAN: a damaged one; -EINVAL: `to` has other zones, too few of them, or too few that may be
 * active; -EUCLEAN also: pointers of `from` are lower bounds, a mount has to find the true ones.
 */
int zf_transfer_copy(struct zf_dev *from, struct zf_dev *to, const struct zf_progress *progress,
		     const struct zf_report *report);

#endif

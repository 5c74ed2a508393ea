/* SPDX-License-Identifier: MIT */
/*
 * Copies a filesystem to another device as it is, zone by zone: the bytes below each write pointer,
 * the pointers, and which zones are finished. The result is the same filesystem, with the same
 * addresses, on any device whose zones have the same size and capacity.
 *
 * Order. First the target's superblocks are erased, then all other zones of the target. Then the
 * superblock zones are copied, while the target has nothing that an older record in them could
 * name; then all other zones. Last, in each copy of the metadata, comes the zone's part from the
 * newest root node on. So a mount refuses an interrupted copy. Exception: if only the second copy
 * of these last nodes is missing, the mount succeeds, and all can be read without them. (If the
 * superblocks were copied last, which is the obvious order, a ring copied in part would show an
 * older record; some of that record's zones have been reset since, while others are whole.)
 */
#ifndef ZF_TRANSFER_COPY_H
#define ZF_TRANSFER_COPY_H

#include "base/progress.h"
#include "base/report.h"
#include "io/dev.h"

/* Checks that `from` has a filesystem that can be copied. Errors as of zf_transfer_copy(). */
int zf_transfer_check(struct zf_dev *from, const struct zf_report *report);

/*
 * Copies the filesystem on `from` to `to`; the old contents of `to` are lost. `from` is only read.
 * The progress is in bytes. Neither device may have a thread of its own. The copy is durable when
 * this returns 0.
 *
 * Checked before anything is written, and reported with numbers: -ENODEV: no filesystem on `from`;
 * -EUCLEAN: a damaged filesystem; -EINVAL: zones of `to` have another size or capacity, are too
 * few, too few of them may be active, another number of them is conventional, or a zone that is to
 * be written is read-only, offline or too small; -EUCLEAN also: pointers of `from` are lower bounds,
 * and a mount has to find the true ones first.
 */
int zf_transfer_copy(struct zf_dev *from, struct zf_dev *to, const struct zf_progress *progress,
		     const struct zf_report *report);

#endif

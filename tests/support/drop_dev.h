/* SPDX-License-Identifier: MIT */
/*
 * A volatile cache over an image: what was not made durable is lost when the process is killed.
 *
 * An image is a file, and a file keeps what a killed process has written to it, flushed or not: a
 * kill alone shows nothing of what a power cut does. So this device stands between the filesystem
 * and the image. A write or append goes to the image with other bytes in place of its own; those
 * are kept in memory, where reads find them, and reach the file when they are to be durable:
 *
 *     FUA      before the command completes
 *     flush    before it completes, those whose write had completed when the flush was submitted
 *     kill     never
 *
 * What the file holds in the meantime is drawn from the seed, block by block: the right bytes after
 * all, zeroes, garbage, or the first sectors right and zeroes behind them; in a conventional zone
 * the bytes of before, or the right ones. How many are right is drawn once for each device, and may
 * be none. That is the fault model of sim/sim.h, but for two things: pointers stand where they
 * stood, as after a kill of the daemon on a host that goes on; and nothing is older than the zone's
 * last reset but what the image's file kept (a warm zone).
 *
 * The host goes on, so the file itself need not be flushed: neither FUA nor flush is handed down.
 */
#ifndef ZF_TESTS_DROP_DEV_H
#define ZF_TESTS_DROP_DEV_H

#include "io/dev.h"

/*
 * Owns `image` from then on, which must be writable and without a thread, and closes it with itself;
 * also then what was not flushed is lost. `die_at`: in the middle of this durable write, counted
 * from 1, the process kills itself, some of the blocks written; 0: never. Returns 0 or -errno (then
 * the image is the caller's still). Other failures of memory abort: it serves tests.
 */
int zf_drop_dev_new(struct zf_dev *image, uint64_t seed, uint64_t die_at,
		    const struct zf_report *report, struct zf_dev **ret_dev);

/* How many blocks would be lost now. */
uint64_t zf_drop_dev_pending(struct zf_dev *dev);

#endif

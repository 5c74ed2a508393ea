/* SPDX-License-Identifier: MIT */
/*
 * A volatile write cache over an image: data that is not durable is lost when the process is
 * killed.
 *
 * An image is a file, and the file keeps everything that a killed process has written to it,
 * flushed or not. So a kill alone does not show what a power cut does. Therefore this device stands
 * between the filesystem and the image. For a write or an append it writes other bytes to the image
 * and keeps the right bytes in memory, where reads find them. The right bytes reach the file:
 *
 *     FUA      before the command completes
 *     flush    before it completes, those whose write had completed when the flush was submitted
 *     kill     never
 *
 * Until then the contents of the file are drawn from the seed, block by block: the right bytes
 * after all, zeroes, garbage, or the first sectors right and zeroes behind them; in a conventional
 * zone the former bytes or the right ones. The share of right blocks is drawn once for each device,
 * and may be 0. That is the fault model of sim/sim.h with two exceptions. The write pointers keep
 * their positions, as after a kill of the daemon on a host that goes on. And no bytes from before a
 * zone's last reset appear, except those that the image's file kept (a warm zone).
 *
 * The host goes on, so the file itself need not be flushed: neither FUA nor flush is handed down.
 */
#ifndef ZF_TESTS_DROP_DEV_H
#define ZF_TESTS_DROP_DEV_H

#include "io/dev.h"

/*
 * The new device owns `image`, which must be writable and without a thread. Closing the device
 * closes the image, and loses the data that was not flushed. `die_at`: the process kills itself in
 * the middle of this durable write, counted from 1, with some of its blocks written; 0: never.
 * Returns 0 or -errno (then the caller still owns the image). All other failures of memory abort,
 * because the device serves tests.
 */
int zf_drop_dev_new(struct zf_dev *image, uint64_t seed, uint64_t die_at,
		    const struct zf_report *report, struct zf_dev **ret_dev);

/* How many blocks would be lost now. */
uint64_t zf_drop_dev_pending(struct zf_dev *dev);

#endif

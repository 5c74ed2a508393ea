/* SPDX-License-Identifier: MIT */
/*
 * Faults: what went wrong on the device since the counters were last reset, over all mounts.
 *
 * Whoever meets a fault counts it where it is met: the device its commands that fail (io/dev.h), the
 * forest damaged nodes (btree/tree.h), whoever reads data the blocks that do not match, and a scrub
 * what it repairs. Those counters begin at 0 with the device or the mount. Here they are added to
 * what earlier mounts have left on the device (txn/health.h):
 *
 *      total = base + counters of now          modulo 2^64
 *      mount:  base = stored - counters of then
 *      reset:  base = - counters of then
 *
 * Any thread; no lock of a rank above ZF_RANK_HEALTH held.
 */
#ifndef ZF_FS_FAULTS_H
#define ZF_FS_FAULTS_H

#include "txn/health.h"

struct zf_fs;

/* Before a mount does anything with its device. */
void zf_faults_begin(struct zf_fs *fs);
/* Adds what earlier mounts have met. */
void zf_faults_add(struct zf_fs *fs, const struct zf_faults *stored);

void zf_faults_get(struct zf_fs *fs, struct zf_faults *ret_faults);
/* Zones that failed since the last reset. */
uint64_t zf_faults_zones(struct zf_fs *fs);

/*
 * All counters begin anew; the zones that have failed so far are known. Stored by the next commit,
 * which the caller makes.
 */
void zf_faults_reset(struct zf_fs *fs);

#endif

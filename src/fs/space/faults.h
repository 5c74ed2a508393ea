/* SPDX-License-Identifier: MIT */
/*
 * Faults: counters of what went wrong on the device since they were last reset, over all mounts.
 *
 * Each layer counts its own faults: the device counts its failed commands (io/dev.h), the forest
 * damaged nodes (btree/tree.h), the readers of data blocks that do not match their checksums, and a
 * scrub its repairs. Those counters begin at 0 when the device is opened or mounted. This file adds
 * them to the counts that earlier mounts have stored (txn/health.h):
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

/* Called before a mount sends any command to its device. */
void zf_faults_begin(struct zf_fs *fs);
/* Adds the counts of earlier mounts. */
void zf_faults_add(struct zf_fs *fs, const struct zf_faults *stored);

void zf_faults_get(struct zf_fs *fs, struct zf_faults *ret_faults);
/* Zones that failed since the last reset. */
uint64_t zf_faults_zones(struct zf_fs *fs);

/*
 * Sets all counters to 0, and remembers how many zones have failed so far. The next commit stores
 * that; the caller makes it.
 */
void zf_faults_reset(struct zf_fs *fs);

#endif

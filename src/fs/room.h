/* SPDX-License-Identifier: MIT */
/*
 * Room for what users bring: reserving, waiting for it, and slowing down before it runs out (P5).
 *
 * Reserving tries, in this order: what is there; what commits and resets give back; what landing
 * and deleting give back; what reclaim gives back. -ENOSPC only when all of the device's live and
 * reserved data leaves none (zf_alloc_could_reserve), or what is left cannot be moved.
 */
#ifndef ZF_FS_ROOM_H
#define ZF_FS_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/alloc.h"

struct zf_fs;

/* As zf_txn_reserve(NORMAL), and with may_wait all of the above. No lock and no join held. */
int zf_room_reserve(struct zf_fs *fs, uint64_t data_blocks, uint64_t items, bool may_wait);

/*
 * An operation got -ENOSPC, has changed nothing and holds no lock: is it worth another try? Waits
 * for what may give room back.
 */
bool zf_room_wait(struct zf_fs *fs);

/*
 * Of a writer who is about to bring `blocks` more: waits as long as is fitting, so that reclaim
 * keeps up, by milliseconds in proportion to what is missing of the target. Without may_wait:
 * -EAGAIN instead. No lock and no join held.
 */
int zf_room_pace(struct zf_fs *fs, unsigned int blocks, bool may_wait);

#endif

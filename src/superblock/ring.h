/* SPDX-License-Identifier: MIT */
/*
 * The superblock ring: zones 0 and 1 as a log of records, the newest of which is the filesystem.
 *
 * A sequential zone cannot be rewritten in place, so every commit appends one record with FUA. When
 * the zone is full, the *other* zone is reset and written: a crash between the two leaves the full
 * zone with its last record. Each zone is empty, in use or full; what the nine combinations mean:
 *
 *      zone 0 \ zone 1   empty              in use                full
 *      empty             no filesystem      zone 1's last         zone 1's last
 *      in use            zone 0's last      both: the newer *)    zone 0's last, if newer
 *      full              zone 0's last      zone 1's last,        the newer of the last ones
 *                                           if newer
 *
 *      *) never made by zfuse (it resets a zone only when the other one is full), but possible
 * after a torn reset or a device's finish: the greater generation wins, and a report says so.
 *
 * On conventional zones, which have no pointer, the records are found by their generations.
 *
 * A torn newest record (power cut while it was written) is stepped over automatically only when
 * everything that the older record needs still stands, which only the caller can judge: the ring
 * hands out candidates, newest first, and the caller says which one it takes.
 */
#ifndef ZF_SUPERBLOCK_RING_H
#define ZF_SUPERBLOCK_RING_H

#include "io/dev.h"
#include "superblock/super.h"

enum zf_ring_state {
	ZF_RING_EMPTY,
	ZF_RING_IN_USE,
	ZF_RING_FULL,
};

/* One block of the ring below the pointer, as found. */
struct zf_ring_record {
	uint64_t address;
	int status;	       /* of zf_super_decode(): 0, -EUCLEAN, -ENOENT, -EPROTONOSUPPORT */
	struct zf_super super; /* valid if status is 0 */
};

struct zf_ring;

/*
 * Reads the ring. -ENODEV: both zones hold no record: not a zfuse device. Otherwise 0, even if
 * the newest record is damaged. `dev` outlives the ring.
 */
int zf_ring_open(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring);
void zf_ring_close(struct zf_ring *ring); /* takes NULL */

/* For mkfs: resets both zones; the first zf_ring_write() starts in zone 0. */
int zf_ring_format(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring);

enum zf_ring_state zf_ring_zone_state(const struct zf_ring *ring, unsigned int zone);

/*
 * Every record slot below the pointers, newest position first; damaged ones in their place. The
 * first valid one is what a mount takes; `ret_stepped_over` counts the damaged slots that are
 * newer than it (0: nothing to guard). The array belongs to the ring.
 */
const struct zf_ring_record *zf_ring_records(const struct zf_ring *ring, unsigned int *ret_count);
int zf_ring_newest(const struct zf_ring *ring, const struct zf_super **ret_super,
		   unsigned int *ret_stepped_over);

/* The record of one generation (`-o generation=N`), or -ENOENT. */
int zf_ring_find(const struct zf_ring *ring, uint64_t generation,
		 const struct zf_super **ret_super);

/* The greatest generation that any readable record carries: new ones go past it. */
uint64_t zf_ring_highest_generation(const struct zf_ring *ring);

/*
 * THE COMMIT POINT. Writes a record with FUA at the ring's pointer, switching zones when it is
 * full; sets super->address. When it returns 0, the transaction super->generation is durable. On an
 * error nothing is known about the record: the caller turns read-only. One caller at a time (the
 * commit lock).
 */
int zf_ring_write(struct zf_ring *ring, struct zf_super *super);

#endif

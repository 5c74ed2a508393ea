/* SPDX-License-Identifier: MIT */
/*
 * The superblock ring: zones 0 and 1 are a log of superblock records; a mount takes the newest one.
 *
 * A sequential zone cannot be rewritten in place, so every commit appends one record with FUA. When
 * the zone is full, the *other* zone is reset and written: a crash between the two leaves the full
 * zone with its last record. Each zone is empty, in use or full. In all nine combinations the
 * record of the greatest generation wins; where it is, and where the next one goes:
 *
 *      zone 0   zone 1    newest record                   next record
 *      empty    empty     none: no filesystem             zone 0
 *      in use   empty     zone 0's last                   zone 0
 *      full     empty     zone 0's last                   zone 1
 *      empty    in use    zone 1's last                   zone 1
 *      empty    full      zone 1's last                   zone 0
 *      full     in use    zone 1's last                   zone 1
 *      in use   full      zone 0's last                   zone 0
 *      full     full      the greater of the last ones    the other zone, after its reset
 *      in use   in use    the greater of the last ones    behind it *)
 *
 *      *) never made by zfuse, which resets a zone only when the other is full.
 *      A full zone with the greatest generation beside a zone in use: a device that finishes a zone
 *      by itself makes this, or a power cut that tore the first record after a switch. The full
 *      zone's last record wins. The next record goes behind the torn one if the other zone has no
 *      whole record; else the other zone is reset for it.
 *
 * A conventional zone has no pointer and needs no reset. Its first ZF_RING_CONVENTIONAL_SLOTS
 * blocks are the slots; the record of the greatest generation tells where the pointer would be, and
 * behind it lie older records, or zeroes. Such a zone is full when its greatest record is in the
 * last slot. The rest is as above.
 *
 * A zone that the device has turned read-only or offline counts as full and is never written again.
 * The record whose write failed, and all later records, go to the other zone, after a reset if that
 * is full. (That one record may then be in both zones.) From then on the ring has one zone only.
 * When that zone is full, no further record is written, because a crash after its reset could leave
 * no record at all. If one zone is offline and the other is full, the newest record may have been
 * in the offline zone (zf_ring_lacks_newest()).
 *
 * Stepping back: if a power cut tore the newest record, a mount takes the record before it, but
 * only if everything that the older record needs is still on the device. The caller checks that
 * (fs/mount/mount.c): zf_ring_newest() tells how many damaged slots it passed, and the caller takes
 * the record or refuses it. The ring never passes a whole record, whose checksum is right, even if
 * its format is unknown or its values are impossible.
 *
 * Not thread-safe: one caller at a time (the commit lock).
 */
#ifndef ZF_SUPERBLOCK_RING_H
#define ZF_SUPERBLOCK_RING_H

#include "io/dev.h"
#include "superblock/super.h"

/* Enough to never wear a zone out, few enough to read them all when a device is opened. */
#define ZF_RING_CONVENTIONAL_SLOTS 1024u

enum zf_ring_state {
	ZF_RING_EMPTY,
	ZF_RING_IN_USE,
	ZF_RING_FULL,
};

/*
 * One slot of the ring, as found. Its status: 0; -EUCLEAN: damaged; -ENOENT: no record; -ENODATA:
 * zeroes; -EIO: unreadable; -EPROTONOSUPPORT: a whole record, but of an unknown format;
 * -ESTALE: another filesystem's.
 */
struct zf_ring_record {
	uint64_t address;
	uint64_t generation; /* if the checksum is right, else 0 */
	int status;
	struct zf_super super; /* valid if status is 0 */
};

struct zf_ring;

/*
 * Finds the newest record, and reads no more slots than that needs. If write pointers are lower
 * bounds, the call raises them past the last record. -ENODEV: no slot has anything like a record,
 * so this is no zfuse device. Otherwise 0, even if every record is damaged. `dev` outlives the
 * ring.
 */
int zf_ring_open(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring);
void zf_ring_close(struct zf_ring *ring); /* takes NULL */

/*
 * For mkfs: empties both zones, that of the newest record last, so that a crash in between leaves
 * the old filesystem or none; the first zf_ring_write() starts in zone 0.
 */
int zf_ring_format(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring);

/*
 * For mkfs, whose filesystem must not be found before it is complete: empties both zones. Until
 * zf_ring_publish(), zf_ring_write() only keeps the record in memory, and the device has none. The
 * first record after that is written. Records are withheld even if the call returns an error.
 */
int zf_ring_withhold(struct zf_ring *ring);
void zf_ring_publish(struct zf_ring *ring);
/* For a repair: as zf_ring_withhold(), but the existing records stay. */
void zf_ring_hold(struct zf_ring *ring);

enum zf_ring_state zf_ring_zone_state(const struct zf_ring *ring, unsigned int zone);

/*
 * The newest valid record, which is what a mount takes. `ret_stepped_over` counts the damaged slots
 * that are newer than it (0: nothing to check). -EUCLEAN: there are records, but none is whole, or
 * the newest whole one has impossible values. -EPROTONOSUPPORT: the newest whole record is of an
 * unknown format. Each of these is reported.
 */
int zf_ring_newest(const struct zf_ring *ring, const struct zf_super **ret_super,
		   unsigned int *ret_stepped_over);

/* The next candidate: the newest valid record that is older than `generation`, or -ENOENT. */
int zf_ring_older(struct zf_ring *ring, uint64_t generation, struct zf_super *ret_super);

/* The record of one generation (`-o generation=N`), or -ENOENT. */
int zf_ring_find(struct zf_ring *ring, uint64_t generation, struct zf_super *ret_super);

/*
 * Returns whether one zone is offline and may have newer records than any that can be read. Zones
 * that the readable records name may have been reset since, so the mount must be read-only.
 */
bool zf_ring_lacks_newest(const struct zf_ring *ring);

/* How many more records can be written. UINT32_MAX: without limit; 0: none. */
uint32_t zf_ring_room(const struct zf_ring *ring);

/*
 * Reads every written slot, newest position first, damaged slots in their place, and passes each to
 * visit(). The walk ends when visit() returns another value than 0, and returns that value.
 */
int zf_ring_walk(struct zf_ring *ring, int (*visit)(void *arg, const struct zf_ring_record *record),
		 void *arg);

/*
 * Returns the greatest generation of all records that the search for the newest one read, including
 * what a damaged record may have had. New generations are above it, so no two transactions have the
 * same one.
 */
uint64_t zf_ring_highest_generation(const struct zf_ring *ring);

/*
 * THE COMMIT POINT. Writes a record with FUA at the ring's pointer, switching zones when the zone
 * is full; sets super->address. super->generation is above zf_ring_highest_generation(). When the
 * call returns 0, the transaction super->generation is durable. -EUCLEAN: zf_super_check() refuses
 * the values. After an error the record may or may not be on the device, so the caller turns the
 * filesystem read-only. (A later write would first ask the device for the zone's pointer.)
 */
int zf_ring_write(struct zf_ring *ring, struct zf_super *super);

/*
 * For a repair: makes `super` the newest record, although its generation is below that of the
 * newest record, whose generation is so high that no counting can have reached it. Empties both
 * zones, the newest record's zone last, so a crash leaves the old newest record or `super`. Errors
 * as above.
 */
int zf_ring_supersede(struct zf_ring *ring, struct zf_super *super);

#endif

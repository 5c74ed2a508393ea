/* SPDX-License-Identifier: MIT */
/*
 * The superblock ring: zones 0 and 1 as a log of records, the newest of which is the filesystem.
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
 *      Nor are, after a device's own finish, a full zone with the greater generation beside one in
 *      use: the full one wins, and the other is reset for the next record.
 *
 * A conventional zone has no pointer and needs no reset. Its first ZF_RING_CONVENTIONAL_SLOTS
 * blocks are the slots; the record of the greatest generation tells where the pointer would be, and
 * behind it lie older records, or zeroes. Such a zone is full when its greatest record is in the
 * last slot. The rest is as above.
 *
 * A zone that the device has turned read-only, or offline, counts as full and is never written
 * again: the other one takes its place at once, after a reset if it is full. With that the newest
 * record is in two places or, from an offline zone, where it can be read again. From then on there
 * is one zone only. When it is full nothing more is written: to reset it, a crash could leave no
 * record at all. Beside an offline zone a full one may not have the newest: nobody knows
 * (zf_ring_lacks_newest()).
 *
 * A torn newest record (power cut while it was written) is stepped over automatically only when
 * everything that the older record needs still stands, which only the caller can judge:
 * zf_ring_newest() says how many slots it stepped over, and the caller says whether it takes the
 * record (or an older one, by its generation). A whole record, whose checksum is right, is never
 * stepped over, be its format unknown or its values impossible.
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
 * Finds the newest record, reading no more than it takes; pointers that are lower bounds are
 * raised past the last record. -ENODEV: no slot holds anything like a record: not a zfuse device.
 * Otherwise 0, even if every record is damaged. `dev` outlives the ring.
 */
int zf_ring_open(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring);
void zf_ring_close(struct zf_ring *ring); /* takes NULL */

/*
 * For mkfs: empties both zones, that of the newest record last, so that a crash in between leaves
 * the old filesystem or none; the first zf_ring_write() starts in zone 0.
 */
int zf_ring_format(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring);

/*
 * For mkfs, which fills a filesystem that must not be found before it is whole: empties both zones.
 * Until zf_ring_publish(), zf_ring_write() only takes the record, and the device has none. Then the
 * next one is written. On an error it is withheld all the same.
 */
int zf_ring_withhold(struct zf_ring *ring);
void zf_ring_publish(struct zf_ring *ring);
/* For a repair: as zf_ring_withhold(), but the records that are there stay. */
void zf_ring_hold(struct zf_ring *ring);

enum zf_ring_state zf_ring_zone_state(const struct zf_ring *ring, unsigned int zone);

/*
 * The newest valid record, which is what a mount takes. `ret_stepped_over` counts the damaged
 * slots that are newer than it (0: nothing to guard). -EUCLEAN: there are records, but no whole
 * one, or the newest whole one has values that cannot be; -EPROTONOSUPPORT: that is of an unknown
 * format; all are reported.
 */
int zf_ring_newest(const struct zf_ring *ring, const struct zf_super **ret_super,
		   unsigned int *ret_stepped_over);

/* The next candidate: the newest valid record that is older than `generation`, or -ENOENT. */
int zf_ring_older(struct zf_ring *ring, uint64_t generation, struct zf_super *ret_super);

/* The record of one generation (`-o generation=N`), or -ENOENT. */
int zf_ring_find(struct zf_ring *ring, uint64_t generation, struct zf_super *ret_super);

/*
 * One zone is offline, and may have held newer records than any that can be read: what these name
 * may have been written over since, and must not be built upon.
 */
bool zf_ring_lacks_newest(const struct zf_ring *ring);

/* How many more records can be written. UINT32_MAX: there is no end to it; 0: none. */
uint32_t zf_ring_room(const struct zf_ring *ring);

/*
 * Reads every written slot, newest position first, damaged ones in their place, and shows it to
 * visit() until that returns something else than 0, which is then returned.
 */
int zf_ring_walk(struct zf_ring *ring, int (*visit)(void *arg, const struct zf_ring_record *record),
		 void *arg);

/*
 * The greatest generation that a record met on the way to the newest carries, or that a damaged
 * one may have carried: new ones go past it, so that no two transactions ever share one.
 */
uint64_t zf_ring_highest_generation(const struct zf_ring *ring);

/*
 * THE COMMIT POINT. Writes a record with FUA at the ring's pointer, switching zones when it is
 * full; sets super->address. super->generation is above zf_ring_highest_generation(). When it
 * returns 0, the transaction super->generation is durable. -EUCLEAN: zf_super_check() refuses the
 * values. On an error nothing is known about the record: the caller turns read-only. (A write after
 * that would first ask the device where the pointer is.)
 */
int zf_ring_write(struct zf_ring *ring, struct zf_super *super);

/*
 * For a repair: makes `super` the newest record, though its generation is below that of the newest
 * one, which has come to its own by no counting. Empties both zones, that of the newest record last:
 * a crash leaves the newest as it was, or `super`. Errors as above.
 */
int zf_ring_supersede(struct zf_ring *ring, struct zf_super *super);

#endif

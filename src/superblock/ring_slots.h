/* SPDX-License-Identifier: MIT */
/*
 * The slots of one ring zone: where they are, how far they are written, what each holds. Private to
 * the ring, which decides what two zones of slots mean.
 */
#ifndef ZF_SUPERBLOCK_RING_SLOTS_H
#define ZF_SUPERBLOCK_RING_SLOTS_H

#include <errno.h>

#include "superblock/ring.h"

#define ZF_RING_NO_SLOT UINT32_MAX

struct zf_ring_zone {
	struct zf_dev *dev;
	unsigned int zone_no;
	uint64_t start; /* address */
	enum zf_zone_type type;
	enum zf_zone_cond cond;
	uint32_t count;	   /* slots that the zone has */
	uint32_t next;	   /* the slot to write next; count: full */
	uint32_t readable; /* slots from here on hold nothing, and some devices fail reads there */
	uint32_t end;	   /* of a retired zone, which has no pointer: behind the last record */

	/* Set by zf_ring_zone_locate(). */
	uint32_t last;		  /* the slot of the newest whole record, or ZF_RING_NO_SLOT */
	uint64_t last_generation; /* its generation */
	uint64_t highest;	  /* the greatest generation of any readable record that was met */
	bool has_record;	  /* some slot that was met holds a record, whole or damaged */

	/* The slots that were read last. */
	void *buf;
	uint32_t buf_first, buf_count;
	uint64_t buf_unreadable; /* one bit a slot */
};

int zf_ring_zone_init(struct zf_ring_zone *zone, struct zf_dev *dev, unsigned int zone_no);
void zf_ring_zone_deinit(struct zf_ring_zone *zone);

/* Is the zone read-only or offline? Such a zone counts as full for good, whatever it holds. */
static inline bool zf_ring_zone_is_retired(const struct zf_ring_zone *zone)
{
	return zone->cond == ZF_ZONE_READONLY || zone->cond == ZF_ZONE_OFFLINE;
}

/* Slots that may hold records. */
static inline uint32_t zf_ring_zone_used(const struct zf_ring_zone *zone)
{
	bool pointer = zone->type == ZF_ZONE_CONVENTIONAL || !zf_ring_zone_is_retired(zone);

	return pointer ? zone->next : zone->end;
}

/* Asks the device for the zone's condition, and for the pointer of a sequential zone. */
int zf_ring_zone_refresh(struct zf_ring_zone *zone);

/*
 * Finds the pointer (in a conventional zone, or past a lower bound) and the newest whole record.
 * Damaged records behind the newest whole record stay below `next`.
 */
int zf_ring_zone_locate(struct zf_ring_zone *zone, bool pointer_is_lower_bound);

/* Reads what a slot holds. Damage is the record's status, not an error of the call. */
void zf_ring_zone_read(struct zf_ring_zone *zone, uint32_t slot, const struct zf_report *report,
		       struct zf_ring_record *ret_record);

/* Makes every slot empty, durably once the device is flushed. */
int zf_ring_zone_erase(struct zf_ring_zone *zone);

/*
 * Writes the next slot with FUA. After an error, zf_ring_zone_refresh() comes before the next
 * write.
 */
int zf_ring_zone_write(struct zf_ring_zone *zone, const struct zf_disk_super *disk);

/*
 * A whole record: its checksum is right, so no power cut tore it. It is never stepped over, even if
 * its format is unknown or its values are impossible, because that would silently lose the state
 * that it committed.
 */
static inline bool zf_ring_record_is_whole(const struct zf_ring_record *record)
{
	return record->generation > 0;
}

static inline uint64_t zf_ring_zone_address(const struct zf_ring_zone *zone, uint32_t slot)
{
	return zone->start + (uint64_t)slot * ZF_SUPER_SIZE;
}

#endif

/* SPDX-License-Identifier: MIT */
#include "superblock/ring_slots.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* 64 KiB: one request, and many more slots than a power cut can tear. */
#define BUF_SLOTS 16u

int zf_ring_zone_init(struct zf_ring_zone *zone, struct zf_dev *dev, unsigned int zone_no)
{
	struct zf_zone_info info;
	int r;

	memset(zone, 0, sizeof(*zone));
	zone->dev = dev;
	zone->zone_no = zone_no;
	zone->last = ZF_RING_NO_SLOT;
	r = zf_dev_report(dev, zone_no, 1, &info);
	if (r < 0)
		return r;
	zone->start = info.start;
	zone->type = info.type;
	zone->count = (uint32_t)zf_min_u64(info.capacity / ZF_SUPER_SIZE, UINT32_MAX - 1);
	if (info.type == ZF_ZONE_CONVENTIONAL && zone->count > ZF_RING_CONVENTIONAL_SLOTS)
		zone->count = ZF_RING_CONVENTIONAL_SLOTS;
	if (zone->count == 0)
		return -EINVAL;
	zone->buf = aligned_alloc(ZF_BLOCK_SIZE, BUF_SLOTS * ZF_SUPER_SIZE);
	if (!zone->buf)
		return -ENOMEM;
	return zf_ring_zone_refresh(zone);
}

void zf_ring_zone_deinit(struct zf_ring_zone *zone)
{
	free(zone->buf);
	zone->buf = NULL;
}

int zf_ring_zone_refresh(struct zf_ring_zone *zone)
{
	struct zf_zone_info info;
	uint32_t used = zf_ring_zone_used(zone);
	int r;

	zone->buf_count = 0;
	r = zf_dev_report(zone->dev, zone->zone_no, 1, &info);
	if (r < 0)
		return r;
	zone->cond = info.cond;
	if (zone->type == ZF_ZONE_CONVENTIONAL) {
		zone->readable = zone->count;
		return 0;
	}
	if (info.cond == ZF_ZONE_FULL || zf_ring_zone_is_retired(zone))
		zone->next = zone->count;
	else
		zone->next =
			(uint32_t)zf_min_u64((info.wp - info.start) / ZF_SUPER_SIZE, zone->count);
	zone->readable = info.cond == ZF_ZONE_OFFLINE ? 0 : zone->next;
	zone->end = info.cond == ZF_ZONE_OFFLINE ? 0 : used;
	return 0;
}

static void *buf_slot(const struct zf_ring_zone *zone, uint32_t slot)
{
	return (uint8_t *)zone->buf + (slot - zone->buf_first) * ZF_SUPER_SIZE;
}

/* Used when the whole read fails: one bad block must not hide its neighbours. */
static void load_one_by_one(struct zf_ring_zone *zone)
{
	for (uint32_t i = 0; i < zone->buf_count; i++) {
		uint32_t slot = zone->buf_first + i;
		int r = zf_dev_read_buf(zone->dev, zf_ring_zone_address(zone, slot),
					buf_slot(zone, slot), ZF_SUPER_SIZE);

		if (r < 0)
			zone->buf_unreadable |= UINT64_C(1) << i;
	}
}

static void load(struct zf_ring_zone *zone, uint32_t slot)
{
	int r;

	if (slot >= zone->buf_first && slot - zone->buf_first < zone->buf_count)
		return;
	zone->buf_first = slot - slot % BUF_SLOTS;
	zone->buf_count = (uint32_t)zf_min_u64(BUF_SLOTS, zone->readable - zone->buf_first);
	zone->buf_unreadable = 0;
	r = zf_dev_read_buf(zone->dev, zf_ring_zone_address(zone, zone->buf_first), zone->buf,
			    (uint64_t)zone->buf_count * ZF_SUPER_SIZE);
	if (r < 0)
		load_one_by_one(zone);
}

static bool is_blank(const uint8_t *p)
{
	return p[0] == 0 && memcmp(p, p + 1, ZF_SUPER_SIZE - 1) == 0;
}

void zf_ring_zone_read(struct zf_ring_zone *zone, uint32_t slot, const struct zf_report *report,
		       struct zf_ring_record *ret_record)
{
	struct zf_super_head head;
	const void *p;

	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->address = zf_ring_zone_address(zone, slot);
	if (slot >= zone->readable) {
		ret_record->status = -EIO;
		return;
	}
	load(zone, slot);
	p = buf_slot(zone, slot);
	if (zone->buf_unreadable >> (slot - zone->buf_first) & 1) {
		ret_record->status = -EIO;
		return;
	}
	if (is_blank(p)) {
		ret_record->status = -ENODATA;
		return;
	}
	ret_record->status = zf_super_decode(p, ret_record->address, report, &ret_record->super);
	if (zf_super_decode_head(p, ret_record->address, NULL, &head) == 0)
		ret_record->generation = head.generation;
}

static void note(struct zf_ring_zone *zone, const struct zf_ring_record *record)
{
	zone->highest = zf_max_u64(zone->highest, record->generation);
	if (record->status != -ENOENT && record->status != -ENODATA)
		zone->has_record = true;
}

static void note_last(struct zf_ring_zone *zone, uint32_t slot, const struct zf_ring_record *record)
{
	if (!zf_ring_record_is_whole(record))
		return;
	if (zone->last != ZF_RING_NO_SLOT && record->generation <= zone->last_generation)
		return;
	zone->last = slot;
	zone->last_generation = record->generation;
}

/*
 * The record with the greatest generation was written last. A damaged slot right behind it may be a
 * record that was torn while it replaced an older record or zeroes.
 */
static void locate_conventional(struct zf_ring_zone *zone)
{
	struct zf_ring_record record;

	zone->next = 0;
	for (uint32_t slot = 0; slot < zone->count; slot++) {
		zf_ring_zone_read(zone, slot, NULL, &record);
		note(zone, &record);
		note_last(zone, slot, &record);
	}
	if (zone->last != ZF_RING_NO_SLOT)
		zone->next = zone->last + 1;
	while (zone->next < zone->count) {
		zf_ring_zone_read(zone, zone->next, NULL, &record);
		if (zf_ring_record_is_whole(&record) || record.status == -ENODATA)
			break;
		zone->next++;
	}
}

/*
 * The slots below the pointer were written in order, so the last whole record is the newest. But a
 * torn record may read as what the slot held before the zone's reset: a whole record at its own
 * place, but older than the first record of this life of the zone.
 */
static void locate_backward(struct zf_ring_zone *zone)
{
	struct zf_ring_record record;
	uint64_t first = 0;

	if (zone->next > 0) {
		zf_ring_zone_read(zone, 0, NULL, &record);
		if (zf_ring_record_is_whole(&record))
			first = record.generation;
	}
	for (uint32_t slot = zone->next; slot-- > 0 && zone->last == ZF_RING_NO_SLOT;) {
		zf_ring_zone_read(zone, slot, NULL, &record);
		note(zone, &record);
		if (record.generation >= first)
			note_last(zone, slot, &record);
	}
}

/*
 * The pointer of a read-only zone cannot be trusted. Behind the newest record there may be torn
 * records, which are damaged, and then slots that were not written in this life of the zone.
 */
static void find_end(struct zf_ring_zone *zone)
{
	struct zf_ring_record record;

	zone->end = zone->last == ZF_RING_NO_SLOT ? 0 : zone->last + 1;
	for (; zone->end < zone->count; zone->end++) {
		zf_ring_zone_read(zone, zone->end, NULL, &record);
		if (zf_ring_record_is_whole(&record) || record.status == -ENODATA)
			break;
	}
}

/*
 * The pointer is a lower bound: records may lie behind it, even behind a torn record. Records whose
 * generations do not ascend are left from before the reset: the host's stop undid the discard.
 */
static int locate_forward(struct zf_ring_zone *zone)
{
	struct zf_ring_record record;
	uint32_t next = zone->next;
	int r;

	zone->readable = zone->count;
	zone->buf_count = 0;
	for (uint32_t slot = zone->next; slot < zone->count; slot++) {
		zf_ring_zone_read(zone, slot, NULL, &record);
		note(zone, &record);
		note_last(zone, slot, &record);
		if (zone->last == slot)
			next = slot + 1;
	}
	zone->next = zone->readable = next;
	zone->buf_count = 0;
	r = zf_dev_raise_pointer(zone->dev, zone->zone_no, zf_ring_zone_address(zone, next));
	/* A device that was opened for reading keeps its pointers; zone->next is enough to read. */
	return r == -EROFS ? 0 : r;
}

int zf_ring_zone_locate(struct zf_ring_zone *zone, bool pointer_is_lower_bound)
{
	zone->last = ZF_RING_NO_SLOT;
	if (zone->type == ZF_ZONE_CONVENTIONAL) {
		locate_conventional(zone);
		return 0;
	}
	locate_backward(zone);
	if (zone->cond == ZF_ZONE_READONLY)
		find_end(zone);
	return pointer_is_lower_bound && zone->next < zone->count ? locate_forward(zone) : 0;
}

static int write_zeroes(struct zf_ring_zone *zone)
{
	struct zf_io io = {
		.op = ZF_IO_ZEROES,
		.addr = zone->start,
		.len = (uint64_t)zone->count * ZF_SUPER_SIZE,
	};

	return zf_dev_run(zone->dev, &io);
}

int zf_ring_zone_erase(struct zf_ring_zone *zone)
{
	int r;

	zone->buf_count = 0;
	if (zone->type == ZF_ZONE_CONVENTIONAL)
		r = write_zeroes(zone);
	else
		r = zf_dev_reset(zone->dev, zone->zone_no);
	if (r < 0)
		return r;
	zone->next = 0;
	zone->last = ZF_RING_NO_SLOT;
	return zf_ring_zone_refresh(zone);
}

int zf_ring_zone_write(struct zf_ring_zone *zone, const struct zf_disk_super *disk)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)disk, .iov_len = ZF_SUPER_SIZE};
	struct zf_io io = {
		.op = ZF_IO_WRITE,
		.fua = true,
		.purpose = ZF_FOR_SUPER,
		.addr = zf_ring_zone_address(zone, zone->next),
		.len = ZF_SUPER_SIZE,
		.iov = &iov,
		.iovcnt = 1,
	};
	int r;

	assert(zone->next < zone->count);
	zone->buf_count = 0;
	r = zf_dev_run(zone->dev, &io);
	if (r < 0)
		return r;
	zone->next++;
	if (zone->type == ZF_ZONE_SEQUENTIAL)
		zone->readable = zone->next;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "log/read.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/plant.h"
#include "log/scan.h"

/* The state of zf_log_read(). */
struct reading {
	const struct zf_super *super;
	const struct zf_report *report;
	struct zf_log_found *found;
	size_t room; /* in found->list */
	unsigned int which;
};

/* ---- finding the records ---- */

static void note_numbers(struct zf_log_found *found, const struct zf_log_found_record *item)
{
	struct zf_log_body_view body;

	found->highest_sequence = zf_max_u64(found->highest_sequence, item->record.sequence);
	for (size_t at = 0; zf_log_record_next_body(item->blocks, item->address, &at, &body);)
		found->highest_number = zf_max_u64(found->highest_number, body.number);
}

static int grow(struct reading *reading)
{
	size_t room = reading->room > 0 ? 2 * reading->room : 64;
	void *list = reallocarray(reading->found->list, room, sizeof(*reading->found->list));

	if (!list)
		return -ENOMEM;
	reading->found->list = list;
	reading->room = room;
	return 0;
}

static int keep(void *arg, uint64_t address, const struct zf_log_record *record, const void *blocks)
{
	struct reading *reading = arg;
	struct zf_log_found *found = reading->found;
	struct zf_log_found_record *item;
	int r;

	if (found->list_count == reading->room) {
		r = grow(reading);
		if (r < 0)
			return r;
	}
	item = &found->list[found->list_count];
	item->blocks = malloc(record->bytes);
	if (!item->blocks)
		return -ENOMEM;
	memcpy(item->blocks, blocks, record->bytes);
	item->address = address;
	item->which = reading->which;
	item->record = *record;
	found->list_count++;
	note_numbers(found, item);
	return 0;
}

/*
 * Nothing of the zone can be read now. But its records may be there, and may be readable later:
 * then they must not pass for new records.
 */
static uint64_t none_of(struct reading *reading, const struct zf_zone_info *info)
{
	reading->found->unreadable += info->capacity >> ZF_BLOCK_SHIFT;
	return 0;
}

/* How much of the zone may hold records, in bytes. */
static uint64_t limit_of(struct reading *reading, const struct zf_geometry *geometry,
			 const struct zf_zone_info *info)
{
	uint64_t resets = reading->super->log_zone_resets[reading->which];

	if (info->lost)
		return info->capacity;
	/* 0: the device does not count. */
	if (info->reset_count != 0 && info->reset_count != resets) {
		zf_report(reading->report, ZF_REPORT_ERROR,
			  "log: the zone at %" PRIu64 " has been reset %" PRIu64
			  " times, expected %" PRIu64 ": its records are gone",
			  info->start, info->reset_count, resets);
		return none_of(reading, info);
	}
	switch (info->cond) {
	case ZF_ZONE_OFFLINE:
		zf_report(reading->report, ZF_REPORT_ERROR,
			  "log: the zone at %" PRIu64 " is offline", info->start);
		return none_of(reading, info);
	case ZF_ZONE_NOT_WP:
	case ZF_ZONE_FULL:
	case ZF_ZONE_READONLY:
		return info->capacity;
	default:
		return geometry->pointers_are_lower_bounds ? info->capacity
							   : info->wp - info->start;
	}
}

static int read_zone(struct reading *reading, struct zf_dev *dev, const struct zf_hash_key *key)
{
	const struct zf_super *super = reading->super;
	struct zf_log_scan scan = {
		.dev = dev,
		.report = reading->report,
		.key = key,
		.sequence = super->log_sequence,
		.found = keep,
		.arg = reading,
		.unreadable = &reading->found->unreadable,
	};
	struct zf_zone_info info;
	int r = zf_dev_report(dev, super->log_zone[reading->which], 1, &info);

	if (r < 0)
		return r;
	zf_log_place_init(&scan.place, super, reading->which);
	if (!ZF_PLANTED(ZF_BUG_STALE_RECORD))
		scan.from = super->log_pointer[reading->which];
	scan.limit = zf_align_down(limit_of(reading, zf_dev_geometry(dev), &info), ZF_BLOCK_SIZE);
	return zf_log_scan(&scan, &reading->found->end[reading->which]);
}

/* ---- which of them count ---- */

static int compare_records(const void *a, const void *b)
{
	const struct zf_log_found_record *x = a, *y = b;

	if (x->record.sequence != y->record.sequence)
		return x->record.sequence < y->record.sequence ? -1 : 1;
	if (x->which != y->which)
		return x->which < y->which ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static bool same_record(const struct zf_log_found_record *a, const struct zf_log_found_record *b)
{
	return memcmp(a->blocks, b->blocks, ZF_LOG_HASH_SIZE) == 0;
}

/* Counts the items, from `first` on, that have the sequence number of item `first`. */
static size_t count_same(const struct zf_log_found *found, size_t first)
{
	size_t n = 1;

	while (first + n < found->list_count &&
	       found->list[first + n].record.sequence == found->list[first].record.sequence)
		n++;
	return n;
}

/* Is there only one record of this sequence number, perhaps in several copies? */
static bool is_one_record(const struct reading *reading, const struct zf_log_found_record *items,
			  size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (same_record(&items[0], &items[i]))
			continue;
		zf_report(reading->report, ZF_REPORT_ERROR,
			  "log: two records have the sequence number %" PRIu64 ", at %" PRIu64
			  " and %" PRIu64 ": both are ignored, and so are all later records",
			  items[0].record.sequence, items[0].address, items[i].address);
		return false;
	}
	return true;
}

static void set_fates(struct zf_log_found_record *items, size_t n, enum zf_log_fate first,
		      enum zf_log_fate others)
{
	for (size_t i = 0; i < n; i++)
		items[i].fate = i == 0 ? first : others;
}

static void judge_records(struct reading *reading)
{
	struct zf_log_found *found = reading->found;
	uint64_t next = reading->super->log_sequence + 1;
	size_t n;

	for (size_t i = 0; i < found->list_count; i += n) {
		struct zf_log_found_record *items = &found->list[i];

		n = count_same(found, i);
		if (items->record.sequence < next) {
			set_fates(items, n, ZF_LOG_COMMITTED, ZF_LOG_COMMITTED);
		} else if (items->record.sequence == next && is_one_record(reading, items, n)) {
			set_fates(items, n, ZF_LOG_TO_REPLAY, ZF_LOG_COPY);
			found->records++;
			next++;
		} else {
			set_fates(items, n, ZF_LOG_BEHIND_GAP, ZF_LOG_BEHIND_GAP);
			found->ignored += n;
		}
	}
}

/* ---- their bodies ---- */

static size_t count_bodies(const struct zf_log_found *found)
{
	size_t n = 0;

	for (size_t i = 0; i < found->list_count; i++)
		if (found->list[i].fate == ZF_LOG_TO_REPLAY)
			n += found->list[i].record.body_count;
	return n;
}

static void take_bodies(struct zf_log_found *found, const struct zf_log_found_record *item,
			uint64_t above)
{
	struct zf_log_body_view body;

	for (size_t at = 0; zf_log_record_next_body(item->blocks, item->address, &at, &body);)
		if (body.number > above || ZF_PLANTED(ZF_BUG_REPLAY_COMMITTED))
			found->bodies[found->body_count++] = body;
}

static int compare_bodies(const void *a, const void *b)
{
	const struct zf_log_body_view *x = a, *y = b;

	if (ZF_PLANTED(ZF_BUG_REPLAY_OUT_OF_ORDER) && x->type != y->type)
		return x->type == ZF_LOG_OPERATION ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* If two bodies have the same number, their order is unknown: the log ends before them. */
static void end_at_double_number(struct reading *reading)
{
	struct zf_log_found *found = reading->found;

	for (size_t i = 1; i < found->body_count; i++) {
		if (found->bodies[i].number != found->bodies[i - 1].number)
			continue;
		zf_report(reading->report, ZF_REPORT_ERROR,
			  "log: two bodies have the number %" PRIu64
			  ": both are ignored, and so are all later bodies",
			  found->bodies[i].number);
		found->body_count = i - 1;
		return;
	}
}

static int order_bodies(struct reading *reading)
{
	struct zf_log_found *found = reading->found;
	size_t n = count_bodies(found);

	if (n == 0)
		return 0;
	found->bodies = calloc(n, sizeof(*found->bodies));
	if (!found->bodies)
		return -ENOMEM;
	for (size_t i = 0; i < found->list_count; i++)
		if (found->list[i].fate == ZF_LOG_TO_REPLAY)
			take_bodies(found, &found->list[i], reading->super->op_number);
	qsort(found->bodies, found->body_count, sizeof(*found->bodies), compare_bodies);
	end_at_double_number(reading);
	return 0;
}

/* ---- all of it ---- */

static int read_zones(struct reading *reading, struct zf_dev *dev)
{
	const struct zf_super *super = reading->super;
	struct zf_hash_key key;
	int r;

	zf_hash_key_init(&key, super->log_secret);
	for (unsigned int which = 0; which < 2; which++) {
		if (super->log_zone[which] == ZF_SUPER_NO_ZONE)
			continue;
		reading->which = which;
		r = read_zone(reading, dev, &key);
		if (r < 0)
			return r;
	}
	return 0;
}

int zf_log_read(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		struct zf_log_found *ret_found)
{
	struct zf_log_found found = {
		.highest_sequence = super->log_sequence,
		.highest_number = super->op_number,
	};
	struct reading reading = {.super = super, .report = report, .found = &found};
	int r = read_zones(&reading, dev);

	if (r == 0) {
		if (found.list_count > 0)
			qsort(found.list, found.list_count, sizeof(*found.list), compare_records);
		judge_records(&reading);
		r = order_bodies(&reading);
	}
	if (r < 0) {
		zf_log_found_free(&found);
		return r;
	}
	*ret_found = found;
	return 0;
}

void zf_log_found_free(struct zf_log_found *found)
{
	for (size_t i = 0; i < found->list_count; i++)
		free(found->list[i].blocks);
	free(found->list);
	free(found->bodies);
	*found = (struct zf_log_found){0};
}

bool zf_log_found_more(const struct zf_log_found *found, const struct zf_super *super)
{
	return found->body_count > 0 || found->records > 0 || found->ignored > 0 ||
	       found->unreadable > 0 || found->highest_sequence > super->log_sequence;
}

static int body_ranges(const struct zf_log_body_view *body,
		       int (*fn)(void *arg, const struct zf_log_range *range), void *arg)
{
	struct zf_log_range_view range;
	int r;

	for (size_t at = 0; zf_log_next_range(body, &at, &range);) {
		if (range.range.type != ZF_LOG_RANGE_DATA)
			continue;
		r = fn(arg, &range.range);
		if (r < 0)
			return r;
	}
	return 0;
}

int zf_log_found_ranges(const struct zf_log_found *found,
			int (*fn)(void *arg, const struct zf_log_range *range), void *arg)
{
	for (size_t i = 0; i < found->body_count; i++) {
		int r = found->bodies[i].type == ZF_LOG_EXTENTS
				? body_ranges(&found->bodies[i], fn, arg)
				: 0;

		if (r < 0)
			return r;
	}
	return 0;
}

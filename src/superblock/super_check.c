/* SPDX-License-Identifier: MIT */
/* Checks the values of a superblock, before it is used and before it is written. */
#include "superblock/super.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

#define WHAT "superblock"

bool zf_super_label_is_valid(const char label[ZF_SUPER_LABEL_SIZE])
{
	const uint8_t *p = (const uint8_t *)label;
	size_t used = strnlen(label, ZF_SUPER_LABEL_SIZE);

	if (used == ZF_SUPER_LABEL_SIZE)
		return false;
	for (size_t i = used; i < ZF_SUPER_LABEL_SIZE; i++)
		if (p[i] != 0)
			return false;
	for (size_t i = 0; i < used;) {
		size_t len = zf_utf8_length(p + i, used - i);
		/* A label is printed to terminals: no escape sequences (C0, DEL and C1). */
		bool control = p[i] < 0x20 || p[i] == 0x7f || (p[i] == 0xc2 && p[i + 1] < 0xa0);

		if (len == 0 || control)
			return false;
		i += len;
	}
	return true;
}

/* Checks one field against its bounds, both included. */
static int check_range(const struct zf_super *super, const struct zf_report *report,
		       const char *field, uint64_t value, uint64_t min, uint64_t max)
{
	if (value >= min && value <= max)
		return 0;
	return zf_report_corrupt(report, WHAT, super->address,
				 "%s has %" PRIu64 ", expected %" PRIu64 " to %" PRIu64, field,
				 value, min, max);
}

static int check_multiple(const struct zf_super *super, const struct zf_report *report,
			  const char *field, uint64_t value, uint64_t unit)
{
	if (zf_is_aligned(value, unit))
		return 0;
	return zf_report_corrupt(report, WHAT, super->address,
				 "%s has %" PRIu64 ", expected a multiple of %" PRIu64, field,
				 value, unit);
}

static int check_identity(const struct zf_super *super, const struct zf_report *report)
{
	static const uint8_t none[16];
	int r;

	if (memcmp(super->fsid, none, sizeof(none)) == 0)
		return zf_report_corrupt(report, WHAT, super->address,
					 "fsid has no bit set, expected a UUID");
	if (!zf_super_label_is_valid(super->label))
		return zf_report_corrupt(report, WHAT, super->address,
					 "label has invalid bytes, expected UTF-8 of at most %u "
					 "bytes without control characters",
					 ZF_SUPER_LABEL_SIZE - 1);
	r = check_range(super, report, "generation", super->generation, 1, ZF_SUPER_COUNTER_MAX);
	if (r < 0)
		return r;
	return check_range(super, report, "mkfs_time", super->mkfs_time, 0, INT64_MAX);
}

static int check_shape(const struct zf_super *super, const struct zf_report *report)
{
	const struct {
		const char *field;
		uint64_t value, min, max, unit;
	} fields[] = {
		{"zone_count", super->zone_count, ZF_ZONE_COUNT_MIN, UINT32_MAX - 1, 1},
		{"zone_size", super->zone_size, ZF_BLOCK_SIZE,
		 super->zone_count ? INT64_MAX / super->zone_count : 0, ZF_BLOCK_SIZE},
		{"zone_capacity", super->zone_capacity, ZF_BLOCK_SIZE, super->zone_size,
		 ZF_BLOCK_SIZE},
		{"conventional", super->conventional, 0, super->zone_count, 1},
		{"node_size", super->node_size, ZF_NODE_SIZE_MIN,
		 zf_min_u64(ZF_NODE_SIZE_MAX, super->zone_capacity), ZF_NODE_SIZE_MIN},
		{"metadata_copies", super->metadata_copies, 1, ZF_COPIES_MAX, 1},
	};

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(fields); i++) {
		int r = check_range(super, report, fields[i].field, fields[i].value, fields[i].min,
				    fields[i].max);

		if (r == 0)
			r = check_multiple(super, report, fields[i].field, fields[i].value,
					   fields[i].unit);
		if (r < 0)
			return r;
	}
	if ((super->node_size & (super->node_size - 1)) != 0)
		return zf_report_corrupt(report, WHAT, super->address,
					 "node_size has %" PRIu32 ", expected a power of two",
					 super->node_size);
	return 0;
}

static int check_root(const struct zf_super *super, const struct zf_report *report)
{
	const struct zf_node_ptr_limits limits = {
		.zone_size = super->zone_size,
		.zone_capacity = super->zone_capacity,
		.zone_count = super->zone_count,
		.node_size = super->node_size,
		.copies = super->metadata_copies,
		.generation_max = super->generation,
	};
	char fault[ZF_NODE_PTR_FAULT_SIZE];

	if (zf_node_ptr_is_wrong(&super->root, &limits, fault))
		return zf_report_corrupt(report, WHAT, super->address, "root.%s", fault);
	return check_range(super, report, "root_level", super->root_level, 0,
			   ZF_TREE_LEVEL_MAX - 1);
}

/* Older versions stored something else behind kept_bytes (ZF_INCOMPAT_GUARANTEE). */
static int check_kept(const struct zf_super *super, const struct zf_report *report)
{
	bool counts = super->incompat & ZF_INCOMPAT_GUARANTEE;
	uint64_t max = super->zone_count * super->zone_capacity;
	const struct {
		const char *field;
		uint64_t value, max;
	} fields[] = {
		{"kept_bytes", super->kept_bytes, max},
		{"guaranteed_bytes", super->guaranteed_bytes, max},
		{"kept_guaranteed_bytes", super->kept_guaranteed_bytes,
		 counts ? zf_min_u64(super->kept_bytes, super->guaranteed_bytes) : 0},
	};
	int r = 0;

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(fields) && r == 0; i++) {
		r = check_range(super, report, fields[i].field, fields[i].value, 0, fields[i].max);
		if (r == 0)
			r = check_multiple(super, report, fields[i].field, fields[i].value,
					   ZF_BLOCK_SIZE);
	}
	return r;
}

static int check_counters(const struct zf_super *super, const struct zf_report *report)
{
	const struct {
		const char *field;
		uint64_t value, max;
	} fields[] = {
		{"next_ino", super->next_ino, ZF_SUPER_COUNTER_MAX},
		{"inode_count", super->inode_count, super->next_ino},
		{"next_intent", super->next_intent, ZF_SUPER_COUNTER_MAX},
		{"op_number", super->op_number, ZF_SUPER_COUNTER_MAX},
		{"log_sequence", super->log_sequence, ZF_SUPER_COUNTER_MAX},
		{"log_epoch", super->log_epoch, ZF_SUPER_COUNTER_MAX},
		{"log_zone_resets[0]", super->log_zone_resets[0], ZF_SUPER_COUNTER_MAX},
		{"log_zone_resets[1]", super->log_zone_resets[1], ZF_SUPER_COUNTER_MAX},
	};
	int r;

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(fields); i++) {
		r = check_range(super, report, fields[i].field, fields[i].value, 0, fields[i].max);
		if (r < 0)
			return r;
	}
	return check_kept(super, report);
}

/* Each zone that the superblock names has one role, so no two are the same. */
static int check_zones(const struct zf_super *super, const struct zf_report *report)
{
	const struct {
		const char *field;
		uint32_t zone_no;
		bool may_be_set;
	} zones[] = {
		{"log_zone[0]", super->log_zone[0], true},
		{"log_zone[1]", super->log_zone[1], true},
		{"meta_zone[0]", super->meta_zone[0], true},
		{"meta_zone[1]", super->meta_zone[1], super->metadata_copies == 2},
	};

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(zones); i++) {
		uint32_t zone_no = zones[i].zone_no;

		if (zone_no == ZF_SUPER_NO_ZONE)
			continue;
		if (!zones[i].may_be_set || zone_no < ZF_SUPER_ZONES ||
		    zone_no >= super->zone_count)
			return zf_report_corrupt(report, WHAT, super->address,
						 "%s has %" PRIu32 ", expected %" PRIu32
						 " (none) or a zone of the filesystem",
						 zones[i].field, zone_no, ZF_SUPER_NO_ZONE);
		for (unsigned int k = 0; k < i; k++)
			if (zones[k].zone_no == zone_no)
				return zf_report_corrupt(report, WHAT, super->address,
							 "%s has %" PRIu32
							 ", expected another zone than %s",
							 zones[i].field, zone_no, zones[k].field);
	}
	return 0;
}

static int check_pointers(const struct zf_super *super, const struct zf_report *report)
{
	const struct {
		const char *field;
		uint32_t zone_no;
		uint64_t pointer;
	} zones[] = {
		{"log_pointer[0]", super->log_zone[0], super->log_pointer[0]},
		{"log_pointer[1]", super->log_zone[1], super->log_pointer[1]},
		{"meta_pointer[0]", super->meta_zone[0], super->meta_pointer[0]},
		{"meta_pointer[1]", super->meta_zone[1], super->meta_pointer[1]},
	};

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(zones); i++) {
		uint64_t max = zones[i].zone_no == ZF_SUPER_NO_ZONE ? 0 : super->zone_capacity;

		if (zones[i].pointer <= max && zf_is_aligned(zones[i].pointer, ZF_BLOCK_SIZE))
			continue;
		return zf_report_corrupt(report, WHAT, super->address,
					 "%s has %" PRIu64
					 ", expected a multiple of 4096 up to %" PRIu64,
					 zones[i].field, zones[i].pointer, max);
	}
	return 0;
}

int zf_super_check(const struct zf_super *super, const struct zf_report *report)
{
	static int (*const checks[])(const struct zf_super *, const struct zf_report *) = {
		check_identity, check_shape, check_root,
		check_counters, check_zones, check_pointers,
	};

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(checks); i++) {
		int r = checks[i](super, report);

		if (r < 0)
			return r;
	}
	return 0;
}

int zf_super_check_geometry(const struct zf_super *super, const struct zf_geometry *geometry,
			    const struct zf_report *report)
{
	const struct {
		const char *field;
		uint64_t here, expected;
		bool more_is_right;
	} fields[] = {
		{"zone_size", geometry->zone_size, super->zone_size, false},
		{"zone_capacity", geometry->zone_capacity, super->zone_capacity, false},
		{"zone_count", geometry->zone_count, super->zone_count, true},
		{"conventional", geometry->conventional, super->conventional, true},
	};

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(fields); i++) {
		if (fields[i].here == fields[i].expected ||
		    (fields[i].more_is_right && fields[i].here > fields[i].expected))
			continue;
		zf_report(report, ZF_REPORT_ERROR,
			  "the filesystem was made on a device with %s %" PRIu64
			  ", but this one has %" PRIu64
			  ": it is another device, or it was truncated",
			  fields[i].field, fields[i].expected, fields[i].here);
		return -EUCLEAN;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "fs/mount/format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "superblock/super.h"

/*
 * Active zones, besides one per metadata copy: superblock 1, log 2 while it switches, data 1, cold
 * data 1.
 */
#define ACTIVE_BASE 5u

/* Reserved zones, besides one per metadata copy: log 2, reclaim 3. */
#define RESERVED_BASE 5u

static int check_options(const struct zf_format_options *options, const struct zf_format_plan *plan,
			 const struct zf_report *report)
{
	static const uint8_t none[16];
	uint32_t node_size = plan->node_size;

	if (memcmp(options->fsid, none, sizeof(none)) == 0) {
		zf_report(report, ZF_REPORT_ERROR, "the UUID is all zero: choose another");
		return -EINVAL;
	}
	if (!zf_super_label_is_valid(options->label)) {
		zf_report(report, ZF_REPORT_ERROR,
			  "the label must be UTF-8 of at most %u bytes without control characters",
			  ZF_SUPER_LABEL_SIZE - 1);
		return -EINVAL;
	}
	if (node_size < ZF_NODE_SIZE_MIN || node_size > ZF_NODE_SIZE_MAX ||
	    (node_size & (node_size - 1)) != 0) {
		zf_report(report, ZF_REPORT_ERROR,
			  "the node size is %" PRIu32 " bytes: choose 4096, 8192, 16384 or 32768",
			  node_size);
		return -EINVAL;
	}
	if (plan->metadata_copies > ZF_COPIES_MAX) {
		zf_report(report, ZF_REPORT_ERROR, "%u metadata copies: choose 1 or 2",
			  plan->metadata_copies);
		return -EINVAL;
	}
	return 0;
}

static int check_zones(const struct zf_geometry *g, const struct zf_format_plan *plan,
		       const struct zf_report *report)
{
	uint64_t capacity_min = (uint64_t)ZF_FORMAT_ZONE_NODES_MIN * plan->node_size;

	if (g->zone_count < ZF_ZONE_COUNT_MIN || g->zone_count >= ZF_SUPER_NO_ZONE) {
		zf_report(report, ZF_REPORT_ERROR,
			  "the device has %" PRIu32
			  " zones, but a filesystem needs at least %u: take a larger device, or "
			  "make an emulated one with smaller zones",
			  g->zone_count, ZF_ZONE_COUNT_MIN);
		return -EINVAL;
	}
	if (g->zone_capacity < capacity_min) {
		zf_report(report, ZF_REPORT_ERROR,
			  "a zone holds %" PRIu64 " bytes, but with nodes of %" PRIu32
			  " bytes it must hold at least %" PRIu64
			  " (%u nodes): choose a smaller --node-size, or larger zones",
			  g->zone_capacity, plan->node_size, capacity_min,
			  ZF_FORMAT_ZONE_NODES_MIN);
		return -EINVAL;
	}
	return 0;
}

/*
 * Both limits count: above max_open, a device would spend time on closing a zone for each that it
 * opens.
 */
static uint32_t active_limit(const struct zf_geometry *g)
{
	if (g->max_open == 0 || g->max_active == 0)
		return g->max_open + g->max_active;
	return g->max_open < g->max_active ? g->max_open : g->max_active;
}

static int check_active(const struct zf_geometry *g, const struct zf_format_plan *plan,
			const struct zf_report *report)
{
	if (plan->active_limit == 0 || plan->active_limit >= plan->active_needed)
		return 0;
	zf_report(report, ZF_REPORT_ERROR,
		  "the device allows %" PRIu32 " open or active zones (max_open %" PRIu32
		  ", max_active %" PRIu32 ", 0: no limit), but %u metadata %s %" PRIu32 ": %s",
		  plan->active_limit, g->max_open, g->max_active, plan->metadata_copies,
		  plan->metadata_copies == 1 ? "copy needs" : "copies need", plan->active_needed,
		  plan->active_limit >= ACTIVE_BASE + 1 ? "choose --metadata-copies 1"
							: "this device cannot be used");
	return -EINVAL;
}

int zf_format_check(const struct zf_geometry *geometry, const struct zf_format_options *options,
		    const struct zf_report *report, struct zf_format_plan *ret_plan)
{
	uint8_t copies = options->metadata_copies ? options->metadata_copies : 1;
	struct zf_format_plan plan = {
		.node_size = options->node_size ? options->node_size : ZF_FORMAT_NODE_SIZE_DEFAULT,
		.metadata_copies = copies,
		.active_needed = ACTIVE_BASE + copies,
		.active_limit = active_limit(geometry),
		.ring_zones = ZF_SUPER_ZONES,
		.reserved_zones = RESERVED_BASE + copies,
	};
	int r;

	r = check_options(options, &plan, report);
	if (r < 0)
		return r;
	r = check_zones(geometry, &plan, report);
	if (r < 0)
		return r;
	r = check_active(geometry, &plan, report);
	if (r < 0)
		return r;
	plan.usable_zones = geometry->zone_count - plan.ring_zones - plan.reserved_zones;
	plan.usable_bytes = plan.usable_zones * geometry->zone_capacity;
	*ret_plan = plan;
	return 0;
}

/* SPDX-License-Identifier: MIT */
#include "transfer/copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/zone.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "transfer/copy_bytes.h"
#include "fs/mount/format.h"
#include "fs/core/inode.h"
#include "log/read.h"

#define REPORT_CHUNK 256u

/* The part of one zone that is to be copied. */
struct zone_plan {
	uint64_t len; /* bytes from its start */
	uint64_t resets;
	bool finish;
};

struct copy {
	struct zf_dev *from, *to;
	const struct zf_progress *progress;
	const struct zf_report *report;
	struct zf_super super;
	bool has_log;		/* the log has records from after the last commit */
	struct zone_plan *plan; /* super.zone_count of them */
	struct zf_copy_bytes *bytes;
	uint64_t done, total;
};

/* ---- the source ---- */

static void forward_errors(void *arg, enum zf_report_level level, const char *message)
{
	if (level == ZF_REPORT_ERROR)
		zf_report(arg, level, "%s", message);
}

/*
 * The part of a conventional zone that may be in use. Its pointer is known only as of the last
 * commit: log records, and data that they name, may lie behind it.
 */
static uint64_t conventional_len(const struct copy *copy, uint32_t zone_no, uint64_t capacity,
				 const struct zf_zone *zone)
{
	if (zone_no < ZF_SUPER_ZONES)
		return zf_min_u64(capacity, (uint64_t)ZF_RING_CONVENTIONAL_SLOTS * ZF_BLOCK_SIZE);
	return copy->has_log ? capacity : (uint64_t)zone->pointer << ZF_BLOCK_SHIFT;
}

static void plan_zone(struct copy *copy, uint32_t zone_no, const struct zf_zone_info *info,
		      const struct zf_zone *zone)
{
	struct zone_plan *plan = &copy->plan[zone_no];

	plan->resets = info->reset_count;
	switch (info->cond) {
	case ZF_ZONE_NOT_WP:
		plan->len = conventional_len(copy, zone_no, info->capacity, zone);
		break;
	case ZF_ZONE_OFFLINE: /* it cannot be read, but its copy must not pass for an empty zone */
		zf_report(copy->report, ZF_REPORT_WARNING,
			  "%s: zone %" PRIu32 " is offline: its data is lost",
			  zf_dev_path(copy->from), zone_no);
		plan->finish = true;
		break;
	case ZF_ZONE_FULL:
	case ZF_ZONE_READONLY: /* its pointer is not valid any more */
		plan->len = info->capacity;
		plan->finish = true;
		break;
	default:
		plan->len = info->wp - info->start;
	}
	copy->total += plan->len;
}

/*
 * If the device counts resets, its counts are used: they are newer than those of the filesystem,
 * which are as of its last commit. But most devices do not count.
 */
static void take_reset_counts(struct copy *copy, struct zf_alloc *alloc)
{
	bool counted = false;

	for (uint32_t z = 0; z < copy->super.zone_count; z++)
		counted |= copy->plan[z].resets > 0;
	for (uint32_t z = 0; z < copy->super.zone_count && !counted; z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		copy->plan[z].resets = zone.reset_count;
	}
}

static int plan_zones(struct copy *copy, struct zf_alloc *alloc)
{
	uint32_t count = copy->super.zone_count;
	struct zf_zone_info info[REPORT_CHUNK];

	copy->plan = calloc(count, sizeof(*copy->plan));
	if (!copy->plan)
		return -ENOMEM;
	for (uint32_t first = 0; first < count; first += REPORT_CHUNK) {
		uint32_t n = (uint32_t)zf_min_u64(REPORT_CHUNK, count - first);
		int r = zf_dev_report(copy->from, first, n, info);

		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++) {
			struct zf_zone zone;

			zf_alloc_get_zone(alloc, first + i, &zone);
			plan_zone(copy, first + i, &info[i], &zone);
		}
	}
	take_reset_counts(copy, alloc);
	return 0;
}

/*
 * The superblock alone does not tell this: the superblock of a clean unmount stays the newest one
 * until the next mount commits. If the log cannot be read, assume that it has records.
 */
static bool has_log(struct zf_dev *from, const struct zf_super *super)
{
	struct zf_log_found found = {0};
	bool more = zf_log_read(from, super, NULL, &found) < 0 || zf_log_found_more(&found, super);

	zf_log_found_free(&found);
	return more;
}

/* Mounts the source, which verifies that it can be mounted. */
static int look_at_source(struct copy *copy)
{
	const struct zf_report errors = {.fn = forward_errors, .arg = (void *)copy->report};
	const struct zf_mount_options options = {.read_only = true};
	struct zf_fs *fs;
	int r;

	if (zf_dev_geometry(copy->from)->pointers_are_lower_bounds) {
		zf_report(copy->report, ZF_REPORT_ERROR,
			  "%s: its host stopped uncleanly, so its write pointers are not exact: "
			  "mount it once before the copy",
			  zf_dev_path(copy->from));
		return -EUCLEAN;
	}
	r = zf_fs_mount(copy->from, &options, &errors, &fs);
	if (r < 0) {
		zf_report(copy->report, ZF_REPORT_ERROR, "%s: cannot be mounted: %s",
			  zf_dev_path(copy->from),
			  r == -ENODEV ? "no zfuse filesystem on it" : strerror(-r));
		return r;
	}
	copy->super = fs->super;
	copy->has_log = has_log(copy->from, &copy->super);
	r = plan_zones(copy, fs->alloc);
	zf_fs_abandon(fs);
	return r;
}

/* ---- does the target fit? ---- */

static int mismatch(const struct copy *copy, const char *what, uint64_t has, uint64_t needed,
		    const char *advice)
{
	zf_report(copy->report, ZF_REPORT_ERROR,
		  "%s has %s %" PRIu64 ", the filesystem on %s needs %s%" PRIu64,
		  zf_dev_path(copy->to), what, has, zf_dev_path(copy->from), advice, needed);
	return -EINVAL;
}

static int check_geometry(const struct copy *copy)
{
	const struct zf_geometry *to = zf_dev_geometry(copy->to);
	const struct zf_super *super = &copy->super;

	if (to->zone_size != super->zone_size)
		return mismatch(copy, "a zone size of", to->zone_size, super->zone_size, "");
	if (to->zone_capacity != super->zone_capacity)
		return mismatch(copy, "a zone capacity of", to->zone_capacity, super->zone_capacity,
				"");
	if (to->conventional != super->conventional)
		return mismatch(copy, "a number of conventional zones of", to->conventional,
				super->conventional, "");
	if (to->zone_count < super->zone_count)
		return mismatch(copy, "a number of zones of", to->zone_count, super->zone_count,
				"at least ");
	return 0;
}

static bool is_root_zone(const struct copy *copy, uint32_t zone_no)
{
	for (unsigned int c = 0; c < copy->super.metadata_copies; c++)
		if (copy->super.root.address[c] / copy->super.zone_size == zone_no)
			return true;
	return false;
}

/*
 * Zones that stay partly written are active from then on. The root nodes' zones count even if they
 * will be finished, because this happens last.
 */
static uint32_t count_active(const struct copy *copy)
{
	uint32_t active = 0;

	for (uint32_t z = copy->super.conventional; z < copy->super.zone_count; z++)
		active += copy->plan[z].len > 0 && (!copy->plan[z].finish || is_root_zone(copy, z));
	return active;
}

static int check_active(const struct copy *copy)
{
	const struct zf_super *super = &copy->super;
	struct zf_format_options options = {
		.node_size = super->node_size,
		.metadata_copies = super->metadata_copies,
	};
	uint32_t active = count_active(copy);
	struct zf_format_plan format;
	int r;

	memcpy(options.fsid, super->fsid, sizeof(options.fsid));
	memcpy(options.label, super->label, sizeof(options.label));
	r = zf_format_check(zf_dev_geometry(copy->to), &options, copy->report, &format);
	if (r == 0 && format.active_limit != 0 && active > format.active_limit)
		return mismatch(copy, "a limit of active zones of", format.active_limit, active,
				"");
	return r;
}

/* Called for each zone of the target. */
static int check_zone(const struct copy *copy, uint32_t zone_no, const struct zf_zone_info *info)
{
	const struct zone_plan *plan = &copy->plan[zone_no];

	if (plan->len == 0 && !plan->finish)
		return 0;
	if (info->cond == ZF_ZONE_READONLY || info->cond == ZF_ZONE_OFFLINE) {
		zf_report(copy->report, ZF_REPORT_ERROR,
			  "%s: zone %" PRIu32 " is %s, but data has to be copied to it",
			  zf_dev_path(copy->to), zone_no, zf_zone_cond_name(info->cond));
		return -EINVAL;
	}
	if (plan->len > info->capacity) {
		zf_report(copy->report, ZF_REPORT_ERROR,
			  "%s: zone %" PRIu32 " holds %" PRIu64 " bytes, but %" PRIu64
			  " have to be copied to it",
			  zf_dev_path(copy->to), zone_no, info->capacity, plan->len);
		return -EINVAL;
	}
	return 0;
}

/* ---- the target's zones ---- */

/*
 * Zeroes the part of a conventional zone over which nothing is copied. If the target holds a later
 * state of this very filesystem, that part may have log records that would pass for records of the
 * copy.
 */
static int zero_rest(const struct copy *copy, uint32_t zone_no, const struct zf_zone_info *info)
{
	uint64_t len = copy->plan[zone_no].len;

	return zf_copy_bytes_clear(copy->bytes, info->start + len, info->capacity - len);
}

static int empty_zone(const struct copy *copy, uint32_t zone_no, const struct zf_zone_info *info)
{
	if (info->cond == ZF_ZONE_EMPTY || info->cond == ZF_ZONE_READONLY ||
	    info->cond == ZF_ZONE_OFFLINE)
		return 0;
	if (info->type == ZF_ZONE_SEQUENTIAL)
		return zf_dev_reset(copy->to, zone_no);
	/* zf_ring_format() has emptied the superblock zones. */
	return zone_no < ZF_SUPER_ZONES ? 0 : zero_rest(copy, zone_no, info);
}

/*
 * If the target counts resets, each zone gets the count of the source; with another count, a mount
 * would take the zone for one that was reset since the last commit.
 */
static int set_resets(const struct copy *copy, uint32_t zone_no, const struct zf_zone_info *info)
{
	int r;

	if (zone_no >= copy->super.zone_count || info->cond != ZF_ZONE_EMPTY)
		return 0;
	r = zf_dev_set_reset_count(copy->to, zone_no, copy->plan[zone_no].resets);
	return r == -EOPNOTSUPP ? 0 : r;
}

static int check_if_used(const struct copy *copy, uint32_t zone_no, const struct zf_zone_info *info)
{
	return zone_no < copy->super.zone_count ? check_zone(copy, zone_no, info) : 0;
}

static int for_each_target_zone(const struct copy *copy,
				int (*fn)(const struct copy *copy, uint32_t zone_no,
					  const struct zf_zone_info *info))
{
	uint32_t count = zf_dev_geometry(copy->to)->zone_count;
	struct zf_zone_info info[REPORT_CHUNK];
	int r = 0;

	for (uint32_t first = 0; first < count && r == 0; first += REPORT_CHUNK) {
		uint32_t n = (uint32_t)zf_min_u64(REPORT_CHUNK, count - first);

		r = zf_dev_report(copy->to, first, n, info);
		for (uint32_t i = 0; i < n && r == 0; i++)
			r = fn(copy, first + i, &info[i]);
	}
	return r;
}

static int empty_target(const struct copy *copy)
{
	struct zf_ring *ring;
	int r = zf_ring_format(copy->to, copy->report, &ring);

	if (r < 0)
		return r;
	zf_ring_close(ring);
	r = for_each_target_zone(copy, empty_zone);
	if (r == 0)
		r = for_each_target_zone(copy, set_resets);
	if (r == 0)
		r = zf_dev_flush(copy->to);
	if (r < 0)
		zf_report(copy->report, ZF_REPORT_ERROR, "%s: its zones cannot be emptied: %s",
			  zf_dev_path(copy->to), strerror(-r));
	return r;
}

/* ---- copying ---- */

static int copy_range(struct copy *copy, uint32_t zone_no, uint64_t from, uint64_t to)
{
	int r;

	r = zf_copy_bytes_run(copy->bytes, zone_no * copy->super.zone_size + from, to - from,
			      copy->report);
	copy->done += to - from;
	if (r == 0)
		zf_progress(copy->progress, copy->done, copy->total);
	return r;
}

static int finish_zone(struct copy *copy, uint32_t zone_no)
{
	struct zf_zone_info info;
	int r;

	if (!copy->plan[zone_no].finish)
		return 0;
	r = zf_dev_report(copy->to, zone_no, 1, &info);
	if (r == 0 && info.cond != ZF_ZONE_FULL)
		r = zf_dev_finish(copy->to, zone_no);
	if (r < 0)
		zf_report(copy->report, ZF_REPORT_ERROR,
			  "%s: zone %" PRIu32 " cannot be finished: %s", zf_dev_path(copy->to),
			  zone_no, strerror(-r));
	return r;
}

static int copy_zone(struct copy *copy, uint32_t zone_no)
{
	int r = copy_range(copy, zone_no, 0, copy->plan[zone_no].len);

	return r < 0 ? r : finish_zone(copy, zone_no);
}

static int flush(struct copy *copy)
{
	int r = zf_dev_flush(copy->to);

	if (r < 0)
		zf_report(copy->report, ZF_REPORT_ERROR, "%s: cannot be flushed: %s",
			  zf_dev_path(copy->to), strerror(-r));
	return r;
}

/* Called for `finished` zones first: while such a zone is written, it is active in addition. */
static int copy_most(struct copy *copy, bool finished)
{
	int r = 0;

	for (uint32_t z = 0; z < copy->super.zone_count && r == 0; z++)
		if (z >= ZF_SUPER_ZONES && !is_root_zone(copy, z) &&
		    copy->plan[z].finish == finished)
			r = copy_zone(copy, z);
	return r;
}

/* In each copy of the metadata, copies the root node's zone up to the root node, or from it on. */
static int copy_root_zones(struct copy *copy, bool behind)
{
	int r = 0;

	for (unsigned int c = 0; c < copy->super.metadata_copies && r == 0; c++) {
		uint32_t zone_no = (uint32_t)(copy->super.root.address[c] / copy->super.zone_size);
		uint64_t len = copy->plan[zone_no].len; /* 0 if the zone is offline */
		uint64_t root =
			zf_min_u64(copy->super.root.address[c] % copy->super.zone_size, len);

		if (behind)
			r = copy_range(copy, zone_no, root, len);
		else
			r = copy_range(copy, zone_no, 0, root);
		if (r == 0 && behind)
			r = finish_zone(copy, zone_no);
	}
	return r;
}

/* See copy.h. */
static int copy_in_order(struct copy *copy)
{
	int r = 0;

	for (uint32_t z = 0; z < ZF_SUPER_ZONES && r == 0; z++)
		r = copy_zone(copy, z);
	if (r == 0)
		r = flush(copy);
	if (r == 0)
		r = copy_most(copy, true);
	if (r == 0)
		r = copy_most(copy, false);
	if (r == 0)
		r = copy_root_zones(copy, false);
	if (r == 0)
		r = flush(copy);
	if (r == 0)
		r = copy_root_zones(copy, true);
	return r < 0 ? r : flush(copy);
}

static int overwrite_target(struct copy *copy)
{
	int r = empty_target(copy);

	if (r == 0)
		r = copy_in_order(copy);
	if (r < 0)
		zf_report(copy->report, ZF_REPORT_ERROR,
			  "%s: its old content is gone, and the copy is incomplete and cannot be "
			  "mounted: copy it again",
			  zf_dev_path(copy->to));
	return r;
}

static int run(struct copy *copy)
{
	int r = look_at_source(copy);

	if (r == 0)
		r = check_geometry(copy);
	if (r == 0)
		r = check_active(copy);
	if (r == 0)
		r = for_each_target_zone(copy, check_if_used);
	if (r == 0)
		r = zf_copy_bytes_new(copy->from, copy->to, &copy->bytes);
	return r < 0 ? r : overwrite_target(copy);
}

int zf_transfer_copy(struct zf_dev *from, struct zf_dev *to, const struct zf_progress *progress,
		     const struct zf_report *report)
{
	struct copy copy = {.from = from, .to = to, .progress = progress, .report = report};
	int r = run(&copy);

	zf_copy_bytes_free(copy.bytes);
	free(copy.plan);
	return r;
}

int zf_transfer_check(struct zf_dev *from, const struct zf_report *report)
{
	struct copy copy = {.from = from, .report = report};
	int r = look_at_source(&copy);

	free(copy.plan);
	return r;
}

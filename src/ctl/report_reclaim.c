/* SPDX-License-Identifier: MIT */
/*
 * The commands of `zfusectl gc`. A run takes one request for each victim, and zfusectl decides
 * whether to send the next one. So other clients do not wait longer for their answers, and an
 * interrupted run simply stops.
 */
#include <errno.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/core/wake.h"
#include "fs/mount/change.h"
#include "fs/space/reclaim.h"

/* Finds a zone whose data is being moved out; false: there is none. */
static bool find_victim(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	for (uint32_t z = 0; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		if (!zone.reclaimed)
			continue;
		*ret_zone_no = z;
		return true;
	}
	return false;
}

const char *zf_report_reclaim_state(struct zf_fs *fs)
{
	uint32_t zone_no;

	if (zf_fs_is_read_only(fs))
		return "off";
	if (find_victim(zf_fs_alloc(fs), &zone_no))
		return "working";
	return zf_reclaim_is_paused(fs) ? "paused" : "idle";
}

static struct json_object *room_object(struct zf_alloc *alloc)
{
	struct json_object *object = json_object_new_object();
	struct zf_reclaim_room room;

	zf_alloc_reclaim_room(alloc, &room);
	zf_json_add_u64(object, "zones", room.zones);
	zf_json_add_u64(object, "empty", room.empty);
	zf_json_add_u64(object, "coming", room.coming);
	zf_json_add_u64(object, "target", room.target);
	zf_json_add_u64(object, "reclaimable_bytes", room.reclaimable);
	return object;
}

/* All appended bytes, divided by the bytes that users and the log appended: 1 without reclaim. */
static double amplification(struct zf_dev *dev, const struct zf_reclaim_stats *stats)
{
	uint64_t copied = stats->moved + stats->changed;
	struct zf_dev_stats device;

	zf_dev_get_stats(dev, &device);
	if (device.append_bytes <= copied)
		return 1;
	return (double)device.append_bytes / (double)(device.append_bytes - copied);
}

struct json_object *zf_report_reclaim_stats(struct zf_fs *fs)
{
	struct json_object *object = json_object_new_object();
	struct zf_reclaim_stats stats;

	zf_reclaim_get_stats(fs, &stats);
	zf_json_add_u64(object, "victims", stats.victims);
	zf_json_add_u64(object, "meta_victims", stats.meta_victims);
	zf_json_add_u64(object, "emptied", stats.emptied);
	zf_json_add_u64(object, "live_bytes", stats.live);
	zf_json_add_u64(object, "moved_bytes", stats.moved);
	zf_json_add_u64(object, "changed_bytes", stats.changed);
	zf_json_add_u64(object, "stuck", stats.stuck);
	zf_json_add_u64(object, "waits", stats.waits);
	zf_json_add_u64(object, "wait_ns", stats.wait_ns);
	zf_json_add(object, "write_amplification",
		    json_object_new_double(amplification(zf_fs_dev(fs), &stats)));
	return object;
}

int zf_report_gc_status(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result)
{
	struct json_object *result = json_object_new_object();
	struct zf_alloc *alloc = zf_fs_alloc(source->fs);
	uint32_t zone_no;

	(void)args;
	zf_json_add_text(result, "state", zf_report_reclaim_state(source->fs));
	zf_json_add_bool(result, "paused", zf_reclaim_is_paused(source->fs));
	if (find_victim(alloc, &zone_no))
		zf_json_add_u64(result, "zone", zone_no);
	zf_json_add(result, "room", room_object(alloc));
	zf_json_add(result, "reclaim", zf_report_reclaim_stats(source->fs));
	*ret_result = result;
	return result ? 0 : -ENOMEM;
}

int zf_report_gc_pause(const struct zf_report_source *source, struct json_object *args,
		       struct json_object **ret_result)
{
	bool paused = true;
	int r = zf_json_get_bool(args, "paused", &paused);

	if (r < 0)
		return r;
	zf_reclaim_pause(source->fs, paused);
	if (!paused)
		zf_wake_reclaim(source->fs);
	return zf_report_gc_status(source, NULL, ret_result);
}

int zf_report_gc_step(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result)
{
	const char *outcome;
	bool all = false;
	int r = zf_json_get_bool(args, "all", &all);

	if (r < 0)
		return r;
	r = zf_change_begin(source->fs);
	if (r < 0)
		return zf_json_fail(ret_result, r, "the filesystem is read-only");
	r = zf_reclaim_try_one(source->fs, all ? ZF_RECLAIM_URGENT : ZF_RECLAIM_IN_PEACE);
	zf_change_end(source->fs);
	if (r == -ENOSPC)
		outcome = "no room";
	else if (r == -EBUSY)
		outcome = "busy";
	else if (r < 0)
		return r;
	else
		outcome = r > 0 ? "victim" : "none";
	zf_report_gc_status(source, NULL, ret_result);
	zf_json_add_text(*ret_result, "outcome", outcome);
	return *ret_result ? 0 : -ENOMEM;
}

int zf_report_gc_settle(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result)
{
	int r = zf_fs_settle(source->fs);

	(void)args;
	if (r == -EROFS)
		return zf_json_fail(ret_result, r, "the filesystem is read-only");
	return r < 0 ? r : zf_report_gc_status(source, NULL, ret_result);
}

/* SPDX-License-Identifier: MIT */
/*
 * The command that mount.fuse.zfuse sends for `mount -o remount`. mount.fuse.zfuse itself changes
 * the kernel's flags.
 */
#include <errno.h>

#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/core/wake.h"
#include "fs/space/reclaim.h"

struct remount {
	bool read_only, changes_read_only;
	bool gc, changes_gc;
	uint64_t commit_ms;	       /* 0: unchanged */
	uint64_t gc_zones, gc_percent; /* both 0: unchanged */
};

static int get_flag(struct json_object *args, const char *key, bool *ret_value, bool *ret_is_there)
{
	*ret_is_there = args && json_object_object_get_ex(args, key, NULL);
	return zf_json_get_bool(args, key, ret_value);
}

static int parse(struct json_object *args, struct remount *remount)
{
	int r = get_flag(args, "read_only", &remount->read_only, &remount->changes_read_only);

	if (r == 0)
		r = get_flag(args, "gc", &remount->gc, &remount->changes_gc);
	if (r == 0)
		r = zf_json_get_u64(args, "commit_ms", &remount->commit_ms);
	if (r == 0)
		r = zf_json_get_u64(args, "gc_zones", &remount->gc_zones);
	if (r == 0)
		r = zf_json_get_u64(args, "gc_percent", &remount->gc_percent);
	if (r == 0 && (remount->gc_zones > UINT32_MAX || remount->gc_percent > 50))
		r = -EINVAL;
	return r;
}

static void set_gc(struct zf_fs *fs, bool on)
{
	zf_reclaim_pause(fs, !on);
	if (on)
		zf_wake_reclaim(fs);
}

int zf_report_remount(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result)
{
	struct remount remount = {0};
	int r = parse(args, &remount);

	if (r < 0)
		return r;
	if (remount.changes_read_only)
		r = zf_fs_remount(source->fs, remount.read_only);
	if (r < 0)
		return r;
	if (remount.changes_gc)
		set_gc(source->fs, remount.gc);
	if (remount.commit_ms)
		zf_fs_set_commit_ms(source->fs, remount.commit_ms);
	return zf_fs_set_reclaim_target(source->fs, (uint32_t)remount.gc_zones,
					(uint32_t)remount.gc_percent);
}

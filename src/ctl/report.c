/* SPDX-License-Identifier: MIT */
#include "ctl/report.h"

#include <errno.h>
#include <string.h>

#include "ctl/json.h"
#include "fs/core/inode.h"
#include "txn/txn.h"

static const struct zf_report_command commands[] = {
	{"super", ZF_NEED_RING, true, zf_report_super, .is_long = true},
	{"zones", ZF_NEED_SUPER, false, zf_report_zones},
	{"tree", ZF_NEED_SUPER, true, zf_report_tree, .is_long = true},
	{"node", ZF_NEED_SUPER, true, zf_report_node, .is_long = true},
	{"log", ZF_NEED_SUPER, true, zf_report_log, .is_long = true},
	{"file", ZF_NEED_FS, false, zf_report_file},
	{"path", ZF_NEED_FS, false, zf_report_path},
	{"resolve", ZF_NEED_FS, false, zf_report_resolve},
	{"df", ZF_NEED_FS, false, zf_report_df},
	{"stats", ZF_NEED_MOUNT, false, zf_report_stats},
	{"check", ZF_NEED_SUPER, true, zf_report_check},
	{"status", ZF_NEED_SUPER, false, zf_report_status},
	{"sync", ZF_NEED_MOUNT, false, zf_report_sync},
	{"grow", ZF_NEED_WRITING, false, zf_report_grow},
	{"set_label", ZF_NEED_WRITING, false, zf_report_set_label},
	{"gc_status", ZF_NEED_MOUNT, false, zf_report_gc_status},
	{"gc_pause", ZF_NEED_MOUNT, false, zf_report_gc_pause},
	{"gc_step", ZF_NEED_MOUNT, false, zf_report_gc_step},
	{"gc_settle", ZF_NEED_MOUNT, false, zf_report_gc_settle},
	{"scrub_step", ZF_NEED_FS, false, zf_report_scrub_step},
	{"scrub_status", ZF_NEED_FS, false, zf_report_scrub_status},
	{"scrub_start", ZF_NEED_MOUNT, false, zf_report_scrub_start},
	{"scrub_pause", ZF_NEED_MOUNT, false, zf_report_scrub_pause},
	{"scrub_resume", ZF_NEED_MOUNT, false, zf_report_scrub_resume},
	{"scrub_cancel", ZF_NEED_MOUNT, false, zf_report_scrub_cancel},
	{"device_stats", ZF_NEED_FS, false, zf_report_device_stats},
	{"device_stats_reset", ZF_NEED_WRITING, false, zf_report_device_stats_reset},
	{"remount", ZF_NEED_MOUNT, false, zf_report_remount},
};

const struct zf_report_command *zf_report_find(const char *name)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

int zf_report_run(const struct zf_report_command *command, const struct zf_report_source *source,
		  struct json_object *args, struct json_object **ret_result)
{
	if (command->need != ZF_NEED_RING && !source->super)
		return zf_json_fail(ret_result, -EUCLEAN, "no superblock record is valid");
	if (command->need == ZF_NEED_MOUNT && !source->mounted)
		return zf_json_fail(ret_result, -ENOTCONN, "the filesystem is not mounted");
	return command->run(source, args, ret_result);
}

/* ---- on a mounted filesystem ---- */

int zf_report_run_mounted(struct zf_fs *fs, const char *name, struct json_object *args,
			  const struct zf_control_parts *parts, struct json_object **ret_result)
{
	const struct zf_report_command *command = zf_report_find(name);
	struct zf_report_source source = {
		.dev = zf_fs_dev(fs),
		.ring = zf_fs_ring(fs),
		.fs = fs,
		.mounted = true,
		.parts = parts,
	};
	int r;

	if (!command)
		return zf_json_fail(ret_result, -EOPNOTSUPP, "unknown command");
	if (!command->durable) {
		source.super = &fs->super;
		return zf_report_run(command, &source, args, ret_result);
	}
	zf_txn_pause(zf_fs_txn(fs));
	r = zf_ring_newest(source.ring, &source.super, &source.stepped_over);
	if (r < 0)
		source.super = NULL;
	r = zf_report_run(command, &source, args, ret_result);
	zf_txn_resume(zf_fs_txn(fs));
	return r;
}

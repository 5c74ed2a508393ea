/* SPDX-License-Identifier: MIT */
/* The target of a command: a running daemon, or a device that is not mounted. */
#ifndef ZF_TOOLS_TARGET_H
#define ZF_TOOLS_TARGET_H

#include "ctl/report.h"

struct zf_target {
	const char *path;
	const struct zf_report *report;
	bool mounted; /* a daemon answers for `path` */
	uint64_t ino; /* of `path`, if mounted */

	/* Not mounted: the device, open read-only unless `writing`. */
	bool writing;
	struct zf_dev *dev;
	struct zf_ring *ring;
	struct zf_fs *fs;
	struct zf_report_source source;
};

/*
 * `path` is a directory of a mounted filesystem (any file of it, if `any_file`), an image, or a
 * block device. Waits up to 10 s for a device that another process has open. Errors are reported.
 */
int zf_target_open(const char *path, bool any_file, const struct zf_report *report,
		   struct zf_target *ret_target);
/*
 * The same for a command that changes the filesystem. A block device may have been made larger.
 */
int zf_target_open_writing(const char *path, const struct zf_report *report,
			   struct zf_target *ret_target);
/*
 * Opens a device or an image for a repair; it must not be mounted. Without a superblock record
 * source.super is NULL, and that is no error.
 */
int zf_target_open_damaged(const char *path, bool writing, const struct zf_report *report,
			   struct zf_target *ret_target);
/* After a write to a target of zf_target_open_damaged(): finds the newest record again. */
void zf_target_reread(struct zf_target *target);
void zf_target_close(struct zf_target *target);

/*
 * Runs a command on the target, and mounts the device if the command needs that. Errors are
 * reported. `parts` is for commands with long answers, NULL for others.
 */
int zf_target_run(struct zf_target *target, const struct zf_report_command *command,
		  struct json_object *args, const struct zf_control_parts *parts,
		  struct json_object **ret_result);

#endif

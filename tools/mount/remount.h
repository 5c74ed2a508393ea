/* SPDX-License-Identifier: MIT */
/*
 * Changes an existing mount. The kernel stores and enforces the mount flags. The daemon gets only
 * the changes that concern it: read-only or writable, and the options that it can change
 * (fuse/tunable.h). A mount(2) with MS_REMOUNT clears all flags that it does not name, so the
 * present flags are passed again.
 */
#ifndef ZF_TOOLS_MOUNT_REMOUNT_H
#define ZF_TOOLS_MOUNT_REMOUNT_H

#include <stdbool.h>

#include "fuse/tunable.h"
#include "mount/mountinfo.h"

struct zf_remount {
	unsigned long set, clear; /* MS_RDONLY and the like */
	struct zf_tunables tunables;
};

/*
 * Finds the changes that `options` ask for. mount(8) passes its helper the user's options together
 * with the mount's present options, or those of its line in fstab; options that the mount already
 * has need no change. -EINVAL, reported: an option that only a new daemon could change; with
 * `sloppy` such an option is ignored.
 */
int zf_remount_parse(const struct zf_mountinfo *mount, const char *options, bool sloppy,
		     struct zf_remount *ret_remount);
/*
 * After a change to read-only everything is durable, and nothing is written until the mount is
 * writable again. -EROFS: the daemon cannot become writable. -EBUSY: files are open for writing.
 * -EINVAL: an option has a value that this filesystem cannot have.
 */
int zf_remount(const struct zf_mountinfo *mount, const struct zf_remount *remount);

/* Is `option` in the list, which is separated by commas? */
bool zf_option_is_in(const char *list, const char *option);

#endif

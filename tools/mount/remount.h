/* SPDX-License-Identifier: MIT */
/*
 * Changing a mount that is there. The kernel has the flags, and enforces them. The daemon is told
 * what concerns it, too: that it is read-only from now on, and the options that it can change
 * (fuse/tunable.h). What a mount(2) with MS_REMOUNT does not name is cleared, so the present flags
 * are named again.
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
 * What `options`, as mount(8) hands them to its helper, ask to change. Besides what the user names
 * there are those that the mount has now, or those of its line in fstab: what is so already needs
 * no change. -EINVAL: an option that only the daemon could change, at its start; it has been
 * complained about, unless `sloppy`: then it is left out.
 */
int zf_remount_parse(const struct zf_mountinfo *mount, const char *options, bool sloppy,
		     struct zf_remount *ret_remount);
/*
 * When it is read-only, everything is stored, and nothing more is written until it is writable
 * again. -EROFS: to be writable, while its daemon cannot be. -EBUSY: files are open for writing.
 * -EINVAL: an option with a value that this filesystem cannot have.
 */
int zf_remount(const struct zf_mountinfo *mount, const struct zf_remount *remount);

/* Is it in the list, which is separated by commas? */
bool zf_option_is_in(const char *list, const char *option);

#endif

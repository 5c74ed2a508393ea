/* SPDX-License-Identifier: MIT */
/* What /proc/self/mountinfo says about zfuse mounts, without asking the mounts themselves. */
#ifndef ZF_TOOLS_MOUNT_MOUNTINFO_H
#define ZF_TOOLS_MOUNT_MOUNTINFO_H

#include <stdbool.h>
#include <sys/types.h>

struct zf_mountinfo {
	dev_t st_dev;
	uid_t user; /* the user who mounted it, and chose the source's name */
	char *mountpoint, *source;
	char *options, *super_options; /* of the mount, and of the filesystem */
};

/* The topmost mount at `path` that is zfuse. -ENOENT: there is none. */
int zf_mountinfo_find(const char *path, struct zf_mountinfo *ret_mount);
void zf_mountinfo_deinit(struct zf_mountinfo *mount);

/* Is this filesystem mounted anywhere in this namespace? */
bool zf_mountinfo_exists(dev_t st_dev);

/* Calls fn for every zfuse mount of this namespace, oldest first. 0 or -errno. */
int zf_mountinfo_each(void (*fn)(const struct zf_mountinfo *mount, void *arg), void *arg);

#endif

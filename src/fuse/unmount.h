/* SPDX-License-Identifier: MIT */
#ifndef ZF_FUSE_UNMOUNT_H
#define ZF_FUSE_UNMOUNT_H

#include <stdbool.h>

/* Like a user: by himself, or by fusermount3 if he may not. -EBUSY: it is in use; never if
 * detached.
 */
int zf_unmount(const char *mountpoint, bool detach);

/*
 * By fusermount3 with these flags ("-u"): the setuid program that mounted it for somebody who may
 * not. -EPERM: there is none; -EBUSY: it failed.
 */
int zf_unmount_fusermount(const char *flags, const char *mountpoint);

#endif

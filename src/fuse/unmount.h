/* SPDX-License-Identifier: MIT */
#ifndef ZF_FUSE_UNMOUNT_H
#define ZF_FUSE_UNMOUNT_H

#include <stdbool.h>

/*
 * Unmounts as a user would: by umount2(2), or by fusermount3 if that is not permitted. -EBUSY: the
 * mount is in use (not with `detach`), or fusermount3 failed.
 */
int zf_unmount(const char *mountpoint, bool detach);

/*
 * Unmounts by fusermount3 with these flags ("-u"). That program is set-user-id, and made the mount
 * for a user who may not mount. -EPERM: there is no fusermount3; -EBUSY: it failed.
 */
int zf_unmount_fusermount(const char *flags, const char *mountpoint);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * An image file mounted as fuseblk, so that sync(2) and syncfs(2) store.
 *
 * The kernel tells a FUSE daemon of a sync, and waits for it at an unmount, only if the mount is
 * fuseblk: if it stands on a block device. An image has none. So it gets an *anchor*: a loop device
 * of one block, over memory. Nobody reads or writes the anchor. All I/O, the lock and the trailer
 * stay on the image's file, and cost what they cost without it.
 *
 * The anchor is detached by the kernel (LO_FLAGS_AUTOCLEAR) when the mount is gone, whatever became
 * of the daemon. Decision 0031 tells what else was considered.
 */
#ifndef ZF_FUSE_ANCHOR_H
#define ZF_FUSE_ANCHOR_H

struct fuse_session;

/*
 * Mounts `session`, which has the option blkdev, at `mountpoint`, as fuse_session_mount() does. The
 * source that mountinfo shows is `image`, which has to be the session's option fsname. Both paths
 * are absolute.
 *
 * It is refused without CAP_SYS_ADMIN, without loop devices, and where / is no mount point (a
 * chroot): negative, with *ret_why a word for the user, a constant. Nothing is left mounted or
 * attached then, and the session is of no more use.
 */
int zf_anchor_mount(struct fuse_session *session, const char *image, const char *mountpoint,
		    const char **ret_why);

#endif

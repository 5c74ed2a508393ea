/* SPDX-License-Identifier: MIT */
/*
 * An image file mounted as fuseblk, so that sync(2) and syncfs(2) store.
 *
 * The kernel sends a sync to a FUSE daemon, and waits for the daemon at an unmount, only if the
 * mount is of type fuseblk, which means that it stands on a block device. An image is no block
 * device, so it gets an *anchor*: a loop device of one block, over memory. Nothing ever reads or
 * writes the anchor. All I/O, the lock and the trailer stay on the image's file, and cost the same
 * as without an anchor.
 *
 * The kernel detaches the anchor (LO_FLAGS_AUTOCLEAR) when the mount is gone, even if the daemon
 * was killed. Decision 0031 lists the alternatives.
 */
#ifndef ZF_FUSE_ANCHOR_H
#define ZF_FUSE_ANCHOR_H

struct fuse_session;

/*
 * Mounts `session`, which has the option blkdev, at `mountpoint`, as fuse_session_mount() does.
 * mountinfo shows `image` as the source; it has to be the session's option fsname. Both paths are
 * absolute.
 *
 * The mount fails without CAP_SYS_ADMIN, without loop devices, and where / is no mount point (a
 * chroot): the result is negative, and *ret_why is a constant string with the reason for the user.
 * After a failure nothing is left mounted or attached, and the session can only be destroyed.
 */
int zf_anchor_mount(struct fuse_session *session, const char *image, const char *mountpoint,
		    const char **ret_why);

#endif

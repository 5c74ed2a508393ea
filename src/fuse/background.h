/* SPDX-License-Identifier: MIT */
/*
 * Going into the background: the process that the user started waits until its child says that the
 * mount is served, sends the mount one request, and exits with a status that tells whether the
 * mount answered. If it did not, nothing stays mounted. The child keeps stderr until it says that the
 * mount is served, so its messages up to then reach the user.
 */
#ifndef ZF_FUSE_BACKGROUND_H
#define ZF_FUSE_BACKGROUND_H

/*
 * Returns in the child only: 0, or -errno (then there is no child). The parent exits. To be called
 * while the process has one thread.
 */
int zf_background_enter(const char *mountpoint);

/*
 * The parent exits with `status`, and this process closes the terminal. Only the first call has an
 * effect. -EPIPE: the parent was killed, so no program waits for the mount any more.
 */
int zf_background_tell(int status);

#endif

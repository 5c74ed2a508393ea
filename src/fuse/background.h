/* SPDX-License-Identifier: MIT */
/*
 * Going into the background: the process that the user started waits until its child says that the
 * mount is served, asks it something, and exits with what came of that: where it fails nothing
 * stays mounted. Messages reach the user meanwhile, for the child keeps stderr.
 */
#ifndef ZF_FUSE_BACKGROUND_H
#define ZF_FUSE_BACKGROUND_H

/*
 * Returns in the child only, 0 or -errno (then there is no child); the parent exits. To be called
 * while there is one thread.
 */
int zf_background_enter(const char *mountpoint);

/*
 * The parent exits with `status`; this process lets go of the terminal. Only the first call counts.
 * -EPIPE: the parent was killed, so nobody waits for the mount any more.
 */
int zf_background_tell(int status);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The signals TERM, INT and HUP. A thread of the daemon unmounts, as a user would, while the other
 * threads go on serving, so that the kernel can write its dirty pages. If the mount is in use it is
 * detached, and served until its last user is gone. In either case the daemon's loop ends when the
 * kernel ends the connection.
 */
#ifndef ZF_FUSE_SHUTDOWN_H
#define ZF_FUSE_SHUTDOWN_H

struct zf_daemon;
struct zf_shutdown;

/*
 * Blocks the signals in this thread and the threads that it will start, so this is to be called
 * first. A signal that comes before zf_shutdown_ready() ends the daemon.
 */
int zf_shutdown_start(struct zf_daemon *daemon, struct zf_shutdown **ret_shutdown);
/* From now on a signal unmounts. */
void zf_shutdown_ready(struct zf_shutdown *shutdown);
/* Acts as if TERM had come. */
void zf_shutdown_request(void);
/*
 * To be called when the loop has ended: later signals have no effect, so that they do not disturb
 * the last commit.
 */
void zf_shutdown_stop(struct zf_shutdown *shutdown);
/* After zf_shutdown_stop(). zf_shutdown_ready() must not be called any more. Takes NULL. */
void zf_shutdown_free(struct zf_shutdown *shutdown);

#endif

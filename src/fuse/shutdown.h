/* SPDX-License-Identifier: MIT */
/*
 * TERM, INT and HUP. A thread of the daemon's unmounts, like a user would, while the others go on
 * serving: so the kernel can hand over its dirty pages. If somebody still uses the mount it is
 * detached, and served until the last user is gone. In either case the daemon's loop ends when the
 * kernel ends the connection.
 */
#ifndef ZF_FUSE_SHUTDOWN_H
#define ZF_FUSE_SHUTDOWN_H

struct zf_daemon;
struct zf_shutdown;

/* Blocks the signals in this thread and those it will start, so to be called first. Until ready
 * they kill. */
int zf_shutdown_start(struct zf_daemon *daemon, struct zf_shutdown **ret_shutdown);
/* From now on a signal unmounts. */
void zf_shutdown_ready(struct zf_shutdown *shutdown);
/* As if somebody had sent TERM. */
void zf_shutdown_request(void);
/* When the loop has ended: later signals wait for ever, so that the last commit is not disturbed.
 */
void zf_shutdown_stop(struct zf_shutdown *shutdown);
/* Stopped, and nobody calls zf_shutdown_ready() any more. Takes NULL. */
void zf_shutdown_free(struct zf_shutdown *shutdown);

#endif

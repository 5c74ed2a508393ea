/* SPDX-License-Identifier: MIT */
/* Telling systemd, or whoever set NOTIFY_SOCKET as it does, that the service is ready
 * (sd_notify(3)). */
#ifndef ZF_FUSE_NOTIFY_H
#define ZF_FUSE_NOTIFY_H

/* 0 also if nobody wants to know; otherwise -errno. */
int zf_notify_ready(void);

#endif

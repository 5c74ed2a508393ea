/* SPDX-License-Identifier: MIT */
/*
 * Telling systemd, or another program that set NOTIFY_SOCKET as systemd does, that the service is
 * ready (sd_notify(3)).
 */
#ifndef ZF_FUSE_NOTIFY_H
#define ZF_FUSE_NOTIFY_H

/* 0, also if NOTIFY_SOCKET is not set; otherwise -errno. */
int zf_notify_ready(void);

#endif

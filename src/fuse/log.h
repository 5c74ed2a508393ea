/* SPDX-License-Identifier: MIT */
/*
 * Messages of the daemon for people: on stderr while the mount is being made, or in the foreground;
 * through syslog afterwards.
 */
#ifndef ZF_FUSE_LOG_H
#define ZF_FUSE_LOG_H

#include "base/report.h"

/* Sets up the sink of *ret_report, and makes libfuse's own messages go there too. */
void zf_log_init(struct zf_report *ret_report);

/* Reports how many messages were left out, if any were that have not been reported yet. */
void zf_log_end(const struct zf_report *report);

/* Messages go to syslog from now on. */
void zf_log_to_syslog(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the daemon says to people: on stderr while somebody waits for the mount, or in the
 * foreground; through syslog from then on.
 */
#ifndef ZF_FUSE_LOG_H
#define ZF_FUSE_LOG_H

#include "base/report.h"

/* A sink for struct zf_report, and for libfuse's own messages from now on. */
void zf_log_init(struct zf_report *ret_report);

/* Says how many messages were left out, if that is to be said still. */
void zf_log_end(const struct zf_report *report);

/* To syslog from now on. */
void zf_log_to_syslog(void);

#endif

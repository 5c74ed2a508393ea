/* SPDX-License-Identifier: MIT */
#include "fuse/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include <fuse_log.h>

#include "base/report_limit.h"

static atomic_bool use_syslog;
static char prefix[] = "zfuse";
static struct zf_report_limit limit;

static void write_message(void *arg, enum zf_report_level level, const char *message)
{
	static const int priorities[] = {
		[ZF_REPORT_ERROR] = LOG_ERR,
		[ZF_REPORT_WARNING] = LOG_WARNING,
		[ZF_REPORT_INFO] = LOG_INFO,
	};

	if (atomic_load(&use_syslog))
		syslog(priorities[level], "%s", message);
	else
		zf_report_stderr(arg, level, message);
}

static void write_libfuse_message(enum fuse_log_level level, const char *format, va_list args)
{
	char message[512];
	size_t len;

	vsnprintf(message, sizeof(message), format, args);
	len = strlen(message);
	if (len > 0 && message[len - 1] == '\n')
		message[len - 1] = '\0';
	write_message(prefix, level <= FUSE_LOG_ERR ? ZF_REPORT_ERROR : ZF_REPORT_INFO, message);
}

void zf_log_init(struct zf_report *ret_report)
{
	openlog("zfuse", LOG_PID, LOG_DAEMON);
	fuse_set_log_func(write_libfuse_message);
	zf_report_limit_init(&limit);
	*ret_report = (struct zf_report){.fn = write_message, .arg = prefix, .limit = &limit};
}

void zf_log_end(const struct zf_report *report)
{
	unsigned int untold = zf_report_limit_untold(&limit);

	if (untold > 0)
		zf_report(report, ZF_REPORT_INFO, "%u messages like those before were left out",
			  untold);
}

void zf_log_to_syslog(void)
{
	atomic_store(&use_syslog, true);
}

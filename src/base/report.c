/* SPDX-License-Identifier: MIT */
#include "base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define MESSAGE_MAX 512

void zf_report(const struct zf_report *report, enum zf_report_level level, const char *format, ...)
{
	char message[MESSAGE_MAX];
	va_list ap;

	if (!report || !report->fn)
		return;
	va_start(ap, format);
	vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	report->fn(report->arg, level, message);
}

int zf_report_corrupt(const struct zf_report *report, const char *what, uint64_t address,
		      const char *format, ...)
{
	char detail[MESSAGE_MAX / 2];
	va_list ap;

	va_start(ap, format);
	vsnprintf(detail, sizeof(detail), format, ap);
	va_end(ap);
	zf_report(report, ZF_REPORT_ERROR, "corrupt %s at %" PRIu64 ": %s", what, address, detail);
	return -EUCLEAN;
}

void zf_report_stderr(void *arg, enum zf_report_level level, const char *message)
{
	static const char *const names[] = {
		[ZF_REPORT_ERROR] = "error: ",
		[ZF_REPORT_WARNING] = "warning: ",
		[ZF_REPORT_INFO] = "",
	};

	fprintf(stderr, "%s: %s%s\n", (const char *)arg, names[level], message);
}

/* SPDX-License-Identifier: MIT */
#include "base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/report_limit.h"

#define MESSAGE_MAX 512

/* `kind` says which messages are of one kind with this one. */
static bool may_tell(const struct zf_report *report, enum zf_report_level level, const char *kind)
{
	char message[MESSAGE_MAX];
	unsigned int left_out;

	if (!report || !report->fn)
		return false;
	if (!report->limit || level == ZF_REPORT_INFO)
		return true;
	if (!zf_report_limit_take(report->limit, kind, &left_out))
		return false;
	if (left_out > 0) {
		snprintf(message, sizeof(message), "%u messages like the next one were left out",
			 left_out);
		report->fn(report->arg, level, message);
	}
	return true;
}

void zf_report(const struct zf_report *report, enum zf_report_level level, const char *format, ...)
{
	char message[MESSAGE_MAX];
	va_list ap;

	if (!may_tell(report, level, format))
		return;
	va_start(ap, format);
	vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	report->fn(report->arg, level, message);
}

int zf_report_corrupt(const struct zf_report *report, const char *what, uint64_t address,
		      const char *format, ...)
{
	char detail[MESSAGE_MAX / 2], message[MESSAGE_MAX];
	va_list ap;

	if (!may_tell(report, ZF_REPORT_ERROR, format))
		return -EUCLEAN;
	va_start(ap, format);
	vsnprintf(detail, sizeof(detail), format, ap);
	va_end(ap);
	snprintf(message, sizeof(message), "corrupt %s at %" PRIu64 ": %s", what, address, detail);
	report->fn(report->arg, ZF_REPORT_ERROR, message);
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

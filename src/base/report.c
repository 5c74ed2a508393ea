/* SPDX-License-Identifier: MIT */
#include "base/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/report_limit.h"

#define MESSAGE_MAX 512

/* Messages with the same `kind`, a format string, are of one kind. */
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

/* A message that is long, because of a path, has memory of its own. */
struct text {
	char shortened[MESSAGE_MAX];
	char *whole; /* NULL: `shortened` is the whole message */
};

static const char *write_text(struct text *text, const char *format, va_list ap)
{
	va_list again;
	int len;

	va_copy(again, ap);
	len = vsnprintf(text->shortened, sizeof(text->shortened), format, ap);
	if (len < MESSAGE_MAX || vasprintf(&text->whole, format, again) < 0)
		text->whole = NULL;
	va_end(again);
	return text->whole ? text->whole : text->shortened;
}

static void tell(const struct zf_report *report, enum zf_report_level level, const char *format,
		 ...)
{
	struct text text;
	va_list ap;

	va_start(ap, format);
	report->fn(report->arg, level, write_text(&text, format, ap));
	va_end(ap);
	free(text.whole);
}

void zf_report(const struct zf_report *report, enum zf_report_level level, const char *format, ...)
{
	struct text text;
	va_list ap;

	if (!may_tell(report, level, format))
		return;
	va_start(ap, format);
	report->fn(report->arg, level, write_text(&text, format, ap));
	va_end(ap);
	free(text.whole);
}

int zf_report_corrupt(const struct zf_report *report, const char *what, uint64_t address,
		      const char *format, ...)
{
	struct text detail;
	va_list ap;

	if (!may_tell(report, ZF_REPORT_ERROR, format))
		return -EUCLEAN;
	va_start(ap, format);
	tell(report, ZF_REPORT_ERROR, "corrupt %s at %" PRIu64 ": %s", what, address,
	     write_text(&detail, format, ap));
	va_end(ap);
	free(detail.whole);
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

/* SPDX-License-Identifier: MIT */
/*
 * Messages of the library for a person. Libraries do not print: the caller that opens a filesystem
 * or a device hands in a sink, and the daemon, the tools and the tests each print in their own way.
 *
 * Bad bytes on disk have one message form, made by zf_report_corrupt():
 *
 *     corrupt <what> at <address>: <field> has <value>, expected <range>
 */
#ifndef ZF_BASE_REPORT_H
#define ZF_BASE_REPORT_H

#include <stdint.h>

enum zf_report_level {
	ZF_REPORT_ERROR,
	ZF_REPORT_WARNING,
	ZF_REPORT_INFO,
};

struct zf_report_limit;

/*
 * A sink. fn may be called from any thread, with locks held: it must not call back into the
 * filesystem or device that reports. (zf_report() to another sink is fine.)
 */
struct zf_report {
	void (*fn)(void *arg, enum zf_report_level level, const char *message);
	void *arg;
	struct zf_report_limit *limit; /* base/report_limit.h; NULL: everything is told */
};

/* All take a NULL sink, which drops the message. */
void zf_report(const struct zf_report *report, enum zf_report_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Returns -EUCLEAN, so that a checker can `return zf_report_corrupt(...)`. */
int zf_report_corrupt(const struct zf_report *report, const char *what, uint64_t address,
		      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A sink that writes "prefix: message" lines to stderr; arg is the prefix. For programs. */
void zf_report_stderr(void *arg, enum zf_report_level level, const char *message);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Reading a trace. Everything in the file is checked: it may be anybody's.
 *
 * Records lie in the file as threads' rings were drained; here they are in the order in which the
 * events happened. A trace that still grows, or whose writer was killed, can be read as far as it
 * goes: it has no event `ended`.
 */
#ifndef ZF_TRACE_READ_H
#define ZF_TRACE_READ_H

#include <stddef.h>

#include "base/report.h"
#include "trace/format.h"

struct zf_trace_file {
	struct zf_disk_trace_header header;
	struct zf_disk_trace_record *records; /* by sequence */
	size_t count;
};

/*
 * Reads all of it into memory. `name` is for messages. Each error but -ENOMEM is reported in words.
 * -EUCLEAN: it is no trace, or a damaged one. -EPROTONOSUPPORT: of a version that this one does not
 * know. -errno of the file. zf_trace_file_free() after success only.
 */
int zf_trace_read(int fd, const char *name, const struct zf_report *report,
		  struct zf_trace_file *ret_file);
void zf_trace_file_free(struct zf_trace_file *file);

/* The event of a record; NULL: its number is none that this version knows. */
const struct zf_trace_event *zf_trace_event_of(const struct zf_disk_trace_record *record);

#endif

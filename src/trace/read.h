/* SPDX-License-Identifier: MIT */
/*
 * Reading a trace. Every field is checked, because the file may come from any source.
 *
 * Records lie in the file in the order in which threads' rings were drained; the reader sorts them
 * into the order in which the events happened. A trace that still grows, or whose writer was
 * killed, can be read as far as it goes: it has no event `ended`.
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
 * Reads the whole trace into memory. `name` is for messages. Each error but -ENOMEM is reported in
 * words. -EUCLEAN: the file is no trace, or a damaged one. -EPROTONOSUPPORT: this program does not
 * know the trace's version. -errno of the file. zf_trace_file_free() after success only.
 */
int zf_trace_read(int fd, const char *name, const struct zf_report *report,
		  struct zf_trace_file *ret_file);
void zf_trace_file_free(struct zf_trace_file *file);

/* The event of a record; NULL: this version does not know the event's number. */
const struct zf_trace_event *zf_trace_event_of(const struct zf_disk_trace_record *record);

#endif

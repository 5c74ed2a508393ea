/* SPDX-License-Identifier: MIT */
/*
 * The data of a trace (trace/data_format.h): written beside it, so that a later program can make
 * the device of any instant again.
 *
 *      zf_trace_data_begin --> zf_trace_data_write: what lies on the device --> zf_trace_start
 *      zf_trace_data_put: each write that is submitted --> zf_trace_stop, which closes the file
 *
 * Not as cheap as a trace: who submits a write waits until its bytes are in the file, one thread
 * after the other (one mutex, private, under which no lock is taken).
 */
#ifndef ZF_TRACE_DATA_H
#define ZF_TRACE_DATA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "trace/data_format.h"

/* ---- before the trace begins; -errno of the file ---- */

/* header->zone_count zones. Magic, version and sizes are filled in. */
int zf_trace_data_begin(int fd, const struct zf_disk_trace_data_header *header,
			const struct zf_disk_trace_data_zone *zones);
/* Bytes that lie on the device. */
int zf_trace_data_write(int fd, uint64_t address, const void *bytes, uint64_t len);

/* ---- while it runs ---- */

extern atomic_bool zf_trace_data_switch; /* private to the next function */

static inline bool zf_trace_has_data(void)
{
	return __builtin_expect(atomic_load_explicit(&zf_trace_data_switch, memory_order_relaxed),
				0);
}

/*
 * The bytes of a write, whose submission the trace knows as `submitted`: before the write begins.
 * If the file cannot be written, the trace ends, as if its own could not.
 */
void zf_trace_data_put(uint64_t submitted, uint64_t address, const struct iovec *iov,
		       unsigned int iovcnt, uint64_t len);

/* ---- for the trace (trace.c) ---- */

/* Takes the descriptor over, and closes the one before. -1: there is none from now on. */
void zf_trace_data_use(int fd);

#endif

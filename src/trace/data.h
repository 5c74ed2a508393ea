/* SPDX-License-Identifier: MIT */
/*
 * The data of a trace (trace/data_format.h): written to a file of its own, so that a later program
 * can reconstruct the device as it was at any instant of the trace.
 *
 *      zf_trace_data_begin --> zf_trace_data_write: what lies on the device --> zf_trace_start
 *      zf_trace_data_put: each write that is submitted --> zf_trace_stop, which closes the file
 *
 * This costs more than a trace alone: a thread that submits a write waits until the write's bytes
 * are in the file. Threads do so one after the other (one private mutex, under which no lock is
 * taken).
 */
#ifndef ZF_TRACE_DATA_H
#define ZF_TRACE_DATA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "trace/data_format.h"

/* ---- before the trace begins; -errno of the file ---- */

/*
 * Writes the header and its zones: header->zone_count of them. Magic, version and header_size are
 * filled in by this function.
 */
int zf_trace_data_begin(int fd, const struct zf_disk_trace_data_header *header,
			const struct zf_disk_trace_data_zone *zones);
/* Writes bytes that lie on the device already. */
int zf_trace_data_write(int fd, uint64_t address, const void *bytes, uint64_t len);

/* ---- while the trace runs ---- */

extern atomic_bool zf_trace_data_switch; /* private to the next function */

static inline bool zf_trace_has_data(void)
{
	return __builtin_expect(atomic_load_explicit(&zf_trace_data_switch, memory_order_relaxed),
				0);
}

/*
 * Puts the bytes of a write into the file, before the write begins. `submitted` is the sequence of
 * the event command_submitted. If the data file cannot be written, the trace ends, as if the
 * trace's own file could not be written.
 */
void zf_trace_data_put(uint64_t submitted, uint64_t address, const struct iovec *iov,
		       unsigned int iovcnt, uint64_t len);

/* ---- for the trace (trace.c) ---- */

/* Takes the descriptor over, and closes the previous one. -1: there is no data file from now on. */
void zf_trace_data_use(int fd);

#endif

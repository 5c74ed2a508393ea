/* SPDX-License-Identifier: MIT */
/*
 * A recorded run, from its trace and its file of data: the device's content at the beginning, and
 * each command with its bytes.
 *
 * Both files are untrusted. Everything is checked here, so the player (lab/device.h) meets only
 * commands that are possible on a device.
 */
#ifndef ZF_TOOLS_LAB_RUN_H
#define ZF_TOOLS_LAB_RUN_H

#include "io/dev.h"
#include "trace/data_format.h"
#include "trace/read.h"

struct zf_lab_command {
	uint64_t submitted; /* the sequence of its event */
	enum zf_io_op op;   /* all but READ */
	bool fua;
	uint64_t address, bytes; /* as it was submitted */
	const uint8_t *data;	 /* of WRITE and APPEND; NULL: not in the file of data */

	uint64_t completed; /* the sequence of its completion; UINT64_MAX: not in the trace */
	int64_t result;
	uint64_t landed; /* address */
};

struct zf_lab_piece {
	uint64_t address, bytes;
	const uint8_t *data;
};

struct zf_lab_run {
	struct zf_trace_file trace;
	struct zf_geometry geometry; /* when the run began */
	const struct zf_disk_trace_data_zone *zones;
	struct zf_lab_piece *lay; /* on the device when the run began */
	size_t lay_count;
	struct zf_lab_command *commands; /* by the sequence of submission */
	size_t command_count;
	size_t *completions; /* indices of commands that have completed, in that order */
	size_t completion_count;

	uint8_t *bytes; /* the data's file */
};

/* 0, or -errno, reported. zf_lab_run_free() is called after success only. */
int zf_lab_run_load(const char *trace_path, const char *data_path, const struct zf_report *report,
		    struct zf_lab_run *ret_run);
void zf_lab_run_free(struct zf_lab_run *run);

/*
 * Can the device after event `at` be rebuilt? 0: yes; -EINVAL: there is no such event; -ENODATA:
 * events before it, or the data of a write, are missing. Reported.
 */
int zf_lab_run_check(const struct zf_lab_run *run, uint64_t at, const struct zf_report *report);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * How far a long command has come, on standard error. On a terminal: one line, from the first
 * second on, that is wiped away at the end. With --progress=json: an object on a line of its own
 * each second, and one at the end. Else nothing.
 */
#ifndef ZF_TOOLS_METER_H
#define ZF_TOOLS_METER_H

#include "args.h"

struct zf_meter {
	enum zf_meter_mode {
		ZF_METER_OFF,
		ZF_METER_LINE,
		ZF_METER_JSON,
	} mode;
	const char *unit; /* "bytes", "zones"; NULL: parts of the whole, which are not told */
	int64_t start_ns, shown_ns;
	uint64_t done, total;
	bool on_screen;
};

/* Begins now. LINE where there is no terminal is OFF. */
void zf_meter_begin(struct zf_meter *meter, enum zf_meter_mode mode, const char *unit);
/* As the command's options say. */
void zf_meter_init(struct zf_meter *meter, const struct zf_args *args, const char *unit);
/* arg: the meter. total 0: nobody knows. So it fits struct zf_progress. */
void zf_meter_update(void *meter, uint64_t done, uint64_t total);
/* Takes the line away, for another one to be printed; the next update brings it back. */
void zf_meter_wipe(struct zf_meter *meter);
void zf_meter_end(struct zf_meter *meter);

#endif

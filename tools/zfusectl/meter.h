/* SPDX-License-Identifier: MIT */
/*
 * Shows the progress of a long command on standard error. On a terminal: one line, from the first
 * second on, which is wiped away at the end. With --progress=json: an object on a line of its own
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
	const char *unit; /* "bytes", "zones"; NULL: only a percentage is shown */
	int64_t start_ns, shown_ns;
	uint64_t done, total;
	bool on_screen;
};

/* The time counts from now on. Without a terminal LINE becomes OFF. */
void zf_meter_begin(struct zf_meter *meter, enum zf_meter_mode mode, const char *unit);
/* zf_meter_begin() with the mode that the command's options choose. */
void zf_meter_init(struct zf_meter *meter, const struct zf_args *args, const char *unit);
/* For struct zf_progress, hence `void *`. total 0: unknown. */
void zf_meter_update(void *meter, uint64_t done, uint64_t total);
/* Wipes the line away, so that other output can be printed. The next update shows it again. */
void zf_meter_wipe(struct zf_meter *meter);
void zf_meter_end(struct zf_meter *meter);

#endif

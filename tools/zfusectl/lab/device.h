/* SPDX-License-Identifier: MIT */
/*
 * The device of a run at an instant, as the simulator has it (src/sim/sim.h), so that its
 * power can be cut there: docs/trace.md, "Cut here".
 */
#ifndef ZF_TOOLS_LAB_DEVICE_H
#define ZF_TOOLS_LAB_DEVICE_H

#include "lab/run.h"

struct zf_sim;

/* On its way through the run, which outlives it. Without memory it aborts, as the simulator does. */
struct zf_lab_device {
	const struct zf_lab_run *run;
	struct zf_sim *sim;
	size_t next; /* of run->completions */
};

/* Before the first event. */
void zf_lab_device_init(struct zf_lab_device *device, const struct zf_lab_run *run);
void zf_lab_device_deinit(struct zf_lab_device *device);

/* All that has completed up to event `at` is done; an earlier one than before does nothing. */
void zf_lab_device_play(struct zf_lab_device *device, uint64_t at);

/* After that: adds what is in flight after event `at`. It cannot be played any further. */
void zf_lab_device_fly(struct zf_lab_device *device, uint64_t at);

#endif

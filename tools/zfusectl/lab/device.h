/* SPDX-License-Identifier: MIT */
/*
 * Rebuilds the device of a recorded run at an instant, in the simulator (src/sim/sim.h), so that
 * its power can be cut there: docs/trace.md, "Cut here".
 */
#ifndef ZF_TOOLS_LAB_DEVICE_H
#define ZF_TOOLS_LAB_DEVICE_H

#include "lab/run.h"

struct zf_sim;

/* The run outlives the device. If there is no memory, the program aborts, as the simulator does. */
struct zf_lab_device {
	const struct zf_lab_run *run;
	struct zf_sim *sim;
	size_t next; /* index in run->completions: the next command to complete */
};

/* Makes the device before the first event. */
void zf_lab_device_init(struct zf_lab_device *device, const struct zf_lab_run *run);
void zf_lab_device_deinit(struct zf_lab_device *device);

/* Carries out all commands that completed up to event `at`. The device never goes back. */
void zf_lab_device_play(struct zf_lab_device *device, uint64_t at);

/*
 * After zf_lab_device_play() with the same `at`: adds the commands in flight after that event. The
 * device can then not be played any further.
 */
void zf_lab_device_fly(struct zf_lab_device *device, uint64_t at);

#endif

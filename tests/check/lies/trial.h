/* SPDX-License-Identifier: MIT */
/*
 * Tries an image with lies: the checker runs, everything readable is salvaged, then the image is
 * mounted, whatever the checker found, and written to; the power fails; the image is mounted again,
 * must have what was written, is read, emptied and closed; then the checker runs again. Each trial
 * runs in a process of its own, with limits of time and memory.
 */
#ifndef ZF_TESTS_LIES_TRIAL_H
#define ZF_TESTS_LIES_TRIAL_H

#include "lie.h"

enum trial_outcome {
	TRIAL_FOUND,	  /* the checker found the lie */
	TRIAL_FOUND_DATA, /* the checker found it only when it read all data */
	TRIAL_UNKNOWN,	  /* everything works: nothing on the disk contradicts the lie */
	/* Outcomes that must not happen. */
	TRIAL_REFUSED, /* found in order, but a mount fails */
	TRIAL_BROKEN,  /* found in order, but the mounted filesystem fails, or leaves errors */
	TRIAL_CRASHED, /* the process died, or exceeded a limit */
	TRIAL_OUTCOMES,
};

struct trial_result {
	enum trial_outcome outcome;
	char text[512]; /* the first message */
};

/* With count 0 the image is tried as it is. */
void trial_run(const struct places *places, const struct lie *lies, unsigned int count,
	       struct trial_result *ret_result);

const char *trial_outcome_name(enum trial_outcome outcome);

#endif

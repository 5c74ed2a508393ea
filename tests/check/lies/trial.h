/* SPDX-License-Identifier: MIT */
/*
 * What becomes of lies: the checker looks, what can be read is salvaged, then the image is mounted,
 * whatever the checker said, and written to; the power fails; it is mounted again, must have what
 * was written, is read, emptied and closed; then the checker looks again. All in a process of its
 * own, with limits of time and memory.
 */
#ifndef ZF_TESTS_LIES_TRIAL_H
#define ZF_TESTS_LIES_TRIAL_H

#include "lie.h"

enum trial_outcome {
	TRIAL_FOUND,	  /* the checker has found it */
	TRIAL_FOUND_DATA, /* only when it reads all data */
	TRIAL_UNKNOWN,	  /* all is well with it: nothing on the disk contradicts it */
	/* What must not be. */
	TRIAL_REFUSED, /* found in order, and a mount fails */
	TRIAL_BROKEN,  /* found in order, and what was mounted fails, or leaves errors */
	TRIAL_CRASHED, /* the process died, or there was no end to it */
	TRIAL_OUTCOMES,
};

struct trial_result {
	enum trial_outcome outcome;
	char text[512]; /* what was said first */
};

/* Without lies: the image as it is. */
void trial_run(const struct places *places, const struct lie *lies, unsigned int count,
	       struct trial_result *ret_result);

const char *trial_outcome_name(enum trial_outcome outcome);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What a repair makes of lies: a filesystem that the checker finds in order and that mounts, in
 * which all files are as they were but for those that the lies are about. All in a process of its own,
 * with limits of time and memory.
 */
#ifndef ZF_TESTS_LIES_MEND_H
#define ZF_TESTS_LIES_MEND_H

#include "lie.h"

enum mend_outcome {
	MEND_NOTHING, /* the checker finds nothing to repair */
	MEND_WHOLE,   /* repaired, and every file is as it was */
	MEND_TOUCHED, /* repaired, and few files are not */
	MEND_GIVEN_UP, /* what no repair can know: another version's, or an image that has no header */
	/* What must not be. */
	MEND_REPAIR_FAILED, /* it says that it cannot be repaired */
	MEND_LOST,	    /* repaired, and files are lost that the lie was not about */
	MEND_ERRORS,	    /* repaired, and errors are left */
	MEND_REFUSED,	    /* repaired, and a mount fails */
	MEND_CRASHED,	    /* the process died, or there was no end to it */
	MEND_OUTCOMES,
};

struct mend_result {
	enum mend_outcome outcome;
	unsigned int touched; /* files that are others, or gone */
	char text[512];	      /* what was said first */
};

/* Notes what the image is without a lie. */
void mend_begin(const struct places *places);
void mend_end(void);

void mend_run(const struct places *places, const struct lie *lies, unsigned int count,
	      struct mend_result *ret_result);

const char *mend_outcome_name(enum mend_outcome outcome);

#endif

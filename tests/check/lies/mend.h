/* SPDX-License-Identifier: MIT */
/*
 * Repairs an image with lies. Afterwards the checker must find the filesystem in order, it must
 * mount, and all files must be as they were except those that the lies are about. Each repair runs
 * in a process of its own, with limits of time and memory.
 */
#ifndef ZF_TESTS_LIES_MEND_H
#define ZF_TESTS_LIES_MEND_H

#include "lie.h"

enum mend_outcome {
	MEND_NOTHING, /* the checker finds nothing to repair */
	MEND_WHOLE,   /* repaired, and every file is as it was */
	MEND_TOUCHED, /* repaired, and few files are not as they were */
	/* No repair can know: a structure of another version, or an image without a header. */
	MEND_GIVEN_UP,
	/* Outcomes that must not happen. */
	MEND_REPAIR_FAILED, /* the repair says that it is not possible */
	MEND_LOST,	    /* repaired, and files are lost that the lie was not about */
	MEND_ERRORS,	    /* repaired, and errors are left */
	MEND_REFUSED,	    /* repaired, and a mount fails */
	MEND_CRASHED,	    /* the process died, or exceeded a limit */
	MEND_OUTCOMES,
};

struct mend_result {
	enum mend_outcome outcome;
	unsigned int touched; /* files that are different, or gone */
	char text[512];	      /* the first message */
};

/* Lists the files of the image without a lie. */
void mend_begin(const struct places *places);
void mend_end(void);

void mend_run(const struct places *places, const struct lie *lies, unsigned int count,
	      struct mend_result *ret_result);

const char *mend_outcome_name(enum mend_outcome outcome);

#endif

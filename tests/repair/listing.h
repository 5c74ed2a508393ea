/* SPDX-License-Identifier: MIT */
/* Everything that users see of a filesystem, file by file, to compare it before and after. */
#ifndef ZF_TESTS_REPAIR_LISTING_H
#define ZF_TESTS_REPAIR_LISTING_H

#include "base/vector.h"
#include "io/dev.h"

struct listed {
	char path[320];
	uint64_t ino;
	uint64_t digest; /* of attributes, content, target and extended attributes; not of a
			  * directory's own times, size and counts */
	int error;	 /* of reading the file; 0: none */
};

/* Lists the files that a mount shows. The device is only read. 0, or the error of the mount. */
int listing_make(struct zf_dev *dev, struct zf_vector *ret_list); /* struct listed, by path */

const struct listed *listing_find(const struct zf_vector *list, const char *path);

/*
 * How many files of `before` are missing in `after`, or differ. If `verbose`, prints each of them,
 * and the new ones.
 */
unsigned int listing_compare(const struct zf_vector *before, const struct zf_vector *after,
			     bool verbose);

#endif

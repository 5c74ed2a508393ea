/* SPDX-License-Identifier: MIT */
/* Lies: wrong values of one field, and how they are written to the image. */
#ifndef ZF_TESTS_LIES_LIE_H
#define ZF_TESTS_LIES_LIE_H

#include "place.h"
#include "sim/rng.h"

#define LIES_MAX 48u /* of one element of a field */

struct lie {
	const struct place *place;
	const struct zf_field *field;
	size_t offset;	/* of the element, in the place */
	size_t len;	/* bytes */
	uint8_t *bytes; /* the wrong bytes */
	bool rotten;	/* no checksum is made right, and only one copy of a node is changed */
	char text[96];	/* for people: "has 3, says 4" */
};

/* How many elements the field has: the numbers of an array; other fields have one. */
unsigned int lie_elements(const struct zf_field *field);

/*
 * Makes the wrong values of one element: limits of fields, neighbours of the right value, and some
 * that are drawn. Returns how many; the bytes of each are to be freed.
 */
unsigned int lie_make(const struct places *places, const struct place *place,
		      const struct zf_field *field, unsigned int element, struct zf_rng *rng,
		      struct lie ret_lies[LIES_MAX]);

/* Writes the lies, with all checksums right except a checksum that is itself the lie. */
void lie_tell(const struct places *places, const struct lie *lies, unsigned int count);

/* Is the lie about bytes of a structure, and not about one of its fields? */
bool lie_is_wide(const struct lie *lie);

/* Is the lie about the zone table? A search finds no nodes in a zone whose pointer is too low. */
bool lie_hides_nodes(const struct lie *lie);

/*
 * May a repair leave the lie alone? True if the field can make a structure look like one of a newer
 * version, and for the header of an image, without which the file is no image.
 */
bool lie_may_be_given_up(const struct lie *lie);

#endif

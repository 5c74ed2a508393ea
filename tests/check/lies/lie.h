/* SPDX-License-Identifier: MIT */
/* What is told of one field: which wrong values, and how one is put there. */
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
	uint8_t *bytes; /* what is put there */
	bool rotten;	/* no checksum is made right, and of a node one copy is changed */
	char text[96];	/* for people: "has 3, says 4" */
};

/* How many elements the field has: numbers of an array, else one. */
unsigned int lie_elements(const struct zf_field *field);

/*
 * The wrong values of one element: borders of what fields may have, neighbours of the right one,
 * and some that are drawn. Returns how many; each has bytes to be freed.
 */
unsigned int lie_make(const struct places *places, const struct place *place,
		      const struct zf_field *field, unsigned int element, struct zf_rng *rng,
		      struct lie ret_lies[LIES_MAX]);

/* Tells them: with all checksums right, but for one that is the lie itself. */
void lie_tell(const struct places *places, const struct lie *lies, unsigned int count);

/* It is about bytes of a structure, and not about one of its fields. */
bool lie_is_wide(const struct lie *lie);

/* It is about the zone table: of a zone whose pointer is too low no node is found by a search. */
bool lie_hides_nodes(const struct lie *lie);

/* What a newer version may have written is left alone; without its header an image is none. */
bool lie_may_be_given_up(const struct lie *lie);

#endif

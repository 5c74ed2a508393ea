/* SPDX-License-Identifier: MIT */
/*
 * Several lies at once, drawn from a seed: wrong values of fields (lie.h), bytes of a structure or
 * a node that are changed, a structure with the bytes of another one, all with checksums made
 * right; and rotten bytes anywhere, whose checksums are left as they were.
 */
#ifndef ZF_TESTS_LIES_MUTANT_H
#define ZF_TESTS_LIES_MUTANT_H

#include "lie.h"

#define MUTANT_LIES_MAX 6u

struct mutant {
	uint64_t seed;
	unsigned int count;
	struct lie lies[MUTANT_LIES_MAX];
	struct place
		place[MUTANT_LIES_MAX]; /* of lies about bytes that have no place of their own */
};

/* The same places and seed make the same mutant. It must not be moved. */
void mutant_make(const struct places *places, uint64_t seed, struct mutant *ret_mutant);
void mutant_free(struct mutant *mutant);

/* What the lies are, a line each. */
void mutant_print(const struct mutant *mutant);

#endif

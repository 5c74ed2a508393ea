/* SPDX-License-Identifier: MIT */
/*
 * Several lies at once, drawn from a seed. Some have all checksums made right: wrong values of
 * fields (lie.h), changed bytes of a structure or a node, a structure with the bytes of another
 * one. Others are rotten bytes anywhere, whose checksums stay as they were.
 */
#ifndef ZF_TESTS_LIES_MANGLING_H
#define ZF_TESTS_LIES_MANGLING_H

#include "lie.h"

#define MANGLING_LIES_MAX 6u

struct mangling {
	uint64_t seed;
	unsigned int count;
	struct lie lies[MANGLING_LIES_MAX];
	struct place
		place[MANGLING_LIES_MAX]; /* of lies about bytes that have no place of their own */
};

/* The same places and seed make the same mangling. The struct must not be moved in memory. */
void mangling_make(const struct places *places, uint64_t seed, struct mangling *ret_mangling);
void mangling_free(struct mangling *mangling);

/* Prints the lies, one line each. */
void mangling_print(const struct mangling *mangling);

#endif

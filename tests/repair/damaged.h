/* SPDX-License-Identifier: MIT */
/* A filesystem that a test damages on purpose, then repairs, and what is left of its files. */
#ifndef ZF_TESTS_REPAIR_DAMAGED_H
#define ZF_TESTS_REPAIR_DAMAGED_H

#include <stddef.h>

#include "fixture.h"
#include "forge.h"

/* For forge_field(). */
#define FIELD(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)

struct damaged {
	struct forge *forge;
	struct zf_dev *dev;
	struct zf_vector before, after; /* struct listed */
	struct zf_repair_counts counts;
};

/* What there is before the damage. */
struct damaged damaged_begin(struct forge *forge);

/* Repairs the damage; the checker must have found some. */
void damaged_mend(struct damaged *damaged);

/* How many files are others, or gone. The messages are still those of the repair. */
unsigned int damaged_lost(struct damaged *damaged);

/* The checker must find nothing any more. */
void damaged_end(struct damaged *damaged);

/* The node of that level, or the root, on the way to the key. */
uint8_t *damaged_node(struct forge *forge, enum zf_tree_id tree, struct zf_key key,
		      unsigned int level);

/* The repair must have said a line that holds both. */
void damaged_expect(const char *a, const char *b);

#endif

/* SPDX-License-Identifier: MIT */
/* One damage: the files before it, the repair, and the files after it. */
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

/* Lists the files before the damage. The caller does the damage after that. */
struct damaged damaged_begin(struct forge *forge);
/* Fails unless the check finds errors; then repairs them. */
void damaged_mend(struct damaged *damaged);
/* How many files are different, or gone. The messages are still those of the repair. */
unsigned int damaged_lost(struct damaged *damaged);
/* Fails if errors are left. */
void damaged_end(struct damaged *damaged);

/* Fails unless the repair printed a line that contains both. */
void damaged_expect(const char *a, const char *b);

/* The bytes of the node of this level on the way to the key, or of the root if there is none. */
uint8_t *damaged_node(struct forge *forge, enum zf_tree_id tree, struct zf_key key,
		      unsigned int level);
/* Deletes the first item of this type that the inode has. */
void damaged_delete_first(struct forge *forge, uint64_t ino, uint8_t type);

#endif

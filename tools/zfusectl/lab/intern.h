/* SPDX-License-Identifier: MIT */
/* A set of byte pieces of one length. Each piece is kept once, and has a number from 0 on. */
#ifndef ZF_TOOLS_LAB_INTERN_H
#define ZF_TOOLS_LAB_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct zf_lab_intern {
	size_t len;	 /* of a piece, bytes */
	uint8_t **items; /* by number */
	uint32_t count;
	uint32_t *table; /* hash table: a piece's number + 1, or 0 */
	uint32_t room;	 /* of `table`: a power of two */
};

/* An empty set has `len`, and else zeroes. If there is no memory, the program aborts. */
uint32_t zf_lab_intern_add(struct zf_lab_intern *intern, const void *bytes);
void zf_lab_intern_free(struct zf_lab_intern *intern);

#endif

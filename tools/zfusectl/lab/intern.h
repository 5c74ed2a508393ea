/* SPDX-License-Identifier: MIT */
/* Pieces of bytes, all of one length, each kept once and known by a number from 0 on. */
#ifndef ZF_TOOLS_LAB_INTERN_H
#define ZF_TOOLS_LAB_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct zf_lab_intern {
	size_t len;	 /* of a piece, bytes */
	uint8_t **items; /* by number */
	uint32_t count;
	uint32_t *table; /* of a power of two: number + 1, or 0 */
	uint32_t room;
};

/* Zeroed but for `len` it is empty. Without memory the program aborts. */
uint32_t zf_lab_intern_add(struct zf_lab_intern *intern, const void *bytes);
void zf_lab_intern_free(struct zf_lab_intern *intern);

#endif

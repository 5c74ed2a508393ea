/* SPDX-License-Identifier: MIT */
/*
 * What a checker cannot know: the table of docs/format.md under the heading of that name, whose
 * rows are
 *
 *      | structure | `field`, `field` | why |
 */
#ifndef ZF_TESTS_LIES_KNOWN_H
#define ZF_TESTS_LIES_KNOWN_H

#include <stdbool.h>

/* Reads the table. Ends the program if there is none. */
void known_read(const char *path);

/* Is it said there of this field that it cannot be known? Notes that it was needed. */
bool known_has(const char *structure, const char *field);

/* Prints what nothing has needed. Returns how much. */
unsigned int known_tell_unneeded(void);

#endif

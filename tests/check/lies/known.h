/* SPDX-License-Identifier: MIT */
/*
 * The fields whose errors no checker can know: the table of docs/format.md under the heading "What
 * a checker cannot know", whose rows are
 *
 *      | structure | `field`, `field` | why |
 */
#ifndef ZF_TESTS_LIES_KNOWN_H
#define ZF_TESTS_LIES_KNOWN_H

#include <stdbool.h>

/* Reads the table. Ends the program if there is none. */
void known_read(const char *path);

/* Does the table list this field? Notes that its row was needed. */
bool known_has(const char *structure, const char *field);

/* Prints the rows that nothing has needed. Returns their number. */
unsigned int known_tell_unneeded(void);

#endif

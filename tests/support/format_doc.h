/* SPDX-License-Identifier: MIT */
/*
 * Checks docs/format.md against the tables of fields (base/fields.h).
 *
 * The section of a struct starts at a heading that names it: "## ... `struct zf_disk_thing`". The
 * section has one table, whose rows are
 *
 *      | offset | size | type | `field` | what it is for |
 *
 * in the order of the struct, with nothing left out. Optionally it has a worked example: the first
 * fenced block, which is the output of `zfusectl --hex` for a record that the test makes.
 */
#ifndef ZF_TESTS_FORMAT_DOC_H
#define ZF_TESTS_FORMAT_DOC_H

#include "base/fields.h"

/* Fails the running cmocka test, naming the first line that differs. */
void zf_format_doc_check(const char *path, const struct zf_fields *fields);

/*
 * Checks likewise that the section's example is `expected`. With ZF_PRINT_EXAMPLE in the
 * environment the right text is printed, to be pasted.
 */
void zf_format_doc_check_example(const char *path, const struct zf_fields *fields,
				 const char *expected);

/*
 * Checks that the first fenced block below the heading that contains `heading` is `expected`;
 * ZF_PRINT_EXAMPLE as above.
 */
void zf_format_doc_check_block(const char *path, const char *heading, const char *expected);

/* Checks that a line below that heading starts with `start`: for tables that describe no struct. */
void zf_format_doc_check_line(const char *path, const char *heading, const char *start);

#endif

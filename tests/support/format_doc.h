/* SPDX-License-Identifier: MIT */
/*
 * Holds docs/format.md to the tables of fields (base/fields.h).
 *
 * The section of a struct starts at a heading that names it: "## ... `struct zf_disk_thing`". In it
 * is one table whose rows are
 *
 *      | offset | size | type | `field` | what it is for |
 *
 * in the order of the struct, with nothing left out, and optionally a worked example: the first
 * fenced block, which is what `zfusectl --hex` prints of a record that the test makes.
 */
#ifndef ZF_TESTS_FORMAT_DOC_H
#define ZF_TESTS_FORMAT_DOC_H

#include "base/fields.h"

/* Fails the running cmocka test, naming the first line that differs. */
void zf_format_doc_check(const char *path, const struct zf_fields *fields);

/*
 * Likewise: the section's example is `expected`. With ZF_PRINT_EXAMPLE in the environment the right
 * text is printed, to be pasted.
 */
void zf_format_doc_check_example(const char *path, const struct zf_fields *fields,
				 const char *expected);

/*
 * The first fenced block below the heading that has `heading` in it is `expected`; with
 * ZF_PRINT_EXAMPLE likewise.
 */
void zf_format_doc_check_block(const char *path, const char *heading, const char *expected);

/* A line below that heading starts so: a row of a table that is no struct's. */
void zf_format_doc_check_line(const char *path, const char *heading, const char *start);

#endif

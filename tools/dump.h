/* SPDX-License-Identifier: MIT */
/* Prints an on-disk struct byte by byte, each field with its name and value. */
#ifndef ZF_TOOLS_DUMP_H
#define ZF_TOOLS_DUMP_H

#include <stdio.h>

#include "base/fields.h"

/*
 * Lines of "offset  bytes  field value", 16 bytes a line, for the struct that lies at `data`.
 * A run of more than two lines of zero bytes in one field is shortened to a line that counts them.
 */
void zf_dump_annotated(FILE *out, const struct zf_fields *fields, const void *data);

/*
 * The same for a struct inside a larger block: it lies at `base` of it, which is added to the
 * offsets, and each field's name is preceded by `prefix`.
 */
void zf_dump_annotated_at(FILE *out, unsigned int base, const char *prefix,
			  const struct zf_fields *fields, const void *data);
/* Bytes without fields, at `base` of their block. */
void zf_dump_bytes_at(FILE *out, unsigned int base, const char *note, const void *data,
		      unsigned int len);

/* Lines of "field value" without bytes and without the reserved fields. */
void zf_dump_values(FILE *out, const struct zf_fields *fields, const void *data);

#endif

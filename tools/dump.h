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

/* Lines of "field value" without bytes and without the reserved fields. */
void zf_dump_values(FILE *out, const struct zf_fields *fields, const void *data);

#endif

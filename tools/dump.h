/* SPDX-License-Identifier: MIT */
/* Prints on-disk structs byte by byte, each field with its name and value. */
#ifndef ZF_TOOLS_DUMP_H
#define ZF_TOOLS_DUMP_H

#include <stdio.h>

#include "ctl/annotate.h"

/* The longest line. A note that does not fit beside its bytes continues in the next lines. */
#define ZF_DUMP_COLUMNS 100

/*
 * Prints bytes at `offset` of a structure as lines of "offset  bytes  note", 16 bytes a line. A run
 * of more than two lines of zero bytes is shortened to a line that counts these bytes.
 */
void zf_dump_bytes(FILE *out, uint64_t offset, const void *data, size_t len, const char *note);
/* The same for bytes that must not be shown. */
void zf_dump_withheld(FILE *out, uint64_t offset, size_t len, const char *note);

/* The note of a field: "value 1 parent 1". Returns buf. */
const char *zf_dump_note(const char *part, const char *name, const char *value, char *buf,
			 size_t size);
#define ZF_DUMP_NOTE_MAX 1400

/* A zf_annotate_fn whose `arg` is the FILE. */
void zf_dump_annotation(void *out, const struct zf_annotation *annotation);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Names every byte of a structure on disk, for hex dumps: each byte once, in the order of offsets,
 * whatever the bytes are. A field has the name that docs/format.md gives it.
 *
 * The bytes may come from a hostile disk, and need not have been checked. Bytes that do not have
 * the expected form are named "bytes"; so is the rest of the structure if nothing tells where the
 * next field begins.
 */
#ifndef ZF_CTL_ANNOTATE_H
#define ZF_CTL_ANNOTATE_H

#include <stdint.h>

#include "base/fields.h"

/* Everything that an annotation points to is valid until the callback returns. */
struct zf_annotation {
	uint32_t offset, size;		/* bytes, from the structure's start; the size is above 0 */
	const char *part;		/* which of several: "value 1"; "": there is only one */
	const struct zf_fields *fields; /* the struct of the field; NULL: it is in none */
	const char *name;
	const char *value; /* decoded; "": the bytes say it all */
	const uint8_t *bytes;
};

typedef void zf_annotate_fn(void *arg, const struct zf_annotation *annotation);

/* A superblock record: ZF_BLOCK_SIZE bytes. */
void zf_annotate_super(const void *record, zf_annotate_fn *fn, void *arg);

/* A node. */
void zf_annotate_node(const void *node, uint32_t node_size, zf_annotate_fn *fn, void *arg);

/*
 * The header blocks of a log record, and as much of what follows them as `len` covers. The first
 * block has passed zf_log_record_peek(); `len` covers at least the header blocks.
 */
void zf_annotate_log_record(const void *blocks, uint32_t len, zf_annotate_fn *fn, void *arg);

#endif

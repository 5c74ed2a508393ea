/* SPDX-License-Identifier: MIT */
/* What the files of annotate.h have in common. */
#ifndef ZF_CTL_ANNOTATE_INTERNAL_H
#define ZF_CTL_ANNOTATE_INTERNAL_H

#include <stddef.h>

#include "btree/key.h"
#include "ctl/annotate.h"

#define ZF_PART_MAX 64

struct zf_annotator {
	const uint8_t *bytes; /* of the structure, from its start */
	zf_annotate_fn *fn;
	void *arg;
};

/* Every field of the struct that lies at `at`. */
void zf_annotate_fields(const struct zf_annotator *annotator, const char *part, size_t at,
			const struct zf_fields *fields);
/* Bytes that belong to no struct. Adds nothing if `len` is 0. */
void zf_annotate_bytes(const struct zf_annotator *annotator, const char *part, size_t at,
		       size_t len, const char *name);
/* The same for text: names of files and the like. */
void zf_annotate_text(const struct zf_annotator *annotator, const char *part, size_t at, size_t len,
		      const char *name);
/* The value of an item, which lies at `at`. */
void zf_annotate_item(const struct zf_annotator *annotator, const char *part, size_t at, size_t len,
		      enum zf_tree_id tree, uint8_t type);

#endif

/* SPDX-License-Identifier: MIT */
/* The tiny image that the examples of docs/format.md show, and its nodes as text. */
#ifndef ZF_TESTS_DOCS_IMAGE_H
#define ZF_TESTS_DOCS_IMAGE_H

#include "btree/key.h"
#include "io/memory.h"
#include "superblock/super.h"

#define IMAGE_ZONE_SIZE UINT64_C(131072)
#define IMAGE_NODE_SIZE 4096u
#define IMAGE_TIME_S	1767225600

struct image {
	struct zf_memory *memory;
	struct zf_dev *dev;
};

/* Formatted with fixed options: the same bytes each time. */
void image_make(struct image *image);
void image_free(struct image *image);

/* The only node of a tree, as of the newest superblock. */
const void *image_leaf(struct image *image, enum zf_tree_id tree);

/* Every byte of a leaf, each field named. To be freed. */
char *image_leaf_to_text(const void *leaf);
/* The item (header and value) of the first key with this type, likewise. */
char *image_item_to_text(const void *leaf, uint8_t type);

#endif

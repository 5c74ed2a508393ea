/* SPDX-License-Identifier: MIT */
/* A growing array: pushed in any order, sorted, searched. */
#ifndef ZF_BASE_VECTOR_H
#define ZF_BASE_VECTOR_H

#include <stddef.h>

struct zf_vector {
	void *data;
	size_t item_size;
	size_t count, room;
};

#define ZF_VECTOR(type) ((struct zf_vector){.item_size = sizeof(type)})
#define ZF_VECTOR_FOREACH(v, type, item)                                                           \
	for (type *item = (v)->data; item && item < (type *)(v)->data + (v)->count; item++)

void zf_vector_deinit(struct zf_vector *v);
int zf_vector_push(struct zf_vector *v, const void *item); /* 0 or -ENOMEM */
/* Gives back the memory that holds no item. */
void zf_vector_trim(struct zf_vector *v);
void *zf_vector_at(const struct zf_vector *v, size_t i);

typedef int zf_vector_cmp_fn(const void *a, const void *b);
/* Sorts the items from `first` on. */
void zf_vector_sort(struct zf_vector *v, size_t first, zf_vector_cmp_fn *cmp);
/* Finds an item in a sorted vector; NULL: there is none. */
void *zf_vector_find(const struct zf_vector *v, const void *key, zf_vector_cmp_fn *cmp);

#endif

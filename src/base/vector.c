/* SPDX-License-Identifier: MIT */
#include "base/vector.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void zf_vector_deinit(struct zf_vector *v)
{
	free(v->data);
	*v = (struct zf_vector){.item_size = v->item_size};
}

int zf_vector_push(struct zf_vector *v, const void *item)
{
	if (v->count == v->room) {
		size_t room = v->room ? v->room + v->room / 2 : 64;
		void *data = reallocarray(v->data, room, v->item_size);

		if (!data)
			return -ENOMEM;
		v->data = data;
		v->room = room;
	}
	memcpy((char *)v->data + v->count * v->item_size, item, v->item_size);
	v->count++;
	return 0;
}

void zf_vector_trim(struct zf_vector *v)
{
	void *data = v->count ? reallocarray(v->data, v->count, v->item_size) : NULL;

	if (!data)
		return;
	v->data = data;
	v->room = v->count;
}

void *zf_vector_at(const struct zf_vector *v, size_t i)
{
	assert(i < v->count);
	return (char *)v->data + i * v->item_size;
}

void zf_vector_sort(struct zf_vector *v, size_t first, zf_vector_cmp_fn *cmp)
{
	assert(first <= v->count);
	if (v->count - first > 1)
		qsort((char *)v->data + first * v->item_size, v->count - first, v->item_size, cmp);
}

void *zf_vector_find(const struct zf_vector *v, const void *key, zf_vector_cmp_fn *cmp)
{
	return v->count ? bsearch(key, v->data, v->count, v->item_size, cmp) : NULL;
}

/* SPDX-License-Identifier: MIT */
#include "lab/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* The index in `table` where the piece is, or where it belongs. */
static uint32_t place_of(const struct zf_lab_intern *intern, const void *bytes)
{
	uint32_t at = (uint32_t)zf_hash64(bytes, intern->len) & (intern->room - 1);

	while (intern->table[at] != 0 &&
	       memcmp(intern->items[intern->table[at] - 1], bytes, intern->len) != 0)
		at = (at + 1) & (intern->room - 1);
	return at;
}

static void grow(struct zf_lab_intern *intern)
{
	uint32_t room = intern->room ? 2 * intern->room : 1024;

	free(intern->table);
	intern->table = calloc(room, sizeof(*intern->table));
	intern->items = reallocarray(intern->items, room, sizeof(*intern->items));
	if (!intern->table || !intern->items)
		abort();
	intern->room = room;
	for (uint32_t i = 0; i < intern->count; i++)
		intern->table[place_of(intern, intern->items[i])] = i + 1;
}

uint32_t zf_lab_intern_add(struct zf_lab_intern *intern, const void *bytes)
{
	uint32_t at;

	if (intern->count >= intern->room / 2)
		grow(intern);
	at = place_of(intern, bytes);
	if (intern->table[at] == 0) {
		uint8_t *copy = malloc(intern->len);

		if (!copy)
			abort();
		memcpy(copy, bytes, intern->len);
		intern->items[intern->count++] = copy;
		intern->table[at] = intern->count;
	}
	return intern->table[at] - 1;
}

void zf_lab_intern_free(struct zf_lab_intern *intern)
{
	for (uint32_t i = 0; i < intern->count; i++)
		free(intern->items[i]);
	free(intern->items);
	free(intern->table);
}

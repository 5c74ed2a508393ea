/* SPDX-License-Identifier: MIT */
#include "fs/item_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int compare(const struct zf_key *a, const struct zf_key *b)
{
	if (a->objectid != b->objectid)
		return a->objectid < b->objectid ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The index of the first item whose key is not less. */
static size_t place(const struct item_map *map, const struct zf_key *key)
{
	size_t low = 0, high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&map->at[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct item_map *map, size_t i, const struct zf_key *key)
{
	return i < map->count && compare(&map->at[i].key, key) == 0;
}

void item_map_deinit(struct item_map *map)
{
	for (size_t i = 0; i < map->count; i++)
		free(map->at[i].value);
	free(map->at);
	*map = (struct item_map){0};
}

void item_map_set(struct item_map *map, const struct zf_key *key, const void *value, size_t len)
{
	size_t i = place(map, key);

	if (is_at(map, i, key)) {
		free(map->at[i].value);
	} else {
		if (map->count == map->room) {
			map->room = map->room ? 2 * map->room : 64;
			map->at = reallocarray(map->at, map->room, sizeof(*map->at));
			assert(map->at);
		}
		memmove(map->at + i + 1, map->at + i, (map->count - i) * sizeof(*map->at));
		map->count++;
	}
	map->at[i] = (struct item){.key = *key, .len = len, .value = malloc(len + 1)};
	assert(map->at[i].value);
	memcpy(map->at[i].value, value, len);
}

bool item_map_delete(struct item_map *map, const struct zf_key *key)
{
	size_t i = place(map, key);

	if (!is_at(map, i, key))
		return false;
	free(map->at[i].value);
	map->count--;
	memmove(map->at + i, map->at + i + 1, (map->count - i) * sizeof(*map->at));
	return true;
}

const struct item *item_map_find(const struct item_map *map, const struct zf_key *key)
{
	size_t i = place(map, key);

	return is_at(map, i, key) ? &map->at[i] : NULL;
}

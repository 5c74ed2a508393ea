/* SPDX-License-Identifier: MIT */
/* The items of a tree as a plain array in memory, to be edited and compared. */
#ifndef ZF_TESTS_FS_ITEM_MAP_H
#define ZF_TESTS_FS_ITEM_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btree/key.h"

struct item {
	struct zf_key key;
	size_t len;
	uint8_t *value;
};

struct item_map {
	struct item *at; /* by key */
	size_t count, room;
};

void item_map_deinit(struct item_map *map); /* empty again */
void item_map_set(struct item_map *map, const struct zf_key *key, const void *value, size_t len);
/* False: there is none. */
bool item_map_delete(struct item_map *map, const struct zf_key *key);
const struct item *item_map_find(const struct item_map *map,
				 const struct zf_key *key); /* or NULL */

#endif

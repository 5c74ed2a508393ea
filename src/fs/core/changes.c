/* SPDX-License-Identifier: MIT */
#include "fs/core/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

void zf_changes_init(struct zf_changes *changes)
{
	*changes = (struct zf_changes){0};
}

void zf_changes_deinit(struct zf_changes *changes)
{
	free(changes->at);
}

void zf_changes_clear(struct zf_changes *changes)
{
	zf_changes_deinit(changes);
	zf_changes_init(changes);
}

bool zf_changes_are_lost(const struct zf_changes *changes)
{
	return changes->lost != 0;
}

void zf_changes_lose(struct zf_changes *changes, uint64_t generation)
{
	zf_changes_clear(changes);
	changes->lost = generation;
}

static bool make_room(struct zf_changes *changes)
{
	unsigned int room = changes->room ? changes->room * 2 : 4;
	struct zf_change *at;

	if (changes->count < changes->room)
		return true;
	if (changes->count == ZF_CHANGES_MAX)
		return false;
	at = realloc(changes->at, room * sizeof(*at));
	if (!at)
		return false;
	changes->at = at;
	changes->room = room;
	return true;
}

void zf_changes_add(struct zf_changes *changes, uint64_t from, uint64_t to, uint64_t generation)
{
	unsigned int first = 0, end;

	if (from >= to)
		return;
	if (changes->lost) {
		changes->lost = generation;
		return;
	}
	while (first < changes->count && changes->at[first].to < from)
		first++;
	/* Merges the new range with the ranges that it overlaps or touches. */
	for (end = first; end < changes->count && changes->at[end].from <= to; end++) {
		from = zf_min_u64(from, changes->at[end].from);
		to = zf_max_u64(to, changes->at[end].to);
		generation = zf_max_u64(generation, changes->at[end].generation);
	}
	if (end == first && !make_room(changes)) {
		zf_changes_lose(changes, generation);
		return;
	}
	memmove(changes->at + first + 1, changes->at + end,
		(changes->count - end) * sizeof(changes->at[0]));
	changes->count = changes->count - (end - first) + 1;
	changes->at[first] = (struct zf_change){from, to, generation};
}

void zf_changes_add_item(struct zf_changes *changes, uint64_t generation)
{
	changes->item = generation;
}

void zf_changes_clear_item(struct zf_changes *changes)
{
	changes->item = 0;
}

bool zf_changes_any(const struct zf_changes *changes)
{
	return changes->count > 0 || changes->item || changes->lost;
}

uint64_t zf_changes_newest(const struct zf_changes *changes)
{
	uint64_t newest = zf_max_u64(changes->item, changes->lost);

	for (unsigned int i = 0; i < changes->count; i++)
		newest = zf_max_u64(newest, changes->at[i].generation);
	return newest;
}

void zf_changes_prune(struct zf_changes *changes, uint64_t durable)
{
	unsigned int kept = 0;

	if (changes->lost && changes->lost <= durable)
		changes->lost = 0;
	if (changes->item <= durable)
		changes->item = 0;
	for (unsigned int i = 0; i < changes->count; i++)
		if (changes->at[i].generation > durable)
			changes->at[kept++] = changes->at[i];
	changes->count = kept;
}

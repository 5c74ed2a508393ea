/* SPDX-License-Identifier: MIT */
#include "fs/core/kernel_refs.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS_MIN 16u
/* A table is halved when fewer than one slot in SPARSE is used. Then a fourth of the new table is
 * used, so neither growth (at 3/4) nor another halving (at 1/8) is near. */
#define SPARSE 8u

/* Inode numbers are assigned in sequence; Fibonacci hashing spreads every run of them evenly. */
static size_t home_of(const struct zf_kernel_refs *refs, uint64_t ino)
{
	return (size_t)((ino * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (refs->slot_count - 1);
}

/* The inode's slot, or the free slot where it has to be added. Some slot is always free. */
static size_t find(const struct zf_kernel_refs *refs, uint64_t ino)
{
	size_t i = home_of(refs, ino);

	while (refs->slots[i].ino != 0 && refs->slots[i].ino != ino)
		i = (i + 1) & (refs->slot_count - 1);
	return i;
}

static int resize(struct zf_kernel_refs *refs, size_t slot_count)
{
	struct zf_kernel_refs other = {.slot_count = slot_count, .used = refs->used};

	other.slots = calloc(slot_count, sizeof(*other.slots));
	if (!other.slots)
		return -ENOMEM;
	for (size_t i = 0; i < refs->slot_count; i++) {
		if (refs->slots[i].ino != 0)
			other.slots[find(&other, refs->slots[i].ino)] = refs->slots[i];
	}
	free(refs->slots);
	*refs = other;
	return 0;
}

void zf_kernel_refs_deinit(struct zf_kernel_refs *refs)
{
	free(refs->slots);
	*refs = (struct zf_kernel_refs){0};
}

int zf_kernel_refs_add(struct zf_kernel_refs *refs, uint64_t ino)
{
	size_t i;

	if (4 * (refs->used + 1) > 3 * refs->slot_count) {
		size_t twice = refs->slot_count ? 2 * refs->slot_count : SLOTS_MIN;
		int r = resize(refs, twice);

		if (r < 0)
			return r;
	}
	i = find(refs, ino);
	if (refs->slots[i].ino == 0) {
		refs->slots[i].ino = ino;
		refs->used++;
	}
	refs->slots[i].count++;
	return 0;
}

/* Frees slot i, and moves later entries of its run into the gap, so that find() reaches them. */
static void remove_slot(struct zf_kernel_refs *refs, size_t i)
{
	size_t mask = refs->slot_count - 1;

	for (size_t j = (i + 1) & mask; refs->slots[j].ino != 0; j = (j + 1) & mask) {
		size_t home = home_of(refs, refs->slots[j].ino);

		if (((j - home) & mask) < ((j - i) & mask))
			continue;
		refs->slots[i] = refs->slots[j];
		i = j;
	}
	refs->slots[i] = (struct zf_kernel_ref){0};
	refs->used--;
	/* If there is no memory for a smaller table, the large one stays in use. */
	if (refs->slot_count > SLOTS_MIN && SPARSE * refs->used < refs->slot_count)
		(void)resize(refs, refs->slot_count / 2);
}

uint64_t zf_kernel_refs_sub(struct zf_kernel_refs *refs, uint64_t ino, uint64_t count)
{
	size_t i;

	if (refs->slot_count == 0)
		return 0;
	i = find(refs, ino);
	if (refs->slots[i].ino == 0)
		return 0;
	if (refs->slots[i].count > count) {
		refs->slots[i].count -= count;
		return refs->slots[i].count;
	}
	remove_slot(refs, i);
	return 0;
}

bool zf_kernel_refs_has(const struct zf_kernel_refs *refs, uint64_t ino)
{
	return refs->slot_count > 0 && refs->slots[find(refs, ino)].ino == ino;
}

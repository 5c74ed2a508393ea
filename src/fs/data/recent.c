/* SPDX-License-Identifier: MIT */
#include "fs/data/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/undumped.h"

/* An address has its copy in one of the slots of its set. */
#define SLOTS_OF_SET 8u
#define SET_BYTES    (SLOTS_OF_SET * ZF_BLOCK_SIZE)

struct set {
	uint64_t address[SLOTS_OF_SET]; /* 0: the slot is empty; no data lies there */
	unsigned int next;		/* the slot that the next copy gets: the oldest copy's */
};

struct zf_recent {
	struct zf_mutex lock;
	uint8_t *bytes;	   /* of the slots, set by set */
	unsigned int bits; /* there are 1 << bits sets */
	struct set sets[];
};

static size_t size_of(const struct zf_recent *recent)
{
	return (size_t)SET_BYTES << recent->bits;
}

int zf_recent_new(uint64_t bytes, struct zf_recent **ret_recent)
{
	struct zf_recent *recent;
	unsigned int bits = 0;

	while ((uint64_t)SET_BYTES << (bits + 1) <= bytes)
		bits++;
	recent = calloc(1, sizeof(*recent) + (sizeof(recent->sets[0]) << bits));
	if (!recent)
		return -ENOMEM;
	recent->bits = bits;
	recent->bytes = zf_undumped_map(size_of(recent));
	if (!recent->bytes) {
		free(recent);
		return -ENOMEM;
	}
	zf_mutex_init(&recent->lock, ZF_RANK_CACHE);
	*ret_recent = recent;
	return 0;
}

void zf_recent_free(struct zf_recent *recent)
{
	if (!recent)
		return;
	zf_mutex_deinit(&recent->lock);
	munmap(recent->bytes, size_of(recent));
	free(recent);
}

static struct set *set_of(struct zf_recent *recent, uint64_t address)
{
	uint64_t number = address >> ZF_BLOCK_SHIFT;

	/* Multiplied by 2^64 divided by the golden ratio; the upper bits of the product are used. */
	return &recent->sets[recent->bits == 0 ? 0
					       : number * UINT64_C(0x9e3779b97f4a7c15) >>
							 (64 - recent->bits)];
}

static uint8_t *bytes_of(struct zf_recent *recent, const struct set *set, unsigned int slot)
{
	return recent->bytes + (size_t)(set - recent->sets) * SET_BYTES +
	       (size_t)slot * ZF_BLOCK_SIZE;
}

/* SLOTS_OF_SET: the address has no copy. */
static unsigned int find(const struct set *set, uint64_t address)
{
	unsigned int slot = 0;

	while (slot < SLOTS_OF_SET && set->address[slot] != address)
		slot++;
	return slot;
}

void zf_recent_keep(struct zf_recent *recent, uint64_t address, const void *block)
{
	struct set *set = set_of(recent, address);
	unsigned int slot;

	zf_mutex_lock(&recent->lock);
	slot = find(set, address);
	if (slot == SLOTS_OF_SET) {
		slot = set->next;
		set->next = (set->next + 1) % SLOTS_OF_SET;
		set->address[slot] = address;
	}
	memcpy(bytes_of(recent, set, slot), block, ZF_BLOCK_SIZE);
	zf_mutex_unlock(&recent->lock);
}

bool zf_recent_get(struct zf_recent *recent, uint64_t address, uint64_t csum, uint32_t from,
		   uint32_t len, void *ret_bytes)
{
	struct set *set = set_of(recent, address);
	const uint8_t *bytes;
	unsigned int slot;
	bool found;

	zf_mutex_lock(&recent->lock);
	slot = find(set, address);
	bytes = slot < SLOTS_OF_SET ? bytes_of(recent, set, slot) : NULL;
	found = bytes && zf_hash64(bytes, ZF_BLOCK_SIZE) == csum;
	if (found)
		memcpy(ret_bytes, bytes + from, len);
	zf_mutex_unlock(&recent->lock);
	return found;
}

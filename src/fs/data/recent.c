/* SPDX-License-Identifier: MIT */
#include "fs/data/recent.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/undumped.h"

/* A block has its copy in one of the slots of its set. */
#define SLOTS_OF_SET 8u
#define SET_BYTES    (SLOTS_OF_SET * ZF_BLOCK_SIZE)
#define LOCKS	     16u

struct set {
	struct zf_recent_place place[SLOTS_OF_SET]; /* address 0, where no data lies: empty */
	unsigned int next; /* the slot that the next copy gets; slots are filled in turn */
};

struct zf_recent {
	struct zf_mutex locks[LOCKS]; /* set n has lock n % LOCKS */
	atomic_bool any;	      /* there may be copies */
	uint8_t *bytes;		      /* of the slots, set by set */
	unsigned int bits;	      /* there are 1 << bits sets */
	struct set sets[];
};

static size_t set_count(const struct zf_recent *recent)
{
	return (size_t)1 << recent->bits;
}

static size_t size_of(const struct zf_recent *recent)
{
	return SET_BYTES * set_count(recent);
}

static size_t size_with_sets(unsigned int bits)
{
	return sizeof(struct zf_recent) + (sizeof(struct set) << bits);
}

int zf_recent_new(uint64_t bytes, struct zf_recent **ret_recent)
{
	struct zf_recent *recent;
	unsigned int bits = 0;

	while ((uint64_t)SET_BYTES << (bits + 1) <= bytes)
		bits++;
	recent = zf_undumped_map(size_with_sets(bits));
	if (!recent)
		return -ENOMEM;
	recent->bits = bits;
	recent->bytes = zf_undumped_map(size_of(recent));
	if (!recent->bytes) {
		munmap(recent, size_with_sets(bits));
		return -ENOMEM;
	}
	/* A huge page would take memory for many copies when the first one comes. */
	madvise(recent->bytes, size_of(recent), MADV_NOHUGEPAGE);
	for (unsigned int i = 0; i < LOCKS; i++)
		zf_mutex_init(&recent->locks[i], ZF_RANK_CACHE);
	*ret_recent = recent;
	return 0;
}

void zf_recent_free(struct zf_recent *recent)
{
	if (!recent)
		return;
	for (unsigned int i = 0; i < LOCKS; i++)
		zf_mutex_deinit(&recent->locks[i]);
	munmap(recent->bytes, size_of(recent));
	munmap(recent, size_with_sets(recent->bits));
}

static struct zf_mutex *lock_of(struct zf_recent *recent, const struct set *set)
{
	return &recent->locks[(size_t)(set - recent->sets) % LOCKS];
}

static struct set *set_of(struct zf_recent *recent, uint64_t address)
{
	uint64_t number = address >> ZF_BLOCK_SHIFT;

	/* The upper bits of the product with 2^64 divided by the golden ratio. */
	return &recent->sets[recent->bits == 0 ? 0
					       : number * UINT64_C(0x9e3779b97f4a7c15) >>
							 (64 - recent->bits)];
}

static uint8_t *bytes_of(struct zf_recent *recent, const struct set *set, unsigned int slot)
{
	return recent->bytes + (size_t)(set - recent->sets) * SET_BYTES +
	       (size_t)slot * ZF_BLOCK_SIZE;
}

void zf_recent_trim(struct zf_recent *recent)
{
	if (!atomic_exchange(&recent->any, false))
		return;
	for (size_t i = 0; i < set_count(recent); i++) {
		struct set *set = &recent->sets[i];

		zf_mutex_lock(lock_of(recent, set));
		if (set->place[0].address != 0) {
			memset(set->place, 0, sizeof(set->place));
			set->next = 0;
			madvise(bytes_of(recent, set, 0), SET_BYTES, MADV_DONTNEED);
		}
		zf_mutex_unlock(lock_of(recent, set));
	}
}

void zf_recent_keep(struct zf_recent *recent, const struct zf_recent_place *place,
		    const void *block)
{
	struct set *set = set_of(recent, place->address);

	zf_mutex_lock(lock_of(recent, set));
	atomic_store(&recent->any, true);
	set->place[set->next] = *place;
	memcpy(bytes_of(recent, set, set->next), block, ZF_BLOCK_SIZE);
	set->next = (set->next + 1) % SLOTS_OF_SET;
	zf_mutex_unlock(lock_of(recent, set));
}

/* NULL: the place has no copy. */
static const uint8_t *find_locked(struct zf_recent *recent, const struct set *set,
				  const struct zf_recent_place *place)
{
	for (unsigned int slot = 0; slot < SLOTS_OF_SET; slot++)
		if (set->place[slot].address == place->address &&
		    set->place[slot].resets == place->resets)
			return bytes_of(recent, set, slot);
	return NULL;
}

bool zf_recent_get(struct zf_recent *recent, const struct zf_recent_place *place, uint64_t csum,
		   uint32_t from, uint32_t len, void *ret_bytes)
{
	struct set *set = set_of(recent, place->address);
	const uint8_t *bytes;
	bool found;

	if (!atomic_load_explicit(&recent->any, memory_order_relaxed))
		return false;
	zf_mutex_lock(lock_of(recent, set));
	bytes = find_locked(recent, set, place);
	found = bytes && zf_hash64(bytes, ZF_BLOCK_SIZE) == csum;
	if (found)
		memcpy(ret_bytes, bytes + from, len);
	zf_mutex_unlock(lock_of(recent, set));
	return found;
}

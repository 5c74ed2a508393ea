/* SPDX-License-Identifier: MIT */
#include "fs/data/block.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "alloc/reserve.h"
#include "base/undumped.h"
#include "fs/core/inode.h"

/* Each slab is as large as the pool before it, within these bounds. So a mount that writes little
 * takes little memory. */
#define SLAB_BLOCKS_MIN 64u
#define SLAB_BLOCKS_MAX 512u

/* Blocks and their bytes, allocated together, and freed together with all other slabs. */
struct zf_slab {
	struct zf_slab *next;
	void *bytes;
	size_t size;
	struct zf_block blocks[];
};

static int compare(const struct zf_block *a, const struct zf_block *b)
{
	return a->index < b->index ? -1 : a->index > b->index;
}

RB_GENERATE(zf_block_tree, zf_block, link, compare)

/* ---- the pool ---- */

static void *map_bytes(size_t size)
{
	void *bytes = zf_undumped_map(size);

	/* Asks for huge pages: fewer page faults, if the mapping contains a whole huge page. */
	if (bytes && size >= SLAB_BLOCKS_MAX * ZF_BLOCK_SIZE)
		madvise(bytes, size, MADV_HUGEPAGE);
	return bytes;
}

static struct zf_slab *new_slab(unsigned int count)
{
	struct zf_slab *slab = calloc(1, sizeof(*slab) + count * sizeof(slab->blocks[0]));

	if (!slab)
		return NULL;
	slab->size = (size_t)count * ZF_BLOCK_SIZE;
	slab->bytes = map_bytes(slab->size);
	if (!slab->bytes) {
		free(slab);
		return NULL;
	}
	for (unsigned int i = 0; i < count; i++) {
		slab->blocks[i].bytes = (uint8_t *)slab->bytes + (size_t)i * ZF_BLOCK_SIZE;
		slab->blocks[i].next = i + 1 < count ? &slab->blocks[i + 1] : NULL;
	}
	return slab;
}

static bool grow_pool(struct zf_flush *flush)
{
	struct zf_slab *slab;
	unsigned int count;

	zf_mutex_lock(&flush->lock);
	count = (unsigned int)zf_min_u64(zf_max_u64(flush->pool_blocks, SLAB_BLOCKS_MIN),
					 SLAB_BLOCKS_MAX);
	zf_mutex_unlock(&flush->lock);
	slab = new_slab(count);
	if (!slab)
		return false;
	zf_mutex_lock(&flush->lock);
	slab->next = flush->slabs;
	flush->slabs = slab;
	flush->pool_blocks += count;
	flush->pool_free += count;
	slab->blocks[count - 1].next = flush->free_blocks;
	flush->free_blocks = &slab->blocks[0];
	zf_mutex_unlock(&flush->lock);
	return true;
}

struct zf_block *zf_block_pool_take(struct zf_flush *flush, unsigned int count)
{
	struct zf_block *chain = NULL, **tail = &chain;

	while (count > 0) {
		zf_mutex_lock(&flush->lock);
		*tail = flush->free_blocks;
		while (*tail && count > 0) {
			tail = &(*tail)->next;
			count--;
			flush->pool_free--;
		}
		flush->free_blocks = *tail;
		*tail = NULL;
		zf_mutex_unlock(&flush->lock);
		if (count > 0 && !grow_pool(flush)) {
			zf_block_pool_give(flush, chain);
			return NULL;
		}
	}
	return chain;
}

void zf_block_pool_give(struct zf_flush *flush, struct zf_block *chain)
{
	struct zf_block *last = chain;
	uint64_t count = 1;

	if (!chain)
		return;
	last->state = ZF_BLOCK_POOL;
	while (last->next) {
		last = last->next;
		last->state = ZF_BLOCK_POOL;
		count++;
	}
	zf_mutex_lock(&flush->lock);
	last->next = flush->free_blocks;
	flush->free_blocks = chain;
	flush->pool_free += count;
	zf_mutex_unlock(&flush->lock);
}

static void free_slabs(struct zf_slab *slab)
{
	while (slab) {
		struct zf_slab *next = slab->next;

		munmap(slab->bytes, slab->size);
		free(slab);
		slab = next;
	}
}

/* Takes the slabs, and with them all blocks, out of the pool. */
static struct zf_slab *detach_slabs_locked(struct zf_flush *flush)
{
	struct zf_slab *slabs = flush->slabs;

	flush->slabs = NULL;
	flush->free_blocks = NULL;
	flush->pool_blocks = 0;
	flush->pool_free = 0;
	return slabs;
}

void zf_block_pool_trim(struct zf_flush *flush)
{
	struct zf_slab *slabs = NULL;

	zf_mutex_lock(&flush->lock);
	if (flush->pool_free == flush->pool_blocks)
		slabs = detach_slabs_locked(flush);
	zf_mutex_unlock(&flush->lock);
	free_slabs(slabs);
}

void zf_block_pool_deinit(struct zf_flush *flush)
{
	free_slabs(detach_slabs_locked(flush));
}

/* ---- one inode's blocks ---- */

static struct zf_block *find(struct zf_block_tree *tree, uint64_t index)
{
	struct zf_block key = {.index = index};

	return RB_EMPTY(tree) ? NULL : RB_FIND(zf_block_tree, tree, &key);
}

static struct zf_block *find_next(struct zf_block_tree *tree, uint64_t index)
{
	struct zf_block key = {.index = index};

	return RB_EMPTY(tree) ? NULL : RB_NFIND(zf_block_tree, tree, &key);
}

struct zf_block *zf_block_dirty_locked(struct zf_data *data, uint64_t index)
{
	return find(&data->dirty, index);
}

struct zf_block *zf_block_flight_locked(struct zf_data *data, uint64_t index)
{
	return find(&data->flight, index);
}

struct zf_block *zf_block_newest_locked(struct zf_data *data, uint64_t index)
{
	struct zf_block *block = find(&data->dirty, index);

	return block ? block : find(&data->flight, index);
}

struct zf_block *zf_block_next_locked(struct zf_data *data, uint64_t index)
{
	struct zf_block *dirty = find_next(&data->dirty, index);
	struct zf_block *flight = find_next(&data->flight, index);

	if (!dirty || (flight && flight->index < dirty->index))
		return flight;
	return dirty;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Returns how many bytes of a file of `size` bytes lie in the block. */
static uint32_t bytes_within(uint64_t size, uint64_t index)
{
	uint64_t start = index << ZF_BLOCK_SHIFT;

	return size > start ? (uint32_t)zf_min_u64(size - start, ZF_BLOCK_SIZE) : 0;
}

static void join_age(struct zf_data *data, struct zf_block *block)
{
	block->seq = data->next_seq++;
	block->born_ms = now_ms();
	TAILQ_INSERT_TAIL(&data->age, block, age_link);
}

void zf_block_make_dirty_locked(struct zf_data *data, struct zf_block *block, uint64_t size)
{
	struct zf_block *flight = find(&data->flight, block->index);

	block->state = ZF_BLOCK_DIRTY;
	block->partial = block->lent = false;
	block->address = 0;
	block->blocked = flight != NULL;
	block->landed_end = flight ? flight->landed_end : bytes_within(size, block->index);
	block->landed_end_next = bytes_within(size, block->index);
	RB_INSERT(zf_block_tree, &data->dirty, block);
	data->blocks++;
	data->ready += !block->blocked;
	join_age(data, block);
}

void zf_block_set_address_locked(struct zf_data *data, struct zf_block *block, uint64_t address)
{
	assert(block->state == ZF_BLOCK_DIRTY && !block->address && address);
	block->address = address;
	data->in_place++;
}

void zf_block_take_back_locked(struct zf_data *data, struct zf_block *block)
{
	if (!block->lent)
		return;
	block->lent = false;
	zf_alloc_take_back(ZF_CONTAINER_OF(data, struct zf_inode, data)->fs->alloc, 1);
}

uint64_t zf_block_take_back_range(struct zf_data *data, uint64_t index, uint64_t end)
{
	struct zf_block *block;
	uint64_t used = 0;

	zf_mutex_lock(&data->lock);
	while ((block = zf_block_next_locked(data, index)) && block->index < end) {
		struct zf_block *flight = find(&data->flight, block->index);

		if (flight) {
			used += flight->lent;
			zf_block_take_back_locked(data, flight);
		}
		zf_block_take_back_locked(data, block);
		index = block->index + 1;
	}
	zf_mutex_unlock(&data->lock);
	return used;
}

void zf_block_take_off_locked(struct zf_data *data, struct zf_block *block)
{
	assert(block->state == ZF_BLOCK_DIRTY && !block->blocked);
	RB_REMOVE(zf_block_tree, &data->dirty, block);
	data->ready--;
	block->state = ZF_BLOCK_FLIGHT;
	RB_INSERT(zf_block_tree, &data->flight, block);
}

void zf_block_put_back_locked(struct zf_data *data, struct zf_block *block)
{
	assert(block->state == ZF_BLOCK_FLIGHT && !find(&data->dirty, block->index));
	RB_REMOVE(zf_block_tree, &data->flight, block);
	block->state = ZF_BLOCK_DIRTY;
	RB_INSERT(zf_block_tree, &data->dirty, block);
	data->ready++;
}

void zf_block_leave_flight_locked(struct zf_data *data, struct zf_block *block, bool landed)
{
	struct zf_block *above = find(&data->dirty, block->index);

	assert(block->state == ZF_BLOCK_FLIGHT);
	zf_block_take_back_locked(data, block);
	RB_REMOVE(zf_block_tree, &data->flight, block);
	data->blocks--;
	data->in_place -= block->address != 0;
	TAILQ_REMOVE(&data->age, block, age_link);
	block->state = ZF_BLOCK_GONE;
	if (above) {
		assert(above->blocked);
		above->blocked = false;
		data->ready++;
		if (landed)
			above->landed_end = above->landed_end_next;
	}
}

void zf_block_give_way_locked(struct zf_data *data, struct zf_block *block)
{
	struct zf_block *above = find(&data->dirty, block->index);

	TAILQ_REMOVE(&data->age, above, age_link);
	TAILQ_INSERT_BEFORE(block, above, age_link);
	above->seq = block->seq;
	above->born_ms = block->born_ms;
	zf_block_leave_flight_locked(data, block, false);
}

void zf_block_remove_dirty_locked(struct zf_data *data, struct zf_block *block)
{
	assert(block->state == ZF_BLOCK_DIRTY);
	zf_block_take_back_locked(data, block);
	RB_REMOVE(zf_block_tree, &data->dirty, block);
	data->blocks--;
	TAILQ_REMOVE(&data->age, block, age_link);
	data->ready -= !block->blocked;
	data->in_place -= block->address != 0;
	block->state = ZF_BLOCK_GONE;
	block->next = NULL;
}

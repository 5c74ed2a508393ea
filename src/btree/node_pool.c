/* SPDX-License-Identifier: MIT */
#include "btree/node_pool.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/undumped.h"
#include "btree/cache.h"

#define REGION_BYTES (UINT64_C(1) << 20)

struct zf_node_region {
	struct zf_node_region *next;
	void *bytes;
	size_t size;
	struct zf_cnode nodes[];
};

void zf_node_pool_init(struct zf_node_pool *pool, uint32_t node_size)
{
	*pool = (struct zf_node_pool){.node_size = node_size};
	zf_mutex_init(&pool->lock, ZF_RANK_DEV);
}

void zf_node_pool_deinit(struct zf_node_pool *pool)
{
	struct zf_node_region *region;

	while ((region = pool->regions)) {
		pool->regions = region->next;
		ASAN_UNPOISON_MEMORY_REGION(region->bytes, region->size);
		munmap(region->bytes, region->size);
		free(region);
	}
	zf_mutex_deinit(&pool->lock);
}

/* The pages take no memory before they are touched. */
static struct zf_node_region *map_region(uint32_t node_size, size_t count)
{
	struct zf_node_region *region =
		calloc(1, sizeof(*region) + count * sizeof(struct zf_cnode));

	if (!region)
		return NULL;
	region->size = count * node_size;
	region->bytes = mmap(NULL, region->size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region->bytes == MAP_FAILED) {
		free(region);
		return NULL;
	}
	zf_undumped(region->bytes, region->size);
	return region;
}

static bool grow_locked(struct zf_node_pool *pool)
{
	size_t count = REGION_BYTES / pool->node_size;
	struct zf_node_region *region = map_region(pool->node_size, count);

	if (!region)
		return false;
	region->next = pool->regions;
	pool->regions = region;
	for (size_t i = count; i-- > 0;) {
		struct zf_cnode *node = &region->nodes[i];

		node->pool = pool;
		node->data = (uint8_t *)region->bytes + i * pool->node_size;
		node->next_free = pool->free;
		pool->free = node;
	}
	ASAN_POISON_MEMORY_REGION(region->bytes, region->size);
	return true;
}

struct zf_cnode *zf_node_pool_take(struct zf_node_pool *pool)
{
	struct zf_cnode *node = NULL;

	zf_mutex_lock(&pool->lock);
	if (pool->free || grow_locked(pool)) {
		node = pool->free;
		pool->free = node->next_free;
	}
	zf_mutex_unlock(&pool->lock);
	if (!node)
		return NULL;
	*node = (struct zf_cnode){.pool = pool, .data = node->data};
	ASAN_UNPOISON_MEMORY_REGION(node->data, pool->node_size);
	return node;
}

void zf_node_pool_give(struct zf_cnode *node)
{
	struct zf_node_pool *pool = node->pool;

	ASAN_POISON_MEMORY_REGION(node->data, pool->node_size);
	zf_mutex_lock(&pool->lock);
	node->next_free = pool->free;
	pool->free = node;
	zf_mutex_unlock(&pool->lock);
}

/* SPDX-License-Identifier: MIT */
#include "btree/cache.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"

#define SHARDS_MAX 64u
#define SHARD_NODES_MIN                                                                            \
	64u /* below this many nodes, more shards would only make the bound uneven */
#define BUCKETS_MIN 64u
/* One node in this many may always be clean: room for the upper levels of the trees. */
#define CLEAN_SHARE 4u
#define BUCKETS_MAX (UINT64_C(1) << 16)

static uint64_t hash_address(uint64_t address)
{
	/* Fibonacci hashing: stream addresses differ in few, neighbouring bits. */
	return (address >> ZF_BLOCK_SHIFT) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct zf_cache_shard *shard_of(struct zf_cache *cache, uint64_t hash)
{
	return &cache->shards[(hash >> 56) & (cache->shard_count - 1)];
}

static size_t bucket_of(const struct zf_cache *cache, uint64_t hash)
{
	return (size_t)(hash >> 32) & (cache->buckets - 1);
}

static size_t power_of_two_up_to(uint64_t v, uint64_t max)
{
	size_t p = 1;

	while (p * 2 <= v && p * 2 <= max)
		p *= 2;
	return p;
}

static int shard_init(struct zf_cache_shard *shard, size_t buckets)
{
	TAILQ_INIT(&shard->clock);
	shard->by_address = calloc(buckets, sizeof(*shard->by_address));
	shard->by_second = calloc(buckets, sizeof(*shard->by_second));
	zf_mutex_init(&shard->lock, ZF_RANK_CACHE);
	return shard->by_address && shard->by_second ? 0 : -ENOMEM;
}

int zf_cache_init(struct zf_cache *cache, uint32_t node_size, uint64_t bytes)
{
	uint64_t nodes = zf_max_u64(bytes / node_size, 1);
	int r = 0;

	*cache = (struct zf_cache){.node_size = node_size};
	zf_node_pool_init(&cache->pool, node_size);
	cache->shard_count = (unsigned int)power_of_two_up_to(nodes / SHARD_NODES_MIN, SHARDS_MAX);
	cache->nodes_max = (size_t)zf_max_u64(nodes / cache->shard_count, 1);
	cache->buckets = power_of_two_up_to(zf_max_u64(2 * nodes / cache->shard_count, BUCKETS_MIN),
					    BUCKETS_MAX);
	cache->shards = aligned_alloc(64, cache->shard_count * sizeof(*cache->shards));
	if (!cache->shards) {
		zf_node_pool_deinit(&cache->pool);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < cache->shard_count; i++) {
		cache->shards[i] = (struct zf_cache_shard){0};
		if (shard_init(&cache->shards[i], cache->buckets) < 0)
			r = -ENOMEM;
	}
	if (r < 0)
		zf_cache_deinit(cache);
	return r;
}

static void shard_deinit(struct zf_cache_shard *shard, size_t buckets)
{
	struct zf_cnode *node, *next;

	for (size_t i = 0; shard->by_address && i < buckets; i++) {
		LIST_FOREACH_SAFE(node, &shard->by_address[i], by_address, next)
		zf_cnode_put(node);
	}
	free(shard->by_address);
	free(shard->by_second);
	zf_mutex_deinit(&shard->lock);
}

void zf_cache_deinit(struct zf_cache *cache)
{
	for (unsigned int i = 0; i < cache->shard_count && cache->shards; i++)
		shard_deinit(&cache->shards[i], cache->buckets);
	free(cache->shards);
	zf_node_pool_deinit(&cache->pool);
}

struct zf_cnode *zf_cnode_new(struct zf_cache *cache)
{
	struct zf_cnode *node = zf_node_pool_take(&cache->pool);

	if (node)
		atomic_init(&node->refs, 1);
	return node;
}

struct zf_cnode *zf_cnode_ref(struct zf_cnode *node)
{
	unsigned int refs = atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);

	assert(refs > 0);
	return node;
}

void zf_cnode_put(struct zf_cnode *node)
{
	if (!node || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
		return;
	zf_node_pool_give(node);
}

static struct zf_cnode *find_locked(struct zf_cache *cache, struct zf_cache_shard *shard,
				    uint64_t hash, uint64_t address, uint64_t generation)
{
	struct zf_cnode *node;

	LIST_FOREACH (node, &shard->by_address[bucket_of(cache, hash)], by_address) {
		if (node->address[0] == address && node->generation == generation)
			return node;
	}
	return NULL;
}

/*
 * New references are taken under the shard's lock, or by a holder of another reference. So a count
 * of one means that only the cache refers to the node.
 */
static bool is_unreferenced_locked(struct zf_cnode *node)
{
	return atomic_load_explicit(&node->refs, memory_order_acquire) == 1;
}

static bool has_too_many_locked(const struct zf_cache *cache, const struct zf_cache_shard *shard)
{
	return shard->clean + shard->dirty > cache->nodes_max &&
	       shard->clean > zf_max_u64(cache->nodes_max / CLEAN_SHARE, 1);
}

static void evict_locked(struct zf_cache *cache, struct zf_cache_shard *shard)
{
	/*
	 * Two rounds: the first clears `accessed`, the second evicts. If all nodes are referenced,
	 * the cache exceeds its bound.
	 */
	size_t steps = 2 * shard->clean;

	while (has_too_many_locked(cache, shard) && steps-- > 0) {
		struct zf_cnode *node = TAILQ_FIRST(&shard->clock);

		TAILQ_REMOVE(&shard->clock, node, clock);
		if (node->accessed || !is_unreferenced_locked(node)) {
			node->accessed = false;
			TAILQ_INSERT_TAIL(&shard->clock, node, clock);
			continue;
		}
		LIST_REMOVE(node, by_address);
		shard->clean--;
		atomic_fetch_sub_explicit(&cache->nodes, 1, memory_order_relaxed);
		zf_cnode_put(node);
	}
}

static void add_clean_locked(struct zf_cache *cache, struct zf_cache_shard *shard,
			     struct zf_cnode *node)
{
	TAILQ_INSERT_TAIL(&shard->clock, node, clock);
	shard->clean++;
	evict_locked(cache, shard);
}

struct zf_cnode *zf_cache_get(struct zf_cache *cache, uint64_t address, uint64_t generation)
{
	uint64_t hash = hash_address(address);
	struct zf_cache_shard *shard = shard_of(cache, hash);
	struct zf_cnode *node;

	zf_mutex_lock(&shard->lock);
	node = find_locked(cache, shard, hash, address, generation);
	if (node) {
		atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
		node->accessed = true;
		shard->hits++;
	}
	zf_mutex_unlock(&shard->lock);
	return node;
}

struct zf_cnode *zf_cache_insert_clean(struct zf_cache *cache, struct zf_cnode *node)
{
	uint64_t hash = hash_address(node->address[0]);
	struct zf_cache_shard *shard = shard_of(cache, hash);
	struct zf_cnode *twin;

	zf_mutex_lock(&shard->lock);
	twin = find_locked(cache, shard, hash, node->address[0], node->generation);
	if (twin) {
		atomic_fetch_add_explicit(&twin->refs, 1, memory_order_relaxed);
	} else {
		atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
		LIST_INSERT_HEAD(&shard->by_address[bucket_of(cache, hash)], node, by_address);
		atomic_fetch_add_explicit(&cache->nodes, 1, memory_order_relaxed);
		add_clean_locked(cache, shard, node);
	}
	zf_mutex_unlock(&shard->lock);
	if (!twin)
		return node;
	zf_cnode_put(node);
	return twin;
}

void zf_cache_insert_dirty(struct zf_cache *cache, struct zf_cnode *node)
{
	uint64_t hash = hash_address(node->address[0]);
	struct zf_cache_shard *shard = shard_of(cache, hash);

	atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&cache->nodes, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&cache->nodes_dirty, 1, memory_order_relaxed);
	zf_mutex_lock(&shard->lock);
	node->dirty = true;
	LIST_INSERT_HEAD(&shard->by_address[bucket_of(cache, hash)], node, by_address);
	shard->dirty++;
	evict_locked(cache, shard);
	zf_mutex_unlock(&shard->lock);
	if (node->address[1] == 0)
		return;
	hash = hash_address(node->address[1]);
	shard = shard_of(cache, hash);
	zf_mutex_lock(&shard->lock);
	LIST_INSERT_HEAD(&shard->by_second[bucket_of(cache, hash)], node, by_second);
	zf_mutex_unlock(&shard->lock);
}

/* The second index holds dirty nodes only, for zf_cache_find_dirty(). */
static void forget_second(struct zf_cache *cache, struct zf_cnode *node)
{
	struct zf_cache_shard *shard = shard_of(cache, hash_address(node->address[1]));

	if (node->address[1] == 0)
		return;
	zf_mutex_lock(&shard->lock);
	LIST_REMOVE(node, by_second);
	zf_mutex_unlock(&shard->lock);
}

void zf_cache_remove_dirty(struct zf_cache *cache, struct zf_cnode *node)
{
	struct zf_cache_shard *shard = shard_of(cache, hash_address(node->address[0]));

	forget_second(cache, node);
	zf_mutex_lock(&shard->lock);
	assert(node->dirty);
	LIST_REMOVE(node, by_address);
	shard->dirty--;
	zf_mutex_unlock(&shard->lock);
	atomic_fetch_sub_explicit(&cache->nodes, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&cache->nodes_dirty, 1, memory_order_relaxed);
	zf_cnode_put(node);
}

void zf_cache_make_clean(struct zf_cache *cache, struct zf_cnode *node)
{
	struct zf_cache_shard *shard = shard_of(cache, hash_address(node->address[0]));

	forget_second(cache, node);
	zf_mutex_lock(&shard->lock);
	assert(node->dirty);
	node->dirty = false;
	shard->dirty--;
	add_clean_locked(cache, shard, node);
	zf_mutex_unlock(&shard->lock);
	atomic_fetch_sub_explicit(&cache->nodes_dirty, 1, memory_order_relaxed);
}

struct zf_cnode *zf_cache_find_dirty(struct zf_cache *cache, uint64_t address, unsigned int copy,
				     uint64_t generation)
{
	uint64_t hash = hash_address(address);
	struct zf_cache_shard *shard = shard_of(cache, hash);
	size_t bucket = bucket_of(cache, hash);
	struct zf_cnode *node;

	zf_mutex_lock(&shard->lock);
	if (copy == 0) {
		LIST_FOREACH (node, &shard->by_address[bucket], by_address) {
			if (node->address[0] == address && node->dirty &&
			    node->generation <= generation)
				break;
		}
	} else {
		LIST_FOREACH (node, &shard->by_second[bucket], by_second) {
			if (node->address[1] == address && node->generation <= generation)
				break;
		}
	}
	zf_mutex_unlock(&shard->lock);
	return node;
}

uint64_t zf_cache_hits(struct zf_cache *cache)
{
	uint64_t hits = 0;

	for (unsigned int i = 0; i < cache->shard_count; i++) {
		zf_mutex_lock(&cache->shards[i].lock);
		hits += cache->shards[i].hits;
		zf_mutex_unlock(&cache->shards[i].lock);
	}
	return hits;
}

/* SPDX-License-Identifier: MIT */
/* Measures what the trees themselves cost: one thread, all nodes cached. Not a test; run by hand.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rig.h"
#include "sim/rng.h"

#define ITEMS	   UINT64_C(1000000)
#define VALUE_SIZE 48

static struct rig rig;
static uint8_t value[VALUE_SIZE];

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct zf_key key_of(uint64_t n)
{
	return ZF_KEY(n / 64, 1, n % 64 * 4096);
}

static void insert_ascending(uint64_t n, struct zf_rng *rng)
{
	struct zf_key key = key_of(n);
	int r = zf_tree_insert(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key, value, VALUE_SIZE);

	assert(r == 0);
}

static void insert_random(uint64_t n, struct zf_rng *rng)
{
	struct zf_key key = ZF_KEY(zf_rng_next(rng), 1, n);
	int r = zf_tree_insert(rig.forest, rig_writer(&rig), ZF_TREE_SUMMARY, &key, value,
			       VALUE_SIZE);

	assert(r == 0);
}

static void lookup_random(uint64_t n, struct zf_rng *rng)
{
	struct zf_key key = key_of(zf_rng_below(rng, ITEMS));
	int r = zf_tree_lookup(rig.forest, ZF_TREE_FS, &key, value, VALUE_SIZE, NULL);

	assert(r == 0);
}

static void update_random(uint64_t n, struct zf_rng *rng)
{
	struct zf_key key = key_of(zf_rng_below(rng, ITEMS));
	int r = zf_tree_update(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key, value, VALUE_SIZE);

	assert(r == 0);
}

static void lookup_ascending(uint64_t n, struct zf_rng *rng)
{
	struct zf_key key = key_of(n);
	int r = zf_tree_lookup(rig.forest, ZF_TREE_FS, &key, value, VALUE_SIZE, NULL);

	assert(r == 0);
}

static void delete_ascending(uint64_t n, struct zf_rng *rng)
{
	struct zf_key key = key_of(n);
	int r = zf_tree_delete(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key);

	assert(r == 0);
}

static void measure(const char *what, void (*op)(uint64_t n, struct zf_rng *rng))
{
	struct zf_rng rng;
	double start = seconds();

	zf_rng_seed(&rng, 1);
	for (uint64_t n = 0; n < ITEMS; n++)
		op(n, &rng);
	printf("%-18s %9.0f /s\n", what, (double)ITEMS / (seconds() - start));
}

int main(void)
{
	const struct rig_options options = {.node_size = 16384,
					    .copies = 1,
					    .zone_count = 64,
					    .zone_blocks = 4096,
					    .cache_bytes = UINT64_C(1) << 30};
	double start;

	rig_init(&rig, &options);
	measure("insert ascending", insert_ascending);
	printf("%" PRIu64 " nodes\n", rig.live_nodes);
	measure("lookup random", lookup_random);
	measure("lookup ascending", lookup_ascending);
	measure("update random", update_random);
	measure("insert random", insert_random);
	printf("%" PRIu64 " nodes\n", rig.live_nodes);
	start = seconds();
	rig_commit(&rig);
	printf("commit of %" PRIu64 " nodes: %.3f s\n", rig.live_nodes, seconds() - start);
	measure("delete ascending", delete_ascending);
	rig_deinit(&rig);
	return 0;
}

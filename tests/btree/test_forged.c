/* SPDX-License-Identifier: MIT */
/*
 * Forged trees with valid checksums, so that only the checker can reject them. Whatever the trees
 * hold, every call returns, with success or -EUCLEAN. `--seed N` replays, `--rounds N` lengthens.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/bits.h"
#include "rig.h"
#include "sim/rng.h"

#define NODE_SIZE 4096u
#define NODES_MAX 400u
#define ITEMS	  6000u
#define ALIKE	  3000u /* from this item on they are of one kind: leaves are packed */
#define LEN	  24u	/* bytes of their values */
#define VALUE_MAX 200u
#define NO_PARENT UINT32_MAX

struct place {
	struct zf_node_ptr ptr;
	uint8_t level;
	unsigned int parent, slot;
	uint8_t *bytes; /* on the device */
	uint8_t original[NODE_SIZE];
};

struct image {
	struct rig rig;
	struct place places[NODES_MAX];
	unsigned int count;
	unsigned int path[ZF_TREE_LEVEL_MAX]; /* while walking: the place last seen at each level */
	unsigned int taken[ZF_TREE_LEVEL_MAX];
	uint8_t level;
};

static struct image image;
static uint64_t seed, device_size;
static unsigned int rounds = 1500;

static struct zf_key key_of(uint64_t n)
{
	if (n >= ALIKE)
		return ZF_KEY(1000, 1, n * 10);
	return ZF_KEY(n / 100, 1, n % 100 * 10);
}

static size_t len_of(uint64_t n)
{
	return n >= ALIKE ? LEN : n % VALUE_MAX;
}

static uint8_t *bytes_at(uint64_t address)
{
	uint64_t zone_size = zf_dev_geometry(image.rig.dev)->zone_size;
	uint8_t *zone = zf_memory_zone(image.rig.memory, (uint32_t)(address / zone_size));

	return zone + address % zone_size;
}

static int note_place(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct place *place = &image.places[image.count];

	assert_int_equal(error, 0);
	assert_true(image.count < NODES_MAX);
	*place = (struct place){.ptr = expect->ptr,
				.level = expect->level,
				.parent = NO_PARENT,
				.bytes = bytes_at(expect->ptr.address[0])};
	memcpy(place->original, place->bytes, NODE_SIZE);
	if (expect->check_first_key) {
		place->parent = image.path[expect->level + 1];
		place->slot = image.taken[expect->level + 1]++;
	}
	image.path[expect->level] = image.count++;
	image.taken[expect->level] = 0;
	return 0;
}

static int make_image(void **state)
{
	const struct rig_options options = {.node_size = NODE_SIZE,
					    .copies = 1,
					    .zone_count = 100,
					    .zone_blocks = 64,
					    .cache_bytes = 64 * NODE_SIZE};
	uint8_t value[VALUE_MAX];

	rig_init(&image.rig, &options);
	device_size = (uint64_t)options.zone_count * options.zone_blocks * ZF_BLOCK_SIZE;
	memset(value, 5, sizeof(value));
	for (uint64_t n = 0; n < ITEMS; n++) {
		uint64_t i = n * 7 % ITEMS;
		struct zf_key key = key_of(i);

		value[3] = (uint8_t)n;
		assert_int_equal(zf_tree_insert(image.rig.forest, rig_writer(&image.rig),
						ZF_TREE_FS, &key, value, len_of(i)),
				 0);
	}
	rig_commit(&image.rig);
	rig_reopen(&image.rig);
	assert_int_equal(zf_tree_walk(image.rig.forest, ZF_TREE_FS, note_place, NULL), 0);
	image.level = image.places[0].level;
	assert_true(image.level >= 2);
	return 0;
}

static int drop_image(void **state)
{
	rig_deinit(&image.rig);
	return 0;
}

/* Makes the checksums right again from the place up to the root. */
static void reseal(unsigned int i)
{
	for (; i != NO_PARENT; i = image.places[i].parent) {
		struct place *place = &image.places[i];
		struct zf_node_ptr ptr = place->ptr;

		ptr.csum = zf_node_csum(place->bytes, NODE_SIZE);
		zf_node_set_csum(place->bytes, ptr.csum);
		place->ptr.csum = ptr.csum;
		if (place->parent != NO_PARENT)
			zf_node_set_child(image.places[place->parent].bytes, place->slot, &ptr);
	}
}

static unsigned int random_place(struct zf_rng *rng, uint8_t lowest)
{
	unsigned int i;

	do {
		i = (unsigned int)zf_rng_below(rng, image.count);
	} while (image.places[i].level < lowest);
	return i;
}

static unsigned int random_packed(struct zf_rng *rng)
{
	unsigned int i;

	do {
		i = random_place(rng, 0);
	} while (!zf_node_is_packed(image.places[i].original));
	return i;
}

/* Forges other columns, at most as many rows as there is room for, and keys in order: the checker
 * accepts some of these leaves. */
static void forge_packing(struct zf_rng *rng, struct place *place)
{
	uint64_t offset = zf_node_key(place->original, 0).offset; /* of two bytes */
	uint8_t *bytes = memcpy(place->bytes, place->original, NODE_SIZE);
	struct zf_disk_node_header *header = (void *)bytes;
	struct zf_disk_packing *packing = (void *)(header + 1);
	uint8_t *base = (uint8_t *)(packing + 1), *columns, *rows;
	unsigned int record = sizeof(struct zf_disk_key) + packing->value_size, count;

	if (zf_rng_chance(rng, 20))
		packing->value_size = (uint8_t)zf_rng_below(rng, ZF_PACKED_VALUE_MAX + 2);
	packing->width = (uint8_t)(2 + zf_rng_below(rng, 12));
	columns = base + record;
	rows = columns + packing->width;
	memset(base + 9, 0, NODE_SIZE - sizeof(*header) - sizeof(*packing) - 9);
	for (unsigned int c = 0; c < packing->width; c++)
		columns[c] = (uint8_t)(9 + c);
	count = (unsigned int)(bytes + NODE_SIZE - rows) / packing->width;
	count -= (unsigned int)zf_rng_below(rng, zf_rng_chance(rng, 50) ? 2 : count);
	for (unsigned int i = 0; i < count; i++) {
		rows[i * packing->width] = (uint8_t)(offset + i);
		rows[i * packing->width + 1] = (uint8_t)((offset + i) >> 8);
	}
	header->count = zf_le32_from(count);
}

static void flip_bytes(struct zf_rng *rng, unsigned int i)
{
	/* Most changes are in the headers, where they do most harm. */
	uint64_t limit = zf_rng_chance(rng, 80) ? 400 : NODE_SIZE;

	for (unsigned int n = 1 + (unsigned int)zf_rng_below(rng, 3); n > 0; n--)
		image.places[i].bytes[zf_rng_below(rng, limit)] ^= (uint8_t)zf_rng_next(rng);
}

/* Makes a pointer lead to some other node, to another child of this node, or to an ancestor. */
static void cross_link(struct zf_rng *rng, unsigned int i)
{
	struct place *place = &image.places[i];
	unsigned int slot = (unsigned int)zf_rng_below(rng, zf_node_count(place->original));
	struct zf_node_ptr ptr;

	if (zf_rng_chance(rng, 50))
		ptr = zf_node_child(place->original, (unsigned int)zf_rng_below(
							     rng, zf_node_count(place->original)));
	else
		ptr = image.places[zf_rng_below(rng, image.count)].ptr;
	if (zf_rng_chance(rng, 10))
		ptr.address[0] = zf_rng_next(rng) << 12;
	zf_node_set_child(place->bytes, slot, &ptr);
}

static void move_key(struct zf_rng *rng, unsigned int i)
{
	struct place *place = &image.places[i];
	unsigned int slot = (unsigned int)zf_rng_below(rng, zf_node_count(place->original));
	struct zf_key key = key_of(zf_rng_below(rng, ITEMS));

	zf_node_set_key(place->bytes, slot, &key);
}

static void forge(struct zf_rng *rng)
{
	unsigned int n = 1 + (unsigned int)zf_rng_below(rng, 3);

	for (unsigned int j = 0; j < image.count; j++) {
		memcpy(image.places[j].bytes, image.places[j].original, NODE_SIZE);
		image.places[j].ptr.csum =
			zf_le64_get(zf_node_header(image.places[j].original)->csum);
	}
	while (n-- > 0) {
		unsigned int kind = (unsigned int)zf_rng_below(rng, 4);
		unsigned int i =
			kind == 3 ? random_packed(rng) : random_place(rng, kind == 0 ? 0 : 1);

		if (kind == 3)
			forge_packing(rng, &image.places[i]);
		else if (kind == 0)
			flip_bytes(rng, i);
		else if (kind == 1)
			cross_link(rng, i);
		else
			move_key(rng, i);
		reseal(i);
	}
}

/* The writer may be told to free a node twice, but never one outside the device. */
static uint64_t next_address;

static int alloc_anywhere(struct zf_writer *writer, uint64_t ret_address[ZF_COPIES_MAX])
{
	const struct zf_geometry *geometry = zf_dev_geometry(image.rig.dev);
	uint64_t behind = next_address % geometry->zone_size + NODE_SIZE;

	if (behind > geometry->zone_capacity)
		next_address += geometry->zone_size - (behind - NODE_SIZE);
	ret_address[0] = next_address;
	next_address += NODE_SIZE;
	assert_true(next_address <= device_size);
	ret_address[1] = 0;
	return 0;
}

static void free_anything(struct zf_writer *writer, const uint64_t address[ZF_COPIES_MAX],
			  uint64_t generation, enum zf_tree_id owner)
{
	assert_true(address[0] < device_size && address[1] == 0);
}

static void assert_result(int r)
{
	if (r != 0 && r != -EUCLEAN && r != -ENOENT && r != -EEXIST)
		fail_msg("result %d", r);
}

struct order {
	struct zf_key last;
	bool any;
	uint64_t visited;
};

static int check_order(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct order *order = arg;

	assert_true(!order->any || zf_key_cmp(&order->last, key) < 0);
	order->last = *key;
	order->any = true;
	return 0;
}

static int count_visit(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct order *order = arg;

	assert_true((node != NULL) == (error == 0));
	order->visited++;
	return 0;
}

static void read_all(struct zf_forest *forest, struct zf_rng *rng)
{
	const struct zf_key min = ZF_KEY_MIN, max = ZF_KEY_MAX;
	struct order order = {0};

	assert_int_equal(zf_tree_walk(forest, ZF_TREE_FS, count_visit, &order), 0);
	assert_in_range(order.visited, 1, 20 * NODES_MAX);
	assert_result(zf_tree_scan(forest, ZF_TREE_FS, &min, &max, check_order, &order));
	for (unsigned int i = 0; i < 40; i++) {
		struct zf_key key = key_of(zf_rng_below(rng, ITEMS));
		uint8_t buf[300];
		size_t len;

		assert_result(zf_tree_lookup(forest, ZF_TREE_FS, &key, buf, sizeof(buf), &len));
		assert_result(zf_tree_lookup_ge(forest, ZF_TREE_FS, &key, buf, sizeof(buf), &len));
		assert_result(zf_tree_lookup_le(forest, ZF_TREE_FS, &key, buf, sizeof(buf), &len));
	}
}

static void modify(struct zf_forest *forest, struct zf_rng *rng, struct zf_writer *writer)
{
	struct zf_key key = key_of(zf_rng_below(rng, ITEMS)), to = key_of(zf_rng_below(rng, ITEMS));
	unsigned int dice = (unsigned int)zf_rng_below(rng, 100);
	uint8_t value[900] = {0};
	size_t len = zf_rng_chance(rng, 50) ? LEN : zf_rng_below(rng, sizeof(value));
	struct place *place = &image.places[zf_rng_below(rng, image.count)];
	int r;

	if (dice < 45) {
		key.offset += zf_rng_below(rng, 10);
		r = zf_tree_set(forest, writer, ZF_TREE_FS, &key, value, len);
	} else if (dice < 90) {
		r = zf_tree_delete(forest, writer, ZF_TREE_FS, &key);
	} else if (dice < 92) {
		r = zf_tree_delete_range(forest, writer, ZF_TREE_FS, &key, &to, 50);
		r = r == 1 ? 0 : r;
	} else {
		to = zf_node_key(place->original, 0);
		r = zf_tree_relocate(forest, writer, ZF_TREE_FS, place->level, &to,
				     place->ptr.address[0]);
		r = r == 1 ? 0 : r;
	}
	assert_result(r);
}

static void commit(struct zf_forest *forest, uint64_t generation)
{
	struct zf_node_ptr root;
	uint8_t level;

	zf_forest_freeze(forest, generation);
	assert_int_equal(zf_forest_seal(forest, ZF_TREE_FS, generation, &root, &level), 0);
	zf_forest_clean(forest, generation);
}

static void use_forged_tree(struct zf_rng *rng)
{
	struct zf_writer writer = {
		.generation = 100, .alloc = alloc_anywhere, .free = free_anything};
	struct zf_forest_options options = image.rig.options;
	struct zf_forest *forest;
	unsigned int i;

	next_address = device_size / 2; /* far above the image's nodes */
	/* This test never writes dirty nodes to read them again, so they have to stay in the cache.
	 */
	options.cache_bytes = (uint64_t)NODE_SIZE * (zf_rng_chance(rng, 50) ? 1 : 1000) * 8;
	assert_int_equal(zf_forest_new(image.rig.dev, &options, NULL, &forest), 0);
	zf_tree_set_root(forest, ZF_TREE_FS, &image.places[0].ptr, image.level);
	read_all(forest, rng);
	for (i = 0; i < 200; i++)
		modify(forest, rng, &writer);
	read_all(forest, rng);
	commit(forest, writer.generation);
	zf_forest_free(forest);
}

static void forged_nodes_are_survived(void **state)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, seed);
	for (unsigned int i = 0; i < rounds; i++) {
		forge(&rng);
		use_forged_tree(&rng);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_nodes_are_survived),
	};

	seed = (uint64_t)time(NULL);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = (unsigned int)strtoul(argv[i + 1], NULL, 0);
	}
	printf("seed %" PRIu64 " (replay with --seed)\n", seed);
	return cmocka_run_group_tests(tests, make_image, drop_image);
}

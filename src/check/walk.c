/* SPDX-License-Identifier: MIT */
/*
 * Walks a tree without trusting it.
 *
 * Termination: a child that is not one level below its parent is refused, which bounds the depth.
 * No node is entered twice (node_map), so the device's blocks bound the number of nodes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check/state.h"

struct walk {
	struct zf_check *check;
	enum zf_tree_id tree;
	zf_check_item_fn *fn;
	void *arg;
	void *node[ZF_TREE_LEVEL_MAX]; /* the buffer of each level; allocated when needed */
	void *other;		       /* for the second copy */
};

/* ---- where nodes lie ---- */

static bool test_map(const struct zf_check_zone *zone, uint64_t block)
{
	return zone->node_map && (zone->node_map[block / 8] >> (block % 8) & 1);
}

/* 0; 1 if the place is impossible or taken; -ENOMEM. */
static int claim_copy(struct walk *walk, uint64_t address)
{
	struct zf_check *check = walk->check;
	uint64_t size = check->shape.node_size;
	struct zf_check_zone *zone;
	uint64_t in_zone, first;

	if (zf_check_place(check, address, size) != 0) {
		zf_check_corrupt(check, "node", address,
				 "address has %" PRIu64 ", expected a place within one zone",
				 address);
		return 1;
	}
	zone = &check->zones[address / check->geometry->zone_size];
	in_zone = address % check->geometry->zone_size;
	first = in_zone >> ZF_BLOCK_SHIFT;
	if (!zone->node_map)
		zone->node_map = calloc(1, (size_t)((zone->capacity >> ZF_BLOCK_SHIFT) / 8 + 1));
	if (!zone->node_map)
		return -ENOMEM;
	for (uint64_t b = first; b < first + (size >> ZF_BLOCK_SHIFT); b++) {
		if (test_map(zone, b)) {
			zf_check_corrupt(check, "node", address,
					 "address has blocks of another node, or of a node with "
					 "another parent, expected one parent for each node");
			return 1;
		}
	}
	for (uint64_t b = first; b < first + (size >> ZF_BLOCK_SHIFT); b++)
		zone->node_map[b / 8] |= (uint8_t)(1u << (b % 8));
	if (walk->tree == ZF_TREE_ROOT || walk->tree == ZF_TREE_ZONE)
		zone->system_bytes += size;
	else
		zone->node_bytes += size;
	zone->node_end = zf_max_u64(zone->node_end, in_zone + size);
	return 0;
}

static int claim_node(struct walk *walk, const struct zf_node_expect *expect)
{
	int worst = 0;

	for (unsigned int c = 0; c < walk->check->shape.copies; c++) {
		int r = claim_copy(walk, expect->ptr.address[c]);

		if (r < 0)
			return r;
		worst |= r;
	}
	return worst;
}

/* ---- reading ---- */

static int read_copy(struct walk *walk, const struct zf_node_expect *expect, unsigned int copy,
		     void *buf)
{
	struct zf_check *check = walk->check;
	int r = zf_dev_read_buf(check->dev, expect->ptr.address[copy], buf, check->shape.node_size);

	if (r < 0)
		return zf_report_corrupt(&check->report, "node", expect->ptr.address[copy],
					 "reading it failed: %s", strerror(-r));
	if (copy == 0)
		return zf_node_check(&check->shape, buf, expect, true, &check->report);
	/* zf_node_check() reports the first address only, so the message is made here. */
	r = zf_node_check(&check->shape, buf, expect, true, NULL);
	if (r < 0)
		zf_check_corrupt(check, "node", expect->ptr.address[copy],
				 "copy 1 has other bytes, expected a valid node as at %" PRIu64,
				 expect->ptr.address[0]);
	return r;
}

/* Reads every copy; 1 if none is good. */
static int read_node(struct walk *walk, const struct zf_node_expect *expect, void *buf)
{
	int r = read_copy(walk, expect, 0, buf);

	if (walk->check->shape.copies > 1) {
		int other = read_copy(walk, expect, 1, walk->other);

		if (r < 0 && other == 0) {
			memcpy(buf, walk->other, walk->check->shape.node_size);
			r = 0;
		}
	}
	return r < 0 ? 1 : 0;
}

/* ---- walking ---- */

static int walk_items(struct walk *walk, const void *node)
{
	for (unsigned int i = 0; i < zf_node_count(node); i++) {
		struct zf_key key = zf_node_key(node, i);
		char scratch[ZF_PACKED_VALUE_MAX];
		size_t len;
		const void *value = zf_node_value(node, i, &len, scratch);
		int r = walk->fn(walk->check, walk->arg, &key, value, len);

		if (r < 0)
			return r;
	}
	return 0;
}

static int walk_node(struct walk *walk, const struct zf_node_expect *expect);

static int walk_children(struct walk *walk, const struct zf_node_expect *expect, const void *node)
{
	unsigned int count = zf_node_count(node);

	for (unsigned int i = 0; i < count; i++) {
		struct zf_node_expect child = zf_node_expect_child(expect, node, i);
		int r = walk_node(walk, &child);

		if (r < 0)
			return r;
	}
	return 0;
}

static int walk_node(struct walk *walk, const struct zf_node_expect *expect)
{
	struct zf_check *check = walk->check;
	void **buf = &walk->node[expect->level];
	int r = claim_node(walk, expect);

	if (r < 0)
		return r;
	if (!*buf)
		*buf = aligned_alloc(ZF_BLOCK_SIZE, check->shape.node_size);
	if (!*buf)
		return -ENOMEM;
	if (r > 0 || read_node(walk, expect, *buf) != 0) {
		check->trees[walk->tree].lost = true;
		check->gaps++;
		return 0;
	}
	check->counts.nodes++;
	zf_check_progress(check);
	return expect->level == 0 ? walk_items(walk, *buf) : walk_children(walk, expect, *buf);
}

int zf_check_walk_tree(struct zf_check *check, enum zf_tree_id tree, zf_check_item_fn *fn,
		       void *arg)
{
	struct walk walk = {.check = check, .tree = tree, .fn = fn, .arg = arg};
	struct zf_node_expect expect = {
		.ptr = check->trees[tree].ptr,
		.owner = tree,
		.level = check->trees[tree].level,
	};
	int r;

	if (!check->trees[tree].found) {
		check->trees[tree].lost = true;
		return 0;
	}
	walk.other = aligned_alloc(ZF_BLOCK_SIZE, check->shape.node_size);
	r = walk.other ? walk_node(&walk, &expect) : -ENOMEM;
	free(walk.other);
	for (unsigned int level = 0; level < ZF_TREE_LEVEL_MAX; level++)
		free(walk.node[level]);
	return r;
}

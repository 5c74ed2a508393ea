/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#define TAIL_NODES 8
#define NO_ZONE	   UINT32_MAX

static void remember_message(void *arg, enum zf_report_level level, const char *message)
{
	struct rig *rig = arg;

	rig->messages++;
	if (rig->verbose)
		fprintf(stderr, "%s\n", message);
	snprintf(rig->message, sizeof(rig->message), "%s", message);
}

static const struct zf_geometry *geometry(const struct rig *rig)
{
	return zf_dev_geometry(rig->dev);
}

static uint32_t zone_of(const struct rig *rig, uint64_t address)
{
	return (uint32_t)(address / geometry(rig)->zone_size);
}

static uint32_t find_zone(struct rig *rig)
{
	for (uint32_t i = 0; i < geometry(rig)->zone_count; i++) {
		if (!rig->zones[i].used)
			return i;
	}
	return NO_ZONE;
}

/* The first zones are never used: no node lies there, nor at address 0. */
static bool next_address(struct rig *rig, unsigned int copy, uint64_t *ret_address)
{
	uint32_t node_size = rig->options.shape.node_size;

	if (rig->zone[copy] == NO_ZONE ||
	    rig->offset[copy] + node_size > geometry(rig)->zone_capacity) {
		uint32_t zone = find_zone(rig);

		if (zone == NO_ZONE)
			return false;
		rig->zones[zone] = (struct rig_zone){.used = true};
		rig->zone[copy] = zone;
		rig->offset[copy] = 0;
	}
	*ret_address = rig->zone[copy] * geometry(rig)->zone_size + rig->offset[copy];
	rig->offset[copy] += node_size;
	rig->zones[rig->zone[copy]].reached = rig->running.generation;
	return true;
}

static int take_slot(struct rig *rig, struct rig_slot *ret_slot)
{
	struct rig_stream *stream = &rig->running;
	struct rig_slot slot = {0};

	for (unsigned int i = 0; i < rig->options.shape.copies; i++) {
		if (!next_address(rig, i, &slot.address[i]))
			return -ENOSPC;
	}
	if (stream->count == stream->size) {
		stream->size = stream->size ? 2 * stream->size : 256;
		stream->slots = realloc(stream->slots, stream->size * sizeof(slot));
	}
	stream->slots[stream->count++] = slot;
	*ret_slot = slot;
	return 0;
}

static void set_live(struct rig *rig, const uint64_t address[], uint64_t generation)
{
	for (unsigned int i = 0; i < rig->options.shape.copies; i++) {
		uint64_t *live = &rig->live[address[i] / ZF_BLOCK_SIZE];

		assert(*live == 0);
		*live = generation;
		rig->zones[zone_of(rig, address[i])].live++;
	}
	rig->live_nodes++;
}

static int alloc_node(struct zf_writer *writer, uint64_t ret_address[ZF_COPIES_MAX])
{
	struct rig_writer *rw = ZF_CONTAINER_OF(writer, struct rig_writer, writer);
	struct rig *rig = rw->rig;
	struct rig_slot slot;
	int r = 0;

	zf_mutex_lock(&rig->lock);
	if (rw->tail) {
		assert(rig->tail_next < rig->tail_end);
		slot = rig->frozen.slots[rig->tail_next++];
	} else if (rig->fail_after > 0 && --rig->fail_after == 0) {
		r = -ENOSPC;
	} else {
		r = take_slot(rig, &slot);
	}
	if (r == 0) {
		memcpy(ret_address, slot.address, sizeof(slot.address));
		set_live(rig, slot.address, writer->generation);
		rig->allocated++;
	}
	zf_mutex_unlock(&rig->lock);
	return r;
}

static void free_node(struct zf_writer *writer, const uint64_t address[ZF_COPIES_MAX],
		      uint64_t generation, enum zf_tree_id owner)
{
	struct rig *rig = ZF_CONTAINER_OF(writer, struct rig_writer, writer)->rig;

	zf_mutex_lock(&rig->lock);
	for (unsigned int i = 0; i < rig->options.shape.copies; i++) {
		struct rig_zone *zone = &rig->zones[zone_of(rig, address[i])];
		uint64_t *live = &rig->live[address[i] / ZF_BLOCK_SIZE];

		assert(*live == generation); /* else: freed twice, or by a wrong pointer */
		*live = 0;
		zone->live--;
		/* The maximum, because the commit's tail frees for an older generation than others.
		 */
		zone->emptied = zf_max_u64(zone->emptied, writer->generation);
	}
	rig->live_nodes--;
	zf_mutex_unlock(&rig->lock);
}

static void open_forest(struct rig *rig)
{
	int r = zf_forest_new(rig->dev, &rig->options, &rig->report, &rig->forest);

	assert(r == 0);
}

static void make_device(struct rig *rig, const struct rig_options *options)
{
	struct zf_geometry g = {
		.zone_size = (uint64_t)options->zone_blocks * ZF_BLOCK_SIZE,
		.zone_capacity = (uint64_t)(options->zone_blocks - 3) * ZF_BLOCK_SIZE,
		.zone_count = options->zone_count,
		.append_limit = 1 << 20,
	};
	struct zf_memory_options memory_options = {0};
	int r = zf_memory_new(&g, &rig->memory);

	assert(r == 0);
	r = zf_memory_open(rig->memory, &memory_options, &rig->report, &rig->dev);
	assert(r == 0);
	rig->zones = calloc(g.zone_count, sizeof(*rig->zones));
	rig->live = calloc(g.zone_count * options->zone_blocks, sizeof(*rig->live));
}

void rig_init(struct rig *rig, const struct rig_options *options)
{
	*rig = (struct rig){
		.options = {.shape = {.node_size = options->node_size,
				      .copies = options->copies,
				      .fsid = "sixteen bytes ok"},
			    .cache_bytes = options->cache_bytes},
		.report = {.fn = remember_message, .arg = rig},
		.running = {.generation = 1},
		.zone = {NO_ZONE, NO_ZONE},
		.writer = {.writer = {.generation = 1, .alloc = alloc_node, .free = free_node},
			   .rig = rig},
		.tail_writer = {.writer = {.alloc = alloc_node, .free = free_node},
				.rig = rig,
				.tail = true},
	};
	zf_mutex_init(&rig->lock, ZF_RANK_ALLOC);
	make_device(rig, options);
	rig->options.shape.geometry = zf_dev_geometry(rig->dev);
	for (unsigned int i = 0; i < ZF_SUPER_ZONES; i++)
		rig->zones[i].used = true;
	open_forest(rig);
	for (enum zf_tree_id id = ZF_TREE_ROOT; id <= ZF_TREE_SUMMARY; id++) {
		int r = zf_tree_create(rig->forest, rig_writer(rig), id);

		assert(r == 0);
	}
	rig_commit(rig);
}

void rig_deinit(struct rig *rig)
{
	zf_forest_free(rig->forest);
	zf_dev_close(rig->dev);
	zf_memory_free(rig->memory);
	zf_mutex_deinit(&rig->lock);
	free(rig->zones);
	free(rig->live);
	free(rig->running.slots);
	free(rig->frozen.slots);
}

struct zf_writer *rig_writer(struct rig *rig)
{
	return &rig->writer.writer;
}

void rig_freeze(struct rig *rig)
{
	struct rig_slot slot;
	uint64_t generation;

	zf_mutex_lock(&rig->lock);
	generation = rig->running.generation;
	rig->tail_next = rig->running.count;
	for (unsigned int i = 0; i < TAIL_NODES; i++) {
		int r = take_slot(rig, &slot);

		assert(r == 0);
	}
	rig->tail_end = rig->running.count;
	free(rig->frozen.slots);
	rig->frozen = rig->running;
	rig->running = (struct rig_stream){.generation = generation + 1};
	rig->writer.writer.generation = generation + 1;
	rig->tail_writer.writer.generation = generation;
	zf_mutex_unlock(&rig->lock);
	zf_forest_freeze(rig->forest, generation);
}

void rig_seal(struct rig *rig, enum zf_tree_id tree)
{
	struct zf_key key = ZF_KEY(tree, 0, 0);
	struct {
		struct zf_node_ptr ptr;
		uint8_t level;
	} root = {0};
	int r;

	r = zf_forest_seal(rig->forest, tree, rig->frozen.generation, &root.ptr, &root.level);
	assert(r == 0);
	assert(root.ptr.csum != 0);
	r = zf_tree_set(rig->forest, &rig->tail_writer.writer, ZF_TREE_ROOT, &key, &root,
			sizeof(root));
	assert(r == 0);
}

void rig_seal_root(struct rig *rig)
{
	int r = zf_forest_seal(rig->forest, ZF_TREE_ROOT, rig->frozen.generation, &rig->committed,
			       &rig->committed_level);

	assert(r == 0);
}

void rig_write(struct rig *rig)
{
	uint32_t node_size = rig->options.shape.node_size;
	void *zeroes = aligned_alloc(ZF_BLOCK_SIZE, node_size);

	memset(zeroes, 0, node_size);
	for (size_t i = 0; i < rig->frozen.count; i++) {
		for (unsigned int copy = 0; copy < rig->options.shape.copies; copy++) {
			uint64_t address = rig->frozen.slots[i].address[copy];
			const void *node = zf_forest_dirty_node(rig->forest, address, copy,
								rig->frozen.generation);
			int r = zf_dev_write_sync(rig->dev, address, node ? node : zeroes,
						  node_size, false);

			assert(r == 0);
			assert(!node ||
			       zf_node_is_valid_at(&rig->options.shape, node, address, copy));
		}
	}
	free(zeroes);
}

static void reset_zones(struct rig *rig, uint64_t durable)
{
	for (uint32_t i = ZF_SUPER_ZONES; i < geometry(rig)->zone_count; i++) {
		struct rig_zone *zone = &rig->zones[i];
		bool reset;

		zf_mutex_lock(&rig->lock);
		reset = zone->used && zone->live == 0 && zone->emptied <= durable &&
			zone->reached <= durable && i != rig->zone[0] && i != rig->zone[1];
		zf_mutex_unlock(&rig->lock);
		if (!reset)
			continue;
		if (zf_dev_reset(rig->dev, i) != 0)
			abort();
		zf_mutex_lock(&rig->lock);
		zone->used = false;
		zf_mutex_unlock(&rig->lock);
	}
}

void rig_clean(struct rig *rig)
{
	zf_forest_clean(rig->forest, rig->frozen.generation);
	reset_zones(rig, rig->frozen.generation);
}

void rig_commit(struct rig *rig)
{
	rig_freeze(rig);
	rig_seal(rig, ZF_TREE_FS);
	rig_seal(rig, ZF_TREE_SUMMARY);
	rig_seal_root(rig);
	rig_write(rig);
	rig_clean(rig);
}

static int mark_live(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct rig *rig = arg;

	assert(error == 0 && node);
	set_live(rig, expect->ptr.address, expect->ptr.generation);
	return 0;
}

void rig_set_roots(struct rig *rig)
{
	zf_tree_set_root(rig->forest, ZF_TREE_ROOT, &rig->committed, rig->committed_level);
	for (enum zf_tree_id id = ZF_TREE_FS; id <= ZF_TREE_SUMMARY; id++) {
		struct zf_key key = ZF_KEY(id, 0, 0);
		struct {
			struct zf_node_ptr ptr;
			uint8_t level;
		} root;
		int r = zf_tree_lookup(rig->forest, ZF_TREE_ROOT, &key, &root, sizeof(root), NULL);

		assert(r == 0);
		zf_tree_set_root(rig->forest, id, &root.ptr, root.level);
	}
}

void rig_reopen(struct rig *rig)
{
	const struct zf_geometry *g = geometry(rig);

	zf_forest_free(rig->forest);
	open_forest(rig);
	rig_set_roots(rig);
	rig->running.generation++; /* never seen before, whatever was lost */
	rig->writer.writer.generation = rig->running.generation;
	rig->running.count = 0;
	rig->zone[0] = rig->zone[1] = NO_ZONE;
	rig->live_nodes = 0;
	memset(rig->live, 0, g->zone_count * (g->zone_size / ZF_BLOCK_SIZE) * sizeof(*rig->live));
	for (uint32_t i = ZF_SUPER_ZONES; i < g->zone_count; i++) {
		rig->zones[i].live = 0;
		rig->zones[i].reached = rig->zones[i].emptied = 0;
	}
	for (enum zf_tree_id id = ZF_TREE_ROOT; id <= ZF_TREE_SUMMARY; id++) {
		int r = zf_tree_walk(rig->forest, id, mark_live, rig);

		assert(r == 0);
	}
	reset_zones(rig, UINT64_MAX);
}

struct census {
	struct rig *rig;
	uint64_t nodes;
};

static int count_live(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct census *census = arg;

	assert(error == 0 && node);
	for (unsigned int i = 0; i < census->rig->options.shape.copies; i++)
		assert(census->rig->live[expect->ptr.address[i] / ZF_BLOCK_SIZE] ==
		       expect->ptr.generation);
	census->nodes++;
	return 0;
}

void rig_check(struct rig *rig)
{
	struct census census = {.rig = rig};

	for (enum zf_tree_id id = ZF_TREE_ROOT; id <= ZF_TREE_SUMMARY; id++) {
		int r = zf_tree_walk(rig->forest, id, count_live, &census);

		assert(r == 0);
	}
	assert(census.nodes == rig->live_nodes); /* else: leaked */
}

/* SPDX-License-Identifier: MIT */
/*
 * Metadata: one sequential stream per copy, and the freeze that cuts it into transactions.
 *
 * A node gets its address when it is copied, long before it is written. So a transaction's stream
 * is decided slot by slot while it runs, and the commit writes it in one ascending run. Slots whose
 * nodes died, and an end of a zone that is too short for a node, are written as zeroes.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc_internal.h"

static struct zf_meta_run *add_run(struct runs *runs)
{
	if (runs->count == runs->room) {
		unsigned int room = runs->room ? runs->room * 2 : 4;
		struct zf_meta_run *grown = realloc(runs->runs, room * sizeof(*grown));

		if (!grown)
			return NULL;
		runs->runs = grown;
		runs->room = room;
	}
	return &runs->runs[runs->count++];
}

static uint64_t pointer_address(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zone_no * alloc->geometry->zone_size +
	       ((uint64_t)alloc->zones[zone_no].pointer << ZF_BLOCK_SHIFT);
}

static void advance(struct zf_alloc *alloc, unsigned int copy, uint32_t blocks)
{
	uint32_t zone_no = alloc->meta_zone[copy];
	struct zf_zone *zone = &alloc->zones[zone_no];
	struct runs *runs = &alloc->meta_runs[copy];

	zf_alloc_set_pointer_locked(alloc, zone_no, zone->pointer + blocks);
	zone->written = zone->pointer;
	zone->write_generation = alloc->running;
	runs->runs[runs->count - 1].to = pointer_address(alloc, zone_no);
}

/* Closes the zone: its end is zero-filled, and another zone is opened later. */
static void close_stream(struct zf_alloc *alloc, unsigned int copy)
{
	uint32_t zone_no = alloc->meta_zone[copy];
	struct zf_zone *zone = &alloc->zones[zone_no];

	if (zone->pointer < zone->capacity)
		advance(alloc, copy, zone->capacity - zone->pointer);
	alloc->meta_zone[copy] = NO_ZONE;
	zf_alloc_note_emptied_locked(alloc, zone_no, alloc->running);
}

/* Makes sure that this copy's stream has room for one node and a run to put it in. */
static int prepare_stream(struct zf_alloc *alloc, unsigned int copy)
{
	struct runs *runs = &alloc->meta_runs[copy];
	uint32_t zone_no = alloc->meta_zone[copy];
	uint64_t at;
	int r;

	if (zone_no == NO_ZONE) {
		r = zf_alloc_open_zone_locked(alloc, ZF_ROLE_META,
					      zf_alloc_meta_keeps_locked(alloc), &zone_no);
		if (r < 0)
			return r;
		alloc->meta_zone[copy] = zone_no;
	}
	at = pointer_address(alloc, zone_no);
	if (runs->count && runs->runs[runs->count - 1].zone_no == zone_no &&
	    runs->runs[runs->count - 1].to == at)
		return 0;
	if (!add_run(runs))
		return -ENOMEM;
	runs->runs[runs->count - 1] =
		(struct zf_meta_run){.zone_no = zone_no, .from = at, .to = at};
	return 0;
}

static bool has_room(const struct zf_alloc *alloc, unsigned int copy)
{
	const struct zf_zone *zone = &alloc->zones[alloc->meta_zone[copy]];

	return zone->capacity - zone->pointer >= alloc->node_blocks;
}

static int node_locked(struct zf_alloc *alloc, bool system, uint64_t ret_address[ZF_COPIES_MAX])
{
	/* First all copies are prepared: a slot is taken in each of them, or in none. */
	for (unsigned int c = 0; c < alloc->copies; c++) {
		int r = prepare_stream(alloc, c);

		if (r == 0 && !has_room(alloc, c)) {
			close_stream(alloc, c);
			r = prepare_stream(alloc, c);
		}
		if (r < 0)
			return r;
	}
	for (unsigned int c = 0; c < alloc->copies; c++) {
		uint32_t zone_no = alloc->meta_zone[c];
		struct zf_zone *zone = &alloc->zones[zone_no];

		ret_address[c] = pointer_address(alloc, zone_no);
		advance(alloc, c, alloc->node_blocks);
		if (system) {
			zone->system_live += alloc->node_blocks;
		} else {
			zone->live += alloc->node_blocks;
			alloc->node_live_blocks += alloc->node_blocks;
		}
		zf_alloc_trace_live_locked(alloc, zone_no);
		zone->emptied_generation = 0;
	}
	for (unsigned int c = alloc->copies; c < ZF_COPIES_MAX; c++)
		ret_address[c] = 0;
	return 0;
}

int zf_alloc_node(struct zf_alloc *alloc, bool system, uint64_t ret_address[ZF_COPIES_MAX])
{
	int r;

	zf_mutex_lock(&alloc->lock);
	r = node_locked(alloc, system, ret_address);
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_node_free(struct zf_alloc *alloc, const uint64_t address[ZF_COPIES_MAX], bool system)
{
	zf_mutex_lock(&alloc->lock);
	for (unsigned int c = 0; c < alloc->copies; c++) {
		uint32_t zone_no = zf_zone_of(alloc->geometry, address[c]), blocks, *live;
		struct zf_zone *zone = zf_alloc_node_zone_locked(alloc, address[c]);

		/* A hostile image may name addresses where no node can be, and a node twice. */
		if (!zone)
			continue;
		live = system ? &zone->system_live : &zone->live;
		blocks = alloc->node_blocks < *live ? alloc->node_blocks : *live;
		*live -= blocks;
		zf_alloc_trace_live_locked(alloc, zone_no);
		if (!system)
			alloc->node_live_blocks -= blocks;
		zf_alloc_dirty_locked(alloc, zone_no);
		zf_alloc_note_emptied_locked(alloc, zone_no, alloc->running);
	}
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_stream_failed(struct zf_alloc *alloc, uint32_t zone_no)
{
	zf_mutex_lock(&alloc->lock);
	for (unsigned int c = 0; c < alloc->copies; c++) {
		if (alloc->meta_zone[c] != zone_no)
			continue;
		zf_alloc_set_pointer_locked(alloc, zone_no, alloc->zones[zone_no].capacity);
		alloc->meta_zone[c] = NO_ZONE;
		zf_alloc_note_emptied_locked(alloc, zone_no, alloc->running);
	}
	alloc->zones[zone_no].damaged = alloc->zones[zone_no].suspect = true;
	zf_mutex_unlock(&alloc->lock);
}

bool zf_alloc_close_streams_locked(struct zf_alloc *alloc, uint64_t garbage_min)
{
	if (!zf_alloc_can_close_streams_locked(alloc, garbage_min, alloc->empty_count))
		return false;
	for (unsigned int c = 0; c < alloc->copies; c++)
		if (prepare_stream(alloc, c) < 0)
			return false;
	for (unsigned int c = 0; c < alloc->copies; c++)
		close_stream(alloc, c);
	return true;
}

/* ---- freeze ---- */

static uint32_t count_dirty(const struct zf_alloc *alloc)
{
	uint32_t n = 0;

	for (uint32_t z = 0; z < alloc->zone_count + alloc->zones_coming; z++)
		n += alloc->zones[z].dirty;
	return n;
}

/* The tail itself may end in other zones than it began; the items of these then change, too. */
static unsigned int tail_size(const struct zf_alloc *alloc, unsigned int path_nodes)
{
	uint64_t per_zone = blocks_to_nodes(alloc, capacity_blocks(alloc));
	uint64_t zones = count_dirty(alloc) + alloc->copies * (alloc->tail_max / per_zone + 2);
	uint64_t nodes = zones * path_nodes + 1;

	return nodes < alloc->tail_max ? (unsigned int)nodes : alloc->tail_max;
}

static int reserve_tail(struct zf_alloc *alloc, struct zf_alloc_frozen *frozen, unsigned int nodes)
{
	frozen->tail = calloc(nodes ? nodes : 1, sizeof(*frozen->tail));
	if (!frozen->tail)
		return -ENOMEM;
	for (; frozen->tail_count < nodes; frozen->tail_count++) {
		int r = node_locked(alloc, true, frozen->tail[frozen->tail_count]);

		if (r < 0)
			return r;
	}
	return 0;
}

static void encode_item(const struct zf_zone *zone, struct zf_disk_zone *disk)
{
	memset(disk, 0, sizeof(*disk));
	disk->role = zone->role;
	disk->pointer = zf_le64_from((uint64_t)zone->written << ZF_BLOCK_SHIFT);
	disk->live = zf_le64_from((uint64_t)zone->live << ZF_BLOCK_SHIFT);
	disk->reset_generation = zf_le64_from(zone->reset_generation);
	disk->reset_count = zf_le64_from(zone->reset_count);
	disk->emptied_generation = zf_le64_from(zone->emptied_generation);
	disk->write_generation = zf_le64_from(zone->write_generation);
}

static int snapshot(struct zf_alloc *alloc, struct zf_alloc_frozen *frozen)
{
	frozen->zones = calloc(count_dirty(alloc) + 1, sizeof(*frozen->zones));
	if (!frozen->zones)
		return -ENOMEM;
	frozen->zones_total = alloc->zone_count + alloc->zones_coming;
	for (uint32_t z = 0; z < frozen->zones_total; z++) {
		struct zf_zone *zone = &alloc->zones[z];
		struct zf_zone_snapshot *shot;

		if (zone->summary == ZF_SUMMARY_DROPPED)
			zone->summary = ZF_SUMMARY_FROZEN;
		if (!zone->dirty)
			continue;
		zone->dirty = false;
		shot = &frozen->zones[frozen->zone_count++];
		shot->zone_no = z;
		encode_item(zone, &shot->item);
	}
	return 0;
}

/* Averages what transactions write, in all copies. */
static void note_size(struct zf_alloc *alloc)
{
	uint64_t bytes = 0;

	for (unsigned int c = 0; c < alloc->copies; c++)
		for (unsigned int i = 0; i < alloc->meta_runs[c].count; i++)
			bytes += alloc->meta_runs[c].runs[i].to - alloc->meta_runs[c].runs[i].from;
	alloc->commit_blocks = (3 * alloc->commit_blocks + (bytes >> ZF_BLOCK_SHIFT)) / 4;
}

int zf_alloc_freeze(struct zf_alloc *alloc, unsigned int path_nodes,
		    struct zf_alloc_frozen **ret_frozen)
{
	struct zf_alloc_frozen *frozen = calloc(1, sizeof(*frozen));
	int r;

	if (!frozen)
		return -ENOMEM;
	zf_mutex_lock(&alloc->lock);
	frozen->generation = alloc->running;
	r = reserve_tail(alloc, frozen, tail_size(alloc, path_nodes));
	if (r == 0)
		r = snapshot(alloc, frozen);
	if (r < 0) {
		zf_mutex_unlock(&alloc->lock);
		zf_alloc_frozen_free(frozen);
		return r;
	}
	note_size(alloc);
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++) {
		frozen->meta_zone[c] = c < alloc->copies ? alloc->meta_zone[c] : NO_ZONE;
		if (frozen->meta_zone[c] != NO_ZONE)
			frozen->meta_pointer[c] =
				(uint64_t)alloc->zones[frozen->meta_zone[c]].pointer
				<< ZF_BLOCK_SHIFT;
		frozen->runs[c] = alloc->meta_runs[c].runs;
		frozen->run_count[c] = alloc->meta_runs[c].count;
		alloc->meta_runs[c] = (struct runs){0};
	}
	frozen->kept_bytes = alloc->kept_blocks << ZF_BLOCK_SHIFT;
	frozen->guaranteed_bytes = alloc->guaranteed_blocks << ZF_BLOCK_SHIFT;
	/* No more than a mount accepts, even if a hostile image has wrong counts. */
	frozen->kept_guaranteed_bytes =
		zf_min_u64(alloc->kept_guaranteed_blocks << ZF_BLOCK_SHIFT,
			   zf_min_u64(frozen->kept_bytes, frozen->guaranteed_bytes));
	alloc->running++;
	zf_mutex_unlock(&alloc->lock);
	*ret_frozen = frozen;
	return 0;
}

int zf_alloc_tail_node(struct zf_alloc *alloc, struct zf_alloc_frozen *frozen,
		       uint64_t ret_address[ZF_COPIES_MAX])
{
	if (frozen->tail_used == frozen->tail_count)
		return -ENOSPC;
	memcpy(ret_address, frozen->tail[frozen->tail_used++], sizeof(frozen->tail[0]));
	return 0;
}

/*
 * Slots that the commit did not need were counted as live when the tail was reserved. Other nodes
 * in the zone may have been freed since the freeze, so the zone counts as emptied by the running
 * transaction.
 */
static void release_unused_tail_locked(struct zf_alloc *alloc, const struct zf_alloc_frozen *frozen)
{
	for (unsigned int i = frozen->tail_used; i < frozen->tail_count; i++)
		for (unsigned int c = 0; c < alloc->copies; c++) {
			uint32_t zone_no = zf_zone_of(alloc->geometry, frozen->tail[i][c]);

			alloc->zones[zone_no].system_live -= alloc->node_blocks;
			zf_alloc_trace_live_locked(alloc, zone_no);
			zf_alloc_note_emptied_locked(alloc, zone_no, alloc->running);
		}
}

void zf_alloc_committed(struct zf_alloc *alloc, const struct zf_alloc_frozen *frozen)
{
	zf_mutex_lock(&alloc->lock);
	release_unused_tail_locked(alloc, frozen);
	alloc->committed = frozen->generation;
	zf_alloc_overwrite_release_locked(alloc, false);
	zf_alloc_grown_locked(alloc, frozen);
	for (uint32_t z = 0; z < alloc->zone_count; z++) {
		alloc->zones[z].passed_over = false;
		if (alloc->zones[z].summary == ZF_SUMMARY_FROZEN)
			alloc->zones[z].summary = ZF_SUMMARY_NONE;
	}
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_frozen_free(struct zf_alloc_frozen *frozen)
{
	if (!frozen)
		return;
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		free(frozen->runs[c]);
	free(frozen->zones);
	free(frozen->tail);
	free(frozen);
}

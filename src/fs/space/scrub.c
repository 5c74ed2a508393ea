/* SPDX-License-Identifier: MIT */
#include "fs/space/scrub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc/zone.h"
#include "alloc/zone_format.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "fs/core/inode.h"
#include "fs/space/reclaim.h"
#include "fs/space/reclaim_internal.h"

/*
 * The bytes of a zone that one step reads. The reads of a step are in flight together, so a request
 * of a user may wait for all of them: 28 ms on a device that reads 150 MB/s.
 */
#define WINDOW_BYTES (UINT64_C(4) << 20)

static const enum zf_tree_id trees[] = {
	ZF_TREE_ROOT, ZF_TREE_ZONE, ZF_TREE_FS, ZF_TREE_SUMMARY, ZF_TREE_SHARE,
};
#define TREE_COUNT (sizeof(trees) / sizeof(trees[0]))

static void tell_of(struct zf_fs *fs, struct zf_scrub_step *step,
		    const struct zf_scrub_error *error)
{
	atomic_fetch_add(error->repaired ? &fs->scrubbed.repaired : &fs->scrubbed.errors, 1);
	step->error(step->arg, error);
}

/* ---- nodes ---- */

/* The children of one parent. Their zones count as having a reader. */
struct nodes {
	struct zf_fs *fs;
	uint64_t durable; /* generation */
	struct zf_node_expect *at;
	size_t count, room;
};

static int grow(struct nodes *nodes)
{
	size_t room = nodes->room ? 2 * nodes->room : 64;
	struct zf_node_expect *grown = realloc(nodes->at, room * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	nodes->at = grown;
	nodes->room = room;
	return 0;
}

/* While the tree names the node, its zone is not reset; so the zone can be held in time. */
static int take_node(void *arg, const struct zf_node_expect *expect)
{
	struct nodes *nodes = arg;
	struct zf_fs *fs = nodes->fs;

	if (expect->ptr.csum == 0 || expect->ptr.generation > nodes->durable)
		return 0;
	if (nodes->count == nodes->room && grow(nodes) < 0)
		return -ENOMEM;
	for (unsigned int c = 0; c < zf_forest_shape(fs->forest)->copies; c++)
		zf_alloc_read_begin(fs->alloc, expect->ptr.address[c]);
	nodes->at[nodes->count++] = *expect;
	return 0;
}

static void let_go(struct nodes *nodes)
{
	struct zf_fs *fs = nodes->fs;

	for (size_t i = 0; i < nodes->count; i++)
		for (unsigned int c = 0; c < zf_forest_shape(fs->forest)->copies; c++)
			zf_alloc_read_end(fs->alloc, nodes->at[i].ptr.address[c]);
	free(nodes->at);
}

/*
 * The next commit of a read-write mount writes the node elsewhere, from the other copy or from
 * memory.
 */
static bool repair_node(struct zf_fs *fs, const struct zf_node_expect *expect)
{
	return zf_txn_move_node(fs->txn, expect->owner, expect->level, &expect->first_key,
				expect->ptr.address[0]) == 0;
}

static int verify_node(struct zf_fs *fs, bool repair, const struct zf_node_expect *expect,
		       uint8_t *buf, struct zf_scrub_step *step, struct zf_vector *errors)
{
	uint32_t size = zf_forest_shape(fs->forest)->node_size;
	int r = 0;

	for (unsigned int c = 0; c < zf_forest_shape(fs->forest)->copies && r == 0; c++) {
		struct zf_scrub_error error = {
			.address = expect->ptr.address[c],
			.len = size,
			.is_node = true,
			.tree = expect->owner,
		};

		step->node_bytes += size;
		if (zf_forest_read_copy(fs->forest, expect, c, buf) == 0)
			continue;
		error.repaired = repair && repair_node(fs, expect);
		r = zf_vector_push(errors, &error);
	}
	return r;
}

/* A repair counts only once a commit has made it durable. */
static void tell_of_nodes(struct zf_fs *fs, struct zf_scrub_step *step, struct zf_vector *errors)
{
	bool any = false, durable;

	ZF_VECTOR_FOREACH (errors, struct zf_scrub_error, error)
		any |= error->repaired;
	durable = any && zf_txn_sync(fs->txn) == 0;
	ZF_VECTOR_FOREACH (errors, struct zf_scrub_error, error) {
		error->repaired &= durable;
		tell_of(fs, step, error);
	}
}

/* If a parent cannot be read, its children and the nodes behind them cannot be found. */
static int list_nodes(struct nodes *nodes, struct zf_scrub_place *place, struct zf_scrub_step *step)
{
	enum zf_tree_id tree = trees[place->tree];
	struct zf_node_ptr root;
	uint8_t level;
	int r;

	zf_tree_get_root(nodes->fs->forest, tree, &root, &level);
	if (root.address[0] == 0)
		return -ENOENT;
	/* The tree begins, or has become lower. */
	if (place->height == 0 || place->height > level + 1u)
		*place = (struct zf_scrub_place){.tree = place->tree, .height = level + 1u};
	r = zf_tree_children(nodes->fs->forest, tree, (uint8_t)(place->height - 1), &place->from,
			     take_node, nodes);
	if (r == -EUCLEAN || r == -EIO) {
		step->skipped++;
		return 0;
	}
	return r;
}

static int scrub_nodes(struct zf_fs *fs, bool repair, struct zf_scrub_place *place,
		       struct zf_scrub_step *step)
{
	struct nodes nodes = {.fs = fs, .durable = zf_txn_durable(fs->txn)};
	struct zf_vector errors = ZF_VECTOR(struct zf_scrub_error);
	uint8_t *buf = aligned_alloc(ZF_BLOCK_SIZE, zf_forest_shape(fs->forest)->node_size);
	int r = buf ? list_nodes(&nodes, place, step) : -ENOMEM, verified = 0;

	for (size_t i = 0; r >= 0 && verified == 0 && i < nodes.count; i++)
		verified = verify_node(fs, repair, &nodes.at[i], buf, step, &errors);
	let_go(&nodes);
	free(buf);
	tell_of_nodes(fs, step, &errors);
	zf_vector_deinit(&errors);
	if (verified < 0)
		return verified;
	if (r == -ENOENT || (r == 0 && place->height <= 1))
		*place = (struct zf_scrub_place){.tree = place->tree + 1};
	else if (r == 0)
		*place = (struct zf_scrub_place){.tree = place->tree, .height = place->height - 1};
	return r == -ENOENT || r >= 0 ? 1 : r;
}

/* ---- data ---- */

enum verdict {
	UNKNOWN,
	GOOD,
	BAD,
};

struct window {
	struct zf_fs *fs;
	struct zf_found found;
	struct zf_move move;
	uint8_t *verdicts; /* enum verdict of each block of the zone */
	struct zf_scrub_step *step;
};

static uint8_t *verdict_at(struct window *window, uint64_t address)
{
	return &window->verdicts[(address - window->found.start) >> ZF_BLOCK_SHIFT];
}

/* Reads and verifies the blocks of the batch. */
static int verify_batch(struct window *window)
{
	struct zf_move *move = &window->move;
	int r = move->count > 0 ? zf_move_verify(move) : 0;

	for (unsigned int i = 0; r == 0 && i < move->count; i++)
		*verdict_at(window, move->slots[i].from) = move->slots[i].bad ? BAD : GOOD;
	if (r == 0)
		window->step->data_bytes += (uint64_t)move->count << ZF_BLOCK_SHIFT;
	move->count = 0;
	return r;
}

/* Bytes without a known checksum count as bad. */
static int add_block(struct window *window, uint64_t address)
{
	uint64_t at = (address - window->found.start) >> ZF_BLOCK_SHIFT;
	struct zf_move *move = &window->move;

	if (window->verdicts[at] != UNKNOWN)
		return 0;
	window->verdicts[at] = BAD;
	if (!window->found.known[at])
		return 0;
	move->slots[move->count++] = (struct zf_move_slot){
		.from = address,
		.csum = window->found.csums[at],
	};
	return move->count == move->capacity ? verify_batch(window) : 0;
}

static int add_pieces(struct window *window, const struct zf_pieces *pieces)
{
	int r = 0;

	for (size_t i = 0; i < pieces->count; i++)
		for (uint32_t b = 0; b < pieces->at[i].count && r == 0; b++)
			r = add_block(window,
				      pieces->at[i].address + ((uint64_t)b << ZF_BLOCK_SHIFT));
	return r;
}

static void tell(struct window *window, const struct zf_piece *piece, uint32_t first,
		 uint32_t count)
{
	const struct zf_scrub_error error = {
		.address = piece->address + ((uint64_t)first << ZF_BLOCK_SHIFT),
		.len = (uint64_t)count << ZF_BLOCK_SHIFT,
		.ino = piece->ino,
		.offset = piece->offset + ((uint64_t)first << ZF_BLOCK_SHIFT),
	};

	tell_of(window->fs, window->step, &error);
}

/* Bad bytes are reported once for each file that names them. */
static void tell_bad(struct window *window, const struct zf_pieces *pieces)
{
	for (size_t i = 0; i < pieces->count; i++) {
		const struct zf_piece *piece = &pieces->at[i];
		uint32_t bad = 0;

		for (uint32_t b = 0; b <= piece->count; b++) {
			uint64_t address = piece->address + ((uint64_t)b << ZF_BLOCK_SHIFT);

			if (b < piece->count && *verdict_at(window, address) == BAD) {
				bad++;
				continue;
			}
			if (bad > 0)
				tell(window, piece, b - bad, bad);
			bad = 0;
		}
	}
}

static int verify_window(struct window *window)
{
	int r = add_pieces(window, &window->found.files);

	if (r == 0)
		r = add_pieces(window, &window->found.shared);
	if (r == 0)
		r = verify_batch(window);
	return r;
}

static void window_deinit(struct window *window)
{
	zf_move_deinit(&window->move);
	zf_found_free(&window->found);
	free(window->verdicts);
}

/* Verifies the data that begins in [from, to), bytes in a zone that counts as having a reader. */
static int look(struct window *window, uint32_t zone_no, uint64_t from, uint64_t to)
{
	struct zf_zone zone;
	int r = zf_reclaim_find(window->fs, zone_no, from, to, &window->found);

	if (r < 0)
		return r;
	zf_alloc_get_zone(window->fs->alloc, zone_no, &zone);
	window->verdicts = calloc(zone.capacity, 1);
	if (!window->verdicts)
		return -ENOMEM;
	r = zf_move_init(&window->move, window->fs);
	return r < 0 ? r : verify_window(window);
}

static int scrub_window(struct zf_fs *fs, uint32_t zone_no, uint64_t from, uint64_t to,
			struct zf_scrub_step *step)
{
	struct window window = {.fs = fs, .step = step};
	int r = look(&window, zone_no, from, to);

	if (r == 0) {
		tell_bad(&window, &window.found.files);
		tell_bad(&window, &window.found.shared);
	}
	step->skipped += r == -EUCLEAN || r == -EIO || window.found.left;
	window_deinit(&window);
	return r == -EUCLEAN || r == -EIO ? 0 : r;
}

static bool has_data(const struct zf_zone *zone)
{
	return zone->role == ZF_ROLE_HOT || zone->role == ZF_ROLE_COLD || zone->role == ZF_ROLE_LOG;
}

static int scrub_data(struct zf_fs *fs, struct zf_scrub_place *place, struct zf_scrub_step *step)
{
	const struct zf_geometry *geometry = zf_dev_geometry(fs->dev);
	uint32_t zone_no = zf_zone_of(geometry, place->address);
	uint64_t start = zone_no * geometry->zone_size, from = place->address - start, end;
	struct zf_zone zone;
	int r = 0;

	if (place->address / geometry->zone_size >= zf_alloc_zone_count(fs->alloc))
		return 0;
	zf_alloc_read_begin(fs->alloc, start);
	zf_alloc_get_zone(fs->alloc, zone_no, &zone);
	end = has_data(&zone) && !zone.offline ? (uint64_t)zone.pointer << ZF_BLOCK_SHIFT : 0;
	step->skipped += has_data(&zone) && zone.offline && zone.live > 0;
	if (from < end)
		r = scrub_window(fs, zone_no, from, from + WINDOW_BYTES, step);
	zf_alloc_read_end(fs->alloc, start);
	if (r < 0)
		return r;
	place->address = from + WINDOW_BYTES < end ? place->address + WINDOW_BYTES
						   : start + geometry->zone_size;
	return 1;
}

/* `before`: what the step's caller had counted already. */
static void count_step(struct zf_fs *fs, const struct zf_scrub_step *before,
		       const struct zf_scrub_step *step, bool finished)
{
	atomic_fetch_add(&fs->scrubbed.data_bytes, step->data_bytes - before->data_bytes);
	atomic_fetch_add(&fs->scrubbed.node_bytes, step->node_bytes - before->node_bytes);
	atomic_fetch_add(&fs->scrubbed.skipped, step->skipped - before->skipped);
	if (finished)
		atomic_store(&fs->scrubbed.finished_at, (uint64_t)time(NULL));
}

int zf_scrub_step(struct zf_fs *fs, bool repair, struct zf_scrub_place *place,
		  struct zf_scrub_step *step)
{
	const struct zf_scrub_step before = *step;
	int r = place->tree < TREE_COUNT ? scrub_nodes(fs, repair, place, step)
					 : scrub_data(fs, place, step);

	count_step(fs, &before, step, r == 0);
	return r;
}

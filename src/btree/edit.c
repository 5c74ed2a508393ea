/* SPDX-License-Identifier: MIT */
/* The steps that all modifications share: retry, reserve, copy the path, free. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "btree/forest.h"

static int check_root_generation(struct zf_edit *edit)
{
	const struct zf_tree *tree = edit->tree;
	uint64_t generation = edit->writer->generation;

	assert(tree->root.address[0] != 0);
	assert(generation >= tree->changed);
	if (tree->root.generation < generation || tree->root.generation <= tree->changed)
		return 0;
	/* A forged root of a later generation would count as owned, and be edited in place. */
	return zf_report_corrupt(&edit->forest->report, "root of tree", tree->root.address[0],
				 "generation has %" PRIu64 ", expected below %" PRIu64,
				 tree->root.generation, generation);
}

static void drop_spare(struct zf_edit *edit)
{
	while (edit->spare_count > edit->spare_next) {
		struct zf_cnode *node = edit->spare[--edit->spare_count];

		edit->writer->free(edit->writer, node->address, node->generation, edit->id);
		zf_cnode_put(node);
	}
}

int zf_edit_run(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id id,
		zf_edit_step *step, void *arg)
{
	struct zf_fetch fetch;
	struct zf_edit edit = {
		.forest = forest,
		.writer = writer,
		.id = id,
		.tree = zf_forest_tree(forest, id),
		.fetch = &fetch,
	};
	int r;

	zf_fetch_init(&fetch);
	zf_path_init(&edit.path);
	do {
		zf_rwlock_wrlock(&edit.tree->lock);
		r = check_root_generation(&edit);
		if (r == 0)
			r = step(&edit, arg);
		zf_path_release(&edit.path);
		zf_rwlock_unlock(&edit.tree->lock);
		assert(edit.spare_next == edit.spare_count);
	} while (r == -EAGAIN && (r = zf_fetch_run(forest, &fetch)) == 0);
	zf_fetch_deinit(&fetch);
	return r;
}

bool zf_edit_owns(const struct zf_edit *edit, const struct zf_cnode *node)
{
	return node->generation == edit->writer->generation && node->dirty;
}

unsigned int zf_edit_copies(const struct zf_edit *edit, uint8_t level)
{
	unsigned int n = 0;

	for (unsigned int l = level; l <= edit->path.top; l++)
		n += !zf_edit_owns(edit, edit->path.node[l]);
	return n;
}

int zf_edit_reserve(struct zf_edit *edit, unsigned int n)
{
	edit->spare_count = edit->spare_next = 0;
	assert(n <= sizeof(edit->spare) / sizeof(edit->spare[0]));
	while (edit->spare_count < n) {
		struct zf_cnode *node = zf_cnode_new(&edit->forest->cache);
		int r = node ? edit->writer->alloc(edit->writer, node->address) : -ENOMEM;

		if (r < 0) {
			zf_cnode_put(node);
			drop_spare(edit);
			return r == -ENOMEM ? r : -ENOSPC; /* not -EAGAIN: it would restart */
		}
		node->generation = edit->writer->generation;
		node->owner = edit->id;
		edit->spare[edit->spare_count++] = node;
	}
	return 0;
}

static struct zf_cnode_queue *dirty_queue(struct zf_tree *tree, uint64_t generation, uint8_t level)
{
	return generation <= tree->frozen ? &tree->freezing[level] : &tree->running[level];
}

struct zf_cnode *zf_edit_new_node(struct zf_edit *edit, uint8_t level, const struct zf_cnode *src)
{
	struct zf_forest *forest = edit->forest;
	struct zf_cnode *node;

	assert(edit->spare_next < edit->spare_count);
	edit->tree->shape++;
	node = edit->spare[edit->spare_next++];
	node->level = level;
	if (src) {
		zf_node_copy(node->data, src->data, &forest->shape, node->address,
			     node->generation);
		node->run = src->run;
		node->run_end = src->run_end;
	} else {
		zf_node_init(node->data, &forest->shape, edit->id, level, node->address,
			     node->generation);
	}
	zf_cache_insert_dirty(&forest->cache, node);
	TAILQ_INSERT_TAIL(dirty_queue(edit->tree, node->generation, level), node, dirty_link);
	return node;
}

void zf_edit_touch_child(struct zf_edit *edit, struct zf_cnode *node, unsigned int slot)
{
	struct zf_node_ptr ptr = zf_edit_pending_ptr(node);

	node->csum = 0;
	zf_node_set_child(edit->path.node[node->level + 1]->data, slot, &ptr);
}

/* Updates the pointer to the path's node at `level`: a new address perhaps, a pending checksum. */
static void point_to(struct zf_edit *edit, uint8_t level)
{
	struct zf_path *path = &edit->path;
	struct zf_node_ptr ptr = zf_edit_pending_ptr(path->node[level]);

	if (level < path->top) {
		zf_edit_touch_child(edit, path->node[level], path->slot[level + 1]);
		return;
	}
	path->node[level]->csum = 0;
	zf_tree_replace_root_locked(edit->tree, &ptr, level, edit->writer->generation);
}

void zf_edit_copy_path(struct zf_edit *edit, uint8_t level)
{
	struct zf_path *path = &edit->path;

	for (int l = path->top; l >= level; l--) {
		struct zf_cnode *old = path->node[l];

		if (!zf_edit_owns(edit, old)) {
			struct zf_node_ptr ptr = zf_edit_pending_ptr(old);

			path->node[l] = zf_edit_new_node(edit, old->level, old);
			zf_forest_count(&edit->forest->copied);
			zf_cnode_put(old);
			zf_edit_free_node(edit, &ptr);
		}
		point_to(edit, (uint8_t)l);
	}
}

void zf_edit_free_node(struct zf_edit *edit, const struct zf_node_ptr *ptr)
{
	struct zf_cache *cache = &edit->forest->cache;
	struct zf_cnode *node;

	edit->tree->shape++;
	edit->writer->free(edit->writer, ptr->address, ptr->generation, edit->id);
	if (ptr->generation != edit->writer->generation)
		return; /* a frozen node will still be written; a clean one is evicted in time */
	node = zf_cache_get(cache, ptr->address[0], ptr->generation);
	assert(node && node->dirty);
	TAILQ_REMOVE(dirty_queue(edit->tree, node->generation, node->level), node, dirty_link);
	zf_cache_remove_dirty(cache, node);
	zf_cnode_put(node);
}

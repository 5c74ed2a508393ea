/* SPDX-License-Identifier: MIT */
#include "lab/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "btree/tree.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/core/fs_format.h"
#include "lab/items.h"
#include "sim/sim.h"

void zf_lab_tree_deinit(struct zf_lab_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		free(tree->items[i].value);
	free(tree->items);
}

/* ---- reading ---- */

static bool is_told(const struct zf_key *key)
{
	return key->type == ZF_KEY_INODE || key->type == ZF_KEY_DIR_NAME ||
	       key->type == ZF_KEY_EXTENT || key->type == ZF_KEY_INTENT;
}

static int grow(struct zf_lab_tree *tree)
{
	size_t room = tree->room ? 2 * tree->room : 64;
	void *grown = reallocarray(tree->items, room, sizeof(*tree->items));

	if (!grown)
		return -ENOMEM;
	tree->items = grown;
	tree->room = room;
	return 0;
}

static int take_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct zf_lab_tree *tree = arg;
	struct zf_lab_tree_item item = {.key = *key, .len = len};

	if (!is_told(key))
		return 0;
	if (tree->count == tree->room && grow(tree) < 0)
		return -ENOMEM;
	item.value = malloc(len + 1);
	if (!item.value)
		return -ENOMEM;
	memcpy(item.value, value, len);
	tree->items[tree->count++] = item;
	return 0;
}

static int scan(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		struct zf_lab_tree *tree)
{
	const struct zf_report_source source = {.dev = dev, .super = super, .report = report};
	const struct zf_key from = ZF_KEY(0, 0, 0), to = ZF_KEY(UINT64_MAX, UINT8_MAX, UINT64_MAX);
	struct zf_forest *forest;
	unsigned int trees;
	int r = zf_report_open_forest(&source, report, &forest, &trees);

	if (r < 0)
		return r;
	r = trees & 1u << ZF_TREE_FS ? zf_tree_scan(forest, ZF_TREE_FS, &from, &to, take_item, tree)
				     : -EUCLEAN;
	zf_forest_free(forest);
	return r;
}

static int read_tree(const struct zf_sim *sim, const struct zf_super *super,
		     const struct zf_report *report, struct zf_lab_tree *ret_tree)
{
	struct zf_sim *clone = zf_sim_clone(sim);
	struct zf_dev *dev;
	int r = zf_sim_open(clone, report, &dev);

	*ret_tree = (struct zf_lab_tree){0};
	if (r == 0) {
		r = scan(dev, super, report, ret_tree);
		zf_dev_close(dev);
	}
	zf_sim_free(clone);
	if (r < 0) {
		zf_report(report, ZF_REPORT_WARNING,
			  "the tree of generation %" PRIu64 " cannot be read: %s",
			  super->generation, strerror(-r));
		zf_lab_tree_deinit(ret_tree);
	}
	return r;
}

/* ---- comparing ---- */

static bool is_same(const struct zf_lab_tree_item *a, const struct zf_lab_tree_item *b)
{
	return a->len == b->len && memcmp(a->value, b->value, a->len) == 0;
}

struct changes {
	struct json_object *set, *gone;
};

static void set(struct changes *changes, const struct zf_lab_tree_item *item)
{
	struct json_object *object = zf_lab_item(&item->key, item->value, item->len);

	if (object)
		zf_json_push(changes->set, object);
}

static void compare(struct changes *changes, const struct zf_lab_tree *old,
		    const struct zf_lab_tree *new)
{
	size_t i = 0, k = 0;

	while (i < old->count || k < new->count) {
		int order = i == old->count   ? 1
			    : k == new->count ? -1
					      : zf_key_cmp(&old->items[i].key, &new->items[k].key);

		if (order < 0)
			zf_json_push(changes->gone, zf_lab_key(&old->items[i].key));
		else if (order > 0 || !is_same(&old->items[i], &new->items[k]))
			set(changes, &new->items[k]);
		i += order <= 0;
		k += order >= 0;
	}
}

struct json_object *zf_lab_tree_next(struct zf_lab_tree *tree, const struct zf_sim *sim,
				     const struct zf_super *super, const struct zf_report *report)
{
	struct changes changes;
	struct json_object *object;
	struct zf_lab_tree next;

	if (read_tree(sim, super, report, &next) < 0)
		return NULL;
	changes = (struct changes){json_object_new_array(), json_object_new_array()};
	compare(&changes, tree, &next);
	zf_lab_tree_deinit(tree);
	*tree = next;
	object = json_object_new_object();
	zf_json_add(object, "set", changes.set);
	zf_json_add(object, "gone", changes.gone);
	return object;
}

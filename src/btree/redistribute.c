/* SPDX-License-Identifier: MIT */
#include "btree/redistribute.h"

#include <errno.h>

/*
 * A run is a series of insertions, each directly behind the one before. An insertion within a leaf
 * belongs to a stream if it continues a run of at least 1/STREAM_PART of the leaf's items.
 */
#define STREAM_PART 2u

bool zf_put_fits(const struct zf_cnode *leaf, uint32_t node_size, const struct zf_put *put)
{
	return zf_node_has_room(leaf->data, node_size, put->slot, put->found, put->key, put->value,
				put->len);
}

/* Would an item in this slot come right behind the one inserted last? */
static bool continues_run(const struct zf_cnode *leaf, unsigned int slot)
{
	struct zf_key before;

	if (slot == 0)
		return false;
	before = zf_node_key(leaf->data, slot - 1);
	return zf_key_cmp(&before, &leaf->run_end) == 0;
}

static void put_item(struct zf_cnode *leaf, uint32_t node_size, const struct zf_put *put,
		     unsigned int slot)
{
	if (put->found) {
		zf_node_set_value(leaf->data, node_size, slot, put->value, put->len);
		return;
	}
	zf_node_insert_item(leaf->data, node_size, slot, put->key, put->value, put->len);
	leaf->run = continues_run(leaf, slot) ? leaf->run + 1 : 1;
	leaf->run_end = *put->key;
}

void zf_put_item(struct zf_cnode *leaf, uint32_t node_size, const struct zf_put *put)
{
	put_item(leaf, node_size, put, put->slot);
}

/* ---- the plan ---- */

/* How many of the plan's first n items are in the leaves already. */
static unsigned int present(const struct zf_leaf_plan *plan, const struct zf_put *put,
			    unsigned int n)
{
	return n - (!put->found && plan->at < n);
}

static unsigned int count_items(const struct zf_leaf_plan *plan, const struct zf_put *put)
{
	unsigned int count = !put->found;

	for (unsigned int i = 0; i < 2 && plan->leaf[i]; i++)
		count += zf_node_count(plan->leaf[i]->data);
	return count;
}

/* The bytes that the first n items of the plan take. */
static uint32_t bytes_of(const struct zf_leaf_plan *plan, uint32_t node_size,
			 const struct zf_put *put, unsigned int n)
{
	const void *first = plan->leaf[0]->data, *own = plan->leaf[plan->own]->data;
	unsigned int left = present(plan, put, n), count = zf_node_count(first);
	uint32_t bytes;

	if (left <= count)
		bytes = zf_node_used_by(first, node_size, 0, left);
	else
		bytes = zf_node_used(first, node_size) +
			zf_node_used_by(plan->leaf[1]->data, node_size, 0, left - count);
	if (n > plan->at)
		bytes += (uint32_t)(sizeof(struct zf_disk_item) + put->len);
	if (n > plan->at && put->found)
		bytes -= zf_node_used_by(own, node_size, put->slot, 1);
	return bytes;
}

/* Returns the n for which the first n items of the plan take nearest to `bytes`. */
static unsigned int cut_at(const struct zf_leaf_plan *plan, uint32_t node_size,
			   const struct zf_put *put, uint32_t bytes)
{
	unsigned int low = 0, high = count_items(plan, put);
	uint32_t below, above;

	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		if (bytes_of(plan, node_size, put, middle) <= bytes)
			low = middle;
		else
			high = middle;
	}
	below = bytes - bytes_of(plan, node_size, put, low);
	above = bytes_of(plan, node_size, put, high) - bytes;
	return below < above ? low : high;
}

/* Is the item the next one of a stream? An item behind all others of the leaf counts as one. */
static bool is_stream(const struct zf_cnode *leaf, const struct zf_put *put)
{
	unsigned int count = zf_node_count(leaf->data);

	if (put->found)
		return false;
	return put->slot == count ||
	       (continues_run(leaf, put->slot) && leaf->run >= count / STREAM_PART);
}

/*
 * Cuts behind the new item if it fits the left leaf, else before it. So the stream's items stay. In
 * the middle of a leaf the next item finds the room of the items that move away; at the end of the
 * leaf it finds a new leaf.
 */
static unsigned int cut_behind_stream(const struct zf_leaf_plan *plan, uint32_t node_size,
				      const struct zf_put *put)
{
	bool fits = bytes_of(plan, node_size, put, plan->at + 1) <= zf_node_capacity(node_size);

	return fits ? plan->at + 1 : plan->at;
}

/*
 * The leaf in this slot of the parent, if changing it needs no copy and no read, and it has the
 * form of the path's leaf; or NULL. Leaves of older transactions are not even read, so a damaged
 * one does not make this insertion fail.
 */
static int get_owned(struct zf_edit *edit, unsigned int slot, struct zf_cnode **ret_node)
{
	const void *parent = edit->path.node[1]->data;
	struct zf_cnode *node;
	int r;

	*ret_node = NULL;
	if (slot >= zf_node_count(parent) ||
	    zf_node_child(parent, slot).generation != edit->writer->generation)
		return 0;
	r = zf_path_sibling_locked(edit->forest, edit->id, &edit->path, 0, slot, false, edit->fetch,
				   &node);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (zf_edit_owns(edit, node) &&
	    zf_node_is_packed(node->data) == zf_node_is_packed(edit->path.node[0]->data))
		*ret_node = node;
	else
		zf_cnode_put(node);
	return 0;
}

/* Finds a neighbour of this kind, the emptier of two; NULL: none. */
static int find_neighbour(struct zf_edit *edit, struct zf_cnode **ret_node, bool *ret_is_left)
{
	uint32_t node_size = edit->forest->shape.node_size;
	unsigned int slot = edit->path.slot[1];
	struct zf_cnode *left, *right;
	int r;

	r = get_owned(edit, slot - 1, &left); /* wraps beyond all slots */
	if (r < 0)
		return r;
	r = get_owned(edit, slot + 1, &right);
	if (r < 0) {
		zf_cnode_put(left);
		return r;
	}
	*ret_is_left = left && (!right || zf_node_used(left->data, node_size) <=
						  zf_node_used(right->data, node_size));
	*ret_node = *ret_is_left ? left : right;
	zf_cnode_put(*ret_is_left ? right : left);
	return 0;
}

/* Would both leaves keep some room? */
static bool may_share(const struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
		      uint32_t total)
{
	uint32_t most = zf_node_capacity(node_size) / ZF_SHARE_ROOM * (ZF_SHARE_ROOM - 1);
	uint32_t left = bytes_of(plan, node_size, put, plan->cut[0]);

	return left <= most && total - left <= most;
}

void zf_leaf_plan_add(struct zf_leaf_plan *plan, struct zf_cnode *neighbour, bool is_left)
{
	plan->own = is_left;
	plan->leaf[is_left] = plan->leaf[0];
	plan->leaf[!is_left] = neighbour;
	if (is_left)
		plan->at += zf_node_count(neighbour->data);
}

/*
 * Cuts into three leaves. The last one gets items of leaf[1] only: if long values put the second
 * cut into leaf[0], it moves to the end of leaf[0].
 */
static void cut_in_three(struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
			 uint32_t total)
{
	unsigned int end = zf_node_count(plan->leaf[0]->data) + (plan->own == 0 && !put->found);

	plan->cut[0] = cut_at(plan, node_size, put, total / 3);
	plan->cut[1] = cut_at(plan, node_size, put, total / 3 * 2);
	if (plan->cut[1] < end)
		plan->cut[1] = end;
}

/*
 * Proof that every part fits a leaf, in units of a leaf. No item is larger than 1/4, so a cut is
 * off by at most 1/8. Of two leaves, each keeps at most 5/8 + 1/8, or may_share() has checked it.
 * (cut_behind_stream() checks its own cut.) Of three leaves, the total is less than 9/4, and a
 * third of it and two eighths are 1. If two leaves cannot share, the total is more than 13/8, so
 * the first cut is at 5/12 at least. If the second cut moves to the end of leaf[0], it is at 5/4 at
 * most. Then at most 5/6 lie between the cuts, and the last part only gets smaller.
 */
static void plan_plain(struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
		       bool stream, struct zf_cnode *neighbour, bool is_left)
{
	uint32_t total;

	if (neighbour)
		zf_leaf_plan_add(plan, neighbour, is_left);
	total = bytes_of(plan, node_size, put, count_items(plan, put));
	plan->cut[0] = stream ? cut_behind_stream(plan, node_size, put)
			      : cut_at(plan, node_size, put, total / 2);
	if (neighbour && may_share(plan, node_size, put, total))
		plan->adds_leaf = false;
	else if (neighbour)
		cut_in_three(plan, node_size, put, total);
}

int zf_leaf_plan_make_locked(struct zf_edit *edit, const struct zf_put *put,
			     struct zf_leaf_plan *ret_plan)
{
	uint32_t node_size = edit->forest->shape.node_size;
	struct zf_cnode *leaf = edit->path.node[0], *neighbour = NULL;
	bool is_left = false, stream = is_stream(leaf, put);
	struct zf_leaf_plan plan = {
		.leaf = {leaf}, .at = put->slot, .adds_leaf = true, .puts = true};
	int r = 0;

	if (!stream && edit->path.top > 0)
		r = find_neighbour(edit, &neighbour, &is_left);
	if (r < 0)
		return r;
	if (zf_node_is_packed(leaf->data))
		zf_leaf_plan_packed(&plan, node_size, put, stream, neighbour, is_left);
	else
		plan_plain(&plan, node_size, put, stream, neighbour, is_left);
	if (!plan.leaf[1])
		zf_cnode_put(neighbour);
	*ret_plan = plan;
	return 0;
}

void zf_leaf_plan_release(struct zf_leaf_plan *plan)
{
	zf_cnode_put(plan->leaf[!plan->own]);
}

/* ---- carrying it out ---- */

/* Moves items between leaf[0] and leaf[1], so that leaf[0] has n. */
static void move_between(const struct zf_leaf_plan *plan, uint32_t node_size, unsigned int n)
{
	void *left = plan->leaf[0]->data, *right = plan->leaf[1]->data;
	unsigned int count = zf_node_count(left);

	if (n < count)
		zf_node_move(right, left, node_size, n, count - n, true);
	else
		zf_node_move(left, right, node_size, 0, n - count, false);
}

/* The new leaf gets the items behind the last cut. */
static struct zf_cnode *move_to_new_leaf(struct zf_edit *edit, const struct zf_leaf_plan *plan,
					 const struct zf_put *put)
{
	struct zf_cnode *added = zf_edit_new_node(edit, 0, NULL), *last = plan->leaf[0];
	unsigned int stay = present(plan, put, plan->cut[plan->leaf[1] ? 1 : 0]);

	if (plan->leaf[1]) {
		stay -= zf_node_count(last->data);
		last = plan->leaf[1];
	}
	zf_node_move(added->data, last->data, edit->forest->shape.node_size, stay,
		     zf_node_count(last->data) - stay, false);
	return added;
}

static void put_where_planned(const struct zf_leaf_plan *plan, uint32_t node_size,
			      const struct zf_put *put, struct zf_cnode *added)
{
	struct zf_cnode *leaves[3] = {plan->leaf[0], plan->leaf[1] ? plan->leaf[1] : added, added};
	unsigned int cuts = (plan->leaf[1] != NULL) + plan->adds_leaf, i = 0;

	while (i < cuts && plan->at >= plan->cut[i])
		i++;
	put_item(leaves[i], node_size, put, plan->at - (i > 0 ? plan->cut[i - 1] : 0));
}

/*
 * Sets leaf[1]'s new first key in the parent, notes there that the neighbour has changed
 * (zf_edit_copy_path() has noted it for the path's leaf), and makes the path lead to leaf[1].
 */
static void tell_parent(struct zf_edit *edit, const struct zf_leaf_plan *plan)
{
	struct zf_key key = zf_node_key(plan->leaf[1]->data, 0);
	unsigned int slot = edit->path.slot[1] + !plan->own;

	zf_node_set_key(edit->path.node[1]->data, slot, &key);
	zf_edit_touch_child(edit, plan->leaf[!plan->own], plan->own ? slot - 1 : slot);
	edit->path.slot[1] = slot;
	edit->tree->shape++;
}

struct zf_cnode *zf_leaf_plan_apply_locked(struct zf_edit *edit, const struct zf_put *put,
					   struct zf_leaf_plan *plan)
{
	uint32_t node_size = edit->forest->shape.node_size;
	struct zf_cnode *added = NULL;

	plan->leaf[plan->own] = edit->path.node[0]; /* perhaps a copy by now */
	if (plan->adds_leaf)
		added = move_to_new_leaf(edit, plan, put);
	if (plan->leaf[1])
		move_between(plan, node_size, present(plan, put, plan->cut[0]));
	if (plan->puts)
		put_where_planned(plan, node_size, put, added);
	if (plan->leaf[1])
		tell_parent(edit, plan);
	zf_forest_count(added ? &edit->forest->splits : &edit->forest->shares);
	return added;
}

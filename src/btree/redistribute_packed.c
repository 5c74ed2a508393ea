/* SPDX-License-Identifier: MIT */
/* The plan for a packed leaf. All records have one size, so the plan counts items, not bytes. */
#include "btree/packed.h"
#include "btree/redistribute.h"

static unsigned int first_of_second(const struct zf_leaf_plan *plan, const struct zf_put *put)
{
	return zf_node_count(plan->leaf[0]->data) + (plan->own == 0 && !put->found);
}

/*
 * Cuts into two leaves, or three, of which the last gets items of leaf[1] only. False: a leaf would
 * be too large, because each is counted with the columns of all items.
 */
static bool cut_evenly(struct zf_leaf_plan *plan, const struct zf_put *put, unsigned int all,
		       unsigned int max)
{
	unsigned int end = first_of_second(plan, put);

	plan->cut[0] = all / 2;
	plan->adds_leaf = all - all / 2 > max / ZF_SHARE_ROOM * (ZF_SHARE_ROOM - 1);
	if (!plan->adds_leaf)
		return true;
	plan->cut[0] = all / 3;
	plan->cut[1] = all / 3 * 2 > end ? all / 3 * 2 : end;
	return plan->cut[0] > 0 && plan->cut[1] > plan->cut[0] && plan->cut[1] < all &&
	       plan->cut[0] <= max && plan->cut[1] - plan->cut[0] <= max &&
	       all - plan->cut[1] <= max;
}

/* A plan with the neighbour, if that helps; the packing covers the leaf and the new item. */
static bool plan_together(struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
			  const struct zf_packing *packing, struct zf_cnode *neighbour,
			  bool is_left)
{
	unsigned int count = zf_node_count(neighbour->data);
	struct zf_leaf_plan both = *plan;
	struct zf_packing all;

	if (!zf_packing_scan(neighbour->data, 0, count, &all) || !zf_packing_join(&all, packing))
		return false;
	zf_leaf_plan_add(&both, neighbour, is_left);
	count += zf_node_count(plan->leaf[0]->data) + !put->found;
	if (!cut_evenly(&both, put, count, zf_packing_records_max(&all, node_size)))
		return false;
	*plan = both;
	return true;
}

/* The most items of the leaf, the new one included, that fit one leaf in either form. */
static unsigned int items_max(uint32_t node_size, const struct zf_put *put,
			      const struct zf_packing *packing, bool one_kind)
{
	uint32_t plain = (uint32_t)sizeof(struct zf_disk_item) + packing->value_size;
	uint32_t own = (uint32_t)(sizeof(struct zf_disk_item) + put->len);
	/* A replaced item is removed only after the leaf was made plain, so it needs room too. */
	unsigned int max = (zf_node_capacity(node_size) - own) / plain + !put->found;
	unsigned int packed_max = one_kind ? zf_packing_records_max(packing, node_size) : 0;

	return max > packed_max ? max : packed_max;
}

/*
 * A plan without a neighbour. The part without the new item fits a leaf, because it is a part of
 * the present leaf. The other part gets as many items as fit (`max`), if it cannot have half of
 * them; with fewer, a pass of such insertions over the leaf would make one new leaf for each.
 */
static void plan_alone(struct zf_leaf_plan *plan, const struct zf_put *put, bool stream,
		       unsigned int max)
{
	unsigned int all = zf_node_count(plan->leaf[0]->data) + !put->found, half = all / 2;
	unsigned int at = plan->at;

	if (stream)
		plan->cut[0] = at < max ? at + 1 : at;
	else if (at < half)
		plan->cut[0] = half <= max ? half : max;
	else
		plan->cut[0] = all - half <= max ? half : all - max;
	plan->puts = (at < plan->cut[0] ? plan->cut[0] : all - plan->cut[0]) <= max;
	if (!plan->puts)
		plan->cut[0] = at;
}

/*
 * Has the key the object and type of the leaf's items? If such an item does not fit their packing,
 * it counts as no stream's next one. An item of another object or type may be a stream's next one.
 */
static bool is_among(const struct zf_cnode *leaf, const struct zf_key *key)
{
	struct zf_key first = zf_node_key(leaf->data, 0);

	return key->objectid == first.objectid && key->type == first.type;
}

void zf_leaf_plan_packed(struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
			 bool stream, struct zf_cnode *neighbour, bool is_left)
{
	struct zf_cnode *leaf = plan->leaf[0];
	struct zf_packing packing;
	bool one_kind;

	zf_packing_scan(leaf->data, 0, zf_node_count(leaf->data), &packing);
	one_kind = zf_packing_add(&packing, put->key, put->value, put->len);
	if (one_kind && neighbour &&
	    plan_together(plan, node_size, put, &packing, neighbour, is_left))
		return;
	if (!one_kind && is_among(leaf, put->key))
		stream = false;
	plan_alone(plan, put, stream, items_max(node_size, put, &packing, one_kind));
}

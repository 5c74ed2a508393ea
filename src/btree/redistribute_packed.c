/* SPDX-License-Identifier: MIT */
/* The plan for a packed leaf. All records are of one size, so that what fits can be counted. */
#include "btree/packed.h"
#include "btree/redistribute.h"

/* As in redistribute.c: a neighbour that is nearly full would be asked again and again. */
#define SHARE_ROOM 32u

struct count {
	unsigned int all;	 /* items of the plan, with the new one */
	unsigned int packed_max; /* of them in a packed leaf; 0: the new one is of another kind */
	uint32_t plain;		 /* bytes of one as a plain item */
};

static unsigned int first_of_second(const struct zf_leaf_plan *plan, const struct zf_put *put)
{
	return zf_node_count(plan->leaf[0]->data) + (plan->own == 0 && !put->found);
}

/*
 * Two leaves, or three: the last one gets items of leaf[1] only. False: some leaf would be too
 * large, as all are counted with the columns of all.
 */
static bool cut_evenly(struct zf_leaf_plan *plan, const struct zf_put *put, unsigned int all,
		       unsigned int max)
{
	unsigned int end = first_of_second(plan, put);

	plan->cut[0] = all / 2;
	plan->adds_leaf = all - all / 2 > max / SHARE_ROOM * (SHARE_ROOM - 1);
	if (!plan->adds_leaf)
		return true;
	plan->cut[0] = all / 3;
	plan->cut[1] = all / 3 * 2 > end ? all / 3 * 2 : end;
	return plan->cut[0] > 0 && plan->cut[1] > plan->cut[0] && plan->cut[1] < all &&
	       plan->cut[0] <= max && plan->cut[1] - plan->cut[0] <= max &&
	       all - plan->cut[1] <= max;
}

/* With the neighbour, if that helps; the packing is of the leaf and the new item. */
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

/* Do so many items, the new one among them, fit a leaf? */
static bool fits(const struct count *count, uint32_t node_size, const struct zf_put *put,
		 unsigned int n)
{
	uint32_t own = (uint32_t)(sizeof(struct zf_disk_item) + put->len);
	unsigned int present = n - !put->found; /* what it replaces goes when the leaf is plain */

	return n <= count->packed_max ||
	       present * count->plain + own <= zf_node_capacity(node_size);
}

/* The leaf alone. The part without the new item is a part of what fits there now. */
static void plan_alone(struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
		       bool stream, const struct count *count)
{
	unsigned int half = count->all / 2;
	unsigned int in_half = plan->at < half ? half : count->all - half;

	if (stream)
		plan->cut[0] = fits(count, node_size, put, plan->at + 1) ? plan->at + 1 : plan->at;
	else if (fits(count, node_size, put, in_half))
		plan->cut[0] = half;
	else
		plan->cut[0] = plan->at < half ? plan->at + 1 : plan->at;
	in_half = plan->at < plan->cut[0] ? plan->cut[0] : count->all - plan->cut[0];
	plan->puts = fits(count, node_size, put, in_half);
	if (!plan->puts)
		plan->cut[0] = plan->at;
}

void zf_leaf_plan_packed(struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
			 bool stream, struct zf_cnode *neighbour, bool is_left)
{
	unsigned int present = zf_node_count(plan->leaf[0]->data);
	struct count count = {.all = present + !put->found};
	struct zf_packing packing;

	zf_packing_scan(plan->leaf[0]->data, 0, present, &packing);
	count.plain = (uint32_t)sizeof(struct zf_disk_item) + packing.value_size;
	if (zf_packing_add(&packing, put->key, put->value, put->len)) {
		count.packed_max = zf_packing_records_max(&packing, node_size);
		if (neighbour && plan_together(plan, node_size, put, &packing, neighbour, is_left))
			return;
	}
	plan_alone(plan, node_size, put, stream, &count);
}

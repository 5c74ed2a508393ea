/* SPDX-License-Identifier: MIT */
/* The durable state as trees of its own, beside those of a mounted filesystem. */
#include <string.h>

#include "ctl/report.h"
#include "txn/roots.h"

#define CACHE_BYTES (UINT64_C(4) << 20)

int zf_report_open_forest(const struct zf_report_source *source, const struct zf_report *report,
			  struct zf_forest **ret_forest, unsigned int *ret_trees)
{
	const struct zf_super *super = source->super;
	struct zf_forest_options options = {
		.shape = {.node_size = super->node_size, .copies = super->metadata_copies},
		.cache_bytes = CACHE_BYTES,
	};
	struct zf_forest *forest;
	unsigned int trees = 1u << ZF_TREE_ROOT;
	int r;

	memcpy(options.shape.fsid, super->fsid, sizeof(super->fsid));
	r = zf_forest_new(source->dev, &options, report, &forest);
	if (r < 0)
		return r;
	zf_tree_set_root(forest, ZF_TREE_ROOT, &super->root, super->root_level);
	for (enum zf_tree_id tree = ZF_TREE_FS; tree < ZF_TREE_COUNT; tree++)
		if (zf_roots_load(forest, super->generation, tree, report) == 0)
			trees |= 1u << tree;
	*ret_forest = forest;
	*ret_trees = trees;
	return 0;
}

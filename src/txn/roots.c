/* SPDX-License-Identifier: MIT */
#include "txn/roots.h"

#include <errno.h>
#include <string.h>

#define WHAT "root item"

void zf_root_encode(const struct zf_root *root, struct zf_disk_root *ret_disk)
{
	*ret_disk = (struct zf_disk_root){.level = root->level};
	zf_node_ptr_encode(&root->ptr, &ret_disk->ptr);
}

int zf_root_decode(const struct zf_node_shape *shape, uint64_t generation, enum zf_tree_id tree,
		   const void *value, size_t len, const struct zf_report *report,
		   struct zf_root *ret_root)
{
	char fault[ZF_NODE_PTR_FAULT_SIZE];
	struct zf_node_ptr_limits limits;
	const struct zf_field *field;
	struct zf_disk_root disk;
	struct zf_root root;

	if (len != sizeof(disk))
		return zf_report_corrupt(report, WHAT, tree, "size has %zu, expected %zu", len,
					 sizeof(disk));
	memcpy(&disk, value, sizeof(disk));
	field = zf_fields_check_zero(&zf_disk_root_fields, &disk);
	if (field)
		return zf_report_corrupt(report, WHAT, tree, "%s has bits set, expected 0",
					 field->name);
	if (disk.level >= ZF_TREE_LEVEL_MAX)
		return zf_report_corrupt(report, WHAT, tree, "level has %u, expected below %u",
					 disk.level, ZF_TREE_LEVEL_MAX);
	root.level = disk.level;
	zf_node_ptr_decode(&disk.ptr, &root.ptr);
	zf_node_shape_limits(shape, generation, &limits);
	if (zf_node_ptr_is_wrong(&root.ptr, &limits, fault))
		return zf_report_corrupt(report, WHAT, tree, "%s", fault);
	*ret_root = root;
	return 0;
}

int zf_roots_load(struct zf_forest *forest, uint64_t generation, enum zf_tree_id tree,
		  const struct zf_report *report)
{
	struct zf_key key = ZF_KEY(tree, ZF_KEY_ROOT, 0);
	struct zf_disk_root disk;
	struct zf_root root;
	size_t len;
	int r = zf_tree_lookup(forest, ZF_TREE_ROOT, &key, &disk, sizeof(disk), &len);

	if (r == -ENOENT)
		return zf_report_corrupt(report, WHAT, tree, "tree has no root, expected one");
	if (r == 0)
		r = zf_root_decode(zf_forest_shape(forest), generation, tree, &disk, len, report,
				   &root);
	if (r == 0)
		zf_tree_set_root(forest, tree, &root.ptr, root.level);
	return r;
}

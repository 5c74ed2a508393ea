/* SPDX-License-Identifier: MIT */
/* Counting kept and guaranteed bytes again. */
#include "fs/mount/upgrade.h"

#include "fs/core/inode.h"
#include "fs/core/item.h"
#include "fs/core/item_check.h"

struct count {
	struct zf_item_check check;
	uint64_t kept, guaranteed, both; /* bytes */
};

static int count_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	const struct zf_disk_extent *disk = value;
	struct count *count = arg;
	int r;

	if (key->type != ZF_KEY_EXTENT)
		return 0;
	r = zf_item_check(&count->check, ZF_TREE_FS, key, value, len);
	if (r < 0)
		return r;
	if (disk->type == ZF_EXTENT_ZERO)
		count->kept += zf_item_extent_len(disk);
	if (disk->flags & ZF_EXTENT_GUARANTEED) {
		count->guaranteed += zf_item_extent_len(disk);
		count->both += disk->type == ZF_EXTENT_ZERO ? zf_item_extent_len(disk) : 0;
	}
	return 0;
}

int zf_upgrade_kept(struct zf_fs *fs)
{
	struct zf_key from = ZF_KEY_MIN, to = ZF_KEY_MAX;
	struct zf_super *super = &fs->super;
	const struct zf_geometry *geometry = zf_dev_geometry(fs->dev);
	/* Checks extents only; no transaction is running yet, so any generation is right. */
	struct count count = {
		.check =
			{
				.report = &fs->report,
				.value_max = zf_node_value_max(super->node_size),
				.generation_max = UINT64_MAX,
				.device_bytes = geometry->zone_size * geometry->zone_count,
			},
	};
	int r = 0;

	if (fs->read_only || (super->incompat & ZF_INCOMPAT_GUARANTEE))
		return 0;
	/* Without this feature kept_bytes counts guaranteed blocks, too. */
	if (super->kept_bytes > 0)
		r = zf_tree_scan(fs->forest, ZF_TREE_FS, &from, &to, count_item, &count);
	if (r < 0)
		return r;
	super->kept_bytes = count.kept;
	super->guaranteed_bytes = count.guaranteed;
	super->kept_guaranteed_bytes = count.both;
	super->incompat |= ZF_INCOMPAT_GUARANTEE;
	return 0;
}

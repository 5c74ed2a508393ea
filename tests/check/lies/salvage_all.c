/* SPDX-License-Identifier: MIT */
#include "salvage_all.h"

#include <assert.h>
#include <stdlib.h>

#include "fs/core/fs_format.h"
#include "salvage/salvage.h"

struct salvaged {
	struct zf_salvage *salvage;
	_Alignas(ZF_BLOCK_SIZE) uint8_t buf[ZF_EXTENT_MAX];
	enum zf_salvage_verdict verdicts[ZF_EXTENT_MAX / ZF_BLOCK_SIZE];
};

static int salvage_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct salvaged *salvaged = arg;
	const struct zf_disk_extent *extent = value;

	(void)len;
	if (key->type == ZF_KEY_EXTENT && extent->type == ZF_EXTENT_DATA)
		zf_salvage_read(salvaged->salvage, zf_le64_get(extent->address),
				zf_le32_get(extent->count), salvaged->buf, salvaged->verdicts);
	return 0;
}

void salvage_all(struct zf_dev *dev, uint64_t generation)
{
	const struct zf_salvage_options options = {.generation = generation};
	struct salvaged *salvaged = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*salvaged));
	uint64_t ino = 0;
	bool lost;

	assert(salvaged);
	if (zf_salvage_open(dev, &options, NULL, &salvaged->salvage) == 0) {
		while ((ino = zf_salvage_next_inode(salvaged->salvage, ino + 1)) != 0)
			(void)zf_salvage_items(salvaged->salvage, ino, salvage_item, salvaged,
					       &lost);
		zf_salvage_close(salvaged->salvage);
	}
	free(salvaged);
}

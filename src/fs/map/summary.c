/* SPDX-License-Identifier: MIT */
#include "fs/map/summary.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "fs/map/extent.h"
#include "fs/core/inode.h"

#define VALUE_MAX (ZF_NODE_SIZE_MAX / 4)

unsigned int zf_summary_blocks_max(struct zf_fs *fs)
{
	return (unsigned int)((zf_node_value_max(fs->super.node_size) -
			       sizeof(struct zf_disk_summary)) /
			      sizeof(struct zf_le64));
}

int zf_summary_insert(struct zf_fs *fs, struct zf_trans *trans, uint64_t ino, uint64_t offset,
		      uint64_t address, const uint64_t *csums, unsigned int count)
{
	uint8_t value[VALUE_MAX];
	struct zf_disk_summary *disk = (struct zf_disk_summary *)value;
	struct zf_le64 *disk_csums = (struct zf_le64 *)(disk + 1);
	struct zf_key key = ZF_KEY(address, ZF_KEY_SUMMARY, 0);
	int r;

	assert(count > 0 && count <= zf_summary_blocks_max(fs));
	*disk = (struct zf_disk_summary){
		.ino = zf_le64_from(ino),
		.offset = zf_le64_from(offset),
		.tree = zf_le32_from(ZF_TREE_FS),
		.count = zf_le16_from((uint16_t)count),
	};
	for (unsigned int i = 0; i < count; i++)
		disk_csums[i] = zf_le64_from(csums[i]);
	r = zf_tree_insert(fs->forest, trans->writer, ZF_TREE_SUMMARY, &key, value,
			   sizeof(*disk) + count * sizeof(*disk_csums));
	if (r == -EEXIST)
		return zf_report_corrupt(
			&fs->report, "summary", address,
			"an entry exists, expected none before the blocks are written");
	return r;
}

struct fetch {
	struct zf_extent_reader *reader;
	uint64_t address, end; /* the first block without a checksum yet; the end of the range */
	uint64_t *csums;       /* where the checksum of the block at `address` goes */
};

static int take(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct fetch *fetch = arg;
	const struct zf_disk_summary *disk = value;
	const struct zf_le64 *csums = (const struct zf_le64 *)(disk + 1);
	uint64_t count, i;
	int r = zf_item_check(&fetch->reader->check, ZF_TREE_SUMMARY, key, value, len);

	if (r < 0)
		return r;
	if (key->objectid > fetch->address)
		return 1; /* a gap */
	if (zf_le16_get(disk->flags) & ZF_SUMMARY_OVERWRITE)
		return 1; /* a gap: there are no checksums */
	count = zf_le16_get(disk->count);
	i = (fetch->address - key->objectid) >> ZF_BLOCK_SHIFT;
	for (; i < count && fetch->address < fetch->end; i++) {
		*fetch->csums++ = zf_le64_get(csums[i]);
		fetch->address += ZF_BLOCK_SIZE;
	}
	return fetch->address == fetch->end;
}

int zf_summary_fetch(struct zf_extent_reader *reader, uint64_t address, unsigned int count,
		     uint64_t *ret_csums)
{
	struct zf_forest *forest = reader->inode->fs->forest;
	uint64_t end = address + ((uint64_t)count << ZF_BLOCK_SHIFT);
	struct fetch fetch = {.reader = reader, .address = address, .end = end, .csums = ret_csums};
	struct zf_key key = ZF_KEY(address, ZF_KEY_SUMMARY, 0);
	uint8_t value[VALUE_MAX];
	size_t len;
	int r;

	/* In most cases one entry has all of them. */
	r = zf_tree_lookup_le(forest, ZF_TREE_SUMMARY, &key, value, sizeof(value), &len);
	if (r == 0)
		r = take(&fetch, &key, value, len);
	if (r == 0 && fetch.address < end) {
		struct zf_key from = ZF_KEY(fetch.address, ZF_KEY_SUMMARY, 0);
		struct zf_key to = ZF_KEY(end - 1, ZF_KEY_SUMMARY, 0);

		r = zf_tree_scan(forest, ZF_TREE_SUMMARY, &from, &to, take, &fetch);
	}
	if (r < 0 && r != -ENOENT)
		return r;
	if (fetch.address < end)
		return zf_report_corrupt(
			&reader->inode->fs->report, "data", fetch.address,
			"it has no checksum, expected one for the block of inode %" PRIu64,
			reader->inode->ino);
	return 0;
}

static int decode(const struct zf_item_check *check, const struct zf_key *key, const void *value,
		  size_t len, struct zf_summary_entry *ret_entry)
{
	const struct zf_disk_summary *disk = value;
	int r = zf_item_check(check, ZF_TREE_SUMMARY, key, value, len);

	if (r < 0)
		return r;
	*ret_entry = (struct zf_summary_entry){
		.address = key->objectid,
		.len = (uint64_t)zf_le16_get(disk->count) << ZF_BLOCK_SHIFT,
		.ino = zf_le64_get(disk->ino),
		.offset = zf_le64_get(disk->offset),
	};
	return 0;
}

struct scan {
	struct zf_item_check check;
	zf_summary_scan_fn *fn;
	void *arg;
};

static int scan_one(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct scan *scan = arg;
	const struct zf_disk_summary *disk = value;
	struct zf_summary_entry entry;
	int r = decode(&scan->check, key, value, len, &entry);

	if (r < 0 || (zf_le16_get(disk->flags) & ZF_SUMMARY_OVERWRITE))
		return r;
	return scan->fn(scan->arg, &entry, (const struct zf_le64 *)(disk + 1));
}

int zf_summary_scan(struct zf_fs *fs, uint64_t from, uint64_t to, zf_summary_scan_fn *fn, void *arg)
{
	struct zf_key first = ZF_KEY(from, ZF_KEY_SUMMARY, 0);
	struct zf_key last = ZF_KEY(to - 1, ZF_KEY_SUMMARY, 0);
	struct scan scan = {.fn = fn, .arg = arg};

	zf_fs_get_item_check(fs, &scan.check);
	return zf_tree_scan(fs->forest, ZF_TREE_SUMMARY, &first, &last, scan_one, &scan);
}

int zf_summary_find(struct zf_extent_reader *reader, uint64_t address,
		    struct zf_summary_entry *ret_entry)
{
	struct zf_forest *forest = reader->inode->fs->forest;
	struct zf_key key = ZF_KEY(address, ZF_KEY_SUMMARY, 0);
	uint8_t value[VALUE_MAX];
	size_t len;
	int r = zf_tree_lookup_le(forest, ZF_TREE_SUMMARY, &key, value, sizeof(value), &len);

	if (r == 0)
		r = decode(&reader->check, &key, value, len, ret_entry);
	if (r == 0 && ret_entry->len > address - ret_entry->address)
		return 0;
	if (r < 0 && r != -ENOENT)
		return r;
	key = ZF_KEY(address, ZF_KEY_SUMMARY, 0);
	r = zf_tree_lookup_ge(forest, ZF_TREE_SUMMARY, &key, value, sizeof(value), &len);
	return r < 0 ? r : decode(&reader->check, &key, value, len, ret_entry);
}

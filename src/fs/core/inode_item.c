/* SPDX-License-Identifier: MIT */
#include "fs/core/inode_item.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "fs/core/item.h"
#include "fs/core/item_check.h"

/* Only an orphan may have no name: deleting another inode would leave directory entries that name
 * no inode. */
static int check_orphan(struct zf_inode *inode)
{
	struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, inode->ino);
	int r = zf_tree_lookup(inode->fs->forest, ZF_TREE_FS, &key, NULL, 0, NULL);

	if (r == -ENOENT)
		return zf_report_corrupt(
			&inode->fs->report, "inode", inode->ino,
			"nlink has 0, expected at least 1, because there is no orphan item");
	return r;
}

int zf_inode_item_load(struct zf_inode *inode)
{
	struct zf_fs *fs = inode->fs;
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_INODE, 0);
	struct zf_disk_inode disk;
	uint64_t lost, durable;
	size_t len;
	int r;

	if (inode->ino != ZF_INO_ROOT && inode->ino < ZF_INO_FIRST)
		return -ESTALE;
	r = zf_tree_lookup(fs->forest, ZF_TREE_FS, &key, &disk, sizeof(disk), &len);
	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	r = zf_fs_check_item(fs, &key, &disk, len);
	if (r < 0)
		return r;
	zf_item_decode_inode(&disk, &inode->item);
	inode->type = inode->item.mode & S_IFMT;
	inode->disk_size = inode->item.size;
	inode->essential = inode->item.change;
	durable = zf_txn_durable(fs->txn);
	lost = atomic_load(&fs->changes_lost);
	if (lost > durable)
		inode->data.changes.lost = lost;
	if (inode->type == S_IFREG && atomic_load(&fs->closings_lost) > durable)
		inode->data.closing = ZF_CLOSING_TRUNCATED;
	inode->data.write_mark = atomic_load(&fs->marks_lost);
	return inode->item.nlink == 0 ? check_orphan(inode) : 0;
}

void zf_inode_item_describe(const struct zf_inode *inode, struct zf_disk_inode *ret_disk)
{
	struct zf_inode_item item = inode->item;

	if (S_ISREG(item.mode))
		item.size = inode->disk_size;
	zf_item_encode_inode(&item, ret_disk);
}

static void encode(struct zf_inode *inode, struct zf_trans *trans, struct zf_disk_inode *ret_disk)
{
	inode->item.change = trans->generation;
	inode->essential = trans->generation;
	inode->essential_record = 0;
	inode->essential_dirty = false;
	zf_inode_item_describe(inode, ret_disk);
}

int zf_inode_store(struct zf_inode *inode, struct zf_trans *trans)
{
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_INODE, 0);
	struct zf_disk_inode disk;
	int r;

	encode(inode, trans, &disk);
	r = zf_tree_update(inode->fs->forest, trans->writer, ZF_TREE_FS, &key, &disk, sizeof(disk));
	if (r == -ENOENT)
		return zf_report_corrupt(&inode->fs->report, "inode", inode->ino,
					 "the fs tree has no item, expected one");
	if (r < 0)
		return r;
	zf_changes_add_item(&inode->data.changes, trans->generation);
	zf_inode_mark_clean(inode);
	return 0;
}

int zf_inode_store_new(struct zf_inode *inode, struct zf_trans *trans)
{
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_INODE, 0);
	struct zf_disk_inode disk;
	int r;

	encode(inode, trans, &disk);
	r = zf_tree_insert(inode->fs->forest, trans->writer, ZF_TREE_FS, &key, &disk, sizeof(disk));
	if (r == -EEXIST)
		return zf_report_corrupt(&inode->fs->report, "superblock", inode->fs->super.address,
					 "next_ino has %" PRIu64
					 ", expected a number that no inode has",
					 inode->ino);
	return r;
}

uint32_t zf_inode_inline_max(struct zf_fs *fs)
{
	uint32_t room =
		zf_node_value_max(fs->super.node_size) - (uint32_t)sizeof(struct zf_disk_extent);

	return room < ZF_INLINE_MAX ? room : ZF_INLINE_MAX;
}

/*
 * Returns the bytes for st_blocks. Data in memory counts, up to the size of the file. So a file has
 * its blocks as soon as it is written, not some seconds later. An inline file counts with its size,
 * although it has no block, because many programs take a file with a size and without blocks for
 * one large hole.
 */
static uint64_t bytes_with(const struct zf_inode *inode, uint64_t memory_bytes)
{
	const struct zf_inode_item *item = &inode->item;
	uint64_t all =
		zf_min_u64(item->bytes + memory_bytes, zf_align_up(item->size, ZF_BLOCK_SIZE));

	if (item->bytes == 0 && S_ISREG(item->mode) && item->size <= zf_inode_inline_max(inode->fs))
		return item->size;
	return zf_max_u64(item->bytes, all);
}

void zf_inode_to_attr(struct zf_inode *inode, struct zf_attr *ret_attr)
{
	const struct zf_inode_item *item = &inode->item;
	bool settling;
	uint64_t memory_bytes = zf_data_memory_bytes(inode, &settling);

	*ret_attr = (struct zf_attr){
		.ino = inode->ino,
		.generation = item->generation,
		.size = item->size,
		.blocks = (bytes_with(inode, memory_bytes) + 511) / 512,
		.rdev = item->rdev,
		.mode = item->mode,
		.nlink = item->nlink,
		.uid = item->uid,
		.gid = item->gid,
		.flags = item->flags,
		.project = item->project,
		.atime = item->atime,
		.mtime = item->mtime,
		.ctime = item->ctime,
		.btime = item->btime,
		.settling = settling,
	};
}

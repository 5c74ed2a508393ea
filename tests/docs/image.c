/* SPDX-License-Identifier: MIT */
#include "image.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc/zone_format.h"
#include "base/bits.h"
#include "btree/node.h"
#include "dump.h"
#include "fs/mount/format.h"
#include "fs/core/fs_format.h"
#include "superblock/ring.h"
#include "txn/root_format.h"

void image_make(struct image *image)
{
	static const struct zf_geometry geometry = {
		.zone_size = IMAGE_ZONE_SIZE,
		.zone_capacity = IMAGE_ZONE_SIZE,
		.zone_count = 24,
		.append_limit = 65536,
	};
	struct zf_format_options options = {
		.label = "example",
		.node_size = IMAGE_NODE_SIZE,
		.now_ns = IMAGE_TIME_S * INT64_C(1000000000),
		.dir_hash_seed = 0x0123456789abcdef,
	};

	for (uint8_t i = 0; i < sizeof(options.fsid); i++)
		options.fsid[i] = (uint8_t)(0x10 + i);
	assert_int_equal(zf_memory_new(&geometry, &image->memory), 0);
	assert_int_equal(zf_memory_open(image->memory, NULL, NULL, &image->dev), 0);
	assert_int_equal(zf_fs_format(image->dev, &options, NULL), 0);
}

void image_free(struct image *image)
{
	zf_dev_close(image->dev);
	zf_memory_free(image->memory);
}

static const void *bytes_at(struct image *image, uint64_t address)
{
	const uint8_t *zone = zf_memory_zone(image->memory, (uint32_t)(address / IMAGE_ZONE_SIZE));

	return zone + address % IMAGE_ZONE_SIZE;
}

const void *image_leaf(struct image *image, enum zf_tree_id tree)
{
	struct zf_key key = ZF_KEY(tree, ZF_KEY_ROOT, 0);
	const struct zf_disk_root *root;
	const struct zf_super *super;
	struct zf_ring *ring;
	unsigned int slot, stepped_over;
	const void *leaf;
	size_t len;

	assert_int_equal(zf_ring_open(image->dev, NULL, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	assert_int_equal(super->root_level, 0);
	leaf = bytes_at(image, super->root.address[0]);
	zf_ring_close(ring);
	if (tree == ZF_TREE_ROOT)
		return leaf;
	assert_true(zf_node_search(leaf, &key, &slot));
	root = zf_node_value(leaf, slot, &len, NULL);
	assert_int_equal(len, sizeof(*root));
	assert_int_equal(root->level, 0);
	return bytes_at(image, zf_le64_get(root->ptr.address[0]));
}

static const struct zf_fields *fields_of(enum zf_tree_id tree, uint8_t type)
{
	static const struct {
		enum zf_tree_id tree;
		uint8_t type;
		const struct zf_fields *fields;
	} kinds[] = {
		{ZF_TREE_ROOT, ZF_KEY_ROOT, &zf_disk_root_fields},
		{ZF_TREE_ZONE, ZF_KEY_ZONE, &zf_disk_zone_fields},
		{ZF_TREE_FS, ZF_KEY_INODE, &zf_disk_inode_fields},
		{ZF_TREE_FS, ZF_KEY_REF, &zf_disk_ref_fields},
		{ZF_TREE_FS, ZF_KEY_DIR_NAME, &zf_disk_dirent_fields},
		{ZF_TREE_FS, ZF_KEY_DIR_COOKIE, &zf_disk_dirent_fields},
		{ZF_TREE_FS, ZF_KEY_EXTENT, &zf_disk_extent_fields},
		{ZF_TREE_SUMMARY, ZF_KEY_SUMMARY, &zf_disk_summary_fields},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(kinds); i++)
		if (kinds[i].tree == tree && kinds[i].type == type)
			return kinds[i].fields;
	fail_msg("no fields for type %u in tree %u", type, tree);
	return NULL;
}

static void print_value(FILE *out, const void *leaf, unsigned int slot)
{
	enum zf_tree_id tree = (enum zf_tree_id)zf_node_owner(leaf);
	const struct zf_fields *fields = fields_of(tree, zf_node_key(leaf, slot).type);
	char prefix[32];
	size_t len;
	const uint8_t *value = zf_node_value(leaf, slot, &len, NULL);
	unsigned int base = (unsigned int)(value - (const uint8_t *)leaf);

	assert_true(len >= fields->size);
	snprintf(prefix, sizeof(prefix), "value %u ", slot);
	zf_dump_annotated_at(out, base, prefix, fields, value);
	snprintf(prefix, sizeof(prefix), "value %u %s", slot,
		 tree == ZF_TREE_SUMMARY ? "checksums" : "name");
	zf_dump_bytes_at(out, base + fields->size, prefix, value + fields->size,
			 (unsigned int)len - fields->size);
}

static void print_item_header(FILE *out, const void *leaf, unsigned int slot)
{
	unsigned int base = (unsigned int)(sizeof(struct zf_disk_node_header) +
					   slot * sizeof(struct zf_disk_item));
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "item %u ", slot);
	zf_dump_annotated_at(out, base, prefix, &zf_disk_item_fields, (const uint8_t *)leaf + base);
}

char *image_leaf_to_text(const void *leaf)
{
	unsigned int count = zf_node_count(leaf), used;
	char *text = NULL;
	size_t size = 0, len;
	FILE *out = open_memstream(&text, &size);
	const uint8_t *first_value;

	assert_non_null(out);
	assert_true(count > 0);
	zf_dump_annotated(out, &zf_disk_node_header_fields, leaf);
	for (unsigned int slot = 0; slot < count; slot++)
		print_item_header(out, leaf, slot);
	used = (unsigned int)(sizeof(struct zf_disk_node_header) +
			      count * sizeof(struct zf_disk_item));
	first_value = zf_node_value(leaf, count - 1, &len, NULL);
	zf_dump_bytes_at(out, used, "free", (const uint8_t *)leaf + used,
			 (unsigned int)(first_value - (const uint8_t *)leaf) - used);
	for (unsigned int slot = count; slot-- > 0;)
		print_value(out, leaf, slot);
	fclose(out);
	return text;
}

char *image_item_to_text(const void *leaf, uint8_t type)
{
	unsigned int count = zf_node_count(leaf), slot = 0;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	while (slot < count && zf_node_key(leaf, slot).type != type)
		slot++;
	assert_true(slot < count);
	print_item_header(out, leaf, slot);
	print_value(out, leaf, slot);
	fclose(out);
	return text;
}

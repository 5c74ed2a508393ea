/* SPDX-License-Identifier: MIT */
#include "image.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "btree/node.h"
#include "dump.h"
#include "fs/mount/format.h"
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

char *image_leaf_to_text(const void *leaf)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	zf_annotate_node(leaf, IMAGE_NODE_SIZE, zf_dump_annotation, out);
	fclose(out);
	return text;
}

/* What to print of a leaf: the parts of one item. */
struct chosen {
	FILE *out;
	char item[32], value[32];
};

static void print_chosen(void *arg, const struct zf_annotation *annotation)
{
	const struct chosen *chosen = arg;

	if (strcmp(annotation->part, chosen->item) == 0 ||
	    strcmp(annotation->part, chosen->value) == 0)
		zf_dump_annotation(chosen->out, annotation);
}

char *image_item_to_text(const void *leaf, uint8_t type)
{
	unsigned int count = zf_node_count(leaf), slot = 0;
	struct chosen chosen;
	char *text = NULL;
	size_t size = 0;

	while (slot < count && zf_node_key(leaf, slot).type != type)
		slot++;
	assert_true(slot < count);
	chosen.out = open_memstream(&text, &size);
	assert_non_null(chosen.out);
	snprintf(chosen.item, sizeof(chosen.item), "item %u", slot);
	snprintf(chosen.value, sizeof(chosen.value), "value %u", slot);
	zf_annotate_node(leaf, IMAGE_NODE_SIZE, print_chosen, &chosen);
	fclose(chosen.out);
	return text;
}

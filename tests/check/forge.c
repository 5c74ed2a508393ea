/* SPDX-License-Identifier: MIT */
#include "forge.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "superblock/ring.h"
#include "txn/root_format.h"

void forge_open(struct forge *forge, struct zf_memory *memory)
{
	const struct zf_memory_options options = {0};
	const struct zf_super *newest;
	struct zf_ring *ring;
	struct zf_dev *dev;
	unsigned int stepped_over;
	int r = zf_memory_open(memory, &options, NULL, &dev);

	assert(r == 0);
	forge->memory = memory;
	forge->zone_size = zf_dev_geometry(dev)->zone_size;
	r = zf_ring_open(dev, NULL, &ring);
	assert(r == 0);
	r = zf_ring_newest(ring, &newest, &stepped_over);
	assert(r == 0);
	forge->super = *newest;
	zf_ring_close(ring);
	zf_dev_close(dev);
}

uint8_t *forge_bytes(struct forge *forge, uint64_t address)
{
	uint8_t *zone = zf_memory_zone(forge->memory, (uint32_t)(address / forge->zone_size));

	return zone + address % forge->zone_size;
}

void forge_write_super(struct forge *forge)
{
	struct zf_disk_super disk;

	zf_super_encode(&forge->super, &disk);
	memcpy(forge_bytes(forge, forge->super.address), &disk, sizeof(disk));
}

/* ---- paths ---- */

struct path {
	enum zf_tree_id tree;
	unsigned int top;
	struct zf_node_ptr ptr[ZF_TREE_LEVEL_MAX];
	unsigned int slot[ZF_TREE_LEVEL_MAX]; /* in the node of that level */
	bool found;
};

static void *node_of(struct forge *forge, const struct path *path, unsigned int level)
{
	return forge_bytes(forge, path->ptr[level].address[0]);
}

static void read_root_item(struct forge *forge, enum zf_tree_id tree, struct zf_disk_root *ret_disk)
{
	size_t len = forge_get(forge, ZF_TREE_ROOT, ZF_KEY(tree, ZF_KEY_ROOT, 0), ret_disk,
			       sizeof(*ret_disk));

	assert(len == sizeof(*ret_disk));
}

static void start_path(struct forge *forge, enum zf_tree_id tree, struct path *path)
{
	struct zf_disk_root disk;

	*path = (struct path){.tree = tree};
	if (tree == ZF_TREE_ROOT) {
		path->top = forge->super.root_level;
		path->ptr[path->top] = forge->super.root;
		return;
	}
	read_root_item(forge, tree, &disk);
	path->top = disk.level;
	path->ptr[path->top] = (struct zf_node_ptr){
		.address = {zf_le64_get(disk.ptr.address[0]), zf_le64_get(disk.ptr.address[1])},
		.generation = zf_le64_get(disk.ptr.generation),
		.csum = zf_le64_get(disk.ptr.csum),
	};
}

/* Descends to the leaf, which may be damaged. */
static void descend(struct forge *forge, enum zf_tree_id tree, struct zf_key key, struct path *path)
{
	start_path(forge, tree, path);
	for (unsigned int level = path->top; level > 0; level--) {
		void *node = node_of(forge, path, level);

		path->slot[level] = zf_node_search_child(node, &key);
		path->ptr[level - 1] = zf_node_child(node, path->slot[level]);
	}
}

static void find_path(struct forge *forge, enum zf_tree_id tree, struct zf_key key,
		      struct path *path)
{
	descend(forge, tree, key, path);
	path->found = zf_node_search(node_of(forge, path, 0), &key, &path->slot[0]);
}

/* ---- sealing ---- */

static void seal_path(struct forge *forge, struct path *path, unsigned int level)
{
	uint32_t size = forge->super.node_size;
	struct zf_disk_root disk;

	for (unsigned int l = level; l <= path->top; l++) {
		void *node = node_of(forge, path, l);
		uint64_t csum = zf_node_csum(node, size);

		zf_node_set_csum(node, csum);
		if (path->ptr[l].address[1])
			memcpy(forge_bytes(forge, path->ptr[l].address[1]), node, size);
		path->ptr[l].csum = csum;
		if (l < path->top)
			zf_node_set_child(node_of(forge, path, l + 1), path->slot[l + 1],
					  &path->ptr[l]);
	}
	if (path->tree == ZF_TREE_ROOT) {
		forge->super.root = path->ptr[path->top];
		forge_write_super(forge);
		return;
	}
	read_root_item(forge, path->tree, &disk);
	disk.ptr.csum = zf_le64_from(path->ptr[path->top].csum);
	forge_set(forge, ZF_TREE_ROOT, ZF_KEY(path->tree, ZF_KEY_ROOT, 0), &disk, sizeof(disk));
}

void forge_seal(struct forge *forge, enum zf_tree_id tree, struct zf_key key, unsigned int level)
{
	struct path path;

	descend(forge, tree, key, &path);
	seal_path(forge, &path, level);
}

unsigned int forge_path(struct forge *forge, enum zf_tree_id tree, struct zf_key key,
			uint64_t ret_address[ZF_TREE_LEVEL_MAX])
{
	struct path path;

	descend(forge, tree, key, &path);
	for (unsigned int l = 0; l <= path.top; l++)
		ret_address[l] = path.ptr[l].address[0];
	return path.top;
}

/* ---- items ---- */

static bool scan_ge(struct forge *forge, const struct zf_node_ptr *ptr, struct zf_key *key)
{
	void *node = forge_bytes(forge, ptr->address[0]);
	unsigned int slot;

	if (zf_node_level(node) == 0) {
		zf_node_search(node, key, &slot);
		if (slot == zf_node_count(node))
			return false;
		*key = zf_node_key(node, slot);
		return true;
	}
	for (slot = zf_node_search_child(node, key); slot < zf_node_count(node); slot++) {
		struct zf_node_ptr child = zf_node_child(node, slot);

		if (scan_ge(forge, &child, key))
			return true;
	}
	return false;
}

bool forge_find(struct forge *forge, enum zf_tree_id tree, struct zf_key *key)
{
	struct path path;

	start_path(forge, tree, &path);
	return scan_ge(forge, &path.ptr[path.top], key);
}

size_t forge_get(struct forge *forge, enum zf_tree_id tree, struct zf_key key, void *buf,
		 size_t size)
{
	struct path path;
	char scratch[ZF_PACKED_VALUE_MAX];
	const void *value;
	size_t len;

	find_path(forge, tree, key, &path);
	assert(path.found);
	value = zf_node_value(node_of(forge, &path, 0), path.slot[0], &len, scratch);
	memcpy(buf, value, len < size ? len : size);
	return len;
}

void forge_set(struct forge *forge, enum zf_tree_id tree, struct zf_key key, const void *value,
	       size_t len)
{
	struct path path;

	find_path(forge, tree, key, &path);
	assert(path.found);
	zf_node_set_value(node_of(forge, &path, 0), forge->super.node_size, path.slot[0], value,
			  len);
	seal_path(forge, &path, 0);
}

void forge_delete(struct forge *forge, enum zf_tree_id tree, struct zf_key key)
{
	struct path path;

	find_path(forge, tree, key, &path);
	assert(path.found);
	zf_node_remove(node_of(forge, &path, 0), forge->super.node_size, path.slot[0], 1);
	seal_path(forge, &path, 0);
}

void forge_insert(struct forge *forge, enum zf_tree_id tree, struct zf_key key, const void *value,
		  size_t len)
{
	uint32_t size = forge->super.node_size;
	struct path path;
	void *node;

	find_path(forge, tree, key, &path);
	assert(!path.found);
	node = node_of(forge, &path, 0);
	assert(zf_node_used(node, size) + sizeof(struct zf_disk_item) + len <=
	       zf_node_capacity(size));
	zf_node_insert_item(node, size, path.slot[0], &key, value, len);
	seal_path(forge, &path, 0);
}

void forge_field(struct forge *forge, enum zf_tree_id tree, struct zf_key key, size_t offset,
		 size_t size, uint64_t number)
{
	uint8_t value[ZF_NODE_SIZE_MAX];
	size_t len = forge_get(forge, tree, key, value, sizeof(value));

	assert(size <= 8 && offset + size <= len && len <= sizeof(value));
	for (size_t i = 0; i < size; i++)
		value[offset + i] = (uint8_t)(number >> (8 * i));
	forge_set(forge, tree, key, value, len);
}

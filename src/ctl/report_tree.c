/* SPDX-License-Identifier: MIT */
/* Trees and single nodes. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/json.h"
#include "ctl/report.h"
#include "ctl/report_hex.h"

/* ---- one node ---- */

static struct json_object *addresses(const uint64_t address[ZF_COPIES_MAX])
{
	struct json_object *array = json_object_new_array();

	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		if (c == 0 || address[c])
			zf_json_push(array, json_object_new_uint64(address[c]));
	return array;
}

static struct json_object *children(const void *node)
{
	struct json_object *array = json_object_new_array();

	for (unsigned int i = 0; i < zf_node_count(node); i++) {
		struct json_object *child = json_object_new_object();
		struct zf_key key = zf_node_key(node, i);
		struct zf_node_ptr ptr = zf_node_child(node, i);

		zf_json_add(child, "key", zf_json_key(&key));
		zf_json_add_text(child, "type",
				 zf_report_key_type_name(zf_node_owner(node), key.type));
		zf_json_add(child, "address", addresses(ptr.address));
		zf_json_add_u64(child, "generation", ptr.generation);
		zf_json_push(array, child);
	}
	return array;
}

static struct json_object *items(const void *node)
{
	struct json_object *array = json_object_new_array();
	uint64_t tree = zf_node_owner(node);

	for (unsigned int i = 0; i < zf_node_count(node); i++) {
		struct json_object *item = json_object_new_object();
		struct zf_key key = zf_node_key(node, i);
		char scratch[ZF_PACKED_VALUE_MAX];
		size_t len;
		const void *value = zf_node_value(node, i, &len, scratch);

		zf_json_add(item, "key", zf_json_key(&key));
		zf_json_add_text(item, "type", zf_report_key_type_name(tree, key.type));
		zf_json_add_u64(item, "size", len);
		zf_json_add(item, "value",
			    zf_report_item_value((enum zf_tree_id)tree, &key, value, len));
		zf_json_push(array, item);
	}
	return array;
}

/* The key of one item, without its value. */
static struct json_object *bound(const void *node, unsigned int slot)
{
	struct json_object *object = json_object_new_object();
	struct zf_key key = zf_node_key(node, slot);

	zf_json_add(object, "key", zf_json_key(&key));
	zf_json_add_text(object, "type", zf_report_key_type_name(zf_node_owner(node), key.type));
	return object;
}

static void add_bounds(struct json_object *object, const void *leaf)
{
	if (zf_node_count(leaf) == 0)
		return;
	zf_json_add(object, "first", bound(leaf, 0));
	zf_json_add(object, "last", bound(leaf, zf_node_count(leaf) - 1));
}

/* The node was checked. `brief`: without the items of a leaf. */
static void add_node(struct json_object *object, const void *node, bool brief)
{
	zf_json_add_text(object, "tree", zf_report_tree_name(zf_node_owner(node)));
	zf_json_add(object, "header", zf_json_fields(&zf_disk_node_header_fields, node));
	if (zf_node_level(node) > 0)
		zf_json_add(object, "children", children(node));
	else if (brief)
		add_bounds(object, node);
	else
		zf_json_add(object, "items", items(node));
}

/* ---- a tree ---- */

/* A node of 16 KiB takes a megabyte or two as JSON objects. */
#define NODES_A_PART	   4u
#define NODES_A_PART_BRIEF 64u

struct dump {
	struct zf_report_list list;
	char message[256]; /* the last message that was reported */
	unsigned int errors;
	bool brief;
};

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	struct dump *dump = arg;

	if (level == ZF_REPORT_ERROR)
		snprintf(dump->message, sizeof(dump->message), "%s", message);
}

static int dump_node(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct dump *dump = arg;
	struct json_object *object = json_object_new_object();
	int r;

	if (!object)
		return -ENOMEM;
	zf_json_add(object, "address", addresses(expect->ptr.address));
	zf_json_add_u64(object, "level", expect->level);
	if (node) {
		add_node(object, node, dump->brief);
	} else {
		zf_json_add_text(object, "error",
				 dump->message[0] ? dump->message : strerror(-error));
		dump->errors++;
	}
	dump->message[0] = '\0';
	r = zf_report_list_push(&dump->list, object);
	return error == -ENOMEM ? error : r;
}

static int find_tree(struct json_object *args, enum zf_tree_id *ret_tree)
{
	const char *name = "fs";
	int r = zf_json_get_text(args, "tree", &name);

	for (enum zf_tree_id tree = ZF_TREE_ROOT; tree < ZF_TREE_COUNT && r == 0; tree++) {
		if (strcmp(name, zf_report_tree_name(tree)) == 0) {
			*ret_tree = tree;
			return 0;
		}
	}
	return -EINVAL;
}

static int dump_tree(const struct zf_report_source *source, struct zf_forest *forest,
		     enum zf_tree_id tree, struct dump *dump, struct json_object **ret_result)
{
	int r = zf_report_list_begin(&dump->list, source, "nodes",
				     dump->brief ? NODES_A_PART_BRIEF : NODES_A_PART);

	if (r < 0)
		return r;
	zf_json_add_text(dump->list.result, "tree", zf_report_tree_name(tree));
	zf_json_add_u64(dump->list.result, "zone_size", source->super->zone_size);
	r = zf_tree_walk(forest, tree, dump_node, dump);
	if (r < 0) {
		zf_report_list_drop(&dump->list);
		return r;
	}
	zf_report_list_end(&dump->list, ret_result);
	zf_json_add_u64(*ret_result, "errors", dump->errors);
	return 0;
}

int zf_report_tree(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result)
{
	struct dump dump = {0};
	const struct zf_report report = {.fn = keep_message, .arg = &dump};
	struct zf_forest *forest;
	enum zf_tree_id tree;
	unsigned int trees;
	int r = find_tree(args, &tree);

	if (r < 0)
		return zf_json_fail(ret_result, r,
				    "there is no such tree: root, fs, summary, share, zone");
	r = zf_json_get_bool(args, "brief", &dump.brief);
	if (r < 0)
		return zf_json_fail(ret_result, r, "brief has to be true or false");
	r = zf_report_open_forest(source, &report, &forest, &trees);
	if (r < 0)
		return r;
	if (trees >> tree & 1)
		r = dump_tree(source, forest, tree, &dump, ret_result);
	else
		r = zf_json_fail(ret_result, -EUCLEAN, "the root of tree %s cannot be found%s%s",
				 zf_report_tree_name(tree), dump.message[0] ? ": " : "",
				 dump.message);
	zf_forest_free(forest);
	return r;
}

/* ---- a node by its address ---- */

static unsigned int copy_at(const void *node, uint64_t address)
{
	return zf_le64_get(zf_node_header(node)->address[1]) == address;
}

/* Fields of 32 KiB are some megabytes as JSON objects. */
#define ENTRIES_A_PART 1024u

struct hex_dump {
	struct zf_report_list list;
	int error;
};

static void push_entry(void *arg, const struct zf_annotation *annotation)
{
	struct hex_dump *dump = arg;

	if (dump->error == 0)
		dump->error = zf_report_list_push(&dump->list, zf_report_hex_entry(annotation));
}

static int show_bytes(const struct zf_report_source *source, uint64_t address, const void *node,
		      const char *fault, struct json_object **ret_result)
{
	struct hex_dump dump = {0};
	int r = zf_report_list_begin(&dump.list, source, "dump", ENTRIES_A_PART);

	if (r < 0)
		return r;
	zf_json_add_u64(dump.list.result, "address", address);
	zf_json_add_bool(dump.list.result, "valid", !fault[0]);
	if (fault[0])
		zf_json_add_text(dump.list.result, "error", fault);
	else
		zf_json_add_text(dump.list.result, "tree",
				 zf_report_tree_name(zf_node_owner(node)));
	zf_annotate_node(node, source->super->node_size, push_entry, &dump);
	if (dump.error == 0)
		zf_report_list_end(&dump.list, ret_result);
	else
		zf_report_list_drop(&dump.list);
	return dump.error;
}

static int show_fields(uint64_t address, const void *node, const char *fault,
		       struct json_object **ret_result)
{
	struct json_object *result = json_object_new_object();

	zf_json_add_u64(result, "address", address);
	zf_json_add_bool(result, "valid", !fault[0]);
	if (fault[0]) {
		zf_json_add_text(result, "error", fault);
		zf_json_add(result, "header", zf_json_fields(&zf_disk_node_header_fields, node));
	} else {
		add_node(result, node, false);
	}
	*ret_result = result;
	return result ? 0 : -ENOMEM;
}

static int show_node(const struct zf_report_source *source, uint64_t address, void *buf, bool hex,
		     struct json_object **ret_result)
{
	const struct zf_super *super = source->super;
	struct zf_node_shape shape = {.geometry = zf_dev_geometry(source->dev),
				      .node_size = super->node_size,
				      .copies = super->metadata_copies};
	struct dump fault = {0};
	const struct zf_report report = {.fn = keep_message, .arg = &fault};
	int r = zf_dev_read_buf(source->dev, address, buf, super->node_size);

	if (r < 0)
		return zf_json_fail(ret_result, r, "reading %u bytes at %" PRIu64 " failed: %s",
				    super->node_size, address, strerror(-r));
	memcpy(shape.fsid, super->fsid, sizeof(shape.fsid));
	r = zf_node_check_at(&shape, buf, address, copy_at(buf, address), &report);
	assert(r == 0 || fault.message[0]);
	if (hex)
		return show_bytes(source, address, buf, fault.message, ret_result);
	return show_fields(address, buf, fault.message, ret_result);
}

int zf_report_node(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result)
{
	uint64_t end = source->super->zone_size * source->super->zone_count;
	uint64_t address = UINT64_MAX;
	bool hex = false;
	void *buf;
	int r = zf_json_get_bool(args, "hex", &hex);

	if (r < 0)
		return zf_json_fail(ret_result, r, "hex has to be true or false");
	r = zf_json_get_u64(args, "address", &address);
	if (r < 0 || !zf_is_aligned(address, ZF_BLOCK_SIZE) || address >= end ||
	    source->super->node_size > end - address)
		return zf_json_fail(ret_result, -EINVAL,
				    "the address has to be a multiple of %u, below %" PRIu64,
				    ZF_BLOCK_SIZE, end);
	buf = aligned_alloc(ZF_BLOCK_SIZE, source->super->node_size);
	if (!buf)
		return -ENOMEM;
	r = show_node(source, address, buf, hex, ret_result);
	free(buf);
	return r;
}

/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdbool.h>

#include "text.h"

static void print_key(struct json_object *key, const char *type, FILE *out)
{
	fprintf(out, "(%" PRIu64 " %s %" PRIu64 ")", zf_text_u64(key, "objectid"), type,
		zf_text_u64(key, "offset"));
}

static void print_items(struct json_object *items, unsigned int indent, FILE *out)
{
	for (size_t i = 0; i < json_object_array_length(items); i++) {
		struct json_object *item = json_object_array_get_idx(items, i);

		fprintf(out, "%*s", (int)indent, "");
		print_key(zf_text_member(item, "key"), zf_text_string(item, "type"), out);
		fprintf(out, " %" PRIu64 " bytes: ", zf_text_u64(item, "size"));
		zf_text_inline(zf_text_member(item, "value"), out);
		fputc('\n', out);
	}
}

static void print_children(struct json_object *children, unsigned int indent, FILE *out)
{
	for (size_t i = 0; i < json_object_array_length(children); i++) {
		struct json_object *child = json_object_array_get_idx(children, i);

		fprintf(out, "%*s", (int)indent, "");
		print_key(zf_text_member(child, "key"), zf_text_string(child, "type"), out);
		fprintf(out, " -> %" PRIu64 ", generation %" PRIu64 "\n",
			zf_text_first_address(child), zf_text_u64(child, "generation"));
	}
}

/* In a tree the children are printed below their node, so `with_children` is false. */
static void print_node(struct json_object *node, unsigned int indent, bool with_children, FILE *out)
{
	struct json_object *header = zf_text_member(node, "header");
	struct json_object *children = zf_text_member(node, "children");
	const char *error = zf_text_string(node, "error");

	fprintf(out, "%*snode %" PRIu64, (int)indent, "", zf_text_first_address(node));
	if (error[0]) {
		fprintf(out, ": %s\n", error);
		return;
	}
	fprintf(out, ": tree %s, level %" PRIu64 ", generation %" PRIu64 ", %" PRIu64 " %s\n",
		zf_text_string(node, "tree"), zf_text_u64(header, "level"),
		zf_text_u64(header, "generation"), zf_text_u64(header, "count"),
		children ? "children" : "items");
	if (children && with_children)
		print_children(children, indent + 2, out);
	if (!children)
		print_items(zf_text_member(node, "items"), indent + 2, out);
}

void zf_text_tree(struct zf_text *text, struct json_object *part)
{
	struct json_object *nodes = zf_text_member(part, "nodes");

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		uint64_t level = zf_text_u64(node, "level");

		if (i == 0 && !text->begun)
			text->top = level;
		print_node(node, (unsigned int)(2 * (text->top - level)), false, text->out);
	}
}

void zf_text_node(struct zf_text *text, struct json_object *result)
{
	if (json_object_get_boolean(zf_text_member(result, "valid"))) {
		print_node(result, 0, true, text->out);
		return;
	}
	fprintf(text->out, "node %" PRIu64 ": not valid: %s\nRead as a node's header it says:\n",
		zf_text_first_address(result), zf_text_string(result, "error"));
	zf_text_object(zf_text_member(result, "header"), text->out);
}

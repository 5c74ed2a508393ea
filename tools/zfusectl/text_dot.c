/* SPDX-License-Identifier: MIT */
/*
 * A tree as a graph for dot(1): a box for each node, filled with the colour of its zone, with a
 * thick frame if it is new. Of many siblings only some are drawn, and the others are counted.
 *
 * The colours are light versions of the palette of Okabe and Ito, which colour-blind people can
 * tell apart. Each box names its zone, too.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static const char *const colours[ZF_TEXT_ZONE_COLOURS] = {
	"#9ad3f4", "#f4cf80", "#80ceb9", "#f8f1a1", "#e5bcd3", "#80b8d8", "#eaae80", "#d9d9d9",
};

static const char *level_name(uint64_t level, bool plural)
{
	if (level > 0)
		return plural ? "nodes" : "node";
	return plural ? "leaves" : "leaf";
}

/* ---- which nodes are drawn ---- */

static const char *name_of(uint64_t address, char name[32])
{
	snprintf(name, 32, "%" PRIu64, address);
	return name;
}

static void want(struct zf_text *text, uint64_t address)
{
	char name[32];

	json_object_object_add(text->graph.wanted, name_of(address, name), NULL);
}

static bool is_wanted(const struct zf_text *text, uint64_t address)
{
	char name[32];

	return json_object_object_get_ex(text->graph.wanted, name_of(address, name), NULL);
}

static bool is_new(const struct zf_text *text, struct json_object *child)
{
	return zf_text_u64(child, "generation") >= text->graph.since;
}

/* How many children of a node are drawn: half as many on each level below the root. */
static uint64_t limit_of(const struct zf_text *text, uint64_t level)
{
	uint64_t below = text->top - level;
	uint64_t limit = below < 64 ? text->graph.fold >> below : 0;

	return limit > 0 ? limit : 1;
}

/* Marks up to `limit` children: first the new ones, then the shared ones, in the order of keys. */
static void choose(const struct zf_text *text, struct json_object *children, uint64_t limit,
		   bool *drawn)
{
	size_t count = json_object_array_length(children);
	uint64_t left = limit;

	for (unsigned int round = 0; round < 2; round++)
		for (size_t i = 0; i < count && left > 0; i++) {
			struct json_object *child = json_object_array_get_idx(children, i);

			if (drawn[i] || is_new(text, child) != (round == 0))
				continue;
			drawn[i] = true;
			left--;
		}
}

/* ---- colours ---- */

/* Zones get colours in the order in which they are met; further zones get one by their number. */
static const char *colour_of(struct zf_text *text, uint64_t zone)
{
	uint64_t *zones = text->graph.zones;

	for (unsigned int i = 0; i < text->graph.zone_count; i++)
		if (zones[i] == zone)
			return colours[i];
	if (text->graph.zone_count == ZF_TEXT_ZONE_COLOURS)
		return colours[zone % ZF_TEXT_ZONE_COLOURS];
	zones[text->graph.zone_count] = zone;
	return colours[text->graph.zone_count++];
}

/* ---- boxes ---- */

static void print_quoted(const char *text, FILE *out)
{
	for (; *text; text++)
		fprintf(out, "%s%c", strchr("\"\\", *text) ? "\\" : "", *text);
}

static void print_key(struct json_object *entry, FILE *out)
{
	struct json_object *key = zf_text_member(entry, "key");

	fprintf(out, "(%" PRIu64 " ", zf_text_u64(key, "objectid"));
	print_quoted(zf_text_string(entry, "type"), out);
	fprintf(out, " %" PRIu64 ")", zf_text_u64(key, "offset"));
}

static void print_range(struct json_object *node, struct json_object *children, FILE *out)
{
	struct json_object *first = zf_text_member(node, "first");
	struct json_object *last = zf_text_member(node, "last");

	if (children && json_object_array_length(children) > 0) {
		first = json_object_array_get_idx(children, 0);
		last = json_object_array_get_idx(children, json_object_array_length(children) - 1);
	}
	if (!first)
		return;
	fputs("\\n", out);
	print_key(first, out);
	fputs("\\nto ", out);
	print_key(last, out);
}

static void print_box(struct zf_text *text, struct json_object *node, uint64_t address,
		      struct json_object *children)
{
	struct json_object *header = zf_text_member(node, "header");
	uint64_t zone = address / text->graph.zone_size, level = zf_text_u64(node, "level");
	FILE *out = text->out;

	fprintf(out, "\tn%" PRIu64 " [fillcolor=\"%s\", label=\"", address, colour_of(text, zone));
	if (level > 0)
		fprintf(out, "level %" PRIu64 ", ", level);
	else
		fputs("leaf, ", out);
	fprintf(out, "%" PRIu64 " %s, generation %" PRIu64, zf_text_u64(header, "count"),
		children ? "children" : "items", zf_text_u64(header, "generation"));
	print_range(node, children, out);
	fprintf(out, "\\nzone %" PRIu64 " + %" PRIu64 "\"%s];\n", zone,
		address % text->graph.zone_size,
		is_new(text, header) ? ", penwidth=3" : ", style=\"filled,dashed\"");
}

static void print_damaged(struct zf_text *text, struct json_object *node, uint64_t address)
{
	fprintf(text->out,
		"\tn%" PRIu64 " [shape=octagon, color=\"#d55e00\", penwidth=3, fillcolor=white, "
		"label=\"%s at %" PRIu64 "\\n",
		address, level_name(zf_text_u64(node, "level"), false), address);
	print_quoted(zf_text_string(node, "error"), text->out);
	fputs("\"];\n", text->out);
}

/* Prints one box instead of the children [first, end), none of which is drawn. */
static void print_fold(struct zf_text *text, uint64_t parent, uint64_t level,
		       struct json_object *children, size_t first, size_t end)
{
	size_t fresh = 0;

	for (size_t i = first; i < end; i++)
		fresh += is_new(text, json_object_array_get_idx(children, i));
	fprintf(text->out,
		"\tf%" PRIu64 "_%zu [shape=plain, fillcolor=none, label=\"... %zu more %s%s",
		parent, first, end - first, level_name(level, end - first > 1),
		level > 0 ? ", with all below" : "");
	if (fresh > 0)
		fprintf(text->out, ", %zu new", fresh);
	fprintf(text->out, "\"];\n\tn%" PRIu64 " -> f%" PRIu64 "_%zu [style=dotted];\n", parent,
		parent, first);
}

static void print_children(struct zf_text *text, uint64_t address, uint64_t level,
			   struct json_object *children)
{
	size_t count = json_object_array_length(children), end;
	bool *drawn = calloc(count + 1, sizeof(*drawn));

	if (!drawn)
		return;
	choose(text, children, limit_of(text, level), drawn);
	for (size_t i = 0; i < count; i = end) {
		uint64_t child = zf_text_first_address(json_object_array_get_idx(children, i));

		for (end = i + 1; !drawn[i] && end < count && !drawn[end];)
			end++;
		if (!drawn[i]) {
			print_fold(text, address, level - 1, children, i, end);
			continue;
		}
		want(text, child);
		fprintf(text->out, "\tn%" PRIu64 " -> n%" PRIu64 ";\n", address, child);
	}
	free(drawn);
}

static void print_node(struct zf_text *text, struct json_object *node)
{
	uint64_t address = zf_text_first_address(node);
	struct json_object *children = zf_text_member(node, "children");

	text->graph.nodes++;
	if (!is_wanted(text, address))
		return;
	text->graph.drawn++;
	if (!zf_text_member(node, "header")) {
		print_damaged(text, node, address);
		return;
	}
	print_box(text, node, address, children);
	if (children)
		print_children(text, address, zf_text_u64(node, "level"), children);
}

/* ---- the whole ---- */

/* The root is the first node. An unreadable root counts as the newest node. */
static void begin(struct zf_text *text, struct json_object *part, struct json_object *root)
{
	text->top = zf_text_u64(root, "level");
	/* The answer of an older daemon has no "zone_size": then everything is in zone 0. */
	text->graph.zone_size = zf_text_u64(part, "zone_size");
	if (text->graph.zone_size == 0)
		text->graph.zone_size = UINT64_MAX;
	text->graph.wanted = json_object_new_object();
	if (text->graph.since == 0)
		text->graph.since = zf_text_u64(zf_text_member(root, "header"), "generation");
	want(text, zf_text_first_address(root));
	fprintf(text->out,
		"digraph \"tree %s\" {\n"
		"\tgraph [rankdir=LR, ordering=out, ranksep=0.7, nodesep=0.12, "
		"fontname=\"sans-serif\"];\n"
		"\tnode [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10];\n",
		zf_text_string(part, "tree"));
}

static void print_legend(struct zf_text *text, uint64_t errors)
{
	FILE *out = text->out;

	fprintf(out,
		"\tlegend [shape=plain, fillcolor=none, label=<<table border=\"0\" "
		"cellborder=\"1\" "
		"cellspacing=\"2\"><tr><td border=\"0\" align=\"left\"><b>%" PRIu64
		" nodes, %" PRIu64 " drawn</b></td></tr>"
		"<tr><td border=\"3\" align=\"left\">new: generation %" PRIu64 " or later</td></tr>"
		"<tr><td style=\"dashed\" align=\"left\">shared: older</td></tr>",
		text->graph.nodes, text->graph.drawn, text->graph.since);
	for (unsigned int i = 0; i < text->graph.zone_count; i++)
		fprintf(out, "<tr><td bgcolor=\"%s\" align=\"left\">zone %" PRIu64 "</td></tr>",
			colours[i], text->graph.zones[i]);
	if (text->graph.zone_count == ZF_TEXT_ZONE_COLOURS)
		fputs("<tr><td border=\"0\" align=\"left\">more zones have the same "
		      "colours</td></tr>",
		      out);
	if (errors > 0)
		fprintf(out,
			"<tr><td color=\"#d55e00\" border=\"3\" align=\"left\">cannot be read: "
			"%" PRIu64 ", drawn or not</td></tr>",
			errors);
	fputs("</table>>];\n}\n", out);
}

void zf_text_tree_dot(struct zf_text *text, struct json_object *part)
{
	struct json_object *nodes = zf_text_member(part, "nodes");

	if (!text->begun)
		begin(text, part, json_object_array_get_idx(nodes, 0));
	for (size_t i = 0; i < json_object_array_length(nodes); i++)
		print_node(text, json_object_array_get_idx(nodes, i));
	if (text->last)
		print_legend(text, zf_text_u64(part, "errors"));
}

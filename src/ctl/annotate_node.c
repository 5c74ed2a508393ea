/* SPDX-License-Identifier: MIT */
/* Nodes. A node that the checker would refuse must not make this code leave the buffer. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "btree/node.h"
#include "ctl/annotate_internal.h"
#include "fs/core/fs_format.h"

#define HEADER_SIZE sizeof(struct zf_disk_node_header)

struct node {
	struct zf_annotator annotator;
	const struct zf_disk_node_header *header;
	uint32_t size;
};

static size_t number_part(char part[ZF_PART_MAX], const char *what, size_t number)
{
	return (size_t)snprintf(part, ZF_PART_MAX, "%s %zu", what, number);
}

/*
 * Names the structs behind the header, as many as the node counts and has room for. Returns where
 * they end.
 */
static size_t annotate_entries(const struct node *node, const char *what,
			       const struct zf_fields *fields, unsigned int *ret_count)
{
	size_t max = (node->size - HEADER_SIZE) / fields->size;
	size_t count = zf_min_u64(zf_node_count(node->header), max);
	char part[ZF_PART_MAX];

	for (size_t i = 0; i < count; i++) {
		number_part(part, what, i);
		zf_annotate_fields(&node->annotator, part, HEADER_SIZE + i * fields->size, fields);
	}
	*ret_count = (unsigned int)count;
	return HEADER_SIZE + count * fields->size;
}

/* ---- a leaf ---- */

static const struct zf_disk_item *item_of(const struct node *node, unsigned int slot)
{
	return (const struct zf_disk_item *)(node->header + 1) + slot;
}

/* The number of values, from the first on, that lie one below the other, and above the items. */
static unsigned int count_values(const struct node *node, unsigned int count, size_t items_end)
{
	size_t end = node->size;

	for (unsigned int i = 0; i < count; i++) {
		const struct zf_disk_item *item = item_of(node, i);
		size_t at = zf_le16_get(item->offset);

		if (at < items_end || at + zf_le16_get(item->size) != end)
			return i;
		end = at;
	}
	return count;
}

static void annotate_leaf(const struct node *node)
{
	enum zf_tree_id tree = (enum zf_tree_id)zf_node_owner(node->header);
	unsigned int count, values;
	size_t end = annotate_entries(node, "item", &zf_disk_item_fields, &count), first;

	values = count_values(node, count, end);
	first = values > 0 ? zf_le16_get(item_of(node, values - 1)->offset) : node->size;
	zf_annotate_bytes(&node->annotator, "", end, first - end,
			  values == count ? "free" : "bytes");
	for (unsigned int slot = values; slot-- > 0;) {
		const struct zf_disk_item *item = item_of(node, slot);
		char part[ZF_PART_MAX];

		number_part(part, "value", slot);
		zf_annotate_item(&node->annotator, part, zf_le16_get(item->offset),
				 zf_le16_get(item->size), tree, item->key.type);
	}
}

/* ---- a packed leaf ---- */

struct packed {
	uint8_t value_size, width;
	const struct zf_fields *value_fields; /* NULL: the kind is unknown */
	const uint8_t *base, *columns;
	size_t record; /* bytes of key and value */
};

static const struct zf_fields *value_fields(const struct packed *packed)
{
	const struct zf_disk_key *key = (const void *)packed->base;

	return key->type == ZF_KEY_EXTENT && packed->value_size == zf_disk_extent_fields.size
		       ? &zf_disk_extent_fields
		       : NULL;
}

/* Appends to `text` the fields of the struct at `from` of the record that a column is part of. */
static void add_changed(const struct packed *packed, const uint8_t *record,
			const struct zf_fields *fields, size_t from, char *text, size_t size)
{
	for (unsigned int i = 0; fields && i < fields->count; i++) {
		const struct zf_field *field = &fields->field[i];
		char value[64];
		bool differs = false;
		size_t used = strlen(text);

		for (unsigned int c = 0; c < packed->width; c++)
			differs |= packed->columns[c] >= from + field->offset &&
				   packed->columns[c] < from + field->offset + field->size;
		if (differs)
			snprintf(
				text + used, size - used, "%s%s%s %s", used ? ", " : "",
				from == 0 ? "key." : "", field->name,
				zf_field_value_to_text(field, record + from, value, sizeof(value)));
	}
}

/* Describes in `text` the fields that the row changes in the base. */
static void row_value(const struct packed *packed, const uint8_t *row, char *text, size_t size)
{
	uint8_t record[sizeof(struct zf_disk_key) + UINT8_MAX];

	memcpy(record, packed->base, packed->record);
	for (unsigned int c = 0; c < packed->width; c++)
		if (packed->columns[c] < packed->record)
			record[packed->columns[c]] = row[c];
	text[0] = '\0';
	add_changed(packed, record, &zf_disk_key_fields, 0, text, size);
	add_changed(packed, record, packed->value_fields, sizeof(struct zf_disk_key), text, size);
}

static void annotate_row(const struct node *node, const struct packed *packed, size_t slot,
			 size_t at)
{
	char part[ZF_PART_MAX], value[512];
	const struct zf_annotation annotation = {
		.offset = (uint32_t)at,
		.size = packed->width,
		.part = "",
		.name = part,
		.value = value,
		.bytes = node->annotator.bytes + at,
	};

	number_part(part, "row", slot);
	row_value(packed, annotation.bytes, value, sizeof(value));
	node->annotator.fn(node->annotator.arg, &annotation);
}

static void annotate_base(const struct node *node, const struct packed *packed, size_t at)
{
	zf_annotate_fields(&node->annotator, "base key", at, &zf_disk_key_fields);
	at += sizeof(struct zf_disk_key);
	if (packed->value_fields)
		zf_annotate_fields(&node->annotator, "base value", at, packed->value_fields);
	else
		zf_annotate_bytes(&node->annotator, "base value", at, packed->value_size, "bytes");
}

static void annotate_rows(const struct node *node, const struct packed *packed, size_t at)
{
	size_t max = packed->width > 0 ? (node->size - at) / packed->width : 0;
	size_t count = zf_min_u64(zf_node_count(node->header), max);

	for (size_t i = 0; i < count; i++)
		annotate_row(node, packed, i, at + i * packed->width);
	at += count * packed->width;
	zf_annotate_bytes(&node->annotator, "", at, node->size - at, "free");
}

/* The smallest node has room for everything but the rows, whatever values the packing has. */
_Static_assert(sizeof(struct zf_disk_node_header) + sizeof(struct zf_disk_packing) +
			       sizeof(struct zf_disk_key) + 2 * UINT8_MAX <=
		       ZF_NODE_SIZE_MIN,
	       "base and columns lie in the node");

static void annotate_packed(const struct node *node)
{
	size_t base = HEADER_SIZE + sizeof(struct zf_disk_packing), columns;
	const struct zf_disk_packing *packing = (const void *)(node->header + 1);
	struct packed packed = {
		.value_size = packing->value_size,
		.width = packing->width,
		.base = node->annotator.bytes + base,
		.record = sizeof(struct zf_disk_key) + packing->value_size,
	};

	columns = base + packed.record;
	packed.columns = node->annotator.bytes + columns;
	packed.value_fields = value_fields(&packed);
	zf_annotate_fields(&node->annotator, "", HEADER_SIZE, &zf_disk_packing_fields);
	annotate_base(node, &packed, base);
	zf_annotate_bytes(&node->annotator, "", columns, packed.width, "columns");
	annotate_rows(node, &packed, columns + packed.width);
}

/* ---- any node ---- */

static void annotate_internal(const struct node *node)
{
	unsigned int count;
	size_t end = annotate_entries(node, "child", &zf_disk_child_fields, &count);

	zf_annotate_bytes(&node->annotator, "", end, node->size - end, "free");
}

void zf_annotate_node(const void *bytes, uint32_t node_size, zf_annotate_fn *fn, void *arg)
{
	const struct node node = {
		.annotator = {.bytes = bytes, .fn = fn, .arg = arg},
		.header = bytes,
		.size = node_size,
	};

	zf_annotate_fields(&node.annotator, "", 0, &zf_disk_node_header_fields);
	if (memcmp(node.header->magic, ZF_NODE_MAGIC, sizeof(node.header->magic)) != 0)
		zf_annotate_bytes(&node.annotator, "", HEADER_SIZE, node_size - HEADER_SIZE,
				  "bytes");
	else if (node.header->level > 0)
		annotate_internal(&node);
	else if (node.header->packed)
		annotate_packed(&node);
	else
		annotate_leaf(&node);
}

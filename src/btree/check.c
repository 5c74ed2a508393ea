/* SPDX-License-Identifier: MIT */
/*
 * The checker: after it, the bytes of a node are trusted. All other code in this directory relies
 * on it to stay within a node's bounds.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "btree/packed.h"

struct check {
	const struct zf_node_shape *shape;
	const struct zf_disk_node_header *header;
	const struct zf_node_expect *expect;
	const struct zf_report *report;
};

#define corrupt(c, ...)                                                                            \
	zf_report_corrupt((c)->report, "node", (c)->expect->ptr.address[0], __VA_ARGS__)

#define KEY_FORMAT  "(%" PRIu64 " %u %" PRIu64 ")"
#define KEY_ARGS(k) (k).objectid, (unsigned int)(k).type, (k).offset
#define FSID_FORMAT "%016" PRIx64

static uint64_t first_half(const uint8_t fsid[16])
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < 8; i++)
		v = v << 8 | fsid[i];
	return v;
}

static int check_identity(const struct check *c)
{
	const struct zf_disk_node_header *h = c->header;

	if (memcmp(h->magic, ZF_NODE_MAGIC, sizeof(h->magic)) != 0)
		return corrupt(c, "magic has %02x%02x%02x%02x, expected \"%s\"", h->magic[0],
			       h->magic[1], h->magic[2], h->magic[3], ZF_NODE_MAGIC);
	if (memcmp(h->fsid, c->shape->fsid, sizeof(h->fsid)) != 0)
		return corrupt(c, "fsid has " FSID_FORMAT ".., expected " FSID_FORMAT "..",
			       first_half(h->fsid), first_half(c->shape->fsid));
	for (unsigned int i = 0; i < ZF_COPIES_MAX; i++) {
		uint64_t address = zf_le64_get(h->address[i]);

		if (address != c->expect->ptr.address[i])
			return corrupt(c, "address[%u] has %" PRIu64 ", expected %" PRIu64, i,
				       address, c->expect->ptr.address[i]);
	}
	if (zf_le64_get(h->owner) != (uint64_t)c->expect->owner)
		return corrupt(c, "owner has %" PRIu64 ", expected %u", zf_le64_get(h->owner),
			       (unsigned int)c->expect->owner);
	if (h->level != c->expect->level)
		return corrupt(c, "level has %u, expected %u", h->level, c->expect->level);
	if (zf_le64_get(h->generation) != c->expect->ptr.generation)
		return corrupt(c, "generation has %" PRIu64 ", expected %" PRIu64,
			       zf_le64_get(h->generation), c->expect->ptr.generation);
	if (h->packed > (h->level == 0))
		return corrupt(c, "packed has %u, expected %s", h->packed,
			       h->level == 0 ? "0 or 1" : "0");
	if (!zf_is_zero(h->reserved_a, sizeof(h->reserved_a)))
		return corrupt(c, "reserved_a has bits set, expected 0");
	if (!zf_is_zero(h->reserved_b, sizeof(h->reserved_b)))
		return corrupt(c, "reserved_b has bits set, expected 0");
	return 0;
}

static int check_csum(const struct check *c)
{
	uint64_t stored = zf_le64_get(c->header->csum);
	uint64_t csum = zf_node_csum(c->header, c->shape->node_size);

	if (stored != csum)
		return corrupt(c, "csum has %016" PRIx64 ", expected %016" PRIx64, stored, csum);
	if (stored != c->expect->ptr.csum)
		return corrupt(c, "csum has %016" PRIx64 ", expected %016" PRIx64 " by its parent",
			       stored, c->expect->ptr.csum);
	return 0;
}

/* Checks the sizes and columns of a packing, on which the place of the rows depends. */
static int check_packing(const struct check *c)
{
	const struct zf_disk_packing *packing = (const void *)(c->header + 1);
	const uint8_t *base = (const uint8_t *)(packing + 1);
	unsigned int record = (unsigned int)sizeof(struct zf_disk_key) + packing->value_size;
	const uint8_t *columns = base + record;
	unsigned int low = (unsigned int)offsetof(struct zf_disk_key, offset);

	if (packing->value_size > ZF_PACKED_VALUE_MAX)
		return corrupt(c, "packing value_size has %u, expected at most %u",
			       packing->value_size, ZF_PACKED_VALUE_MAX);
	if (packing->width > record - low)
		return corrupt(c, "packing width has %u, expected at most %u", packing->width,
			       record - low);
	for (unsigned int i = 0; i < packing->width; i++) {
		if (columns[i] < low || columns[i] >= record)
			return corrupt(c, "column %u has %u, expected %u to %u", i, columns[i], low,
				       record - 1);
		if (base[columns[i]] != 0)
			return corrupt(c, "base byte %u has %u, expected 0: it is a column's",
				       columns[i], base[columns[i]]);
		low = columns[i] + 1u;
	}
	return 0;
}

/* Rows begin where the columns end. */
static uint32_t rows_start(const struct zf_disk_node_header *header)
{
	const struct zf_disk_packing *packing = (const void *)(header + 1);

	return (uint32_t)(sizeof(*header) + sizeof(*packing) + sizeof(struct zf_disk_key)) +
	       packing->value_size + packing->width;
}

/* At most the items that an edited leaf may have, for which narrow rows count as wider ones. */
static int check_packed_count(const struct check *c)
{
	uint32_t count = zf_le32_get(c->header->count), max = 1;
	struct zf_packing packing;

	zf_packed_get(c->header, &packing);
	if (packing.width > 0)
		max = zf_packing_records_max(&packing, c->shape->node_size);
	if (count < 1 || count > max)
		return corrupt(c, "count has %u, expected 1 to %u", count, max);
	return 0;
}

static int check_count(const struct check *c)
{
	uint32_t size =
		c->header->level == 0 ? sizeof(struct zf_disk_item) : sizeof(struct zf_disk_child);
	uint32_t count = zf_le32_get(c->header->count);
	uint32_t min = c->header->level > 0 || c->expect->check_first_key ? 1 : 0;
	uint32_t max = zf_node_capacity(c->shape->node_size) / size;

	if (count < min || count > max)
		return corrupt(c, "count has %u, expected %u to %u", count, min, max);
	return 0;
}

static int check_keys(const struct check *c)
{
	unsigned int count = zf_node_count(c->header);
	struct zf_key previous = ZF_KEY_MIN;

	for (unsigned int i = 0; i < count; i++) {
		struct zf_key key = zf_node_key(c->header, i);

		if (i > 0 && zf_key_cmp(&previous, &key) >= 0)
			return corrupt(c, "key %u has " KEY_FORMAT ", expected above " KEY_FORMAT,
				       i, KEY_ARGS(key), KEY_ARGS(previous));
		previous = key;
	}
	return zf_node_check_bounds(c->header, c->expect, c->report);
}

int zf_node_check_bounds(const void *node, const struct zf_node_expect *expect,
			 const struct zf_report *report)
{
	unsigned int count = zf_node_count(node);
	struct zf_key key;

	if (count == 0) {
		if (!expect->check_first_key)
			return 0;
		return zf_report_corrupt(report, "node", expect->ptr.address[0],
					 "count has 0, expected at least 1");
	}
	key = zf_node_key(node, 0);
	if (expect->check_first_key && zf_key_cmp(&key, &expect->first_key) < 0)
		return zf_report_corrupt(report, "node", expect->ptr.address[0],
					 "first key has " KEY_FORMAT
					 ", expected at least " KEY_FORMAT,
					 KEY_ARGS(key), KEY_ARGS(expect->first_key));
	key = zf_node_key(node, count - 1);
	if (expect->check_next_key && zf_key_cmp(&key, &expect->next_key) >= 0)
		return zf_report_corrupt(report, "node", expect->ptr.address[0],
					 "last key has " KEY_FORMAT ", expected below " KEY_FORMAT,
					 KEY_ARGS(key), KEY_ARGS(expect->next_key));
	return 0;
}

static int check_free_bytes(const struct check *c, uint32_t from, uint32_t to)
{
	if (!zf_is_zero((const char *)c->header + from, to - from))
		return corrupt(c, "free space has bits set, expected 0 from %u to %u", from, to);
	return 0;
}

static int check_items(const struct check *c)
{
	const struct zf_disk_item *item = (const void *)(c->header + 1);
	unsigned int count = zf_node_count(c->header);
	uint32_t headers_end = (uint32_t)(sizeof(*c->header) + count * sizeof(*item));
	uint32_t end = c->shape->node_size, max = zf_node_value_max(c->shape->node_size);

	for (unsigned int i = 0; i < count; i++, item++) {
		uint32_t size = zf_le16_get(item->size), offset = zf_le16_get(item->offset);

		if (size > max)
			return corrupt(c, "item %u size has %u, expected at most %u", i, size, max);
		if (size > end - headers_end)
			return corrupt(c, "item %u size has %u, expected at most %u", i, size,
				       end - headers_end);
		if (offset != end - size)
			return corrupt(c, "item %u offset has %u, expected %u", i, offset,
				       end - size);
		end = offset;
	}
	return check_free_bytes(c, headers_end, end);
}

static int check_rows(const struct check *c)
{
	const struct zf_disk_packing *packing = (const void *)(c->header + 1);
	uint32_t end = rows_start(c->header) + zf_node_count(c->header) * packing->width;

	return check_free_bytes(c, end, c->shape->node_size);
}

void zf_node_shape_limits(const struct zf_node_shape *shape, uint64_t generation_max,
			  struct zf_node_ptr_limits *ret_limits)
{
	*ret_limits = (struct zf_node_ptr_limits){
		.zone_size = shape->geometry->zone_size,
		.zone_capacity = shape->geometry->zone_capacity,
		.zone_count = shape->geometry->zone_count,
		.node_size = shape->node_size,
		.copies = shape->copies,
		.generation_max = generation_max,
	};
}

static int check_child(const struct check *c, const struct zf_node_ptr_limits *limits,
		       unsigned int slot, const struct zf_disk_child *child)
{
	struct zf_node_ptr ptr = zf_node_child(c->header, slot);
	char fault[ZF_NODE_PTR_FAULT_SIZE];

	if (!zf_is_zero(child->reserved, sizeof(child->reserved)))
		return corrupt(c, "child %u reserved has bits set, expected 0", slot);
	if (zf_node_ptr_is_wrong(&ptr, limits, fault))
		return corrupt(c, "child %u %s", slot, fault);
	return 0;
}

static int check_children(const struct check *c)
{
	const struct zf_disk_child *child = (const void *)(c->header + 1);
	unsigned int count = zf_node_count(c->header);
	struct zf_node_ptr_limits limits;
	int r;

	zf_node_shape_limits(c->shape, zf_node_generation(c->header), &limits);
	for (unsigned int i = 0; i < count; i++) {
		r = check_child(c, &limits, i, child + i);
		if (r < 0)
			return r;
	}
	return check_free_bytes(c, (uint32_t)(sizeof(*c->header) + count * sizeof(*child)),
				c->shape->node_size);
}

int zf_node_check(const struct zf_node_shape *shape, const void *node,
		  const struct zf_node_expect *expect, bool with_csum,
		  const struct zf_report *report)
{
	const struct check c = {.shape = shape, .header = node, .expect = expect, .report = report};
	bool packed = zf_node_is_packed(node);
	int r;

	/* The checksum comes after the identity: "wrong node" tells more than "wrong bytes". */
	r = check_identity(&c);
	if (r == 0 && with_csum)
		r = check_csum(&c);
	if (r == 0 && c.header->level >= ZF_TREE_LEVEL_MAX)
		r = corrupt(&c, "level has %u, expected below %u", c.header->level,
			    ZF_TREE_LEVEL_MAX);
	if (r == 0)
		r = packed ? check_packing(&c) : 0;
	if (r == 0)
		r = packed ? check_packed_count(&c) : check_count(&c);
	if (r == 0)
		r = check_keys(&c);
	if (r == 0 && packed)
		return check_rows(&c);
	if (r == 0)
		r = c.header->level == 0 ? check_items(&c) : check_children(&c);
	return r;
}

/* Checks the fields that a parent would tell: place, tree and generation. */
static int check_origin(const struct zf_node_shape *shape, const struct zf_disk_node_header *h,
			uint64_t address, unsigned int copy, const struct zf_report *report)
{
	uint64_t own = zf_le64_get(h->address[copy]), owner = zf_le64_get(h->owner);

	if (memcmp(h->magic, ZF_NODE_MAGIC, sizeof(h->magic)) != 0)
		return zf_report_corrupt(report, "node", address,
					 "magic has %02x%02x%02x%02x, expected \"%s\"", h->magic[0],
					 h->magic[1], h->magic[2], h->magic[3], ZF_NODE_MAGIC);
	if (copy >= shape->copies || own != address)
		return zf_report_corrupt(report, "node", address,
					 "address[%u] has %" PRIu64 ", expected %" PRIu64, copy,
					 own, copy < shape->copies ? address : 0);
	if (owner == 0 || owner >= ZF_TREE_COUNT)
		return zf_report_corrupt(report, "node", address,
					 "owner has %" PRIu64 ", expected 1 to %u", owner,
					 ZF_TREE_COUNT - 1);
	if (zf_le64_get(h->generation) == 0)
		return zf_report_corrupt(report, "node", address,
					 "generation has 0, expected at least 1");
	return 0;
}

int zf_node_check_at(const struct zf_node_shape *shape, const void *node, uint64_t address,
		     unsigned int copy, const struct zf_report *report)
{
	const struct zf_disk_node_header *h = node;
	struct zf_node_expect expect = {
		.ptr = {.address = {zf_le64_get(h->address[0]), zf_le64_get(h->address[1])},
			.generation = zf_le64_get(h->generation),
			.csum = zf_le64_get(h->csum)},
		.owner = (enum zf_tree_id)zf_le64_get(h->owner),
		.level = h->level,
	};
	int r = check_origin(shape, h, address, copy, report);

	return r < 0 ? r : zf_node_check(shape, node, &expect, true, report);
}

bool zf_node_is_valid_at(const struct zf_node_shape *shape, const void *node, uint64_t address,
			 unsigned int copy)
{
	return zf_node_check_at(shape, node, address, copy, NULL) == 0;
}

/* SPDX-License-Identifier: MIT */
#include "salvage/found.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"

#define CHUNK ((uint64_t)1 << 20)

/* Zones 0 and 1 hold the superblock ring; any other zone may hold nodes. */
#define FIRST_ZONE 2u

/* Called for a block of a zone. Returns how many bytes to advance, or -errno. */
typedef int64_t visit_fn(void *arg, const uint8_t *block, uint64_t address, uint64_t len);

struct pass {
	struct zf_dev *dev;
	const bool *skip;
	const struct zf_progress *progress;
	visit_fn *visit;
	void *arg;
	uint8_t *buf; /* CHUNK bytes, and the rest of a node that begins at their end */
	uint64_t done, total;
};

/* ---- reading zones ---- */

/*
 * If pointers are lower bounds (after an unclean stop of the host), a zone may be written beyond
 * its pointer, so it is read up to its capacity.
 */
static uint64_t written_bytes(struct zf_dev *dev, const struct zf_zone_info *zone)
{
	if (zone->cond == ZF_ZONE_OFFLINE)
		return 0;
	if (zone->type == ZF_ZONE_CONVENTIONAL || zf_dev_geometry(dev)->pointers_are_lower_bounds)
		return zone->capacity;
	return zone->wp - zone->start;
}

/* Each unreadable block becomes zeroes, so that nodes beside it are found. */
static void read_chunk(struct zf_dev *dev, uint64_t address, uint8_t *buf, uint64_t len)
{
	if (zf_dev_read_buf(dev, address, buf, len) == 0)
		return;
	for (uint64_t at = 0; at < len; at += ZF_BLOCK_SIZE)
		if (zf_dev_read_buf(dev, address + at, buf + at, ZF_BLOCK_SIZE) < 0)
			memset(buf + at, 0, ZF_BLOCK_SIZE);
}

static int visit_zone(struct pass *pass, uint64_t start, uint64_t bytes)
{
	uint64_t at = 0;

	while (at < bytes) {
		uint64_t len = zf_min_u64(CHUNK + ZF_NODE_SIZE_MAX, bytes - at);
		uint64_t in_chunk = 0;

		read_chunk(pass->dev, start + at, pass->buf, len);
		while (in_chunk < len && in_chunk < CHUNK) {
			int64_t n = pass->visit(pass->arg, pass->buf + in_chunk,
						start + at + in_chunk, len - in_chunk);

			if (n < 0)
				return (int)n;
			in_chunk += (uint64_t)n;
		}
		at += in_chunk;
		zf_progress(pass->progress, pass->done + at, pass->total);
	}
	pass->done += bytes;
	return 0;
}

static bool is_visited(const struct pass *pass, uint32_t zone_no)
{
	return zone_no >= FIRST_ZONE && !(pass->skip && pass->skip[zone_no]);
}

static int visit_zones(struct pass *pass)
{
	uint32_t count = zf_dev_geometry(pass->dev)->zone_count;
	_zf_free_ struct zf_zone_info *zones = calloc(count, sizeof(*zones));
	_zf_free_ uint8_t *buf = aligned_alloc(ZF_BLOCK_SIZE, CHUNK + ZF_NODE_SIZE_MAX);
	int r;

	if (!zones || !buf)
		return -ENOMEM;
	pass->buf = buf;
	r = zf_dev_report(pass->dev, 0, count, zones);
	for (uint32_t z = 0; z < count && r == 0; z++)
		pass->total += is_visited(pass, z) ? written_bytes(pass->dev, &zones[z]) : 0;
	for (uint32_t z = 0; z < count && r == 0; z++)
		if (is_visited(pass, z))
			r = visit_zone(pass, zones[z].start, written_bytes(pass->dev, &zones[z]));
	return r;
}

/* ---- nodes ---- */

struct scan {
	const struct zf_node_shape *shape;
	struct zf_vector *found;
};

static bool is_node_at(const struct zf_node_shape *shape, const uint8_t *block, uint64_t address,
		       uint64_t len)
{
	if (len < shape->node_size)
		return false;
	for (unsigned int copy = 0; copy < shape->copies; copy++)
		if (zf_node_is_valid_at(shape, block, address, copy))
			return true;
	return false;
}

static struct zf_found describe(const void *node)
{
	const struct zf_disk_node_header *header = node;
	unsigned int count = zf_node_count(node);

	return (struct zf_found){
		.ptr = {.address = {zf_le64_get(header->address[0]),
				    zf_le64_get(header->address[1])},
			.generation = zf_node_generation(node),
			.csum = zf_le64_get(header->csum)},
		.first = count > 0 ? zf_node_key(node, 0) : ZF_KEY_MIN,
		.last = count > 0 ? zf_node_key(node, count - 1) : ZF_KEY_MIN,
		.count = count,
		.owner = (uint8_t)zf_node_owner(node),
		.level = zf_node_level(node),
	};
}

static int64_t take_node(void *arg, const uint8_t *block, uint64_t address, uint64_t len)
{
	struct scan *scan = arg;
	struct zf_found found;
	int r;

	if (!is_node_at(scan->shape, block, address, len))
		return ZF_BLOCK_SIZE;
	found = describe(block);
	r = zf_vector_push(scan->found, &found);
	return r < 0 ? r : (int64_t)scan->shape->node_size;
}

/* Copies of a node compare as equal and become neighbours. */
static int compare_found(const void *a, const void *b)
{
	const struct zf_found *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	if (x->ptr.generation != y->ptr.generation)
		return x->ptr.generation > y->ptr.generation ? -1 : 1;
	if (zf_key_cmp(&x->first, &y->first) != 0)
		return zf_key_cmp(&x->first, &y->first);
	if (x->ptr.address[0] != y->ptr.address[0])
		return x->ptr.address[0] < y->ptr.address[0] ? -1 : 1;
	return 0;
}

static void drop_second_copies(struct zf_vector *found)
{
	size_t kept = 0;

	for (size_t i = 0; i < found->count; i++) {
		const struct zf_found *this = zf_vector_at(found, i);

		if (kept > 0 && compare_found(zf_vector_at(found, kept - 1), this) == 0)
			continue;
		memmove(zf_vector_at(found, kept), this, sizeof(*this));
		kept++;
	}
	found->count = kept;
}

int zf_found_scan(struct zf_dev *dev, const struct zf_node_shape *shape, const bool *skip,
		  const struct zf_progress *progress, struct zf_vector *ret_found)
{
	struct scan scan = {.shape = shape, .found = ret_found};
	struct pass pass = {
		.dev = dev,
		.skip = skip,
		.progress = progress,
		.visit = take_node,
		.arg = &scan,
	};
	int r = visit_zones(&pass);

	zf_vector_sort(ret_found, 0, compare_found);
	drop_second_copies(ret_found);
	return r;
}

/*
 * Nodes of one owner, level and generation do not overlap, because a transaction writes each node
 * once.
 */
static int compare_place(const void *key, const void *item)
{
	const struct zf_found_place *place = key;
	const struct zf_found *node = item;

	if (place->owner != node->owner)
		return place->owner < node->owner ? -1 : 1;
	if (place->level != node->level)
		return place->level < node->level ? -1 : 1;
	if (place->generation != node->ptr.generation)
		return place->generation > node->ptr.generation ? -1 : 1;
	if (zf_key_cmp(&node->first, &place->first) < 0)
		return 1;
	return zf_key_cmp(&node->last, &place->end) < 0 ? 0 : -1;
}

const struct zf_found *zf_found_at(const struct zf_vector *found,
				   const struct zf_found_place *place)
{
	const struct zf_found *first = found->data, *end = first + found->count;
	const struct zf_found *node = zf_vector_find(found, place, compare_place);

	if (!node || (node > first && compare_place(place, node - 1) == 0) ||
	    (node + 1 < end && compare_place(place, node + 1) == 0))
		return NULL;
	return node;
}

/* ---- the shape ---- */

#define FOUND_IT (-EEXIST) /* ends the pass */

static int64_t try_sizes(void *arg, const uint8_t *block, uint64_t address, uint64_t len)
{
	const struct zf_disk_node_header *header = (const void *)block;
	struct zf_node_shape *shape = arg;

	if (memcmp(header->magic, ZF_NODE_MAGIC, sizeof(header->magic)) != 0)
		return ZF_BLOCK_SIZE;
	memcpy(shape->fsid, header->fsid, sizeof(shape->fsid));
	shape->copies = zf_le64_get(header->address[1]) != 0 ? 2 : 1;
	for (shape->node_size = ZF_NODE_SIZE_MIN; shape->node_size <= ZF_NODE_SIZE_MAX;
	     shape->node_size *= 2)
		if (is_node_at(shape, block, address, len))
			return FOUND_IT;
	return ZF_BLOCK_SIZE;
}

int zf_found_identify(struct zf_dev *dev, struct zf_node_shape *ret_shape)
{
	struct pass pass = {.dev = dev, .visit = try_sizes, .arg = ret_shape};
	int r;

	*ret_shape = (struct zf_node_shape){.geometry = zf_dev_geometry(dev)};
	r = visit_zones(&pass);
	if (r == FOUND_IT)
		return 0;
	return r < 0 ? r : -ENODEV;
}

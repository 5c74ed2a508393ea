/* SPDX-License-Identifier: MIT */
#include "mangling.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "file.h"
#include "image.h"
#include "superblock/ring.h"

#define TRIES_MAX 64u

/* The lie that is drawn now; `lie` and `place` are parts of the mangling. */
struct draw {
	const struct places *places;
	struct zf_rng rng;
	struct lie *lie;
	struct place *place;
};

static uint64_t below(struct draw *draw, uint64_t limit)
{
	return zf_rng_below(&draw->rng, limit);
}

static const struct place *draw_place(struct draw *draw)
{
	return &draw->places->place[below(draw, draw->places->count)];
}

/* Reads bytes of draw->place into the lie; the caller changes them. */
static void begin_bytes(struct draw *draw, const char *name, size_t offset, size_t len)
{
	struct lie *lie = draw->lie;

	draw->place->field = (struct zf_field){.name = name, .kind = ZF_FIELD_BYTES};
	*lie = (struct lie){
		.place = draw->place,
		.field = &draw->place->field,
		.offset = offset,
		.len = len,
		.bytes = malloc(len),
	};
	assert(lie->bytes);
	place_read(draw->places, draw->place, offset, lie->bytes, len);
	snprintf(lie->text, sizeof(lie->text), "%zu from %zu on, at %" PRIu64, len, offset,
		 draw->place->address);
}

/* Values that break arithmetic are likelier than others. */
static uint8_t draw_byte(struct draw *draw)
{
	static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};

	return zf_rng_chance(&draw->rng, 50) ? edges[below(draw, sizeof(edges))]
					     : (uint8_t)zf_rng_next(&draw->rng);
}

static void change_bytes(struct draw *draw)
{
	struct lie *lie = draw->lie;

	for (size_t i = 0; i < lie->len; i++)
		if (zf_rng_chance(&draw->rng, 50))
			lie->bytes[i] = draw_byte(draw);
}

/* ---- with checksums made right ---- */

static void draw_field(struct draw *draw)
{
	const struct place *place = draw_place(draw);
	const struct zf_field *field = &place->fields[below(draw, place->field_count)];
	unsigned int element = (unsigned int)below(draw, lie_elements(field)), chosen;
	struct lie lies[LIES_MAX];
	unsigned int n = lie_make(draw->places, place, field, element, &draw->rng, lies);

	if (n == 0)
		return;
	chosen = (unsigned int)below(draw, n);
	for (unsigned int i = 0; i < n; i++)
		if (i != chosen)
			free(lies[i].bytes);
	*draw->lie = lies[chosen];
}

static size_t size_of(const struct place *place)
{
	size_t size = 0;

	for (unsigned int i = 0; i < place->field_count; i++)
		size = zf_max_u64((size_t)place->fields[i].offset + place->fields[i].size, size);
	return size;
}

static void draw_bytes(struct draw *draw)
{
	size_t size, offset;

	*draw->place = *draw_place(draw);
	size = size_of(draw->place);
	offset = (size_t)below(draw, size);
	begin_bytes(draw, "bytes", offset, 1 + (size_t)below(draw, zf_min_u64(size - offset, 8)));
	change_bytes(draw);
}

/* Copies another place of the same kind over this one, like a misdirected write. */
static void draw_copy(struct draw *draw)
{
	const struct place *from;
	size_t size;

	*draw->place = *draw_place(draw);
	for (unsigned int i = 0; i < TRIES_MAX; i++) {
		from = draw_place(draw);
		if (from->fields != draw->place->fields || from->packed != draw->place->packed)
			continue;
		size = size_of(from);
		begin_bytes(draw, "whole", 0, size);
		place_read(draw->places, from, 0, draw->lie->bytes, size);
		return;
	}
}

/* Draws an offset that is in use: in the first bytes (header, keys), or in values at the end. */
static size_t draw_offset(struct draw *draw, size_t size)
{
	switch (below(draw, 3)) {
	case 0:
		return (size_t)below(draw, 72);
	case 1:
		return (size_t)below(draw, size / 8);
	default:
		return size - 1 - (size_t)below(draw, size / 2);
	}
}

/* Sets draw->place to a node, or to one copy of it. */
static void place_node(struct draw *draw, unsigned int copies)
{
	uint32_t number = (uint32_t)below(draw, draw->places->node_count);
	const struct place_node *node = &draw->places->node[number];
	unsigned int copy = (unsigned int)below(draw, node->address[1] ? copies : 1);

	*draw->place = (struct place){
		.structure = "node",
		.where = "a node",
		.address = node->address[copy],
		.node = number,
	};
}

static void draw_node(struct draw *draw)
{
	size_t size = draw->places->forge->super.node_size, offset;

	place_node(draw, 1);
	offset = draw_offset(draw, size);
	begin_bytes(draw, "bytes", offset, 1 + (size_t)below(draw, zf_min_u64(size - offset, 8)));
	change_bytes(draw);
}

/* ---- rotten bytes ---- */

static bool is_written(struct draw *draw, uint64_t address)
{
	return !zf_is_zero(places_bytes(draw->places, address), ZF_BLOCK_SIZE);
}

/* Draws a written block of [from, to), or after some tries any block. */
static uint64_t draw_block(struct draw *draw, uint64_t from, uint64_t to)
{
	uint64_t address = from;

	for (unsigned int i = 0; i < TRIES_MAX; i++) {
		address = from + zf_align_down(below(draw, to - from), ZF_BLOCK_SIZE);
		if (is_written(draw, address))
			break;
	}
	return address;
}

static void place_block(struct draw *draw, uint64_t from, uint64_t to, const char *structure)
{
	*draw->place = (struct place){.address = draw_block(draw, from, to), .node = NO_NODE};
	snprintf(draw->place->structure, sizeof(draw->place->structure), "%s", structure);
	snprintf(draw->place->where, sizeof(draw->place->where), "%s", structure);
}

static void place_rot(struct draw *draw)
{
	const struct forge *forge = draw->places->forge;
	const struct file *file = draw->places->file;
	uint64_t end = forge->super.zone_count * forge->zone_size;

	switch (below(draw, file ? 5 : 4)) {
	case 0:
		place_node(draw, 2);
		break;
	case 1:
		place_block(draw, 0, ZF_SUPER_ZONES * forge->zone_size, "record of the superblock");
		break;
	case 2:
	case 3:
		place_block(draw, 0, end, "block");
		break;
	default:
		place_block(draw, file->size - sizeof(struct zf_image_header), file->size,
			    "zf_image_header");
		if (zf_rng_chance(&draw->rng, 80))
			place_block(draw, file->trailer.table_offset,
				    file->size - sizeof(struct zf_image_header), "zone table");
	}
}

static void draw_rot(struct draw *draw)
{
	struct lie *lie = draw->lie;
	size_t offset = 0, len = ZF_BLOCK_SIZE;

	place_rot(draw);
	if (zf_rng_chance(&draw->rng, 60)) {
		offset = draw_offset(draw, ZF_BLOCK_SIZE);
		len = 1 + (size_t)below(draw, zf_min_u64(ZF_BLOCK_SIZE - offset, 16));
	}
	begin_bytes(draw, "rotten bytes", offset, len);
	lie->rotten = true;
	switch (below(draw, 4)) {
	case 0:
		memset(lie->bytes, 0, len);
		break;
	case 1:
		zf_rng_fill(&draw->rng, lie->bytes, len);
		break;
	case 2:
		lie->bytes[below(draw, len)] ^= (uint8_t)(1u << below(draw, 8));
		break;
	default:
		change_bytes(draw);
	}
}

/* ---- the mangling ---- */

static void draw_lie(struct draw *draw)
{
	uint64_t kind = below(draw, 100);

	if (kind < 50)
		draw_field(draw);
	else if (kind < 62)
		draw_bytes(draw);
	else if (kind < 72)
		draw_copy(draw);
	else if (kind < 85)
		draw_node(draw);
	else
		draw_rot(draw);
}

void mangling_make(const struct places *places, uint64_t seed, struct mangling *ret_mangling)
{
	static const unsigned int counts[] = {1, 2, 2, 2, 3, 3, 4, MANGLING_LIES_MAX};
	struct draw draw = {.places = places};
	unsigned int count;

	*ret_mangling = (struct mangling){.seed = seed};
	zf_rng_seed(&draw.rng, seed);
	count = counts[below(&draw, ZF_ARRAY_SIZE(counts))];
	while (ret_mangling->count < count) {
		draw.lie = &ret_mangling->lies[ret_mangling->count];
		draw.place = &ret_mangling->place[ret_mangling->count];
		draw_lie(&draw);
		ret_mangling->count += draw.lie->bytes != NULL;
	}
}

void mangling_free(struct mangling *mangling)
{
	for (unsigned int i = 0; i < mangling->count; i++)
		free(mangling->lies[i].bytes);
}

void mangling_print(const struct mangling *mangling)
{
	for (unsigned int i = 0; i < mangling->count; i++) {
		const struct lie *lie = &mangling->lies[i];

		printf("    %s: %s %s\n", lie->place->where, lie->field->name, lie->text);
	}
}

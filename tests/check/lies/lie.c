/* SPDX-License-Identifier: MIT */
#include "lie.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "image.h"

static size_t width_of(const struct zf_field *field)
{
	switch (field->kind) {
	case ZF_FIELD_U8:
		return 1;
	case ZF_FIELD_U16:
		return 2;
	case ZF_FIELD_U32:
		return 4;
	case ZF_FIELD_U64:
	case ZF_FIELD_HEX64:
		return 8;
	default:
		return 0;
	}
}

unsigned int lie_elements(const struct zf_field *field)
{
	size_t width = width_of(field);

	return width ? (unsigned int)(field->size / width) : 1;
}

/* ---- numbers ---- */

static uint64_t read_number(const struct places *places, const struct place *place, size_t offset,
			    size_t width)
{
	uint8_t bytes[8] = {0};
	struct zf_le64 number;

	place_read(places, place, offset, bytes, width);
	memcpy(&number, bytes, sizeof(number));
	return zf_le64_get(number);
}

static bool is_new(const uint64_t *values, unsigned int count, uint64_t value)
{
	for (unsigned int i = 0; i < count; i++)
		if (values[i] == value)
			return false;
	return true;
}

/* values[0] is the right value. Returns the number of values, with the right one. */
static unsigned int choose_numbers(const struct places *places, uint64_t right, size_t width,
				   struct zf_rng *rng, uint64_t values[LIES_MAX])
{
	const struct zf_super *super = &places->forge->super;
	uint64_t mask = width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;
	const uint64_t wrong[] = {
		0,
		1,
		2,
		3,
		5,
		255,
		256,
		right - 1,
		right + 1,
		right - ZF_BLOCK_SIZE,
		right + ZF_BLOCK_SIZE,
		right + IMAGE_ZONE_SIZE,
		right / 2,
		2 * right,
		ZF_BLOCK_SIZE - 1,
		ZF_BLOCK_SIZE,
		IMAGE_ZONE_SIZE,
		super->zone_count,
		super->zone_count * IMAGE_ZONE_SIZE,
		super->generation,
		super->generation + 1,
		super->generation + 2,
		super->next_ino - 1,
		super->next_ino,
		ZF_SUPER_COUNTER_MAX,
		INT64_MAX - 1,
		INT64_MAX,
		UINT64_C(1) << 63,
		mask >> 1,
		mask - 1,
		mask,
		right ^ UINT64_C(1) << zf_rng_below(rng, 8 * width),
		zf_rng_next(rng) >> zf_rng_below(rng, 64),
	};
	unsigned int count = 1;

	values[0] = right;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(wrong); i++)
		if (is_new(values, count, wrong[i] & mask))
			values[count++] = wrong[i] & mask;
	return count;
}

static unsigned int make_numbers(const struct places *places, const struct lie *what,
				 struct zf_rng *rng, struct lie ret_lies[LIES_MAX])
{
	uint64_t values[LIES_MAX];
	uint64_t right = read_number(places, what->place, what->offset, what->len);
	unsigned int count = choose_numbers(places, right, what->len, rng, values);

	for (unsigned int i = 1; i < count; i++) {
		struct lie *lie = &ret_lies[i - 1];
		struct zf_le64 number = zf_le64_from(values[i]);

		*lie = *what;
		lie->bytes = malloc(sizeof(number));
		assert(lie->bytes);
		memcpy(lie->bytes, &number, sizeof(number));
		snprintf(lie->text, sizeof(lie->text), "has %" PRIu64 ", says %" PRIu64, right,
			 values[i]);
	}
	return count - 1;
}

/* ---- bytes ---- */

static const char *const ways[] = {
	"the first bit",   "the last bit", "a bit that was drawn",  "all zero", "all ones",
	"a zero in front", "a slash",	   "bytes that were drawn",
};

static void change_bytes(unsigned int way, uint8_t *bytes, size_t len, struct zf_rng *rng)
{
	switch (way) {
	case 0:
		bytes[0] ^= 1;
		break;
	case 1:
		bytes[len - 1] ^= 0x80;
		break;
	case 2:
		bytes[zf_rng_below(rng, len)] ^= (uint8_t)(1u << zf_rng_below(rng, 8));
		break;
	case 3:
		memset(bytes, 0, len);
		break;
	case 4:
		memset(bytes, 0xff, len);
		break;
	case 5:
		bytes[0] = 0;
		break;
	case 6:
		bytes[zf_rng_below(rng, len)] = '/';
		break;
	default:
		zf_rng_fill(rng, bytes, len);
	}
}

static unsigned int make_bytes(const struct places *places, const struct lie *what,
			       struct zf_rng *rng, struct lie ret_lies[LIES_MAX])
{
	uint8_t *right = malloc(what->len);
	unsigned int count = 0;

	assert(right);
	place_read(places, what->place, what->offset, right, what->len);
	for (unsigned int way = 0; way < ZF_ARRAY_SIZE(ways); way++) {
		struct lie *lie = &ret_lies[count];

		*lie = *what;
		lie->bytes = malloc(what->len);
		assert(lie->bytes);
		memcpy(lie->bytes, right, what->len);
		change_bytes(way, lie->bytes, what->len, rng);
		snprintf(lie->text, sizeof(lie->text), "is changed in %s", ways[way]);
		if (memcmp(lie->bytes, right, what->len) == 0)
			free(lie->bytes);
		else
			count++;
	}
	free(right);
	return count;
}

/* ---- both ---- */

unsigned int lie_make(const struct places *places, const struct place *place,
		      const struct zf_field *field, unsigned int element, struct zf_rng *rng,
		      struct lie ret_lies[LIES_MAX])
{
	size_t width = width_of(field);
	const struct lie what = {
		.place = place,
		.field = field,
		.offset = field->offset + element * width,
		.len = width ? width : field->size,
	};

	return width ? make_numbers(places, &what, rng, ret_lies)
		     : make_bytes(places, &what, rng, ret_lies);
}

/* Is the field the checksum of its own structure? Making it right would undo the lie. */
static bool is_own_checksum(const struct lie *lie)
{
	static const struct {
		const char *structure, *field;
	} checksums[] = {
		{"zf_disk_super", "csum"},	{"zf_disk_node_header", "csum"},
		{"zf_disk_log_header", "hash"}, {"zf_image_header", "checksum"},
		{"zf_image_state", "checksum"},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(checksums); i++)
		if (strcmp(lie->place->structure, checksums[i].structure) == 0 &&
		    strcmp(lie->field->name, checksums[i].field) == 0)
			return true;
	return false;
}

static void tell(const struct places *places, const struct lie *lie)
{
	place_write(places, lie->place, lie->offset, lie->bytes, lie->len);
	if (!lie->rotten && !is_own_checksum(lie))
		place_seal(places, lie->place);
}

/*
 * Packed values come first, because code of the filesystem writes them, and needs an intact leaf.
 * Rotten bytes come last, because otherwise another lie would make their checksum right.
 */
static unsigned int turn_of(const struct lie *lie)
{
	return lie->place->packed ? 0 : lie->rotten ? 2 : 1;
}

void lie_tell(const struct places *places, const struct lie *lies, unsigned int count)
{
	for (unsigned int turn = 0; turn < 3; turn++)
		for (unsigned int i = 0; i < count; i++)
			if (turn_of(&lies[i]) == turn)
				tell(places, &lies[i]);
}

/* ---- expectations ---- */

bool lie_is_wide(const struct lie *lie)
{
	return lie->field == &lie->place->field;
}

bool lie_hides_nodes(const struct lie *lie)
{
	return lie->place->is_entry || strcmp(lie->place->structure, "zf_image_slot") == 0 ||
	       strcmp(lie->place->structure, "zone table") == 0;
}

bool lie_may_be_given_up(const struct lie *lie)
{
	static const char *const fields[] = {"version",	   "csum_type", "dir_hash_version",
					     "block_size", "incompat",	"compat_ro"};
	const char *structure = lie->place->structure, *field = lie->field->name;

	if (strcmp(structure, "zf_disk_super") == 0)
		for (size_t i = 0; i < ZF_ARRAY_SIZE(fields); i++)
			if (strcmp(field, fields[i]) == 0 || lie_is_wide(lie))
				return true;
	if (strcmp(structure, "zf_disk_log_body") == 0)
		return strcmp(field, "type") == 0 || strcmp(field, "version") == 0 ||
		       lie_is_wide(lie);
	return strcmp(structure, "zf_image_header") == 0;
}

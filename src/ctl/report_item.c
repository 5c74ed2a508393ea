/* SPDX-License-Identifier: MIT */
/*
 * Items by their fields. The bytes may be anything, because people look most closely at damaged
 * items.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/le.h"
#include "ctl/item_form.h"
#include "ctl/json.h"
#include "ctl/report.h"

/* A value that does not have the expected form. */
static struct json_object *raw(const void *value, size_t len)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_hex(object, "bytes", value, len);
	return object;
}

static struct json_object *checksums(const uint8_t *bytes, size_t len)
{
	struct json_object *array = json_object_new_array();

	for (size_t at = 0; at < len; at += sizeof(struct zf_le64)) {
		char text[24];
		struct zf_le64 le;

		memcpy(&le, bytes + at, sizeof(le));
		snprintf(text, sizeof(text), "0x%016" PRIx64, zf_le64_get(le));
		zf_json_push(array, json_object_new_string(text));
	}
	return array;
}

static void add_tail(struct json_object *object, enum zf_item_tail tail, const uint8_t *bytes,
		     size_t len)
{
	if (tail == ZF_ITEM_CHECKSUMS)
		zf_json_add(object, "csums", checksums(bytes, len));
	else if (len > 0)
		zf_json_add_bytes(object, tail == ZF_ITEM_INLINE ? "inline" : "value", bytes, len);
}

static struct json_object *piece_object(const struct zf_item_form *form,
					const struct zf_item_piece *piece, const uint8_t *value)
{
	const uint8_t *disk = value + piece->at, *name = disk + form->fields->size;
	struct json_object *object = zf_json_fields(form->fields, disk);

	if (form->has_name)
		zf_json_add_bytes(object, "name", name, piece->name_len);
	add_tail(object, form->tail, name + piece->name_len, piece->tail_len);
	return object;
}

static struct json_object *list(const struct zf_item_form *form, const uint8_t *value, size_t len)
{
	struct json_object *array = json_object_new_array();
	struct zf_item_piece piece;
	size_t at = 0;

	while (zf_item_next_piece(form, value, len, &at, &piece))
		zf_json_push(array, piece_object(form, &piece, value));
	if (at < len)
		zf_json_push(array, raw(value + at, len - at));
	return array;
}

struct json_object *zf_report_item_value(enum zf_tree_id tree, const struct zf_key *key,
					 const void *value, size_t len)
{
	const struct zf_item_form *form = zf_item_form(tree, key->type);
	struct zf_item_piece piece;
	size_t at = 0;

	if (form && form->is_list)
		return list(form, value, len);
	if (form && zf_item_next_piece(form, value, len, &at, &piece))
		return piece_object(form, &piece, value);
	return raw(value, len);
}

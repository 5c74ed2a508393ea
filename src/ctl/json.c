/* SPDX-License-Identifier: MIT */
#include "ctl/json.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/le.h"

void zf_json_add(struct json_object *object, const char *key, struct json_object *value)
{
	if (!object || json_object_object_add(object, key, value) != 0)
		json_object_put(value);
}

void zf_json_push(struct json_object *array, struct json_object *value)
{
	if (!array || json_object_array_add(array, value) != 0)
		json_object_put(value);
}

void zf_json_add_u64(struct json_object *object, const char *key, uint64_t value)
{
	zf_json_add(object, key, json_object_new_uint64(value));
}

void zf_json_add_bool(struct json_object *object, const char *key, bool value)
{
	zf_json_add(object, key, json_object_new_boolean(value));
}

void zf_json_add_text(struct json_object *object, const char *key, const char *value)
{
	zf_json_add(object, key, json_object_new_string(value));
}

void zf_json_add_bytes(struct json_object *object, const char *key, const void *bytes, size_t len)
{
	char *text = malloc(ZF_ESCAPE_SIZE(len));

	if (text)
		zf_json_add(object, key,
			    json_object_new_string_len(text, (int)zf_escape(bytes, len, text)));
	free(text);
}

static void to_hex(char *out, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sprintf(out + 2 * i, "%02x", p[i]);
}

void zf_json_add_hex(struct json_object *object, const char *key, const void *bytes, size_t len)
{
	char *text = calloc(1, 2 * len + 1);

	if (text) {
		to_hex(text, bytes, len);
		zf_json_add_text(object, key, text);
	}
	free(text);
}

void zf_json_add_uuid(struct json_object *object, const char *key, const uint8_t uuid[16])
{
	char hex[33], text[37];

	to_hex(hex, uuid, 16);
	snprintf(text, sizeof(text), "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
	zf_json_add_text(object, key, text);
}

struct json_object *zf_json_key(const struct zf_key *key)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "objectid", key->objectid);
	zf_json_add_u64(object, "type", key->type);
	zf_json_add_u64(object, "offset", key->offset);
	return object;
}

/* ---- structs ---- */

static unsigned int number_size(enum zf_field_kind kind)
{
	switch (kind) {
	case ZF_FIELD_U8:
		return 1;
	case ZF_FIELD_U16:
		return 2;
	case ZF_FIELD_U32:
		return 4;
	case ZF_FIELD_U64:
		return 8;
	default:
		return 0;
	}
}

static uint64_t load_number(const uint8_t *p, unsigned int size)
{
	uint64_t v = 0;

	for (unsigned int i = size; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

static struct json_object *numbers(const uint8_t *p, unsigned int size, unsigned int count)
{
	struct json_object *array;

	if (count == 1)
		return json_object_new_uint64(load_number(p, size));
	array = json_object_new_array();
	for (unsigned int i = 0; i < count; i++)
		zf_json_push(array, json_object_new_uint64(load_number(p + i * size, size)));
	return array;
}

static void add_field(struct json_object *object, const struct zf_field *field, const uint8_t *p)
{
	unsigned int size = number_size(field->kind);
	unsigned int len = field->size;
	char text[24];

	switch (field->kind) {
	case ZF_FIELD_HEX64:
		snprintf(text, sizeof(text), "0x%016" PRIx64, load_number(p, 8));
		zf_json_add_text(object, field->name, text);
		return;
	case ZF_FIELD_BYTES:
		zf_json_add_hex(object, field->name, p, len);
		return;
	case ZF_FIELD_UUID:
		zf_json_add_uuid(object, field->name, p);
		return;
	case ZF_FIELD_TEXT:
		while (len > 0 && p[len - 1] == 0)
			len--;
		zf_json_add_bytes(object, field->name, p, len);
		return;
	case ZF_FIELD_ZERO:
		return;
	default:
		assert(size > 0);
		zf_json_add(object, field->name, numbers(p, size, len / size));
	}
}

struct json_object *zf_json_fields(const struct zf_fields *fields, const void *data)
{
	struct json_object *object = json_object_new_object();

	for (unsigned int i = 0; i < fields->count; i++)
		add_field(object, &fields->field[i],
			  (const uint8_t *)data + fields->field[i].offset);
	return object;
}

/* ---- arguments ---- */

/* 1: absent. */
static int get(struct json_object *args, const char *key, enum json_type type,
	       struct json_object **ret_value)
{
	if (!args || !json_object_object_get_ex(args, key, ret_value))
		return 1;
	return json_object_is_type(*ret_value, type) ? 0 : -EINVAL;
}

int zf_json_get_u64(struct json_object *args, const char *key, uint64_t *ret_value)
{
	struct json_object *value;
	int r = get(args, key, json_type_int, &value);

	if (r == 0)
		*ret_value = json_object_get_uint64(value);
	return r < 0 ? r : 0;
}

int zf_json_get_bool(struct json_object *args, const char *key, bool *ret_value)
{
	struct json_object *value;
	int r = get(args, key, json_type_boolean, &value);

	if (r == 0)
		*ret_value = json_object_get_boolean(value);
	return r < 0 ? r : 0;
}

int zf_json_get_text(struct json_object *args, const char *key, const char **ret_value)
{
	struct json_object *value;
	int r = get(args, key, json_type_string, &value);

	if (r == 0)
		*ret_value = json_object_get_string(value);
	return r < 0 ? r : 0;
}

int zf_json_fail(struct json_object **ret, int error, const char *format, ...)
{
	char message[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	*ret = json_object_new_string(message);
	return error;
}

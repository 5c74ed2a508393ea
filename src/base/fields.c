/* SPDX-License-Identifier: MIT */
#include "base/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/le.h"

static const struct {
	const char *type;
	unsigned int size; /* of one element; 0: the field is one value of any length */
} kinds[ZF_FIELD_KIND_COUNT] = {
	[ZF_FIELD_U8] = {"u8", 1},	[ZF_FIELD_U16] = {"le16", 2},
	[ZF_FIELD_U32] = {"le32", 4},	[ZF_FIELD_U64] = {"le64", 8},
	[ZF_FIELD_HEX64] = {"le64", 8}, [ZF_FIELD_BYTES] = {"bytes", 0},
	[ZF_FIELD_UUID] = {"uuid", 0},	[ZF_FIELD_TEXT] = {"text", 0},
	[ZF_FIELD_ZERO] = {"zero", 0},
};

const struct zf_field *zf_fields_check_zero(const struct zf_fields *fields, const void *data)
{
	const uint8_t *bytes = data;

	for (unsigned int i = 0; i < fields->count; i++) {
		const struct zf_field *field = &fields->field[i];

		if (field->kind != ZF_FIELD_ZERO)
			continue;
		for (unsigned int b = 0; b < field->size; b++)
			if (bytes[field->offset + b] != 0)
				return field;
	}
	return NULL;
}

static unsigned int element_count(const struct zf_field *field)
{
	return kinds[field->kind].size ? field->size / kinds[field->kind].size : 1;
}

const char *zf_field_type_to_text(const struct zf_field *field, char *buf, size_t size)
{
	if (element_count(field) > 1)
		snprintf(buf, size, "%s[%u]", kinds[field->kind].type, element_count(field));
	else
		snprintf(buf, size, "%s", kinds[field->kind].type);
	return buf;
}

/* A text that grows in a buffer of fixed size; what does not fit is cut off. */
struct text {
	char *buf;
	size_t size, len;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text->buf + text->len, text->size - text->len, format, ap);
	va_end(ap);
	assert(n >= 0);
	text->len += (size_t)n;
	if (text->len >= text->size)
		text->len = text->size - 1;
}

static void add_hex(struct text *text, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		add(text, "%02x", p[i]);
}

static void add_uuid(struct text *text, const uint8_t *p)
{
	add_hex(text, p, 4);
	for (size_t i = 4; i < 10; i += 2) {
		add(text, "-");
		add_hex(text, p + i, 2);
	}
	add(text, "-");
	add_hex(text, p + 10, 6);
}

/* Everything but printable ASCII is escaped: the bytes may come from a hostile disk. */
static void add_quoted(struct text *text, const uint8_t *p, size_t len)
{
	while (len > 0 && p[len - 1] == 0)
		len--;
	add(text, "\"");
	for (size_t i = 0; i < len; i++) {
		if (p[i] < 0x20 || p[i] > 0x7e || p[i] == '"' || p[i] == '\\')
			add(text, "\\x%02x", p[i]);
		else
			add(text, "%c", p[i]);
	}
	add(text, "\"");
}

static void add_number(struct text *text, enum zf_field_kind kind, const uint8_t *p)
{
	struct zf_le16 le16;
	struct zf_le32 le32;
	struct zf_le64 le64;

	switch (kind) {
	case ZF_FIELD_U8:
		add(text, "%u", *p);
		break;
	case ZF_FIELD_U16:
		memcpy(&le16, p, sizeof(le16));
		add(text, "%u", zf_le16_get(le16));
		break;
	case ZF_FIELD_U32:
		memcpy(&le32, p, sizeof(le32));
		add(text, "%" PRIu32, zf_le32_get(le32));
		break;
	default:
		memcpy(&le64, p, sizeof(le64));
		if (kind == ZF_FIELD_HEX64)
			add(text, "0x%016" PRIx64, zf_le64_get(le64));
		else
			add(text, "%" PRIu64, zf_le64_get(le64));
	}
}

const char *zf_field_value_to_text(const struct zf_field *field, const void *data, char *buf,
				   size_t size)
{
	const uint8_t *p = (const uint8_t *)data + field->offset;
	struct text text = {.buf = buf, .size = size};

	assert(size > 0);
	buf[0] = '\0';
	switch (field->kind) {
	case ZF_FIELD_BYTES:
		add_hex(&text, p, field->size);
		break;
	case ZF_FIELD_UUID:
		assert(field->size == 16);
		add_uuid(&text, p);
		break;
	case ZF_FIELD_TEXT:
		add_quoted(&text, p, field->size);
		break;
	case ZF_FIELD_ZERO:
		break;
	default:
		for (unsigned int i = 0; i < element_count(field); i++) {
			add(&text, "%s", i ? ", " : "");
			add_number(&text, field->kind, p + i * kinds[field->kind].size);
		}
	}
	return buf;
}

/* SPDX-License-Identifier: MIT */
#include "ctl/annotate.h"

#include <stdio.h>

#include "ctl/annotate_internal.h"
#include "ctl/item_form.h"
#include "fs/core/fs_format.h"
#include "superblock/super.h"

/* A text of 255 bytes, each escaped, with its quotes. */
#define VALUE_MAX 1100
/* A longer value would tell no more than the bytes do. */
#define BYTES_SHOWN_MAX 16u

void zf_annotate_fields(const struct zf_annotator *annotator, const char *part, size_t at,
			const struct zf_fields *fields)
{
	const uint8_t *base = annotator->bytes + at;

	for (unsigned int i = 0; i < fields->count; i++) {
		const struct zf_field *field = &fields->field[i];
		struct zf_annotation annotation = {
			.offset = (uint32_t)at + field->offset,
			.size = field->size,
			.part = part,
			.fields = fields,
			.name = field->name,
			.value = "",
			.bytes = base + field->offset,
		};
		char value[VALUE_MAX];

		if (field->kind != ZF_FIELD_BYTES || field->size <= BYTES_SHOWN_MAX)
			annotation.value =
				zf_field_value_to_text(field, base, value, sizeof(value));
		annotator->fn(annotator->arg, &annotation);
	}
}

static void emit_bytes(const struct zf_annotator *annotator, const char *part, size_t at,
		       size_t len, const char *name, const char *value)
{
	const struct zf_annotation annotation = {
		.offset = (uint32_t)at,
		.size = (uint32_t)len,
		.part = part,
		.name = name,
		.value = value,
		.bytes = annotator->bytes + at,
	};

	if (len > 0)
		annotator->fn(annotator->arg, &annotation);
}

void zf_annotate_bytes(const struct zf_annotator *annotator, const char *part, size_t at,
		       size_t len, const char *name)
{
	emit_bytes(annotator, part, at, len, name, "");
}

void zf_annotate_text(const struct zf_annotator *annotator, const char *part, size_t at, size_t len,
		      const char *name)
{
	const struct zf_field field = {.kind = ZF_FIELD_TEXT, .size = (uint16_t)len};
	char value[VALUE_MAX];

	zf_field_value_to_text(&field, annotator->bytes + at, value, sizeof(value));
	emit_bytes(annotator, part, at, len, name, value);
}

/* ---- values of items ---- */

static void annotate_piece(const struct zf_annotator *annotator, const char *part, size_t base,
			   const struct zf_item_form *form, const struct zf_item_piece *piece)
{
	static const char *const tails[] = {
		[ZF_ITEM_NO_TAIL] = "bytes",
		[ZF_ITEM_INLINE] = "inline bytes",
		[ZF_ITEM_CHECKSUMS] = "checksums",
		[ZF_ITEM_ATTRIBUTE] = "attribute's value",
	};
	size_t name_at = base + piece->at + form->fields->size;

	zf_annotate_fields(annotator, part, base + piece->at, form->fields);
	zf_annotate_text(annotator, part, name_at, piece->name_len, "name");
	zf_annotate_bytes(annotator, part, name_at + piece->name_len, piece->tail_len,
			  tails[form->tail]);
}

void zf_annotate_item(const struct zf_annotator *annotator, const char *part, size_t at, size_t len,
		      enum zf_tree_id tree, uint8_t type)
{
	const struct zf_item_form *form = zf_item_form(tree, type);
	struct zf_item_piece piece;
	size_t done = 0;

	while (form && zf_item_next_piece(form, annotator->bytes + at, len, &done, &piece))
		annotate_piece(annotator, part, at, form, &piece);
	zf_annotate_bytes(annotator, part, at + done, len - done,
			  tree == ZF_TREE_FS && type == ZF_KEY_XATTR_VALUE ? "attribute's value"
									   : "bytes");
}

/* ---- a superblock record ---- */

void zf_annotate_super(const void *record, zf_annotate_fn *fn, void *arg)
{
	const struct zf_annotator annotator = {.bytes = record, .fn = fn, .arg = arg};

	zf_annotate_fields(&annotator, "", 0, &zf_super_fields);
}

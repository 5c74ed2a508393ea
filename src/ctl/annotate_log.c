/* SPDX-License-Identifier: MIT */
/* Records of the intent log. A body is decoded only after it was checked (log/body.h). */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "ctl/annotate_internal.h"
#include "fs/core/fs_format.h"
#include "log/record.h"

#define HEADER_SIZE sizeof(struct zf_disk_log_header)

struct body {
	const struct zf_annotator *annotator;
	unsigned int number;
	size_t at, end; /* bytes from the record's start */
};

static const char *part_of(const struct body *body, char part[ZF_PART_MAX], const char *what,
			   unsigned int number)
{
	snprintf(part, ZF_PART_MAX, "body %u %s %u", body->number, what, number);
	return part;
}

/* Names the padding up to the next multiple of 8, relative to the body's start. */
static size_t annotate_padding(const struct body *body, size_t at)
{
	size_t padded = body->at + zf_align_up(at - body->at, ZF_LOG_ALIGN);

	zf_annotate_bytes(body->annotator, "", at, padded - at, "padding");
	return padded;
}

static size_t annotate_item(const struct body *body, const char *part, size_t at, size_t len,
			    uint8_t type)
{
	zf_annotate_item(body->annotator, part, at, len, ZF_TREE_FS, type);
	return annotate_padding(body, at + len);
}

static void annotate_operation(const struct body *body)
{
	size_t at = body->at + sizeof(struct zf_disk_log_body);

	for (unsigned int i = 0; at < body->end; i++) {
		const struct zf_disk_log_edit *edit = (const void *)(body->annotator->bytes + at);
		char part[ZF_PART_MAX];

		zf_annotate_fields(body->annotator, part_of(body, part, "edit", i), at,
				   &zf_disk_log_edit_fields);
		at = annotate_item(body, part_of(body, part, "value", i), at + sizeof(*edit),
				   zf_le16_get(edit->value_len), edit->key_type);
	}
}

static size_t annotate_range(const struct body *body, unsigned int number, size_t at)
{
	const struct zf_disk_log_range *range = (const void *)(body->annotator->bytes + at);
	size_t tail = range->csums
			      ? (zf_le64_get(range->len) >> ZF_BLOCK_SHIFT) * sizeof(struct zf_le64)
			      : zf_le32_get(range->inline_len);
	char part[ZF_PART_MAX];

	part_of(body, part, "range", number);
	zf_annotate_fields(body->annotator, part, at, &zf_disk_log_range_fields);
	at += sizeof(*range);
	zf_annotate_bytes(body->annotator, part, at, tail,
			  range->csums ? "checksums" : "inline bytes");
	return annotate_padding(body, at + tail);
}

static void annotate_extents(const struct body *body)
{
	size_t at = body->at + sizeof(struct zf_disk_log_body);
	const struct zf_disk_log_inode *inode = (const void *)(body->annotator->bytes + at);
	char part[ZF_PART_MAX];

	snprintf(part, sizeof(part), "body %u inode", body->number);
	zf_annotate_fields(body->annotator, part, at, &zf_disk_log_inode_fields);
	snprintf(part, sizeof(part), "body %u item", body->number);
	at = annotate_item(body, part, at + sizeof(*inode), zf_le16_get(inode->item_len),
			   ZF_KEY_INODE);
	for (unsigned int i = 0; at < body->end; i++)
		at = annotate_range(body, i, at);
}

/* Returns where the last well-formed body ends. */
static size_t annotate_bodies(const struct zf_annotator *annotator, uint32_t bytes, uint32_t count)
{
	size_t at = HEADER_SIZE, len;

	for (uint32_t i = 0; i < count; i++) {
		const struct zf_disk_log_body *disk = (const void *)(annotator->bytes + at);
		struct body body = {.annotator = annotator, .number = i, .at = at};
		char part[ZF_PART_MAX];

		if (zf_log_body_check(annotator->bytes + at, bytes - at, &len) < 0)
			break;
		body.end = at + len;
		snprintf(part, sizeof(part), "body %u", i);
		zf_annotate_fields(annotator, part, at, &zf_disk_log_body_fields);
		(disk->type == ZF_LOG_OPERATION ? annotate_operation : annotate_extents)(&body);
		at = body.end;
	}
	return at;
}

void zf_annotate_log_record(const void *blocks, uint32_t len, zf_annotate_fn *fn, void *arg)
{
	const struct zf_annotator annotator = {.bytes = blocks, .fn = fn, .arg = arg};
	const struct zf_disk_log_header *header = blocks;
	uint32_t bytes = zf_le32_get(header->bytes), carried = zf_le32_get(header->carried);
	uint32_t end = zf_log_header_blocks(bytes) << ZF_BLOCK_SHIFT;
	size_t at;

	zf_annotate_fields(&annotator, "", 0, &zf_disk_log_header_fields);
	at = annotate_bodies(&annotator, bytes, zf_le32_get(header->body_count));
	zf_annotate_bytes(&annotator, "", at, bytes - at, "bytes");
	zf_annotate_bytes(&annotator, "", bytes, carried, "packed block");
	zf_annotate_bytes(&annotator, "", bytes + carried, end - bytes - carried,
			  "rest of the block");
	zf_annotate_bytes(&annotator, "", end, len - end, "data");
}

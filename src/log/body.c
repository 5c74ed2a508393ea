/* SPDX-License-Identifier: MIT */
/* Bodies of log records: building them. */
#include "log/body.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

static struct zf_disk_log_body *header_of(const struct zf_log_body *body)
{
	return (void *)body->bytes;
}

/* Makes room for `len` more bytes. */
static int make_room(struct zf_log_body *body, size_t len)
{
	size_t room = body->room;
	uint8_t *bytes;

	if (len > ZF_LOG_BODY_MAX - body->len)
		return -E2BIG;
	if (len <= room - body->len)
		return 0;
	while (room < body->len + len)
		room *= 2;
	bytes = realloc(body->bytes == body->first ? NULL : body->bytes, room);
	if (!bytes)
		return -ENOMEM;
	if (body->bytes == body->first)
		memcpy(bytes, body->first, body->len);
	body->bytes = bytes;
	body->room = room;
	return 0;
}

/* Adds `len` zeroes, and zeroes up to a multiple of 8. NULL: the body has an error. */
static void *add(struct zf_log_body *body, size_t len)
{
	size_t padded = zf_align_up(len, ZF_LOG_ALIGN);
	uint8_t *added;

	if (body->error == 0)
		body->error = make_room(body, padded);
	if (body->error < 0)
		return NULL;
	added = body->bytes + body->len;
	memset(added, 0, padded);
	body->len += padded;
	header_of(body)->bytes = zf_le32_from((uint32_t)body->len);
	return added;
}

static void add_bytes(struct zf_log_body *body, const void *bytes, size_t len)
{
	void *added = len > 0 ? add(body, len) : NULL;

	if (added)
		memcpy(added, bytes, len);
}

void zf_log_body_begin(struct zf_log_body *body, enum zf_log_body_type type)
{
	body->bytes = body->first;
	body->room = sizeof(body->first);
	body->len = 0;
	body->error = 0;
	add(body, sizeof(struct zf_disk_log_body));
	header_of(body)->type = (uint8_t)type;
	header_of(body)->version = ZF_LOG_BODY_VERSION;
}

void zf_log_body_end(struct zf_log_body *body)
{
	if (body->bytes != body->first)
		free(body->bytes);
	body->bytes = body->first;
	body->room = sizeof(body->first);
	body->len = 0;
}

/* ---- an operation ---- */

static void add_edit(struct zf_log_body *body, enum zf_log_edit_kind kind, const struct zf_key *key,
		     size_t value_len)
{
	struct zf_disk_log_edit *edit;

	assert(value_len <= UINT16_MAX);
	edit = add(body, sizeof(*edit));
	if (!edit)
		return;
	edit->kind = (uint8_t)kind;
	edit->key_type = key->type;
	edit->value_len = zf_le16_from((uint16_t)value_len);
	edit->objectid = zf_le64_from(key->objectid);
	edit->offset = zf_le64_from(key->offset);
}

void zf_log_body_set(struct zf_log_body *body, const struct zf_key *key, const void *value,
		     size_t len)
{
	add_edit(body, ZF_LOG_SET, key, len);
	add_bytes(body, value, len);
}

void zf_log_body_delete(struct zf_log_body *body, const struct zf_key *key)
{
	add_edit(body, ZF_LOG_DELETE, key, 0);
}

void zf_log_body_resize(struct zf_log_body *body, uint64_t ino, uint64_t size)
{
	const struct zf_key key = ZF_KEY(ino, 0, size);

	assert(body->error < 0 || body->len == sizeof(struct zf_disk_log_body));
	add_edit(body, ZF_LOG_RESIZE, &key, 0);
}

/* ---- the state of an inode ---- */

void zf_log_body_inode(struct zf_log_body *body, uint64_t ino, const void *item, size_t item_len)
{
	struct zf_disk_log_inode *inode;

	assert(body->error < 0 || body->len == sizeof(struct zf_disk_log_body));
	assert(item_len <= UINT16_MAX);
	inode = add(body, sizeof(*inode));
	if (!inode)
		return;
	inode->ino = zf_le64_from(ino);
	inode->item_len = zf_le16_from((uint16_t)item_len);
	add_bytes(body, item, item_len);
}

static void count_range(struct zf_log_body *body)
{
	struct zf_disk_log_inode *inode = (void *)(body->bytes + sizeof(struct zf_disk_log_body));

	inode->range_count = zf_le32_from(zf_le32_get(inode->range_count) + 1);
}

static void add_csums(struct zf_log_body *body, const struct zf_log_range *range)
{
	uint64_t count = range->len >> ZF_BLOCK_SHIFT;
	struct zf_le64 *csums = add(body, count * sizeof(*csums));

	if (!csums)
		return;
	for (uint64_t i = 0; i < count; i++)
		csums[i] = zf_le64_from(range->csums[i]);
}

void zf_log_body_range(struct zf_log_body *body, const struct zf_log_range *range)
{
	struct zf_disk_log_range *disk = add(body, sizeof(*disk));

	if (!disk)
		return;
	assert(range->type == ZF_LOG_RANGE_DATA || (!range->csums && !range->riding));
	assert(range->type == ZF_LOG_RANGE_INLINE || range->inline_len == 0);
	*disk = (struct zf_disk_log_range){
		.type = (uint8_t)range->type,
		.flags = range->flags,
		.riding = range->riding,
		.csums = range->csums != NULL,
		.inline_len = zf_le32_from(range->inline_len),
		.offset = zf_le64_from(range->offset),
		.len = zf_le64_from(range->len),
		.address = zf_le64_from(range->address),
	};
	count_range(body);
	if (range->csums)
		add_csums(body, range);
	else
		add_bytes(body, range->bytes, range->inline_len);
}

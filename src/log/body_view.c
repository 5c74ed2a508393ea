/* SPDX-License-Identifier: MIT */
/* Bodies of log records: checking them, and taking them apart. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "log/body.h"

/* The rest of a body. take() gives only bytes of the rest, so nothing outside is ever read. */
struct rest {
	const uint8_t *bytes;
	size_t len;
};

/* Takes the next `len` bytes, and passes over the padding to a multiple of 8. NULL: too few. */
static const void *take(struct rest *rest, uint64_t len)
{
	const uint8_t *taken = rest->bytes;
	uint64_t padded;

	if (len > rest->len)
		return NULL;
	/* The rest is a multiple of 8, so the padding is there, too. */
	padded = zf_align_up(len, ZF_LOG_ALIGN);
	assert(padded <= rest->len);
	rest->bytes += padded;
	rest->len -= padded;
	return taken;
}

static bool is_padded_with_zeroes(const uint8_t *bytes, size_t len)
{
	for (size_t i = len; i < zf_align_up(len, ZF_LOG_ALIGN); i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* Like take(), but also checks that the padding is zeroes. */
static const void *take_padded(struct rest *rest, uint64_t len)
{
	const uint8_t *taken = take(rest, len);

	return taken && is_padded_with_zeroes(taken, len) ? taken : NULL;
}

static struct rest rest_of(const uint8_t *bytes, size_t len)
{
	return (struct rest){
		.bytes = bytes + sizeof(struct zf_disk_log_body),
		.len = len - sizeof(struct zf_disk_log_body),
	};
}

/* ---- checking ---- */

static bool edit_is_good(const struct zf_disk_log_edit *edit, bool first)
{
	if (zf_fields_check_zero(&zf_disk_log_edit_fields, edit))
		return false;
	switch (edit->kind) {
	case ZF_LOG_SET:
		return true;
	case ZF_LOG_DELETE:
		return zf_le16_get(edit->value_len) == 0;
	case ZF_LOG_RESIZE:
		return first && edit->key_type == 0 && zf_le16_get(edit->value_len) == 0;
	default:
		return false;
	}
}

static int check_operation(struct rest rest)
{
	for (bool first = true; rest.len > 0; first = false) {
		const struct zf_disk_log_edit *edit = take(&rest, sizeof(*edit));

		if (!edit || !edit_is_good(edit, first) ||
		    !take_padded(&rest, zf_le16_get(edit->value_len)))
			return -EUCLEAN;
	}
	return 0;
}

static bool is_block_range(uint64_t start, uint64_t len, uint64_t end_max)
{
	return zf_is_aligned(start, ZF_BLOCK_SIZE) && zf_is_aligned(len, ZF_BLOCK_SIZE) &&
	       len > 0 && len <= end_max && start <= end_max - len;
}

/* Checks the address of the range's bytes: on the device, or among the body's own blocks. */
static bool range_place_is_good(const struct zf_disk_log_range *range, uint32_t data_count)
{
	uint64_t address = zf_le64_get(range->address), len = zf_le64_get(range->len);
	uint64_t end_max = (uint64_t)data_count << ZF_BLOCK_SHIFT;

	if (range->type != ZF_LOG_RANGE_DATA)
		return address == 0 && range->riding == 0 && range->csums == 0;
	/* Riding data may be torn, and only checksums tell that. */
	if (range->riding && !range->csums)
		return false;
	return is_block_range(address, len, range->riding ? end_max : ZF_LOG_END_MAX);
}

static bool range_is_good(const struct zf_disk_log_range *range, uint32_t data_count)
{
	uint64_t len = zf_le64_get(range->len);
	uint32_t inline_len = zf_le32_get(range->inline_len);

	if (range->type > ZF_LOG_RANGE_ZERO || range->riding > 1 || range->csums > 1)
		return false;
	if (!is_block_range(zf_le64_get(range->offset), len, ZF_LOG_END_MAX))
		return false;
	if (range->type == ZF_LOG_RANGE_INLINE ? inline_len > len : inline_len != 0)
		return false;
	return range_place_is_good(range, data_count);
}

/* The number of bytes that follow a range. */
static uint64_t range_tail(const struct zf_disk_log_range *range)
{
	if (range->csums)
		return (zf_le64_get(range->len) >> ZF_BLOCK_SHIFT) * sizeof(struct zf_le64);
	return zf_le32_get(range->inline_len);
}

static int check_extents(struct rest rest, uint32_t data_count)
{
	const struct zf_disk_log_inode *inode = take(&rest, sizeof(*inode));
	/* No block rides twice; otherwise checking a forged record could take for ever. */
	uint64_t may_ride = (uint64_t)data_count << ZF_BLOCK_SHIFT;

	if (!inode || zf_fields_check_zero(&zf_disk_log_inode_fields, inode) ||
	    !take_padded(&rest, zf_le16_get(inode->item_len)))
		return -EUCLEAN;
	for (uint32_t left = zf_le32_get(inode->range_count); left > 0; left--) {
		const struct zf_disk_log_range *range = take(&rest, sizeof(*range));

		if (!range || !range_is_good(range, data_count) ||
		    !take_padded(&rest, range_tail(range)))
			return -EUCLEAN;
		if (!range->riding)
			continue;
		if (zf_le64_get(range->len) > may_ride)
			return -EUCLEAN;
		may_ride -= zf_le64_get(range->len);
	}
	return rest.len == 0 ? 0 : -EUCLEAN;
}

static int check_payload(const struct zf_disk_log_body *body, size_t len)
{
	struct rest rest = rest_of((const uint8_t *)body, len);
	uint32_t data_count = zf_le32_get(body->data_count);

	if (zf_fields_check_zero(&zf_disk_log_body_fields, body))
		return -EUCLEAN;
	if (body->type == ZF_LOG_EXTENTS)
		return check_extents(rest, data_count);
	return data_count == 0 ? check_operation(rest) : -EUCLEAN;
}

int zf_log_body_check(const uint8_t *bytes, size_t len, size_t *ret_len)
{
	const struct zf_disk_log_body *body = (const void *)bytes;
	uint32_t body_len;
	int r;

	if (len < sizeof(*body))
		return -EUCLEAN;
	body_len = zf_le32_get(body->bytes);
	if (body_len < sizeof(*body) || body_len > len || body_len > ZF_LOG_BODY_MAX ||
	    !zf_is_aligned(body_len, ZF_LOG_ALIGN))
		return -EUCLEAN;
	if (body->version != ZF_LOG_BODY_VERSION ||
	    (body->type != ZF_LOG_OPERATION && body->type != ZF_LOG_EXTENTS))
		return -EPROTONOSUPPORT;
	r = check_payload(body, body_len);
	if (r < 0)
		return r;
	*ret_len = body_len;
	return 0;
}

/* ---- taking apart ---- */

/* The rest of the body behind `at`, which counts from the end of the body's header. */
static struct rest rest_at(const struct zf_log_body_view *view, size_t at)
{
	struct rest rest = rest_of(view->bytes, view->len);

	rest.bytes += at;
	rest.len -= at;
	return rest;
}

bool zf_log_next_edit(const struct zf_log_body_view *view, size_t *at, struct zf_log_edit *ret_edit)
{
	struct rest rest = rest_at(view, *at);
	const struct zf_disk_log_edit *edit;
	size_t before = rest.len;

	assert(view->type == ZF_LOG_OPERATION);
	if (rest.len == 0)
		return false;
	edit = take(&rest, sizeof(*edit));
	*ret_edit = (struct zf_log_edit){
		.kind = (enum zf_log_edit_kind)edit->kind,
		.key = ZF_KEY(zf_le64_get(edit->objectid), edit->key_type,
			      zf_le64_get(edit->offset)),
		.len = zf_le16_get(edit->value_len),
	};
	ret_edit->value = take(&rest, ret_edit->len);
	*at += before - rest.len;
	return true;
}

void zf_log_view_inode(const struct zf_log_body_view *view, struct zf_log_inode *ret_inode)
{
	struct rest rest = rest_at(view, 0);
	const struct zf_disk_log_inode *inode = take(&rest, sizeof(*inode));

	assert(view->type == ZF_LOG_EXTENTS);
	ret_inode->ino = zf_le64_get(inode->ino);
	ret_inode->item_len = zf_le16_get(inode->item_len);
	ret_inode->range_count = zf_le32_get(inode->range_count);
	ret_inode->item = take(&rest, ret_inode->item_len);
}

static size_t inode_len(const struct zf_log_body_view *view)
{
	struct zf_log_inode inode;

	zf_log_view_inode(view, &inode);
	return sizeof(struct zf_disk_log_inode) + zf_align_up(inode.item_len, ZF_LOG_ALIGN);
}

static uint64_t address_of(const struct zf_log_body_view *view,
			   const struct zf_disk_log_range *range)
{
	uint64_t address = zf_le64_get(range->address);

	return range->riding ? view->data_address + address : address;
}

bool zf_log_next_range(const struct zf_log_body_view *view, size_t *at,
		       struct zf_log_range_view *ret_range)
{
	const struct zf_disk_log_range *disk;
	struct rest rest;
	const void *tail;

	if (*at == 0)
		*at = inode_len(view);
	rest = rest_at(view, *at);
	if (rest.len == 0)
		return false;
	disk = take(&rest, sizeof(*disk));
	tail = take(&rest, range_tail(disk));
	ret_range->csums = disk->csums ? tail : NULL;
	ret_range->range = (struct zf_log_range){
		.type = (enum zf_log_range_type)disk->type,
		.flags = disk->flags,
		.riding = disk->riding,
		.offset = zf_le64_get(disk->offset),
		.len = zf_le64_get(disk->len),
		.address = address_of(view, disk),
		.bytes = disk->type == ZF_LOG_RANGE_INLINE ? tail : NULL,
		.inline_len = zf_le32_get(disk->inline_len),
	};
	*at = view->len - sizeof(struct zf_disk_log_body) - rest.len;
	return true;
}

void zf_log_range_csums(const struct zf_log_range_view *range, unsigned int first,
			unsigned int count, uint64_t *ret_csums)
{
	assert(first + (uint64_t)count <= range->range.len >> ZF_BLOCK_SHIFT);
	for (unsigned int i = 0; i < count; i++)
		ret_csums[i] = zf_le64_get(range->csums[first + i]);
}

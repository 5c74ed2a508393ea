/* SPDX-License-Identifier: MIT */
#include "ctl/item_form.h"

#include <string.h>

#include "alloc/zone_format.h"
#include "base/bits.h"
#include "fs/core/fs_format.h"
#include "txn/root_format.h"

static const struct {
	enum zf_tree_id tree;
	uint8_t type;
	struct zf_item_form form;
} forms[] = {
	{ZF_TREE_ROOT, ZF_KEY_ROOT, {.fields = &zf_disk_root_fields}},
	{ZF_TREE_ROOT, ZF_KEY_FAULTS, {.fields = &zf_disk_faults_fields}},
	{ZF_TREE_ROOT, ZF_KEY_SCRUB, {.fields = &zf_disk_scrub_fields}},
	{ZF_TREE_ZONE, ZF_KEY_ZONE, {.fields = &zf_disk_zone_fields}},
	{ZF_TREE_SUMMARY,
	 ZF_KEY_SUMMARY,
	 {.fields = &zf_disk_summary_fields, .tail = ZF_ITEM_CHECKSUMS}},
	{ZF_TREE_SHARE, ZF_KEY_SHARE, {.fields = &zf_disk_share_fields, .is_list = true}},
	{ZF_TREE_FS, ZF_KEY_INODE, {.fields = &zf_disk_inode_fields}},
	{ZF_TREE_FS, ZF_KEY_INTENT, {.fields = &zf_disk_intent_fields}},
	{ZF_TREE_FS, ZF_KEY_EXTENT, {.fields = &zf_disk_extent_fields, .tail = ZF_ITEM_INLINE}},
	{ZF_TREE_FS,
	 ZF_KEY_REF,
	 {.fields = &zf_disk_ref_fields,
	  .is_list = true,
	  .has_name = true,
	  .name_len_offset = offsetof(struct zf_disk_ref, name_len)}},
	{ZF_TREE_FS,
	 ZF_KEY_DIR_NAME,
	 {.fields = &zf_disk_dirent_fields,
	  .is_list = true,
	  .has_name = true,
	  .name_len_offset = offsetof(struct zf_disk_dirent, name_len)}},
	{ZF_TREE_FS,
	 ZF_KEY_DIR_COOKIE,
	 {.fields = &zf_disk_dirent_fields,
	  .is_list = true,
	  .has_name = true,
	  .name_len_offset = offsetof(struct zf_disk_dirent, name_len)}},
	{ZF_TREE_FS,
	 ZF_KEY_XATTR,
	 {.fields = &zf_disk_xattr_fields,
	  .is_list = true,
	  .has_name = true,
	  .name_len_offset = offsetof(struct zf_disk_xattr, name_len),
	  .tail = ZF_ITEM_ATTRIBUTE}},
};

const struct zf_item_form *zf_item_form(enum zf_tree_id tree, uint8_t type)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(forms); i++)
		if (forms[i].tree == tree && forms[i].type == type)
			return &forms[i].form;
	return NULL;
}

static size_t name_len(const struct zf_item_form *form, const uint8_t *disk)
{
	struct zf_le16 le;

	if (!form->has_name)
		return 0;
	memcpy(&le, disk + form->name_len_offset, sizeof(le));
	return zf_le16_get(le);
}

/* The length of the tail. `left` bytes follow the name. */
static size_t tail_len(const struct zf_item_form *form, const uint8_t *disk, size_t left)
{
	struct zf_disk_xattr xattr;

	switch (form->tail) {
	case ZF_ITEM_INLINE:
	case ZF_ITEM_CHECKSUMS:
		return left;
	case ZF_ITEM_ATTRIBUTE:
		memcpy(&xattr, disk, sizeof(xattr));
		return zf_le32_get(xattr.value_id) ? 0 : zf_le32_get(xattr.value_len);
	case ZF_ITEM_NO_TAIL:
		break;
	}
	return 0;
}

/* Does the piece end where its form demands? A value that is no list must end with it. */
static bool fills_value(const struct zf_item_form *form, size_t left, size_t tail)
{
	if (form->tail == ZF_ITEM_CHECKSUMS && tail % sizeof(struct zf_le64) != 0)
		return false;
	return form->is_list || left == tail;
}

bool zf_item_next_piece(const struct zf_item_form *form, const void *value, size_t len, size_t *at,
			struct zf_item_piece *ret_piece)
{
	const uint8_t *disk = (const uint8_t *)value + *at;
	size_t left = len - *at, name, tail;

	if (left < form->fields->size)
		return false;
	left -= form->fields->size;
	name = name_len(form, disk);
	if (name > left)
		return false;
	left -= name;
	tail = tail_len(form, disk, left);
	if (tail > left || !fills_value(form, left, tail))
		return false;
	*ret_piece = (struct zf_item_piece){.at = *at, .name_len = name, .tail_len = tail};
	*at += form->fields->size + name + tail;
	return true;
}

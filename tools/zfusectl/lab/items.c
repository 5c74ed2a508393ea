/* SPDX-License-Identifier: MIT */
#include "lab/items.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "ctl/json.h"
#include "fs/core/fs_format.h"

static void push_u64(struct json_object *array, uint64_t value)
{
	zf_json_push(array, json_object_new_uint64(value));
}

static void push_text(struct json_object *array, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	zf_json_push(array, json_object_new_string(text));
}

/* ---- items ---- */

struct json_object *zf_lab_key(const struct zf_key *key)
{
	static const char *const letters[] = {
		[ZF_KEY_INODE] = "i",
		[ZF_KEY_DIR_NAME] = "n",
		[ZF_KEY_EXTENT] = "x",
		[ZF_KEY_INTENT] = "t",
	};
	struct json_object *array;

	if (key->type >= ZF_ARRAY_SIZE(letters) || !letters[key->type])
		return NULL;
	array = json_object_new_array();
	zf_json_push(array, json_object_new_string(letters[key->type]));
	push_u64(array, key->objectid);
	if (key->type == ZF_KEY_DIR_NAME)
		push_text(array, key->offset);
	else if (key->type != ZF_KEY_INODE)
		push_u64(array, key->offset);
	return array;
}

static bool add_inode(struct json_object *item, const void *value, size_t len)
{
	struct zf_disk_inode disk;

	if (len != sizeof(disk))
		return false;
	memcpy(&disk, value, len);
	push_u64(item, zf_le32_get(disk.mode));
	push_text(item, zf_le64_get(disk.size));
	return true;
}

static struct json_object *entry(const struct zf_disk_dirent *disk, const uint8_t *name)
{
	struct json_object *array = json_object_new_array(), *holder = json_object_new_object();

	zf_json_add_bytes(holder, "name", name, zf_le16_get(disk->name_len));
	zf_json_push(array, json_object_get(json_object_object_get(holder, "name")));
	json_object_put(holder);
	push_u64(array, zf_le64_get(disk->ino));
	push_u64(array, disk->type);
	return array;
}

static bool add_names(struct json_object *item, const uint8_t *value, size_t len)
{
	struct json_object *names = json_object_new_array();
	struct zf_disk_dirent disk;
	size_t at = 0;

	zf_json_push(item, names);
	while (len - at >= sizeof(disk)) {
		memcpy(&disk, value + at, sizeof(disk));
		at += sizeof(disk);
		if (zf_le16_get(disk.name_len) > len - at)
			return false;
		zf_json_push(names, entry(&disk, value + at));
		at += zf_le16_get(disk.name_len);
	}
	return at == len;
}

static bool add_extent(struct json_object *item, const void *value, size_t len)
{
	struct zf_disk_extent disk;
	uint64_t count;

	if (len < sizeof(disk))
		return false;
	memcpy(&disk, value, sizeof(disk));
	count = zf_le32_get(disk.count);
	push_u64(item, disk.type);
	push_u64(item, disk.type == ZF_EXTENT_INLINE ? count : count * ZF_BLOCK_SIZE);
	push_u64(item, zf_le64_get(disk.address));
	return true;
}

static bool add_intent(struct json_object *item, const void *value, size_t len)
{
	struct zf_disk_intent disk;

	if (len != sizeof(disk))
		return false;
	memcpy(&disk, value, len);
	push_u64(item, zf_le64_get(disk.ino));
	push_u64(item, zf_le64_get(disk.from));
	push_u64(item, zf_le64_get(disk.to));
	return true;
}

static bool add_value(struct json_object *item, const struct zf_key *key, const void *value,
		      size_t len)
{
	switch ((enum zf_fs_key)key->type) {
	case ZF_KEY_INODE:
		return add_inode(item, value, len);
	case ZF_KEY_DIR_NAME:
		return add_names(item, value, len);
	case ZF_KEY_EXTENT:
		return add_extent(item, value, len);
	case ZF_KEY_INTENT:
		return add_intent(item, value, len);
	default:
		return false;
	}
}

struct json_object *zf_lab_item(const struct zf_key *key, const void *value, size_t len)
{
	struct json_object *item = zf_lab_key(key);

	if (!item || add_value(item, key, value, len))
		return item;
	json_object_put(item);
	return NULL;
}

/* ---- bodies ---- */

static void push_edit(struct json_object *edits, const char *kind, struct json_object *what)
{
	struct json_object *edit;

	if (!what)
		return;
	edit = json_object_new_array();
	zf_json_push(edit, json_object_new_string(kind));
	zf_json_push(edit, what);
	zf_json_push(edits, edit);
}

static struct json_object *resize(const struct zf_log_edit *edit)
{
	struct json_object *array = json_object_new_array();

	push_u64(array, edit->key.objectid);
	push_text(array, edit->key.offset);
	return array;
}

static void add_edits(struct json_object *object, const struct zf_log_body_view *body)
{
	struct json_object *edits = json_object_new_array();
	struct zf_log_edit edit;
	size_t at = 0;

	while (zf_log_next_edit(body, &at, &edit)) {
		if (edit.kind == ZF_LOG_RESIZE)
			push_edit(edits, "resize", resize(&edit));
		else if (edit.kind == ZF_LOG_DELETE)
			push_edit(edits, "delete", zf_lab_key(&edit.key));
		else
			push_edit(edits, "set", zf_lab_item(&edit.key, edit.value, edit.len));
	}
	zf_json_add(object, "edits", edits);
}

static struct json_object *range_of(const struct zf_log_range *range)
{
	struct json_object *array = json_object_new_array();

	push_u64(array, range->type);
	push_u64(array, range->offset);
	push_u64(array, range->type == ZF_LOG_RANGE_INLINE ? range->inline_len : range->len);
	push_u64(array, range->address);
	zf_json_push(array, json_object_new_boolean(range->riding));
	return array;
}

static void add_state(struct json_object *object, const struct zf_log_body_view *body)
{
	struct json_object *ranges = json_object_new_array();
	struct zf_log_range_view view;
	struct zf_log_inode inode;
	struct zf_disk_inode disk = {0};
	char size[24];
	size_t at = 0;

	zf_log_view_inode(body, &inode);
	memcpy(&disk, inode.item, zf_min_u64(sizeof(disk), inode.item_len));
	snprintf(size, sizeof(size), "%" PRIu64, zf_le64_get(disk.size));
	zf_json_add_u64(object, "inode", inode.ino);
	zf_json_add_u64(object, "mode", zf_le32_get(disk.mode));
	zf_json_add_text(object, "size", size);
	while (zf_log_next_range(body, &at, &view))
		zf_json_push(ranges, range_of(&view.range));
	zf_json_add(object, "ranges", ranges);
}

struct json_object *zf_lab_body(const struct zf_log_body_view *body)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "number", body->number);
	if (body->type == ZF_LOG_OPERATION)
		add_edits(object, body);
	else
		add_state(object, body);
	return object;
}

/* SPDX-License-Identifier: MIT */
/* Items by their fields: of any bytes, for a damaged item is what a person looks at most closely.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alloc/zone_format.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "txn/root_format.h"

/* What does not have the form that it should have. */
static struct json_object *raw(const void *value, size_t len)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_hex(object, "bytes", value, len);
	return object;
}

static struct json_object *fixed(const struct zf_fields *fields, const void *value, size_t len)
{
	return len == fields->size ? zf_json_fields(fields, value) : raw(value, len);
}

/* A chain of structs, each followed by a name (and more, in attributes). */
struct chain {
	const struct zf_fields *fields;
	size_t name_len_offset;
	/* Bytes behind the name. */
	size_t (*tail_len)(const uint8_t *disk);
};

static size_t xattr_tail_len(const uint8_t *disk)
{
	struct zf_disk_xattr xattr;

	memcpy(&xattr, disk, sizeof(xattr));
	return zf_le32_get(xattr.value_id) ? 0 : zf_le32_get(xattr.value_len);
}

static struct json_object *chain(const struct chain *chain, const uint8_t *value, size_t len)
{
	struct json_object *array = json_object_new_array();
	size_t at = 0;

	while (at < len) {
		size_t size = chain->fields->size, left = len - at, name_len, tail;
		struct json_object *object;
		struct zf_le16 le;

		if (left < size)
			break;
		memcpy(&le, value + at + chain->name_len_offset, sizeof(le));
		name_len = zf_le16_get(le);
		tail = chain->tail_len ? chain->tail_len(value + at) : 0;
		if (name_len > left - size || tail > left - size - name_len)
			break;
		object = zf_json_fields(chain->fields, value + at);
		zf_json_add_bytes(object, "name", value + at + size, name_len);
		if (tail)
			zf_json_add_bytes(object, "value", value + at + size + name_len, tail);
		zf_json_push(array, object);
		at += size + name_len + tail;
	}
	if (at < len)
		zf_json_push(array, raw(value + at, len - at));
	return array;
}

static struct json_object *extent(const uint8_t *value, size_t len)
{
	struct json_object *object;

	if (len < sizeof(struct zf_disk_extent))
		return raw(value, len);
	object = zf_json_fields(&zf_disk_extent_fields, value);
	if (len > sizeof(struct zf_disk_extent))
		zf_json_add_bytes(object, "inline", value + sizeof(struct zf_disk_extent),
				  len - sizeof(struct zf_disk_extent));
	return object;
}

static struct json_object *summary(const uint8_t *value, size_t len)
{
	struct json_object *object, *csums;
	size_t at = sizeof(struct zf_disk_summary);

	if (len < at || (len - at) % sizeof(struct zf_le64) != 0)
		return raw(value, len);
	object = zf_json_fields(&zf_disk_summary_fields, value);
	csums = json_object_new_array();
	for (; at < len; at += sizeof(struct zf_le64)) {
		char text[24];
		struct zf_le64 le;

		memcpy(&le, value + at, sizeof(le));
		snprintf(text, sizeof(text), "0x%016" PRIx64, zf_le64_get(le));
		zf_json_push(csums, json_object_new_string(text));
	}
	zf_json_add(object, "csums", csums);
	return object;
}

static struct json_object *share(const uint8_t *value, size_t len)
{
	struct json_object *array;
	size_t size = sizeof(struct zf_disk_share);

	if (len % size != 0)
		return raw(value, len);
	array = json_object_new_array();
	for (size_t at = 0; at < len; at += size)
		zf_json_push(array, zf_json_fields(&zf_disk_share_fields, value + at));
	return array;
}

static struct json_object *fs_value(uint8_t type, const void *value, size_t len)
{
	static const struct chain refs = {
		.fields = &zf_disk_ref_fields,
		.name_len_offset = offsetof(struct zf_disk_ref, name_len),
	};
	static const struct chain dirents = {
		.fields = &zf_disk_dirent_fields,
		.name_len_offset = offsetof(struct zf_disk_dirent, name_len),
	};
	static const struct chain xattrs = {
		.fields = &zf_disk_xattr_fields,
		.name_len_offset = offsetof(struct zf_disk_xattr, name_len),
		.tail_len = xattr_tail_len,
	};

	switch (type) {
	case ZF_KEY_INODE:
		return fixed(&zf_disk_inode_fields, value, len);
	case ZF_KEY_REF:
		return chain(&refs, value, len);
	case ZF_KEY_XATTR:
		return chain(&xattrs, value, len);
	case ZF_KEY_DIR_NAME:
	case ZF_KEY_DIR_COOKIE:
		return chain(&dirents, value, len);
	case ZF_KEY_EXTENT:
		return extent(value, len);
	case ZF_KEY_INTENT:
		return fixed(&zf_disk_intent_fields, value, len);
	default:
		return raw(value, len);
	}
}

static struct json_object *root_value(uint8_t type, const void *value, size_t len)
{
	switch (type) {
	case ZF_KEY_FAULTS:
		return fixed(&zf_disk_faults_fields, value, len);
	case ZF_KEY_SCRUB:
		return fixed(&zf_disk_scrub_fields, value, len);
	default:
		return fixed(&zf_disk_root_fields, value, len);
	}
}

struct json_object *zf_report_item_value(enum zf_tree_id tree, const struct zf_key *key,
					 const void *value, size_t len)
{
	switch (tree) {
	case ZF_TREE_ROOT:
		return root_value(key->type, value, len);
	case ZF_TREE_ZONE:
		return fixed(&zf_disk_zone_fields, value, len);
	case ZF_TREE_SUMMARY:
		return summary(value, len);
	case ZF_TREE_SHARE:
		return share(value, len);
	default:
		return fs_value(key->type, value, len);
	}
}

/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "ctl/json.h"
#include "ctl/report.h"

#define EXTENTS_A_CALL 64u
#define EXTENTS_A_PART 512u
#define COMPONENT_MAX  ZF_NAME_MAX

static const struct zf_ctx superuser = {.may_wait = true};

/* The inode at a path from the root, component by component; symbolic links are not followed. */
static int find_path(struct zf_fs *fs, const char *path, uint64_t *ret_ino)
{
	uint64_t ino = ZF_INO_ROOT;

	for (;;) {
		char name[COMPONENT_MAX + 1];
		struct zf_attr attr;
		size_t len;
		int r;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 0)
			break;
		if (len > COMPONENT_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, len);
		name[len] = '\0';
		path += len;
		if (strcmp(name, ".") == 0)
			continue;
		r = zf_fs_lookup(fs, &superuser, ino, name, &attr);
		if (r < 0)
			return r;
		ino = attr.ino;
		/* Gives back the reference of the lookup, which is not the kernel's. */
		zf_fs_forget(fs, ino, 1);
	}
	*ret_ino = ino;
	return 0;
}

/*
 * A ZERO extent has no bytes on the device, and reads as zeroes. "unwritten" and "written-zero"
 * differ in whether the extent counts as data.
 */
static const char *type_name(const struct zf_extent_info *info)
{
	static const char *const types[] = {
		[ZF_EXTENT_INLINE] = "inline",
		[ZF_EXTENT_DATA] = "data",
		[ZF_EXTENT_ZERO] = "written-zero",
	};

	if (info->flags & ZF_EXTENT_UNWRITTEN)
		return "unwritten";
	return info->type < ZF_ARRAY_SIZE(types) && types[info->type] ? types[info->type]
								      : "unknown";
}

static struct json_object *extent_object(const struct zf_extent_info *info, uint64_t zone_size)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "offset", info->offset);
	zf_json_add_u64(object, "length", info->len);
	zf_json_add_text(object, "type", type_name(info));
	if (info->address) {
		zf_json_add_u64(object, "address", info->address);
		zf_json_add_u64(object, "zone", info->address / zone_size);
	}
	zf_json_add_bool(object, "shared", info->flags & ZF_EXTENT_SHARED);
	zf_json_add_bool(object, "overwrite", info->flags & ZF_EXTENT_OVERWRITE);
	zf_json_add_bool(object, "guaranteed", info->flags & ZF_EXTENT_GUARANTEED);
	zf_json_add_u64(object, "generation", info->generation);
	return object;
}

static int add_extents(const struct zf_report_source *source, uint64_t ino,
		       struct zf_report_list *list)
{
	struct zf_extent_info extents[EXTENTS_A_CALL];
	uint64_t offset = 0;
	int n, r = 0;

	do {
		n = zf_fs_extents(source->fs, &superuser, ino, offset, extents, EXTENTS_A_CALL);
		for (int i = 0; i < n && r == 0; i++)
			r = zf_report_list_push(
				list, extent_object(&extents[i], source->super->zone_size));
		if (n > 0)
			offset = extents[n - 1].offset + extents[n - 1].len;
	} while (n == (int)EXTENTS_A_CALL && r == 0);
	return n < 0 ? n : r;
}

static int find_file(const struct zf_report_source *source, struct json_object *args,
		     uint64_t *ret_ino)
{
	const char *path = NULL;
	uint64_t ino = 0;
	int r = zf_json_get_u64(args, "ino", &ino);

	if (r == 0)
		r = zf_json_get_text(args, "path", &path);
	if (r < 0 || (!ino && !path))
		return -EINVAL;
	if (path)
		return find_path(source->fs, path, ret_ino);
	*ret_ino = ino;
	return 0;
}

int zf_report_file(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result)
{
	struct zf_report_list list;
	struct zf_attr attr;
	uint64_t ino;
	int r = find_file(source, args, &ino);

	if (r == 0)
		r = zf_fs_getattr(source->fs, &superuser, ino, &attr);
	if (r == 0)
		r = zf_report_list_begin(&list, source, "extents", EXTENTS_A_PART);
	if (r < 0)
		return r;
	zf_json_add_u64(list.result, "ino", ino);
	zf_json_add_u64(list.result, "mode", attr.mode);
	zf_json_add_u64(list.result, "size", attr.size);
	zf_json_add_u64(list.result, "blocks", attr.blocks);
	r = add_extents(source, ino, &list);
	if (r < 0)
		zf_report_list_drop(&list);
	else
		zf_report_list_end(&list, ret_result);
	return r;
}

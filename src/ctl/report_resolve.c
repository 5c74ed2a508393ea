/* SPDX-License-Identifier: MIT */
/* Translates the inode numbers and device addresses in messages to paths. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "alloc/zone.h"
#include "alloc/zone_format.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/space/resolve.h"

#define FILES_A_PART 512u

static const struct zf_ctx superuser = {.may_wait = true};

int zf_report_path(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result)
{
	char path[PATH_MAX];
	struct zf_attr attr;
	uint64_t ino = 0;

	if (zf_json_get_u64(args, "ino", &ino) < 0 || ino == 0)
		return -EINVAL;
	if (zf_fs_getattr(source->fs, &superuser, ino, &attr) == -ESTALE)
		return zf_json_fail(ret_result, -ENOENT, "there is no inode %" PRIu64, ino);
	if (zf_fs_path(source->fs, ino, path, sizeof(path)) < 0)
		return zf_json_fail(ret_result, -ENOENT,
				    "inode %" PRIu64 " has no name, or none that can be read", ino);
	*ret_result = json_object_new_object();
	zf_json_add_u64(*ret_result, "ino", ino);
	zf_json_add_bytes(*ret_result, "path", path, strlen(path));
	return *ret_result ? 0 : -ENOMEM;
}

struct answer {
	struct zf_fs *fs;
	struct zf_report_list list;
};

static int add_file(void *arg, uint64_t ino, uint64_t offset)
{
	struct json_object *object = json_object_new_object();
	struct answer *answer = arg;
	char path[PATH_MAX];

	zf_json_add_u64(object, "ino", ino);
	zf_json_add_u64(object, "offset", offset);
	if (zf_fs_path(answer->fs, ino, path, sizeof(path)) == 0)
		zf_json_add_bytes(object, "path", path, strlen(path));
	return zf_report_list_push(&answer->list, object);
}

int zf_report_resolve(const struct zf_report_source *source, struct json_object *args,
		      struct json_object **ret_result)
{
	uint64_t address = 0, zone_size = source->super->zone_size;
	struct answer answer = {.fs = source->fs};
	struct zf_zone zone;
	int r = zf_json_get_u64(args, "address", &address);

	if (r < 0)
		return -EINVAL;
	if (address / zone_size >= zf_alloc_zone_count(zf_fs_alloc(source->fs)))
		return zf_json_fail(ret_result, -EINVAL,
				    "address %" PRIu64 " is beyond the last zone", address);
	r = zf_report_list_begin(&answer.list, source, "files", FILES_A_PART);
	if (r < 0)
		return r;
	zf_alloc_get_zone(zf_fs_alloc(source->fs), (uint32_t)(address / zone_size), &zone);
	zf_json_add_u64(answer.list.result, "address", address);
	zf_json_add_u64(answer.list.result, "zone", address / zone_size);
	zf_json_add_text(answer.list.result, "role", zf_zone_role_name(zone.role));
	r = zf_resolve(source->fs, address, add_file, &answer);
	if (r < 0)
		zf_report_list_drop(&answer.list);
	else
		zf_report_list_end(&answer.list, ret_result);
	return r;
}

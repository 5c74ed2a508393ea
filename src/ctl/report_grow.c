/* SPDX-License-Identifier: MIT */
/* `zfusectl grow`: turns the request into a number of zones, and the outcome into words. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/zone.h"
#include "ctl/json.h"
#include "ctl/report.h"

/* Converts a size to a number of zones; 0 zones: as many as there can be. */
static int choose_zones(const struct zf_report_source *source, uint64_t size, uint32_t *ret_zones,
			struct json_object **ret_result)
{
	const struct zf_geometry *geometry = zf_dev_geometry(source->dev);
	uint64_t zone_size = geometry->zone_size;
	uint64_t now = zf_alloc_zone_count(zf_fs_alloc(source->fs)) * zone_size;

	if (size % zone_size != 0)
		return zf_json_fail(ret_result, -EINVAL,
				    "%" PRIu64 " is not a multiple of the zone size %" PRIu64
				    "; use %" PRIu64 " or %" PRIu64,
				    size, zone_size, size - size % zone_size,
				    size - size % zone_size + zone_size);
	if (size < now)
		return zf_json_fail(ret_result, -EINVAL,
				    "the filesystem has %" PRIu64
				    " bytes and cannot become smaller: zones are only added",
				    now);
	if (size / zone_size >= UINT32_MAX)
		return zf_json_fail(ret_result, -EINVAL,
				    "%" PRIu64 " bytes are more zones than a filesystem can have",
				    size);
	*ret_zones = (uint32_t)(size / zone_size);
	return 0;
}

static int explain(const struct zf_report_source *source, uint32_t zones, int error,
		   struct json_object **ret_result)
{
	bool device_is_larger = zones != 0 && zones <= zf_dev_geometry(source->dev)->zone_count;

	switch (error) {
	case -EROFS:
		return zf_json_fail(ret_result, error, "the filesystem is read-only");
	case -EOPNOTSUPP:
		return zf_json_fail(ret_result, error,
				    "the device has %" PRIu32
				    " zones and cannot become larger: copy it to a larger one",
				    zf_dev_geometry(source->dev)->zone_count);
	case -ENOSPC:
		if (device_is_larger)
			return zf_json_fail(ret_result, error,
					    "there is no space for the metadata of a new zone: "
					    "delete something first");
		return zf_json_fail(ret_result, error,
				    "the filesystem or block device that holds %s is full: free "
				    "space there, or enlarge it",
				    zf_dev_path(source->dev));
	case -EINVAL:
		return zf_json_fail(ret_result, error, "a device cannot have so many zones");
	default:
		return zf_json_fail(ret_result, error,
				    "the filesystem could not be made larger: %s",
				    strerror(-error));
	}
}

static int describe(const struct zf_report_source *source, uint32_t before,
		    struct json_object **ret_result)
{
	uint64_t zone_size = zf_dev_geometry(source->dev)->zone_size;
	uint32_t now = zf_alloc_zone_count(zf_fs_alloc(source->fs));
	struct json_object *result = json_object_new_object();

	zf_json_add_u64(result, "zones_before", before);
	zf_json_add_u64(result, "zones", now);
	zf_json_add_u64(result, "bytes_before", before * zone_size);
	zf_json_add_u64(result, "bytes", now * zone_size);
	*ret_result = result;
	return result ? 0 : -ENOMEM;
}

int zf_report_grow(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result)
{
	uint32_t before = zf_alloc_zone_count(zf_fs_alloc(source->fs)), zones = 0;
	uint64_t size = 0;
	int r = zf_json_get_u64(args, "size", &size);

	if (r == 0 && size != 0)
		r = choose_zones(source, size, &zones, ret_result);
	if (r < 0)
		return r;
	r = zf_fs_grow(source->fs, zones);
	if (r < 0)
		return explain(source, zones, r, ret_result);
	if (zones == 0 && zf_alloc_zone_count(zf_fs_alloc(source->fs)) == before)
		return zf_json_fail(
			ret_result, -ENOSPC,
			"the filesystem has all %" PRIu32
			" zones of its device: make the device larger first, or say how "
			"large an image is to become (--size)",
			before);
	return describe(source, before, ret_result);
}

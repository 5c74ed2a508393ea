/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "alloc/log_zone.h"
#include "alloc/zone.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "io/open.h"
#include "txn/txn.h"

/* Adds the members only if zones are retired or data is lost. */
static void add_retired(struct json_object *result, struct zf_alloc *alloc)
{
	uint64_t lost;
	uint32_t count = zf_alloc_retired_zones(alloc, &lost);

	if (count > 0)
		zf_json_add_u64(result, "retired_zones", count);
	if (lost > 0)
		zf_json_add_u64(result, "lost_bytes", lost);
}

static void add_mount(struct json_object *result, struct zf_fs *fs)
{
	struct zf_txn *txn = zf_fs_txn(fs);
	int error = zf_txn_error(txn);

	zf_json_add_bool(result, "read_only", zf_fs_is_read_only(fs));
	if (error && error != -EROFS)
		zf_json_add_text(result, "error", strerror(-error));
	if (zf_txn_failed(txn))
		zf_json_add_text(result, "failed", zf_txn_failed(txn));
	add_retired(result, zf_fs_alloc(fs));
	zf_json_add_u64(result, "durable_generation", zf_txn_durable(txn));
	zf_json_add_u64(result, "running_generation", zf_txn_running(txn));
	zf_json_add_bool(result, "dirty", zf_txn_is_dirty(txn));
	zf_json_add_text(result, "gc", zf_report_reclaim_state(fs));
}

/* How FALLOC_FL_WRITE_ZEROES is carried out (docs/write-zeroes.md). */
static const char *write_zeroes_by(const struct zf_dev *dev)
{
	const struct zf_geometry *geometry = zf_dev_geometry(dev);

	if (geometry->conventional <= ZF_SUPER_ZONES)
		return "metadata only";
	return geometry->unmapping_zeroes ? "in place, zeroed by unmapping"
					  : "in place, zeroes written";
}

/* Adds the current and the next log zone, if it has them. */
static void add_log(struct json_object *result, const uint32_t zones[2])
{
	static const char *const names[] = {"log_zone", "log_zone_next"};

	for (unsigned int i = 0; i < 2; i++)
		if (zones[i] != ZF_SUPER_NO_ZONE)
			zf_json_add_u64(result, names[i], zones[i]);
}

int zf_report_status(const struct zf_report_source *source, struct json_object *args,
		     struct json_object **ret_result)
{
	const struct zf_super *super = source->super;
	struct json_object *result = json_object_new_object();
	char label[ZF_SUPER_LABEL_SIZE];
	struct zf_log_zones log;

	(void)args;
	if (!result)
		return -ENOMEM;
	zf_json_add_bool(result, "mounted", source->mounted);
	memcpy(label, super->label, sizeof(label));
	if (source->mounted)
		zf_fs_get_label(source->fs, label);
	zf_json_add_text(result, "label", label);
	zf_json_add_uuid(result, "uuid", super->fsid);
	zf_json_add_text(result, "device", zf_dev_path(source->dev));
	zf_json_add_text(result, "device_kind", zf_dev_kind(source->dev));
	zf_json_add_text(result, "append", zf_append_mode_name(zf_dev_append_mode(source->dev)));
	zf_json_add_u64(result, "zone_count", super->zone_count);
	zf_json_add_u64(result, "zone_size", super->zone_size);
	zf_json_add_u64(result, "node_size", super->node_size);
	zf_json_add_u64(result, "metadata_copies", super->metadata_copies);
	zf_json_add_text(result, "write_zeroes", write_zeroes_by(source->dev));
	if (source->mounted) {
		add_mount(result, source->fs);
		zf_alloc_log_get(zf_fs_alloc(source->fs), &log);
		add_log(result, log.zone);
	} else {
		zf_json_add_u64(result, "durable_generation", super->generation);
		zf_json_add_bool(result, "clean", super->clean);
		zf_json_add_u64(result, "stepped_over", source->stepped_over);
		add_log(result, super->log_zone);
	}
	*ret_result = result;
	return 0;
}

int zf_report_set_label(const struct zf_report_source *source, struct json_object *args,
			struct json_object **ret_result)
{
	const char *label = NULL;
	int r = zf_json_get_text(args, "label", &label);

	if (r == 0)
		r = label ? zf_fs_set_label(source->fs, label) : -EINVAL;
	if (r == -EINVAL)
		return zf_json_fail(ret_result, r,
				    "the label must be UTF-8 of at most %u bytes without control "
				    "characters",
				    ZF_SUPER_LABEL_SIZE - 1);
	return r;
}

int zf_report_sync(const struct zf_report_source *source, struct json_object *args,
		   struct json_object **ret_result)
{
	const struct zf_ctx superuser = {.may_wait = true};
	struct json_object *result;
	int r = zf_fs_syncfs(source->fs, &superuser);

	(void)args;
	if (r < 0)
		return r;
	result = json_object_new_object();
	zf_json_add_u64(result, "durable_generation", zf_txn_durable(zf_fs_txn(source->fs)));
	*ret_result = result;
	return result ? 0 : -ENOMEM;
}

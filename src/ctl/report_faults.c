/* SPDX-License-Identifier: MIT */
/* The commands of `zfusectl device stats`. */
#include <errno.h>

#include "alloc/zone.h"
#include "base/bits.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/core/inode.h"
#include "fs/mount/change.h"
#include "fs/space/faults.h"

int zf_report_device_stats(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result)
{
	struct json_object *result = json_object_new_object();
	struct zf_faults faults;

	(void)args;
	zf_faults_get(source->fs, &faults);
	zf_json_add_text(result, "device", zf_dev_path(source->dev));
	zf_json_add_u64(result, "read_errors", faults.read_errors);
	zf_json_add_u64(result, "write_errors", faults.write_errors);
	zf_json_add_u64(result, "other_errors", faults.other_errors);
	zf_json_add_u64(result, "data_checksum_errors", faults.data_checksum);
	zf_json_add_u64(result, "damaged_nodes", faults.damaged_nodes);
	zf_json_add_u64(result, "repaired_nodes", faults.repaired_nodes);
	zf_json_add_u64(result, "failed_zones", zf_faults_zones(source->fs));
	zf_json_add_u64(result, "since", faults.since ? faults.since : source->super->mkfs_time);
	*ret_result = result;
	return result ? 0 : -ENOMEM;
}

int zf_report_device_stats_reset(const struct zf_report_source *source, struct json_object *args,
				 struct json_object **ret_result)
{
	int r = zf_change_begin(source->fs);

	if (r == 0) {
		/* The answer has the counters from before the reset. */
		r = zf_report_device_stats(source, args, ret_result);
		zf_faults_reset(source->fs);
		if (r == 0)
			r = zf_txn_commit(zf_fs_txn(source->fs), true);
		zf_change_end(source->fs);
	}
	if (r == -EROFS)
		return zf_json_fail(ret_result, r, "the filesystem is read-only");
	return r;
}

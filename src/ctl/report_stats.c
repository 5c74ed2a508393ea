/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "alloc/zone.h"
#include "alloc/zone_format.h"
#include "base/bits.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/core/inode.h"
#include "fs/space/faults.h"
#include "log/log.h"
#include "txn/txn.h"

static struct json_object *device_object(struct zf_dev *dev)
{
	struct json_object *object = json_object_new_object();
	struct zf_dev_stats stats;

	zf_dev_get_stats(dev, &stats);
	zf_json_add_u64(object, "reads", stats.reads);
	zf_json_add_u64(object, "read_bytes", stats.read_bytes);
	zf_json_add_u64(object, "appends", stats.appends);
	zf_json_add_u64(object, "append_bytes", stats.append_bytes);
	zf_json_add_u64(object, "writes", stats.writes);
	zf_json_add_u64(object, "write_bytes", stats.write_bytes);
	zf_json_add_u64(object, "fua_writes", stats.fua_writes);
	zf_json_add_u64(object, "flushes", stats.flushes);
	zf_json_add_u64(object, "resets", stats.resets);
	zf_json_add_u64(object, "finishes", stats.finishes);
	zf_json_add_u64(object, "ahead_bytes", stats.ahead_bytes);
	zf_json_add_u64(object, "errors", stats.errors);
	return object;
}

static struct json_object *commits_object(struct zf_txn *txn)
{
	struct json_object *object = json_object_new_object();
	struct zf_txn_stats stats;

	zf_txn_get_stats(txn, &stats);
	zf_json_add_u64(object, "count", stats.commits);
	zf_json_add_u64(object, "total_ns", stats.commit_ns);
	zf_json_add_u64(object, "longest_ns", stats.commit_ns_max);
	zf_json_add_u64(object, "longest_freeze_ns", stats.freeze_ns_max);
	zf_json_add_u64(object, "nodes_written", stats.nodes_written);
	zf_json_add_u64(object, "holes_written", stats.holes_written);
	return object;
}

/*
 * Bytes by the role of the zone, as `zfusectl zones` names it, without superblocks and writes in
 * place.
 */
static struct json_object *written_object(struct zf_fs *fs)
{
	static const enum zf_role roles[] = {ZF_ROLE_LOG, ZF_ROLE_HOT, ZF_ROLE_COLD};
	struct json_object *object = json_object_new_object();
	uint64_t appended[ZF_ROLE_COUNT];
	struct zf_txn_stats stats;

	zf_txn_get_stats(zf_fs_txn(fs), &stats);
	zf_alloc_get_appended(zf_fs_alloc(fs), appended);
	zf_json_add_u64(object, zf_zone_role_name(ZF_ROLE_META), stats.stream_bytes);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(roles); i++)
		zf_json_add_u64(object, zf_zone_role_name(roles[i]), appended[roles[i]]);
	return object;
}

/* File data in memory that is not on the device, or whose extents are not in the trees yet. */
static struct json_object *dirty_object(struct zf_fs *fs)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "bytes", atomic_load(&fs->flush.used_bytes));
	zf_json_add_u64(object, "flight_bytes", atomic_load(&fs->flush.flight_bytes));
	zf_json_add_u64(object, "bytes_max", fs->options.dirty_bytes);
	return object;
}

/* These counters are over all mounts; the others are of this mount. */
static struct json_object *faults_object(struct zf_fs *fs)
{
	struct json_object *object = json_object_new_object();
	struct zf_faults faults;

	zf_faults_get(fs, &faults);
	zf_json_add_u64(object, "read", faults.read_errors);
	zf_json_add_u64(object, "write", faults.write_errors);
	zf_json_add_u64(object, "other", faults.other_errors);
	zf_json_add_u64(object, "data_checksum", faults.data_checksum);
	zf_json_add_u64(object, "damaged_nodes", faults.damaged_nodes);
	return object;
}

static struct json_object *scrub_object(struct zf_fs *fs)
{
	struct json_object *object = json_object_new_object();
	struct zf_scrubbed *scrubbed = &fs->scrubbed;

	zf_json_add_u64(object, "data_bytes", atomic_load(&scrubbed->data_bytes));
	zf_json_add_u64(object, "node_bytes", atomic_load(&scrubbed->node_bytes));
	zf_json_add_u64(object, "skipped", atomic_load(&scrubbed->skipped));
	zf_json_add_u64(object, "errors", atomic_load(&scrubbed->errors));
	zf_json_add_u64(object, "repaired", atomic_load(&scrubbed->repaired));
	zf_json_add_u64(object, "finished_at", atomic_load(&scrubbed->finished_at));
	return object;
}

static struct json_object *cache_object(struct zf_forest *forest)
{
	struct json_object *object = json_object_new_object();
	struct zf_forest_stats stats;

	zf_forest_get_stats(forest, &stats);
	zf_json_add_u64(object, "hits", stats.cache_hits);
	zf_json_add_u64(object, "misses", stats.cache_misses);
	zf_json_add_u64(object, "nodes", stats.nodes_cached);
	zf_json_add_u64(object, "nodes_max", stats.nodes_max);
	zf_json_add_u64(object, "dirty_nodes", stats.nodes_dirty);
	zf_json_add_u64(object, "nodes_copied", stats.nodes_copied);
	zf_json_add_u64(object, "splits", stats.splits);
	zf_json_add_u64(object, "shares", stats.shares);
	zf_json_add_u64(object, "merges", stats.merges);
	return object;
}

static struct json_object *log_object(struct zf_log *log)
{
	struct json_object *object = json_object_new_object();
	struct zf_log_stats stats;

	zf_log_get_stats(log, &stats);
	zf_json_add_u64(object, "records", stats.records);
	zf_json_add_u64(object, "bodies", stats.bodies);
	zf_json_add_u64(object, "bytes", stats.bytes);
	zf_json_add_u64(object, "parts", stats.parts);
	zf_json_add_u64(object, "commits_instead", stats.commits_instead);
	zf_json_add_u64(object, "failures", stats.failures);
	zf_json_add_u64(object, "switches", stats.switches);
	return object;
}

int zf_report_stats(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result)
{
	struct json_object *result = json_object_new_object();

	(void)args;
	if (!result)
		return -ENOMEM;
	zf_json_add(result, "device", device_object(source->dev));
	zf_json_add(result, "commits", commits_object(zf_fs_txn(source->fs)));
	/* A read-only mount has no log. */
	if (zf_fs_log(source->fs))
		zf_json_add(result, "log", log_object(zf_fs_log(source->fs)));
	zf_json_add(result, "cache", cache_object(zf_fs_forest(source->fs)));
	zf_json_add(result, "written", written_object(source->fs));
	zf_json_add(result, "dirty", dirty_object(source->fs));
	zf_json_add(result, "faults", faults_object(source->fs));
	zf_json_add(result, "scrub", scrub_object(source->fs));
	zf_json_add(result, "reclaim", zf_report_reclaim_stats(source->fs));
	*ret_result = result;
	return 0;
}

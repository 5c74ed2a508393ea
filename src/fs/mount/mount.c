/* SPDX-License-Identifier: MIT */
/*
 * Mounting: from a device to a struct zf_fs, and back.
 *
 * A mount reads only the newest superblock, the root tree, the whole zone tree, one zone report,
 * the log, and, if zones are written in place, their part of the summary tree. (It reads more in
 * zf_upgrade_kept() and check_all_stands().) Then, if it may write, it finishes what the last mount
 * left behind (fs/mount/recover.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/log_zone.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data/append.h"
#include "fs/data/data.h"
#include "fs/data/delete.h"
#include "fs/map/overwrite.h"
#include "fs/mount/background.h"
#include "fs/mount/change.h"
#include "fs/mount/recover.h"
#include "fs/mount/scrubber.h"
#include "fs/mount/upgrade.h"
#include "fs/space/faults.h"
#include "fs/space/reclaim.h"
#include "fs/space/room.h"
#include "log/log.h"
#include "log/read.h"
#include "txn/roots.h"
#include "txn/system_nodes.h"

#define CACHE_DEFAULT  (UINT64_C(64) << 20)
#define DIRTY_DEFAULT  (UINT64_C(64) << 20)
#define COMMIT_DEFAULT 5000u

/* ---- whether the superblock fits the device ---- */

static int check_number(const struct zf_fs *fs, const char *what, uint64_t device, uint64_t super,
			bool ok)
{
	if (ok)
		return 0;
	zf_report(&fs->report, ZF_REPORT_ERROR,
		  "this filesystem was made on another device: %s is %" PRIu64 " here, but %" PRIu64
		  " in the superblock",
		  what, device, super);
	return -EUCLEAN;
}

static int check_geometry(const struct zf_fs *fs)
{
	const struct zf_geometry *geometry = zf_dev_geometry(fs->dev);
	const struct zf_super *super = &fs->super;
	int r = check_number(fs, "the zone size", geometry->zone_size, super->zone_size,
			     geometry->zone_size == super->zone_size);

	if (r == 0)
		r = check_number(fs, "the zone capacity", geometry->zone_capacity,
				 super->zone_capacity,
				 geometry->zone_capacity == super->zone_capacity);
	if (r == 0)
		r = check_number(fs, "the number of zones", geometry->zone_count, super->zone_count,
				 geometry->zone_count >= super->zone_count);
	if (r == 0)
		r = check_number(fs, "the number of conventional zones", geometry->conventional,
				 super->conventional,
				 geometry->conventional == super->conventional);
	return r;
}

static int check_features(struct zf_fs *fs)
{
	uint64_t unknown = fs->super.compat_ro & ~ZF_COMPAT_RO_KNOWN;

	if (!unknown || fs->read_only)
		return 0;
	zf_report(&fs->report, ZF_REPORT_ERROR,
		  "the filesystem has features (0x%" PRIx64
		  ") that this version can only read: mount it read-only (-o ro)",
		  unknown);
	return -EPROTONOSUPPORT;
}

/* ---- loading ---- */

static int load_trees(struct zf_fs *fs)
{
	struct zf_forest_options options = {
		.shape = {.node_size = fs->super.node_size, .copies = fs->super.metadata_copies},
		.cache_bytes = fs->options.cache_bytes,
	};
	int r;

	memcpy(options.shape.fsid, fs->super.fsid, sizeof(fs->super.fsid));
	r = zf_forest_new(fs->dev, &options, &fs->report, &fs->forest);
	if (r < 0)
		return r;
	zf_tree_set_root(fs->forest, ZF_TREE_ROOT, &fs->super.root, fs->super.root_level);
	for (enum zf_tree_id tree = ZF_TREE_FS; tree < ZF_TREE_COUNT && r == 0; tree++)
		r = zf_roots_load(fs->forest, fs->super.generation, tree, &fs->report);
	return r;
}

struct zone_loader {
	struct zf_fs *fs;
	uint32_t expected;
};

static int load_zone_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct zone_loader *loader = arg;

	if (key->objectid != loader->expected || key->type != ZF_KEY_ZONE || key->offset != 0)
		return zf_report_corrupt(
			&loader->fs->report, "zone tree", key->objectid,
			"key is not that of a zone item, expected the item of zone %u",
			loader->expected);
	return zf_alloc_load(loader->fs->alloc, loader->expected++, value, len);
}

static int load_zones(struct zf_fs *fs)
{
	struct zone_loader loader = {.fs = fs};
	struct zf_key from = ZF_KEY_MIN, to = ZF_KEY_MAX;
	int r = zf_alloc_new(fs->dev, &fs->super, &fs->report, &fs->alloc);

	if (r == 0)
		r = zf_tree_scan(fs->forest, ZF_TREE_ZONE, &from, &to, load_zone_item, &loader);
	if (r == 0 && loader.expected != fs->super.zone_count)
		r = zf_report_corrupt(&fs->report, "zone tree", 0,
				      "there are %u zone items, expected %u", loader.expected,
				      fs->super.zone_count);
	return r;
}

/*
 * A read-only mount does not need the log. If it mounts an older state, or newer superblocks are
 * damaged, the log's zones may be in other use by now.
 */
static int load_log_zones(struct zf_fs *fs)
{
	int r = zf_alloc_log_load(fs->alloc, &fs->super);

	return r == -EUCLEAN && fs->read_only ? 0 : r;
}

/* ---- which superblock ---- */

static int load_state(struct zf_fs *fs)
{
	int r = check_geometry(fs);

	if (r == 0)
		r = check_features(fs);
	if (r == 0)
		r = load_trees(fs);
	if (r == 0)
		r = zf_upgrade_kept(fs);
	if (r == 0)
		r = load_zones(fs);
	if (r == 0)
		r = load_log_zones(fs);
	if (r == 0)
		r = zf_system_nodes_count(fs->forest, fs->alloc, true);
	return r;
}

/*
 * Reports that a newer record is damaged. Either a power cut tore it: then this record is complete,
 * because load_state() has found everything that it names, and nothing that was acknowledged as
 * durable is lost. Or the medium failed: then acknowledged changes may be lost.
 */
static void tell_step_back(struct zf_fs *fs, unsigned int stepped_over)
{
	zf_report(&fs->report, ZF_REPORT_WARNING,
		  "%u superblock record%s newer than generation %" PRIu64
		  " %s; everything that this generation needs is still there",
		  stepped_over, stepped_over == 1 ? "" : "s", fs->super.generation,
		  stepped_over == 1 ? "is damaged (a power cut while it was written)"
				    : "are damaged");
}

static int visit_node(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	return error;
}

/*
 * One power cut tears one record, and no zone is reset that the record before it names. If more
 * records are damaged, the power was cut again in a recovery's own commit, before which no zone is
 * reset; or the medium is failing, and zones that the older record names may have other nodes by
 * now. So all nodes are read, and their checksums show whether they are still there.
 */
static int check_all_stands(struct zf_fs *fs, unsigned int stepped_over)
{
	int r = 0;

	for (enum zf_tree_id tree = ZF_TREE_ROOT; tree < ZF_TREE_COUNT && r == 0; tree++)
		r = zf_tree_walk(fs->forest, tree, visit_node, NULL);
	if (r < 0)
		zf_report(&fs->report, ZF_REPORT_ERROR,
			  "the newest %u superblock records are damaged, and nodes of the last "
			  "good superblock are missing: mount read-only (-o ro), or choose another "
			  "superblock with -o generation=N (`zfusectl super` lists them)",
			  stepped_over);
	return r;
}

/* A writable mount needs the newest record, and room in the ring for the next one. */
static int check_ring(struct zf_fs *fs)
{
	if (zf_ring_lacks_newest(fs->ring)) {
		zf_report(&fs->report, fs->read_only ? ZF_REPORT_WARNING : ZF_REPORT_ERROR,
			  "the newest superblock may have been in the zone that is offline, so "
			  "the newest one that can be read may be older: mount read-only (-o ro)");
		return fs->read_only ? 0 : -EUCLEAN;
	}
	if (fs->read_only || zf_ring_room(fs->ring) > 0)
		return 0;
	zf_report(&fs->report, ZF_REPORT_ERROR,
		  "no superblock can be written any more: mount read-only (-o ro)");
	return -EROFS;
}

static int choose_super(struct zf_fs *fs, unsigned int *ret_stepped_over)
{
	const struct zf_super *newest;
	int r;

	*ret_stepped_over = 0;
	if (!fs->options.generation) {
		r = check_ring(fs);
		if (r < 0)
			return r;
		r = zf_ring_newest(fs->ring, &newest, ret_stepped_over);
		if (r == 0)
			fs->super = *newest;
		return r;
	}
	r = zf_ring_find(fs->ring, fs->options.generation, &fs->super);
	if (r == -ENOENT)
		zf_report(&fs->report, ZF_REPORT_ERROR,
			  "there is no superblock of generation %" PRIu64
			  "; `zfusectl super` lists the existing ones",
			  fs->options.generation);
	return r;
}

static void want_commit(void *arg)
{
	zf_wake_commit(arg);
}

/*
 * The log writes nothing before the recovery is over, but its hooks tell commits how far the
 * recovery has come.
 */
static int start_log(struct zf_fs *fs)
{
	struct zf_txn_log hooks;
	int r = zf_log_new(fs->dev, fs->alloc, &fs->super, &fs->report, want_commit, fs, &fs->log);

	if (r < 0)
		return r;
	zf_log_hooks(fs->log, &hooks);
	zf_txn_set_log(fs->txn, &hooks);
	return 0;
}

static void collect_health(void *arg, struct zf_health *ret_health)
{
	zf_faults_get(arg, &ret_health->faults);
	zf_scrubber_get(arg, &ret_health->scrub);
}

/* A read-only mount loads the counters, too. */
static int load_health(struct zf_fs *fs)
{
	const struct zf_txn_health source = {.arg = fs, .collect = collect_health};
	struct zf_health health;
	int r = zf_health_load(fs->forest, &fs->report, &health);

	if (r < 0)
		return r;
	zf_faults_add(fs, &health.faults);
	zf_txn_set_health(fs->txn, &source, &health);
	return zf_scrubber_init(fs, &health.scrub);
}

static int load(struct zf_fs *fs, struct zf_log_found *found)
{
	struct zf_txn_options options = {0};
	unsigned int stepped_over;
	uint64_t running;
	int r = zf_ring_open(fs->dev, &fs->report, &fs->ring);

	if (r == 0)
		r = choose_super(fs, &stepped_over);
	if (r == 0)
		r = load_state(fs);
	if (r < 0)
		return r;
	if (stepped_over > 1 && !fs->read_only) {
		r = check_all_stands(fs, stepped_over);
		if (r < 0)
			return r;
	}
	if (stepped_over)
		tell_step_back(fs, stepped_over);
	r = zf_recover_read(fs, found);
	if (r < 0)
		return r;
	/* The + 2 leaves one generation free for zf_txn_stand(). */
	running = zf_max_u64(zf_ring_highest_generation(fs->ring), fs->super.generation) + 2;
	zf_alloc_start(fs->alloc, fs->super.generation, running);
	r = fs->read_only ? 0 : zf_alloc_tell_device(fs->alloc);
	if (r < 0)
		return r;
	options.read_only = fs->read_only;
	options.much = want_commit;
	options.much_arg = fs;
	options.dirty_bytes_max = zf_max_u64(fs->options.cache_bytes / 2, 64 * fs->super.node_size);
	r = zf_txn_new(fs->dev, fs->ring, fs->alloc, fs->forest, &fs->super, &options, &fs->report,
		       &fs->txn);
	if (r == 0)
		r = load_health(fs);
	if (r == 0 && fs->options.trace)
		r = zf_fs_trace_start(fs, fs->options.trace_fd, fs->options.trace);
	if (r < 0 || fs->read_only)
		return r;
	r = zf_overwrite_load(fs);
	if (r == 0)
		r = start_log(fs);
	if (r < 0)
		return r;
	zf_txn_settle(fs->txn);
	/* After a step back no zone may be reset before this mount's first commit. */
	return stepped_over ? zf_txn_commit(fs->txn, true) : 0;
}

/* ---- mount and unmount ---- */

static void free_fs(struct zf_fs *fs)
{
	zf_scrubber_deinit(fs);
	zf_room_deinit(fs);
	zf_reclaim_deinit(fs);
	zf_inode_table_deinit(fs);
	zf_data_flush_deinit(fs);
	zf_txn_free(fs->txn);
	zf_log_free(fs->log);
	zf_alloc_free(fs->alloc);
	zf_forest_free(fs->forest);
	zf_ring_close(fs->ring);
	zf_wake_deinit(fs);
	zf_mutex_deinit(&fs->health_lock);
	zf_mutex_deinit(&fs->change_lock);
	zf_mutex_deinit(&fs->lock);
	free(fs);
}

static void set_defaults(struct zf_mount_options *options)
{
	if (!options->cache_bytes)
		options->cache_bytes = CACHE_DEFAULT;
	if (!options->dirty_bytes)
		options->dirty_bytes = DIRTY_DEFAULT;
	if (!options->commit_ms)
		options->commit_ms = COMMIT_DEFAULT;
}

static int set_reclaim(struct zf_fs *fs)
{
	zf_reclaim_pause(fs, fs->options.reclaim_paused);
	return zf_fs_set_reclaim_target(fs, fs->options.reclaim_zones, fs->options.reclaim_percent);
}

static int load_and_recover(struct zf_fs *fs)
{
	struct zf_log_found found = {0};
	int r = load(fs, &found);

	if (r == 0)
		r = set_reclaim(fs);
	if (r == 0 && !fs->read_only)
		r = zf_recover(fs, &found);
	zf_log_found_free(&found);
	return r;
}

int zf_fs_mount(struct zf_dev *dev, const struct zf_mount_options *options,
		const struct zf_report *report, struct zf_fs **ret_fs)
{
	struct zf_fs *fs = calloc(1, sizeof(*fs));
	int r;

	if (!fs)
		return -ENOMEM;
	fs->dev = dev;
	fs->options = *options;
	set_defaults(&fs->options);
	fs->commit_ms = fs->options.commit_ms;
	if (options->generation)
		fs->options.read_only = true;
	fs->read_only = fs->options.read_only;
	if (report)
		fs->report = *report;
	zf_mutex_init(&fs->lock, ZF_RANK_FS);
	zf_mutex_init(&fs->change_lock, ZF_RANK_CHANGE);
	zf_mutex_init(&fs->health_lock, ZF_RANK_HEALTH);
	zf_faults_begin(fs);
	zf_wake_init(fs, zf_delete_doomed);
	zf_inode_table_init(fs);
	r = zf_data_flush_init(fs);
	if (r == 0)
		r = zf_reclaim_init(fs);
	if (r == 0)
		r = zf_room_init(fs);
	if (r == 0)
		r = load_and_recover(fs);
	if (r == 0 && options->threads && !fs->read_only)
		r = zf_background_start(fs);
	if (r < 0) {
		free_fs(fs);
		return r;
	}
	*ret_fs = fs;
	return 0;
}

void zf_fs_abandon(struct zf_fs *fs)
{
	if (!fs)
		return;
	zf_background_stop(fs);
	free_fs(fs);
}

int zf_fs_unmount(struct zf_fs *fs)
{
	int r = 0;

	zf_background_stop(fs);
	if (!fs->read_only) {
		zf_delete_forget_all(fs);
		r = zf_change_store_all(fs);
	}
	if (r == 0)
		r = zf_write_errors_tell(fs, &(struct zf_told){0});
	free_fs(fs);
	return r;
}

bool zf_fs_is_read_only(struct zf_fs *fs)
{
	return fs->read_only || zf_txn_error(fs->txn) != 0;
}

struct zf_dev *zf_fs_dev(struct zf_fs *fs)
{
	return fs->dev;
}

struct zf_alloc *zf_fs_alloc(struct zf_fs *fs)
{
	return fs->alloc;
}

struct zf_forest *zf_fs_forest(struct zf_fs *fs)
{
	return fs->forest;
}

struct zf_txn *zf_fs_txn(struct zf_fs *fs)
{
	return fs->txn;
}

struct zf_log *zf_fs_log(struct zf_fs *fs)
{
	return fs->log;
}

struct zf_ring *zf_fs_ring(struct zf_fs *fs)
{
	return fs->ring;
}

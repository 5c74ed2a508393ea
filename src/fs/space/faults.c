/* SPDX-License-Identifier: MIT */
#include "fs/space/faults.h"

#include "alloc/zone.h"
#include "base/bits.h"
#include "fs/core/inode.h"

/* Gets the present counters of this mount. */
static void count_now(struct zf_fs *fs, struct zf_faults *ret_faults)
{
	struct zf_forest_stats forest = {0};
	struct zf_dev_stats device;

	zf_dev_get_stats(fs->dev, &device);
	if (fs->forest)
		zf_forest_get_stats(fs->forest, &forest);
	*ret_faults = (struct zf_faults){
		.read_errors = device.read_errors,
		.write_errors = device.write_errors,
		.other_errors = device.errors - device.read_errors - device.write_errors,
		.data_checksum = atomic_load(&fs->checksum_errors),
		.damaged_nodes = forest.damaged,
		.repaired_nodes = atomic_load(&fs->scrubbed.repaired),
	};
}

/* Adds the counters, modulo 2^64. The other fields stay unchanged. */
static void add(struct zf_faults *to, const struct zf_faults *what)
{
	to->read_errors += what->read_errors;
	to->write_errors += what->write_errors;
	to->other_errors += what->other_errors;
	to->data_checksum += what->data_checksum;
	to->damaged_nodes += what->damaged_nodes;
	to->repaired_nodes += what->repaired_nodes;
}

static void subtract(struct zf_faults *from, const struct zf_faults *what)
{
	from->read_errors -= what->read_errors;
	from->write_errors -= what->write_errors;
	from->other_errors -= what->other_errors;
	from->data_checksum -= what->data_checksum;
	from->damaged_nodes -= what->damaged_nodes;
	from->repaired_nodes -= what->repaired_nodes;
}

/* Sets the totals to `faults`; later faults are added to them. */
static void set_base(struct zf_fs *fs, const struct zf_faults *faults)
{
	struct zf_faults now;

	count_now(fs, &now);
	zf_mutex_lock(&fs->health_lock);
	fs->faults_base = *faults;
	subtract(&fs->faults_base, &now);
	zf_mutex_unlock(&fs->health_lock);
}

void zf_faults_begin(struct zf_fs *fs)
{
	set_base(fs, &(struct zf_faults){0});
}

void zf_faults_add(struct zf_fs *fs, const struct zf_faults *stored)
{
	zf_mutex_lock(&fs->health_lock);
	add(&fs->faults_base, stored);
	fs->faults_base.since = stored->since;
	fs->faults_base.zones_known = stored->zones_known;
	zf_mutex_unlock(&fs->health_lock);
}

void zf_faults_get(struct zf_fs *fs, struct zf_faults *ret_faults)
{
	struct zf_faults now;

	count_now(fs, &now);
	zf_mutex_lock(&fs->health_lock);
	*ret_faults = fs->faults_base;
	zf_mutex_unlock(&fs->health_lock);
	add(ret_faults, &now);
}

/* A copy of the filesystem on another device may have fewer failed zones than zones_known. */
uint64_t zf_faults_zones(struct zf_fs *fs)
{
	struct zf_faults faults;
	uint64_t lost, failed = zf_alloc_retired_zones(fs->alloc, &lost);

	zf_faults_get(fs, &faults);
	return failed - zf_min_u64(failed, faults.zones_known);
}

void zf_faults_reset(struct zf_fs *fs)
{
	uint64_t lost;

	set_base(fs, &(struct zf_faults){
			     .since = (uint64_t)zf_fs_now(fs).seconds,
			     .zones_known = zf_alloc_retired_zones(fs->alloc, &lost),
		     });
}

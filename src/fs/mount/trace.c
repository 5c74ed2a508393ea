/* SPDX-License-Identifier: MIT */
/* A trace of this filesystem begins with the state that its first event changes. */
#include <string.h>

#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/mount/trace_data.h"

static struct zf_trace_about describe(const struct zf_fs *fs, const struct zf_trace_about *run)
{
	const struct zf_geometry *geometry = zf_dev_geometry(fs->dev);
	struct zf_trace_about about = *run;

	memcpy(about.fsid, fs->super.fsid, sizeof(about.fsid));
	about.zone_size = geometry->zone_size;
	about.zone_capacity = geometry->zone_capacity;
	about.zone_count = fs->super.zone_count;
	about.conventional = geometry->conventional;
	about.active_max = geometry->max_active;
	about.block_size = ZF_BLOCK_SIZE;
	about.node_size = fs->super.node_size;
	about.copies = fs->super.metadata_copies;
	return about;
}

/* Traces the superblock's zones; the allocator does not. */
static void tell_ring(const struct zf_zone_info zones[ZF_SUPER_ZONES],
		      const struct zf_super *newest)
{
	for (unsigned int i = 0; i < ZF_SUPER_ZONES; i++)
		ZF_TRACE(zone, .address = zones[i].start, .written = zones[i].wp - zones[i].start,
			 .resets = zones[i].reset_count, .role = ZF_ROLE_SUPER);
	zf_super_trace(newest);
}

static int start(struct zf_fs *fs, int fd, const struct zf_trace_about *about)
{
	int r = about->has_data ? zf_fs_trace_data(fs->dev, about->fsid, about->data_fd) : 0;

	return r < 0 ? r : zf_trace_start(fd, about);
}

int zf_fs_trace_start(struct zf_fs *fs, int fd, const struct zf_trace_about *run)
{
	struct zf_trace_about about = describe(fs, run);
	struct zf_zone_info zones[ZF_SUPER_ZONES];
	const struct zf_super *newest;
	unsigned int stepped_over;
	int r;

	/* The trace must not begin in the middle of a commit. */
	zf_txn_pause(fs->txn);
	r = zf_dev_report(fs->dev, 0, ZF_SUPER_ZONES, zones);
	/*
	 * If an older state was asked for, or no record can be read, the trace begins with
	 * fs->super.
	 */
	if (fs->options.generation || zf_ring_newest(fs->ring, &newest, &stepped_over) < 0)
		newest = &fs->super;
	if (r == 0)
		r = start(fs, fd, &about);
	if (r == 0) {
		zf_alloc_trace_begin(fs->alloc);
		tell_ring(zones, newest);
	}
	zf_txn_resume(fs->txn);
	return r;
}

/* SPDX-License-Identifier: MIT */
#include "fuse/mount.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "fuse/daemon.h"
#include "fuse/trace.h"
#include "fuse/usable_memory.h"
#include "superblock/ring.h"

/*
 * The size of the cache of nodes if the user gives none: this share of the usable memory, within
 * these bounds, and at most a fourth of that memory.
 */
#define CACHE_SHARE 32u
#define CACHE_MIN   (UINT64_C(64) << 20)
#define CACHE_MAX   (UINT64_C(512) << 20)

/* The most older states that are tried; each try reads the root and zone trees. */
#define OLDER_MAX 16u

/* ---- options ---- */

/*
 * The kernel's coarse clock, which moves a few hundred times a second. With the writeback cache the
 * kernel sets the times of writes from this clock, and times that the daemon sets must compare
 * rightly with them.
 */
static int64_t now_as_the_kernel(void *arg)
{
	struct timespec now;

	(void)arg;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * A transaction that random writes scatter over many leaves is written once if it fits into half of
 * the cache, and many times if it does not (docs/performance.md). So the default grows with the
 * machine's memory.
 */
static uint64_t default_cache_bytes(void)
{
	uint64_t usable = zf_usable_memory(), least = zf_min_u64(CACHE_MIN, usable / 4);

	return zf_max_u64(least, zf_min_u64(CACHE_MAX, usable / CACHE_SHARE));
}

static struct zf_mount_options mount_options(const struct zf_daemon *daemon)
{
	return (struct zf_mount_options){
		.read_only = daemon->options.read_only,
		.threads = true,
		.generation = daemon->options.generation,
		.abandon_log = daemon->options.abandon_log,
		.cache_bytes = daemon->options.cache_bytes ? daemon->options.cache_bytes
							   : default_cache_bytes(),
		.dirty_bytes = daemon->options.dirty_bytes,
		.commit_ms = daemon->options.tunables.commit_ms,
		.reclaim_zones = (uint32_t)daemon->options.tunables.gc_zones,
		.reclaim_percent = (uint32_t)daemon->options.tunables.gc_percent,
		.reclaim_paused = daemon->options.tunables.gc_off,
		.atime = daemon->options.atime,
		.no_dir_atime = daemon->options.no_dir_atime,
		.lazy_time = daemon->options.lazy_time,
		.sync_names = daemon->options.sync_names,
		.now_ns = daemon->options.writeback ? now_as_the_kernel : NULL,
		.trace = daemon->trace_fd >= 0 ? &daemon->trace_about : NULL,
		.trace_fd = daemon->trace_fd,
	};
}

/* ---- damage ---- */

static int mount_and_look(struct zf_dev *dev, const struct zf_mount_options *options,
			  const struct zf_report *report, struct zf_fs **ret_fs)
{
	const struct zf_ctx superuser = {.may_wait = true};
	struct zf_attr attr;
	struct zf_fs *fs;
	int r = zf_fs_mount(dev, options, report, &fs);

	if (r < 0)
		return r;
	r = zf_fs_getattr(fs, &superuser, ZF_INO_ROOT, &attr);
	if (r < 0) {
		/* A damaged filesystem is not written to. */
		zf_fs_abandon(fs);
		return r;
	}
	*ret_fs = fs;
	return 0;
}

/* The newest mountable state that is older than the one that was tried; 0: none. */
static uint64_t find_older(struct zf_daemon *daemon, struct zf_ring *ring)
{
	struct zf_mount_options options = {.read_only = true};
	const struct zf_super *newest;
	uint64_t generation = daemon->options.generation;
	unsigned int stepped_over;
	struct zf_super super;
	struct zf_fs *fs;

	if (!generation)
		generation = zf_ring_newest(ring, &newest, &stepped_over) == 0 ? newest->generation
									       : UINT64_MAX;
	for (unsigned int i = 0; i < OLDER_MAX; i++) {
		if (zf_ring_older(ring, generation, &super) < 0)
			return 0;
		generation = options.generation = super.generation;
		if (mount_and_look(daemon->dev, &options, NULL, &fs) < 0)
			continue;
		zf_fs_abandon(fs);
		return generation;
	}
	return 0;
}

static void suggest_older(struct zf_daemon *daemon)
{
	struct zf_ring *ring;
	uint64_t generation;

	if (zf_ring_open(daemon->dev, NULL, &ring) < 0)
		return;
	generation = find_older(daemon, ring);
	zf_ring_close(ring);
	if (generation)
		zf_report(&daemon->report, ZF_REPORT_ERROR,
			  "an older state can be mounted: -o ro,generation=%" PRIu64
			  " ('zfusectl super %s' lists the existing ones)",
			  generation, daemon->device);
	else
		zf_report(&daemon->report, ZF_REPORT_ERROR,
			  "no older state was found that can be mounted ('zfusectl super %s' lists "
			  "the existing ones, for -o ro,generation=N; 'zfusectl check' shows the "
			  "damage)",
			  daemon->device);
}

int zf_daemon_mount(struct zf_daemon *daemon)
{
	const struct zf_mount_options options = mount_options(daemon);
	struct zf_fs *fs;
	int r = mount_and_look(daemon->dev, &options, &daemon->report, &fs);

	if (r == 0) {
		daemon->fs = fs;
		return 0;
	}
	zf_report(&daemon->report, ZF_REPORT_ERROR, "%s cannot be mounted: %s", daemon->device,
		  r == -ENODEV ? "no zfuse filesystem on it (mkfs.zfuse makes one)" : strerror(-r));
	if (r == -EUCLEAN || r == -EIO) {
		suggest_older(daemon);
		zf_report(&daemon->report, ZF_REPORT_ERROR,
			  "what can be read is copied out by 'zfusectl restore %s DIRECTORY'",
			  daemon->device);
	}
	return r;
}

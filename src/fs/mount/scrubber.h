/* SPDX-License-Identifier: MIT */
/*
 * The scrub of a mounted filesystem: at most one at a time, in the background, over several mounts.
 *
 *      none, finished, cancelled --start--> running --its last step--> finished
 *      running --pause, a step that fails--> paused --resume--> running
 *      running, paused --cancel--> cancelled
 *
 * A scrub is a row of steps (fs/space/scrub.h) with nothing held in between. A thread of the mount
 * makes them (fs/mount/background.h), or a test. Where the scrub is and what it has found so far is
 * stored by each commit (txn/health.h). Each change of state, and every PLACE_BYTES (scrubber.c), makes
 * a commit of its own. So after a remount a running scrub goes on where it was at the last commit: what
 * it has verified since is verified once more, and damage there is counted once more.
 *
 * Pace. With a rate: at most so many bytes a second, whoever else needs the device. Without one the
 * scrub makes way: as long as somebody else uses the device it takes 1/32 of the time, and else as
 * much as the device gives, with a short pause after each step. Whether somebody else does is seen
 * by the device's counters in the pauses, and by the amount of data that waits to be written.
 *
 * Damage. Each damaged place is told as an error, with the path of its file, and kept in memory: the
 * first ZF_SCRUBBER_DAMAGE_MAX of a scrub, until the next one starts or the filesystem is unmounted.
 *
 * Locking. The state is under fs->health_lock. One caller at a time makes steps. Whoever starts,
 * pauses, resumes or cancels has made sure that the filesystem stays writable meanwhile
 * (fs/mount/change.h), and holds no lock of a rank above ZF_RANK_CHANGE.
 */
#ifndef ZF_FS_SCRUBBER_H
#define ZF_FS_SCRUBBER_H

#include "fs/space/scrub.h"

struct zf_scrubber;

#define ZF_SCRUBBER_DAMAGE_MAX 1000u

/* At a mount: what the device has of it; `record` may be all zero. -ENOMEM. */
int zf_scrubber_init(struct zf_fs *fs, const struct zf_scrub_record *record);
void zf_scrubber_deinit(struct zf_fs *fs);

/* ---- what users ask for; durable when it returns 0, or the error of the commit ---- */

/* `rate`: bytes a second; 0: makes way for others. -EBUSY: one is running; -EEXIST: one is paused. */
int zf_scrubber_start(struct zf_fs *fs, uint64_t rate);
/* -ENOENT: none is running. */
int zf_scrubber_pause(struct zf_fs *fs);
/* -ENOENT: none is paused. */
int zf_scrubber_resume(struct zf_fs *fs);
/* -ENOENT: none is running or paused. */
int zf_scrubber_cancel(struct zf_fs *fs);

/* ---- what it is doing ---- */

void zf_scrubber_get(struct zf_fs *fs, struct zf_scrub_record *ret_record);
/* Bytes that a scrub reads, as of now. */
uint64_t zf_scrubber_live_bytes(struct zf_fs *fs);

/* The `index`-th damaged place of this scrub. -ENOENT: there are not so many. Free *ret_path, which may be NULL. */
int zf_scrubber_get_damage(struct zf_fs *fs, size_t index, struct zf_scrub_error *ret_error,
			   char **ret_path);

/* Tells of damage as an error, by the path of its file: returns that, or NULL; to be freed. */
char *zf_scrubber_tell(struct zf_fs *fs, const struct zf_scrub_error *error);

/* ---- steps ---- */

/*
 * If a scrub is running, makes its next step. 1: *ret_wait_ms from now the next one is due; 0: there
 * is nothing to do until a scrub is started or resumed. Whoever calls it keeps the filesystem
 * writable meanwhile, or it is read-only for good after an error.
 */
int zf_scrubber_step(struct zf_fs *fs, uint64_t *ret_wait_ms);

#endif

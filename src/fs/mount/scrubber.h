/* SPDX-License-Identifier: MIT */
/*
 * The scrub of a mounted filesystem: at most one at a time, in the background, over several mounts.
 *
 *      none, finished, cancelled --start--> running --its last step--> finished
 *      running --pause, a step that fails--> paused --resume--> running
 *      running, paused --cancel--> cancelled
 *
 * A scrub is a sequence of steps (fs/space/scrub.h); between two steps nothing is held. A thread of
 * the mount makes the steps (fs/mount/background.h), or a test does. Each commit stores the scrub's
 * place and what it has found (txn/health.h). Each change of state makes a commit, and so does the
 * scrub after every PLACE_BYTES (scrubber.c). After a remount a running scrub goes on at the place
 * of the last commit: data that it verified since then is verified again, and damage there is
 * counted again.
 *
 * Pace. With a rate the scrub reads at most so many bytes a second, whether or not others use the
 * device. Without one it makes way for others: while others use the device it takes 1/32 of the
 * time; otherwise it reads as fast as the device can, with a short pause after each step. Others
 * use the device if its counters change during a pause, or if the amount of data that waits to be
 * written does.
 *
 * Damage. Each damaged place is reported as an error, with the path of its file; a repaired node as
 * a warning. The first ZF_SCRUBBER_DAMAGE_MAX of a scrub are kept in memory until the next scrub
 * starts or the filesystem is unmounted.
 *
 * Locking. The state is under fs->health_lock. One caller at a time makes steps. A caller that
 * starts, pauses, resumes or cancels a scrub keeps the filesystem writable meanwhile
 * (fs/mount/change.h), and holds no lock of a rank above ZF_RANK_CHANGE.
 */
#ifndef ZF_FS_SCRUBBER_H
#define ZF_FS_SCRUBBER_H

#include "fs/space/scrub.h"

struct zf_scrubber;

#define ZF_SCRUBBER_DAMAGE_MAX 1000u

/* At a mount: `record` is the scrub that the device has stored; all zero: none. -ENOMEM. */
int zf_scrubber_init(struct zf_fs *fs, const struct zf_scrub_record *record);
void zf_scrubber_deinit(struct zf_fs *fs);

/*
 * ---- what users ask for ----
 *
 * Each call commits its change and returns the error of the commit. If there is no space for the
 * commit, the call returns 0, and the next commit stores the change.
 */

/*
 * `rate`: bytes a second; 0: makes way for others. -EBUSY: a scrub is running; -EEXIST: a scrub is
 * paused.
 */
int zf_scrubber_start(struct zf_fs *fs, uint64_t rate);
/* -ENOENT: no scrub is running. */
int zf_scrubber_pause(struct zf_fs *fs);
/* -ENOENT: no scrub is paused. */
int zf_scrubber_resume(struct zf_fs *fs);
/* -ENOENT: no scrub is running or paused. */
int zf_scrubber_cancel(struct zf_fs *fs);

/* ---- what it is doing ---- */

void zf_scrubber_get(struct zf_fs *fs, struct zf_scrub_record *ret_record);
/* Returns how many bytes a scrub would read now. */
uint64_t zf_scrubber_live_bytes(struct zf_fs *fs);

/*
 * Gets the `index`-th damaged place of this scrub. -ENOENT: there are not so many. Free *ret_path,
 * which may be NULL.
 */
int zf_scrubber_get_damage(struct zf_fs *fs, size_t index, struct zf_scrub_error *ret_error,
			   char **ret_path);

/* Reports damage, as above. Returns the path of its file, or NULL; the caller frees it. */
char *zf_scrubber_tell(struct zf_fs *fs, const struct zf_scrub_error *error);

/* ---- steps ---- */

/*
 * If a scrub is running, makes its next step. 1: the next step is due *ret_wait_ms from now; 0:
 * there is nothing to do until a scrub is started or resumed. The caller keeps the filesystem
 * writable during the step, unless an error has made it read-only.
 */
int zf_scrubber_step(struct zf_fs *fs, uint64_t *ret_wait_ms);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Replaying the intent log at mount.
 *
 * Bodies above O are applied once each, in the order of their numbers. The edits of an operation
 * are one join. The state of an inode may take several joins; applying it twice gives the same
 * result, so a recovery that is cut in the middle begins again with the same body. The bytes that a
 * body names on the device were held before (zf_alloc_hold()), so no zone is reset that the log
 * needs.
 */
#ifndef ZF_FS_REPLAY_H
#define ZF_FS_REPLAY_H

struct zf_fs;
struct zf_log_found;

/*
 * Called after the intents of the committed state are finished, and before orphans are deleted.
 * -EUCLEAN: a body does not fit the state; it is reported and ends the replay. (Only a forged image
 * has such a body.) Other errors are the device's, or -ENOSPC.
 */
int zf_replay(struct zf_fs *fs, const struct zf_log_found *found);

#endif

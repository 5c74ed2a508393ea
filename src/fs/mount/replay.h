/* SPDX-License-Identifier: MIT */
/*
 * Replaying the intent log at mount.
 *
 * Bodies are applied in the order of their numbers, each above O once. An operation's edits are one
 * join. An inode's state may take several; applied twice it gives the same, so a recovery that is
 * cut in the middle begins again with the body that it was at. What a body names on the device was
 * held before (zf_alloc_hold()), so nothing is reset that the log still needs.
 */
#ifndef ZF_FS_REPLAY_H
#define ZF_FS_REPLAY_H

struct zf_fs;
struct zf_log_found;

/*
 * The intents of the committed state are finished; orphans are deleted afterwards. Bodies that do
 * not fit the state (only an image made by hand has such) are reported and end the replay, with
 * -EUCLEAN; else errors of the device or of room.
 */
int zf_replay(struct zf_fs *fs, const struct zf_log_found *found);

#endif

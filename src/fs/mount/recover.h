/* SPDX-License-Identifier: MIT */
/*
 * What a mount does about what the last one left behind.
 *
 *      the superblock's state is loaded
 *      zf_recover_read: all of the log is read, and what it names on the device is held
 *      (the allocator and the transactions begin)
 *      zf_recover: the intents of that state are finished, the log is replayed, all is let go of,
 *                  inodes without a name are deleted, and a commit begins the log's new epoch
 *
 * The order matters. What the log names is held before anything may be reset. The state's own
 * intents come before the operations that were made after them. Orphans come last: a replayed
 * operation may give one a name, or take the last one of another.
 *
 * A recovery that is cut, or fails, begins again with the next mount. Its commits in the middle say
 * how far it has come, and leave the log as it is.
 */
#ifndef ZF_FS_RECOVER_H
#define ZF_FS_RECOVER_H

struct zf_fs;
struct zf_log_found;

/*
 * Before zf_alloc_start(). On a read-only mount, which replays nothing, only says what there is.
 * The caller frees *ret_found in any case. -EUCLEAN, -EPROTONOSUPPORT, -errno; -EIO: part of the
 * log cannot be read, and options.abandon_log does not give that up.
 */
int zf_recover_read(struct zf_fs *fs, struct zf_log_found *ret_found);
int zf_recover(struct zf_fs *fs, const struct zf_log_found *found);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Recovery: what a mount does after the last mount did not end with an unmount.
 *
 *      the superblock's state is loaded
 *      zf_recover_read: all of the log is read, and the bytes that it names on the device are held
 *      (the allocator and the transactions begin)
 *      zf_recover: the intents of that state are finished, the log is replayed, the holds are
 *                  released, inodes without a name are deleted, and a commit begins the log's new
 *                  epoch, if there is a record that the superblock does not cover (log/log.h)
 *
 * The order matters. The bytes that the log names are held (zf_alloc_hold()) before any zone may be
 * reset. The intents of the committed state come before the log's operations, because they were
 * made earlier. Orphans come last, because a replayed operation may give an orphan a name, or
 * remove the last name of another inode.
 *
 * If a recovery is cut or fails, the next mount begins it again. Commits in the middle of a
 * recovery store how far it has come (O), and keep the log.
 */
#ifndef ZF_FS_RECOVER_H
#define ZF_FS_RECOVER_H

struct zf_fs;
struct zf_log_found;

/*
 * Called before zf_alloc_start(). A read-only mount replays nothing; there the call only reports
 * what the log has. The caller frees *ret_found in any case. -EUCLEAN, -EPROTONOSUPPORT, -errno;
 * -EIO: part of the log cannot be read, and options.abandon_log is not set.
 */
int zf_recover_read(struct zf_fs *fs, struct zf_log_found *ret_found);
int zf_recover(struct zf_fs *fs, const struct zf_log_found *found);

#endif

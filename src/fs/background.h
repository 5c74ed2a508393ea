/* SPDX-License-Identifier: MIT */
/*
 * The threads of a mounted filesystem: one lands and flushes data, one commits and tidies, one
 * reclaims.
 */
#ifndef ZF_FS_BACKGROUND_H
#define ZF_FS_BACKGROUND_H

struct zf_fs;

int zf_background_start(struct zf_fs *fs);
/* Waits for what the threads are doing. Does nothing if they were not started. */
void zf_background_stop(struct zf_fs *fs);

/* A commit is due, however long ago the last one was: much metadata is dirty. Without threads
 * no-op. */
void zf_background_want_commit(struct zf_fs *fs);

/*
 * Zones were opened, garbage was made, or reclaim was resumed: the reclaimer looks whether it is
 * wanted, which costs a pass over the zones. Cheap itself; any lock but the device's may be held.
 * Without threads no-op.
 */
void zf_background_room_used(struct zf_fs *fs);

#endif

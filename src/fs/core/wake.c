/* SPDX-License-Identifier: MIT */
#include "fs/core/wake.h"

#include "fs/core/inode.h"

void zf_wake_init(struct zf_fs *fs, int (*delete_doomed)(struct zf_fs *fs))
{
	zf_mutex_init(&fs->wake.lock, ZF_RANK_DEV);
	zf_cond_init(&fs->wake.committer);
	zf_cond_init(&fs->wake.reclaimer);
	zf_cond_init(&fs->wake.scrubber);
	fs->wake.delete_doomed = delete_doomed;
}

void zf_wake_deinit(struct zf_fs *fs)
{
	zf_cond_deinit(&fs->wake.scrubber);
	zf_cond_deinit(&fs->wake.reclaimer);
	zf_cond_deinit(&fs->wake.committer);
	zf_mutex_deinit(&fs->wake.lock);
}

static void ask(struct zf_fs *fs, bool *what, struct zf_cond *thread)
{
	if (!fs->background)
		return;
	zf_mutex_lock(&fs->wake.lock);
	*what = true;
	zf_cond_signal(thread);
	zf_mutex_unlock(&fs->wake.lock);
}

void zf_wake_commit(struct zf_fs *fs)
{
	ask(fs, &fs->wake.commit, &fs->wake.committer);
}

/*
 * The caller sets `deletion` and then reads `idle`; the committer sets `idle` and then reads
 * `deletion`. So at least one of the two sees what the other has set.
 */
static void wake_committer_to_delete(struct zf_wake *wake)
{
	if (atomic_exchange(&wake->deletion, true) || !atomic_load(&wake->idle))
		return;
	zf_mutex_lock(&wake->lock);
	zf_cond_signal(&wake->committer);
	zf_mutex_unlock(&wake->lock);
}

void zf_wake_deletion(struct zf_fs *fs)
{
	if (!fs->options.threads)
		fs->wake.delete_doomed(fs);
	else if (fs->background)
		wake_committer_to_delete(&fs->wake);
}

void zf_wake_reclaim(struct zf_fs *fs)
{
	ask(fs, &fs->wake.reclaim, &fs->wake.reclaimer);
}

void zf_wake_scrub(struct zf_fs *fs)
{
	ask(fs, &fs->wake.scrub, &fs->wake.scrubber);
}

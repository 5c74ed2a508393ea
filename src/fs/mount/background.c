/* SPDX-License-Identifier: MIT */
/*
 * The threads of a mount.
 *
 * The flusher lands completed appends, and packs dirty blocks into appends: whole appends at once,
 * other blocks when they are old or when much is dirty. If no zone has room for them, it commits.
 * The committer commits every commit_ms, or earlier when much metadata is dirty. With each commit
 * it asks the flusher to start old blocks, but it does not wait for data. Afterwards it gets zones
 * back. It also deletes files without a name. When there was nothing to commit for an interval, it
 * gives memory back to the system. The reclaimer moves data out of zones that are mostly garbage,
 * while there are fewer zones than its target. The scrubber makes the steps of a scrub, if one is
 * running.
 */
#include "fs/mount/background.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/bits.h"
#include "base/spawn.h"
#include "fs/data/append.h"
#include "fs/data/block.h"
#include "fs/data/data.h"
#include "fs/data/delete.h"
#include "fs/data/flush.h"
#include "fs/data/recent.h"
#include "fs/core/inode.h"
#include "fs/mount/scrubber.h"
#include "fs/space/reclaim.h"
#include "fs/space/room.h"

/*
 * While there is something to commit, the committer checks this often whether a file has to be
 * deleted.
 */
#define LOOK_MS 100u

struct zf_background {
	struct zf_fs *fs;
	pthread_t flusher, committer, reclaimer, scrubber;
	atomic_bool stopping, aged; /* `aged`: the flusher has to start old blocks */
	/* Under fs->wake.lock. */
	atomic_bool paused;
	unsigned int resting; /* threads, while it is paused */
	struct zf_cond rest;  /* a thread has begun to rest, or the pause is over */
};

#define THREADS 4u

/*
 * Each thread calls this between two steps, and rests here while the threads are paused. False: it
 * has to end.
 */
static bool may_go_on(struct zf_background *background)
{
	struct zf_mutex *lock = &background->fs->wake.lock;

	if (atomic_load(&background->paused)) {
		zf_mutex_lock(lock);
		background->resting++;
		zf_cond_broadcast(&background->rest);
		while (background->paused && !atomic_load(&background->stopping))
			zf_cond_wait(&background->rest, lock);
		background->resting--;
		zf_mutex_unlock(lock);
	}
	return !atomic_load(&background->stopping);
}

/* Returns whether the threads have to end or to rest, so that none of them begins to wait. */
static bool is_called_off(struct zf_background *background)
{
	return atomic_load(&background->stopping) || atomic_load(&background->paused);
}

static uint64_t now_ms(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- the flusher ---- */

static void flush_aged(struct zf_fs *fs)
{
	uint64_t now = now_ms(CLOCK_MONOTONIC_COARSE);
	uint64_t commit_ms = atomic_load(&fs->commit_ms);

	/* The inodes keep the errors, for their fsync. */
	(void)zf_flush_run_aged(fs, now > commit_ms ? now - commit_ms : 0);
}

static void *flusher(void *arg)
{
	struct zf_background *background = arg;
	struct zf_fs *fs = background->fs;

	for (;;) {
		/*
		 * This load comes before the flags are read, because a flag is set before its event
		 * is counted.
		 */
		uint64_t seen = zf_flush_events(fs);

		if (!may_go_on(background))
			return NULL;
		zf_flush_run_eager(fs);
		if (atomic_exchange(&fs->flush.wanted, false))
			(void)zf_data_flush_all(fs, false);
		if (atomic_exchange(&background->aged, false))
			flush_aged(fs);
		zf_append_serve(fs, seen);
	}
}

/* ---- the committer ---- */

static void tidy(struct zf_background *background)
{
	struct zf_fs *fs = background->fs;

	while (!is_called_off(background) && zf_txn_tidy(fs->txn, false) == ZF_TIDY_DID)
		;
}

static void commit(struct zf_background *background)
{
	struct zf_fs *fs = background->fs;

	atomic_store(&background->aged, true);
	zf_flush_event(fs);
	/* A failure has turned the filesystem read-only, and was reported. */
	if (zf_reclaim_commit(fs) == 0)
		tidy(background);
	zf_room_look(fs);
}

/* Returns whether a commit is wanted at once. */
static bool wait_ms(struct zf_background *background, uint64_t ms)
{
	struct zf_wake *wake = &background->fs->wake;
	bool wanted, idle = ms > LOOK_MS;

	atomic_store(&wake->idle, idle);
	zf_mutex_lock(&wake->lock);
	if (ms > 0 && !wake->commit && !is_called_off(background) &&
	    !(idle && atomic_load(&wake->deletion)))
		zf_cond_wait_ms(&wake->committer, &wake->lock, ms);
	wanted = wake->commit;
	wake->commit = false;
	zf_mutex_unlock(&wake->lock);
	atomic_store(&wake->idle, false);
	return wanted;
}

static void delete_doomed(struct zf_fs *fs)
{
	atomic_store(&fs->wake.deletion, false);
	zf_delete_doomed(fs);
}

static bool is_quiet(struct zf_fs *fs)
{
	return !zf_txn_is_dirty(fs->txn) && atomic_load(&fs->flush.used_bytes) == 0;
}

/*
 * Gives memory back that a burst of work needed, including what the C library keeps. Resident
 * memory after 1,000 MiB were written: 25 MB before this call, 9 MB after it; after 200,000 names
 * were made and removed: 46 and 32 MB (cache=16M).
 */
static void give_memory_back(struct zf_fs *fs)
{
	zf_block_pool_trim(&fs->flush);
	zf_recent_trim(fs->flush.recent);
	malloc_trim(0);
}

static void *committer(void *arg)
{
	struct zf_background *background = arg;
	struct zf_fs *fs = background->fs;
	uint64_t last = now_ms(CLOCK_MONOTONIC);
	uint64_t given_back = 0; /* the generation that was durable at that time */
	bool quiet;

	while (may_go_on(background)) {
		uint64_t due = last + atomic_load(&fs->commit_ms);
		uint64_t now = now_ms(CLOCK_MONOTONIC), left = due > now ? due - now : 0;

		if (zf_txn_is_dirty(fs->txn))
			left = zf_min_u64(left, LOOK_MS);
		if (!wait_ms(background, left) && now_ms(CLOCK_MONOTONIC) < due) {
			/*
			 * Deletes before the commit, so that this commit, and not the next one,
			 * frees the space.
			 */
			delete_doomed(fs);
			continue;
		}
		delete_doomed(fs);
		quiet = is_quiet(fs);
		commit(background);
		if (quiet && zf_txn_durable(fs->txn) != given_back) {
			given_back = zf_txn_durable(fs->txn);
			give_memory_back(fs);
		}
		last = now_ms(CLOCK_MONOTONIC);
	}
	return NULL;
}

/* ---- the reclaimer ---- */

static void wait_until_wanted(struct zf_background *background)
{
	struct zf_wake *wake = &background->fs->wake;

	zf_mutex_lock(&wake->lock);
	while (!wake->reclaim && !is_called_off(background))
		zf_cond_wait(&wake->reclaimer, &wake->lock);
	wake->reclaim = false;
	zf_mutex_unlock(&wake->lock);
}

static void *reclaimer(void *arg)
{
	struct zf_background *background = arg;

	/*
	 * Errors were reported. If there was no room to move data to, reclaim goes on when some has
	 * come back.
	 */
	while (may_go_on(background))
		if (zf_reclaim_in_peace(background->fs) <= 0)
			wait_until_wanted(background);
	return NULL;
}

/* ---- the scrubber ---- */

/* Waits until the next step is due, or a scrub is started, paused, resumed or cancelled. */
static void wait_for_scrub(struct zf_background *background, bool running, uint64_t ms)
{
	struct zf_wake *wake = &background->fs->wake;
	bool waiting = !running || ms > 0;

	zf_mutex_lock(&wake->lock);
	while (waiting && !wake->scrub && !is_called_off(background))
		if (running)
			waiting = zf_cond_wait_ms(&wake->scrubber, &wake->lock, ms);
		else
			zf_cond_wait(&wake->scrubber, &wake->lock);
	wake->scrub = false;
	zf_mutex_unlock(&wake->lock);
}

static void *scrubber(void *arg)
{
	struct zf_background *background = arg;

	while (may_go_on(background)) {
		uint64_t ms = 0;
		bool running = zf_scrubber_step(background->fs, &ms) > 0;

		wait_for_scrub(background, running, ms);
	}
	return NULL;
}

/* ---- life ---- */

/* Sets `flag`, and wakes all threads, so that they read it. */
static void call_off(struct zf_background *background, atomic_bool *flag)
{
	struct zf_wake *wake = &background->fs->wake;

	zf_mutex_lock(&wake->lock);
	atomic_store(flag, true);
	zf_cond_broadcast(&wake->committer);
	zf_cond_broadcast(&wake->reclaimer);
	zf_cond_broadcast(&wake->scrubber);
	zf_cond_broadcast(&background->rest);
	zf_mutex_unlock(&wake->lock);
	zf_flush_event(background->fs);
}

static void free_background(struct zf_background *background)
{
	zf_cond_deinit(&background->rest);
	free(background);
}

static int start_threads(struct zf_background *background)
{
	const struct {
		pthread_t *thread;
		void *(*main)(void *);
		const char *name;
	} threads[THREADS] = {
		{&background->flusher, flusher, "zfuse-flush"},
		{&background->committer, committer, "zfuse-commit"},
		{&background->reclaimer, reclaimer, "zfuse-reclaim"},
		{&background->scrubber, scrubber, "zfuse-scrub"},
	};
	int r = 0;

	for (size_t i = 0; i < THREADS && r == 0; i++) {
		r = zf_spawn(threads[i].thread, threads[i].name, threads[i].main, background);
		if (r == 0)
			continue;
		call_off(background, &background->stopping);
		while (i-- > 0)
			pthread_join(*threads[i].thread, NULL);
		return r;
	}
	return 0;
}

int zf_background_start(struct zf_fs *fs)
{
	struct zf_background *background = calloc(1, sizeof(*background));
	int r;

	if (!background)
		return -ENOMEM;
	background->fs = fs;
	zf_cond_init(&background->rest);
	fs->background = background;
	r = start_threads(background);
	if (r < 0) {
		fs->background = NULL;
		free_background(background);
	}
	return r;
}

void zf_background_stop(struct zf_fs *fs)
{
	struct zf_background *background = fs->background;

	if (!background)
		return;
	zf_reclaim_stop(fs);
	call_off(background, &background->stopping);
	pthread_join(background->scrubber, NULL);
	pthread_join(background->reclaimer, NULL);
	pthread_join(background->flusher, NULL);
	pthread_join(background->committer, NULL);
	fs->background = NULL;
	zf_flush_drop_eager(fs);
	free_background(background);
}

void zf_background_pause(struct zf_fs *fs)
{
	struct zf_background *background = fs->background;

	if (!background)
		return;
	call_off(background, &background->paused);
	zf_mutex_lock(&fs->wake.lock);
	while (background->resting < THREADS)
		zf_cond_wait(&background->rest, &fs->wake.lock);
	zf_mutex_unlock(&fs->wake.lock);
}

void zf_background_resume(struct zf_fs *fs)
{
	struct zf_background *background = fs->background;

	if (!background)
		return;
	zf_mutex_lock(&fs->wake.lock);
	atomic_store(&background->paused, false);
	zf_cond_broadcast(&background->rest);
	zf_mutex_unlock(&fs->wake.lock);
}

/* Wakes the committer, because its present wait may be longer than the new interval. */
void zf_fs_set_commit_ms(struct zf_fs *fs, uint64_t commit_ms)
{
	struct zf_background *background = fs->background;

	atomic_store(&fs->commit_ms, commit_ms);
	if (!background)
		return;
	zf_mutex_lock(&fs->wake.lock);
	zf_cond_signal(&fs->wake.committer);
	zf_mutex_unlock(&fs->wake.lock);
}

/* ---- without threads ---- */

/*
 * Completes half of the commands in flight, so that commits meet appends in every state. A few
 * steps without other work finish everything.
 */
static void land_half(struct zf_fs *fs)
{
	unsigned int polls;

	zf_mutex_lock(&fs->flush.lock);
	polls = (fs->flush.submitted + 1) / 2;
	zf_mutex_unlock(&fs->flush.lock);
	while (polls-- > 0)
		zf_dev_poll(fs->dev, true);
	zf_data_land(fs);
	zf_append_submit_waiting(fs);
}

int zf_fs_step(struct zf_fs *fs)
{
	int r;

	if (fs->read_only)
		return 0;
	(void)zf_data_flush_all(fs, false);
	land_half(fs);
	zf_delete_doomed(fs);
	r = zf_reclaim_commit(fs);
	while (r == 0 && zf_txn_tidy(fs->txn, false) == ZF_TIDY_DID)
		;
	if (r == 0)
		(void)zf_reclaim_in_peace(fs);
	return r;
}

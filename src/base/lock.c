/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A pthread call on these locks fails only if the program is wrong. */
static void must(int r)
{
	if (r != 0) {
		fprintf(stderr, "zfuse: lock misused: error %d\n", r);
		abort();
	}
}

#ifdef ZF_DEBUG_LOCKS
static _Thread_local unsigned int held[ZF_RANK_COUNT];

static const char *const rank_names[ZF_RANK_COUNT] = {
	[ZF_RANK_DAEMON] = "daemon",   [ZF_RANK_CHANGE] = "change", [ZF_RANK_ROOM] = "room",
	[ZF_RANK_RECLAIM] = "reclaim", [ZF_RANK_RENAME] = "rename", [ZF_RANK_INODE] = "inode",
	[ZF_RANK_COMMIT] = "commit",   [ZF_RANK_JOIN] = "join",	    [ZF_RANK_TRANS] = "trans",
	[ZF_RANK_FS] = "fs",	       [ZF_RANK_BLOCKS] = "blocks", [ZF_RANK_SHARE] = "share",
	[ZF_RANK_TREE] = "tree",       [ZF_RANK_LOG] = "log",	    [ZF_RANK_ALLOC] = "alloc",
	[ZF_RANK_CACHE] = "cache",     [ZF_RANK_POLL] = "poll",	    [ZF_RANK_DEV] = "dev",
	[ZF_RANK_HEALTH] = "health",   [ZF_RANK_REPORT] = "report",
};

static void check_outside(enum zf_rank rank, enum zf_rank from)
{
	for (unsigned int r = from; r < ZF_RANK_COUNT; r++) {
		if (held[r] == 0)
			continue;
		fprintf(stderr, "zfuse: lock order broken: '%s' wanted while '%s' is held\n",
			rank_names[rank], rank_names[r]);
		abort();
	}
}

void zf_rank_enter(enum zf_rank rank)
{
	/* Several inode locks may be held; of every other rank only one. */
	check_outside(rank, rank == ZF_RANK_INODE ? rank + 1 : rank);
	held[rank]++;
}

void zf_rank_leave(enum zf_rank rank)
{
	if (held[rank] == 0) {
		fprintf(stderr, "zfuse: lock '%s' released but not held\n", rank_names[rank]);
		abort();
	}
	held[rank]--;
}

void zf_lock_assert_outside(enum zf_rank rank)
{
	check_outside(rank, rank);
}

/* A try never waits, so it cannot deadlock and may break the order. */
static void rank_enter_try(enum zf_rank rank)
{
	held[rank]++;
}
#else
void zf_rank_enter(enum zf_rank rank)
{
	(void)rank;
}

void zf_rank_leave(enum zf_rank rank)
{
	(void)rank;
}

void zf_lock_assert_outside(enum zf_rank rank)
{
	(void)rank;
}

static void rank_enter_try(enum zf_rank rank)
{
	(void)rank;
}
#endif

void zf_mutex_init(struct zf_mutex *mutex, enum zf_rank rank)
{
	must(pthread_mutex_init(&mutex->m, NULL));
	mutex->rank = rank;
}

void zf_mutex_deinit(struct zf_mutex *mutex)
{
	must(pthread_mutex_destroy(&mutex->m));
}

void zf_mutex_lock(struct zf_mutex *mutex)
{
	zf_rank_enter(mutex->rank);
	must(pthread_mutex_lock(&mutex->m));
}

bool zf_mutex_trylock(struct zf_mutex *mutex)
{
	int r = pthread_mutex_trylock(&mutex->m);

	if (r == EBUSY)
		return false;
	must(r);
	rank_enter_try(mutex->rank);
	return true;
}

void zf_mutex_unlock(struct zf_mutex *mutex)
{
	/* The next holder may free the lock, so nothing of it is touched after the unlock. */
	zf_rank_leave(mutex->rank);
	must(pthread_mutex_unlock(&mutex->m));
}

void zf_rwlock_init(struct zf_rwlock *rwlock, enum zf_rank rank)
{
	pthread_rwlockattr_t attr;

	must(pthread_rwlockattr_init(&attr));
	must(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
	must(pthread_rwlock_init(&rwlock->l, &attr));
	must(pthread_rwlockattr_destroy(&attr));
	must(pthread_mutex_init(&rwlock->writer, NULL));
	rwlock->exclusive = false;
	rwlock->rank = rank;
}

void zf_rwlock_deinit(struct zf_rwlock *rwlock)
{
	must(pthread_mutex_destroy(&rwlock->writer));
	must(pthread_rwlock_destroy(&rwlock->l));
}

/*
 * A tree's lock is held for a microsecond or two. To sleep and be woken takes fifty, and costs the
 * waking thread time, too. So a thread tries for some microseconds before it sleeps.
 */
#define SPINS 100u

static void spin_once(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

static bool try_read(struct zf_rwlock *rwlock)
{
	int r = pthread_rwlock_tryrdlock(&rwlock->l);

	if (r == EBUSY)
		return false;
	must(r);
	return true;
}

static bool try_write(struct zf_rwlock *rwlock)
{
	int r = pthread_mutex_trylock(&rwlock->writer);

	if (r == EBUSY)
		return false;
	must(r);
	r = pthread_rwlock_trywrlock(&rwlock->l);
	if (r == EBUSY) {
		must(pthread_mutex_unlock(&rwlock->writer));
		return false;
	}
	must(r);
	rwlock->exclusive = true;
	return true;
}

/* Returns whether `try` got the lock. */
static bool spin(struct zf_rwlock *rwlock, bool (*try)(struct zf_rwlock *rwlock))
{
	for (unsigned int i = 0; i < SPINS; i++) {
		if (try(rwlock))
			return true;
		spin_once();
	}
	return false;
}

void zf_rwlock_rdlock(struct zf_rwlock *rwlock)
{
	zf_rank_enter(rwlock->rank);
	if (!spin(rwlock, try_read))
		must(pthread_rwlock_rdlock(&rwlock->l));
}

void zf_rwlock_wrlock(struct zf_rwlock *rwlock)
{
	zf_rank_enter(rwlock->rank);
	if (spin(rwlock, try_write))
		return;
	must(pthread_mutex_lock(&rwlock->writer));
	must(pthread_rwlock_wrlock(&rwlock->l));
	rwlock->exclusive = true;
}

bool zf_rwlock_tryrdlock(struct zf_rwlock *rwlock)
{
	if (!try_read(rwlock))
		return false;
	rank_enter_try(rwlock->rank);
	return true;
}

static bool try_write_beside(struct zf_rwlock *rwlock)
{
	int r = pthread_rwlock_trywrlock(&rwlock->l);

	if (r == EBUSY)
		return false;
	must(r);
	return true;
}

void zf_rwlock_wrlock_beside(struct zf_rwlock *rwlock)
{
	zf_rank_enter(rwlock->rank);
	if (!spin(rwlock, try_write_beside))
		must(pthread_rwlock_wrlock(&rwlock->l));
}

bool zf_rwlock_trywrlock_beside(struct zf_rwlock *rwlock)
{
	if (!try_write_beside(rwlock))
		return false;
	rank_enter_try(rwlock->rank);
	return true;
}

bool zf_rwlock_trywrlock(struct zf_rwlock *rwlock)
{
	if (!try_write(rwlock))
		return false;
	rank_enter_try(rwlock->rank);
	return true;
}

void zf_rwlock_unlock(struct zf_rwlock *rwlock)
{
	/* A reader sees false, because no thread has the lock exclusively while a reader has it. */
	bool exclusive = rwlock->exclusive;

	zf_rank_leave(rwlock->rank);
	if (exclusive)
		rwlock->exclusive = false;
	must(pthread_rwlock_unlock(&rwlock->l));
	if (exclusive)
		must(pthread_mutex_unlock(&rwlock->writer));
}

void zf_rwlock_keep(struct zf_rwlock *rwlock)
{
	rwlock->exclusive = false;
	must(pthread_rwlock_unlock(&rwlock->l));
}

void zf_rwlock_resume(struct zf_rwlock *rwlock)
{
	must(pthread_rwlock_wrlock(&rwlock->l));
	rwlock->exclusive = true;
}

void zf_cond_init(struct zf_cond *cond)
{
	pthread_condattr_t attr;

	must(pthread_condattr_init(&attr));
	must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
	must(pthread_cond_init(&cond->c, &attr));
	must(pthread_condattr_destroy(&attr));
}

void zf_cond_deinit(struct zf_cond *cond)
{
	must(pthread_cond_destroy(&cond->c));
}

void zf_cond_wait(struct zf_cond *cond, struct zf_mutex *mutex)
{
	must(pthread_cond_wait(&cond->c, &mutex->m));
}

bool zf_cond_wait_ms(struct zf_cond *cond, struct zf_mutex *mutex, uint64_t timeout_ms)
{
	struct timespec until;
	int r;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(timeout_ms / 1000);
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	r = pthread_cond_timedwait(&cond->c, &mutex->m, &until);
	if (r == ETIMEDOUT)
		return false;
	must(r);
	return true;
}

void zf_cond_signal(struct zf_cond *cond)
{
	must(pthread_cond_signal(&cond->c));
}

void zf_cond_broadcast(struct zf_cond *cond)
{
	must(pthread_cond_broadcast(&cond->c));
}

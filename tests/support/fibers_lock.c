/* SPDX-License-Identifier: MIT */
/*
 * Implements base/lock.h and base/wakeup.h for the fibers of fibers.h; linked in place of
 * base/lock.c and base/wakeup.c. One fiber runs at a time, so a lock is a few plain fields, in the
 * memory of the real lock's fields.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/wakeup.h"
#include "support/fibers.h"

/* ---- ranks ---- */

static void check_outside(unsigned int rank, unsigned int from)
{
	const unsigned int *held = fibers_held();

	for (unsigned int r = from; r < ZF_RANK_COUNT; r++) {
		if (held[r] == 0)
			continue;
		fprintf(stderr, "fibers: lock order broken: %u wanted while %u is held\n", rank, r);
		abort();
	}
}

void zf_rank_enter(enum zf_rank rank)
{
	check_outside(rank, rank == ZF_RANK_INODE ? rank + 1u : rank);
	fibers_held()[rank]++;
}

void zf_rank_leave(enum zf_rank rank)
{
	assert(fibers_held()[rank] > 0);
	fibers_held()[rank]--;
}

void zf_lock_assert_outside(enum zf_rank rank)
{
	check_outside(rank, rank);
}

/* ---- mutexes ---- */

struct owned {
	const void *owner;
	unsigned int waiting;
};

static void own(struct owned *lock, const char *what)
{
	while (lock->owner) {
		lock->waiting++;
		fibers_block(lock, what);
		lock->waiting--;
	}
	lock->owner = fibers_self();
}

static bool try_own(struct owned *lock)
{
	if (lock->owner)
		return false;
	lock->owner = fibers_self();
	return true;
}

static void disown(struct owned *lock)
{
	lock->owner = NULL;
	if (lock->waiting > 0)
		fibers_wake_all(lock);
}

static struct owned *owned(struct zf_mutex *mutex)
{
	_Static_assert(sizeof(struct owned) <= sizeof(mutex->m), "fits");
	return (struct owned *)(void *)&mutex->m;
}

void zf_mutex_init(struct zf_mutex *mutex, enum zf_rank rank)
{
	*mutex = (struct zf_mutex){.rank = rank};
	*owned(mutex) = (struct owned){0};
}

void zf_mutex_deinit(struct zf_mutex *mutex)
{
	assert(!owned(mutex)->owner && owned(mutex)->waiting == 0);
}

void zf_mutex_lock(struct zf_mutex *mutex)
{
	zf_rank_enter(mutex->rank);
	zf_fibers_point();
	own(owned(mutex), "a mutex");
}

bool zf_mutex_trylock(struct zf_mutex *mutex)
{
	zf_fibers_point();
	if (!try_own(owned(mutex)))
		return false;
	fibers_held()[mutex->rank]++;
	return true;
}

void zf_mutex_unlock(struct zf_mutex *mutex)
{
	assert(owned(mutex)->owner == fibers_self());
	zf_rank_leave(mutex->rank);
	disown(owned(mutex));
	/* The next owner may free the mutex, so it must not be touched from here on. */
	zf_fibers_point();
}

/* ---- read-write locks ---- */

struct shared {
	struct owned writer;   /* the fiber that has it exclusively, or keeps it */
	const void *exclusive; /* the fiber that has it exclusively, or beside */
	unsigned int readers;
	unsigned int writers_waiting; /* new readers wait for them */
	unsigned int waiting;
};

static struct shared *shared(struct zf_rwlock *rwlock)
{
	_Static_assert(sizeof(struct shared) <= sizeof(rwlock->l), "fits");
	return (struct shared *)(void *)&rwlock->l;
}

void zf_rwlock_init(struct zf_rwlock *rwlock, enum zf_rank rank)
{
	*rwlock = (struct zf_rwlock){.rank = rank};
	*shared(rwlock) = (struct shared){0};
}

void zf_rwlock_deinit(struct zf_rwlock *rwlock)
{
	const struct shared *lock = shared(rwlock);

	assert(!lock->writer.owner && !lock->exclusive && lock->readers == 0 && lock->waiting == 0);
}

static void wait_for(struct shared *lock, const char *what)
{
	lock->waiting++;
	fibers_block(lock, what);
	lock->waiting--;
}

static void changed(struct shared *lock)
{
	if (lock->waiting > 0)
		fibers_wake_all(lock);
}

static bool may_read(const struct shared *lock)
{
	return !lock->exclusive && lock->writers_waiting == 0;
}

static bool may_write(const struct shared *lock)
{
	return !lock->exclusive && lock->readers == 0;
}

static void exclude(struct shared *lock)
{
	lock->writers_waiting++;
	while (!may_write(lock))
		wait_for(lock, "a read-write lock, to write");
	lock->writers_waiting--;
	lock->exclusive = fibers_self();
}

void zf_rwlock_rdlock(struct zf_rwlock *rwlock)
{
	struct shared *lock = shared(rwlock);

	zf_rank_enter(rwlock->rank);
	zf_fibers_point();
	while (!may_read(lock))
		wait_for(lock, "a read-write lock, to read");
	lock->readers++;
}

void zf_rwlock_wrlock(struct zf_rwlock *rwlock)
{
	struct shared *lock = shared(rwlock);

	zf_rank_enter(rwlock->rank);
	zf_fibers_point();
	own(&lock->writer, "a read-write lock, to write");
	exclude(lock);
	rwlock->exclusive = true;
}

bool zf_rwlock_tryrdlock(struct zf_rwlock *rwlock)
{
	struct shared *lock = shared(rwlock);

	zf_fibers_point();
	if (!may_read(lock))
		return false;
	lock->readers++;
	fibers_held()[rwlock->rank]++;
	return true;
}

bool zf_rwlock_trywrlock(struct zf_rwlock *rwlock)
{
	struct shared *lock = shared(rwlock);

	zf_fibers_point();
	if (!may_write(lock) || !try_own(&lock->writer))
		return false;
	lock->exclusive = fibers_self();
	rwlock->exclusive = true;
	fibers_held()[rwlock->rank]++;
	return true;
}

void zf_rwlock_wrlock_beside(struct zf_rwlock *rwlock)
{
	zf_rank_enter(rwlock->rank);
	zf_fibers_point();
	exclude(shared(rwlock));
}

bool zf_rwlock_trywrlock_beside(struct zf_rwlock *rwlock)
{
	struct shared *lock = shared(rwlock);

	zf_fibers_point();
	if (!may_write(lock))
		return false;
	lock->exclusive = fibers_self();
	fibers_held()[rwlock->rank]++;
	return true;
}

void zf_rwlock_unlock(struct zf_rwlock *rwlock)
{
	struct shared *lock = shared(rwlock);
	bool both = rwlock->exclusive;

	zf_rank_leave(rwlock->rank);
	if (lock->exclusive) {
		assert(lock->exclusive == fibers_self());
		lock->exclusive = NULL;
		rwlock->exclusive = false;
	} else {
		assert(lock->readers > 0);
		lock->readers--;
	}
	if (both)
		disown(&lock->writer);
	changed(lock);
	zf_fibers_point();
}

void zf_rwlock_keep(struct zf_rwlock *rwlock)
{
	struct shared *lock = shared(rwlock);

	assert(rwlock->exclusive && lock->exclusive == fibers_self());
	rwlock->exclusive = false;
	lock->exclusive = NULL;
	changed(lock);
	zf_fibers_point();
}

void zf_rwlock_resume(struct zf_rwlock *rwlock)
{
	zf_fibers_point();
	exclude(shared(rwlock));
	rwlock->exclusive = true;
}

/* ---- conditions ---- */

void zf_cond_init(struct zf_cond *cond)
{
}

void zf_cond_deinit(struct zf_cond *cond)
{
}

static void let_go(struct zf_mutex *mutex)
{
	assert(owned(mutex)->owner == fibers_self());
	zf_rank_leave(mutex->rank);
	disown(owned(mutex));
}

static void get_back(struct zf_mutex *mutex)
{
	own(owned(mutex), "a mutex, after a condition");
	fibers_held()[mutex->rank]++;
}

void zf_cond_wait(struct zf_cond *cond, struct zf_mutex *mutex)
{
	let_go(mutex);
	fibers_block(cond, "a condition");
	get_back(mutex);
}

bool zf_cond_wait_ms(struct zf_cond *cond, struct zf_mutex *mutex, uint64_t timeout_ms)
{
	bool woken;

	let_go(mutex);
	woken = fibers_block_ms(cond, "a condition", timeout_ms);
	get_back(mutex);
	return woken;
}

void zf_cond_signal(struct zf_cond *cond)
{
	fibers_wake_one(cond);
}

void zf_cond_broadcast(struct zf_cond *cond)
{
	fibers_wake_all(cond);
}

/* ---- wakeups ---- */

static unsigned int *sent(struct zf_wakeup *wakeup)
{
	return (unsigned int *)(void *)&wakeup->sent;
}

void zf_wakeup_init(struct zf_wakeup *wakeup)
{
	*sent(wakeup) = 0;
}

void zf_wakeup_deinit(struct zf_wakeup *wakeup)
{
	assert(*sent(wakeup) == 0);
}

void zf_wakeup_wait(struct zf_wakeup *wakeup)
{
	zf_fibers_point();
	while (*sent(wakeup) == 0)
		fibers_block(wakeup, "a wakeup");
	--*sent(wakeup);
}

void zf_wakeup_send(struct zf_wakeup *wakeup)
{
	++*sent(wakeup);
	fibers_wake_all(wakeup);
	zf_fibers_point();
}

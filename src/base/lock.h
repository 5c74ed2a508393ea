/* SPDX-License-Identifier: MIT */
/*
 * Ranked locks: the locking order is code.
 *
 * Every lock has a rank, and a thread takes locks in ascending rank only. Debug builds
 * (-Ddebug_locks) keep the ranks that a thread holds. They abort, naming the locks, when the order is
 * broken, when zf_lock_assert_outside() finds a lock held where none may be, and when a lock is
 * released that is not held. Several inode locks may be held at once (ZF_RANK_INODE), taken in
 * ascending inode number.
 */
#ifndef ZF_BASE_LOCK_H
#define ZF_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Outermost first. docs/locking.md tells what each protects. */
enum zf_rank {
	ZF_RANK_DAEMON,	 /* the daemon's lists and its gate */
	ZF_RANK_CHANGE,	 /* one grow, remount or tool's reclaim at a time */
	ZF_RANK_ROOM,	 /* whose turn it is to wait for room */
	ZF_RANK_RECLAIM, /* one victim at a time */
	ZF_RANK_RENAME,	 /* moving a directory to another parent */
	ZF_RANK_INODE,	 /* one inode: its attributes and extent map, several in inode order */
	ZF_RANK_COMMIT,	 /* one commit at a time */
	ZF_RANK_JOIN,	 /* a transaction handle: not a lock, but waits like one */
	ZF_RANK_TRANS,	 /* transaction state */
	ZF_RANK_FS,	 /* inode table, dirty lists, orphan table */
	ZF_RANK_BLOCKS,	 /* the dirty blocks of one inode */
	ZF_RANK_SHARE,	 /* the share tree, from a look-up to the edit that depends on it */
	ZF_RANK_TREE,	 /* one B-tree in memory */
	ZF_RANK_LOG,	 /* the intent log: operations to be written, records under way */
	ZF_RANK_ALLOC,	 /* zone table, reservations, streams */
	ZF_RANK_CACHE,	 /* node cache; copies of blocks written in part */
	ZF_RANK_POLL,	 /* one thread at a time collects what a device has completed */
	ZF_RANK_DEV,	 /* device queues */
	ZF_RANK_HEALTH,	 /* counters of faults, and the state of the scrub */
	ZF_RANK_REPORT,	 /* which messages were told, and how often */
	ZF_RANK_COUNT,
};

struct zf_mutex {
	pthread_mutex_t m;
	enum zf_rank rank;
};

struct zf_rwlock {
	pthread_mutex_t writer; /* held by the thread that has the lock exclusively, or keeps it */
	pthread_rwlock_t l;
	bool exclusive; /* set and cleared by the thread that holds `l` exclusively */
	enum zf_rank rank;
};

struct zf_cond {
	pthread_cond_t c;
};

void zf_mutex_init(struct zf_mutex *mutex, enum zf_rank rank);
void zf_mutex_deinit(struct zf_mutex *mutex);
void zf_mutex_lock(struct zf_mutex *mutex);
bool zf_mutex_trylock(struct zf_mutex *mutex);
void zf_mutex_unlock(struct zf_mutex *mutex);

/*
 * Writers are preferred, so that a stream of readers cannot starve them. So a thread must not take
 * the lock shared twice. A thread that does not get the lock tries again for some microseconds
 * before it sleeps, because most of these locks are not held longer.
 */
void zf_rwlock_init(struct zf_rwlock *rwlock, enum zf_rank rank);
void zf_rwlock_deinit(struct zf_rwlock *rwlock);
void zf_rwlock_rdlock(struct zf_rwlock *rwlock);
void zf_rwlock_wrlock(struct zf_rwlock *rwlock);
bool zf_rwlock_tryrdlock(struct zf_rwlock *rwlock);
bool zf_rwlock_trywrlock(struct zf_rwlock *rwlock);
void zf_rwlock_unlock(struct zf_rwlock *rwlock);
/*
 * *Keeping* a lock, for the time of one write of the device. zf_rwlock_keep(): the thread that has
 * the lock exclusively lets readers in, and threads that lock it *beside* (below), but no others.
 * zf_rwlock_resume(): waits until these have left, and has the lock exclusively again.
 */
void zf_rwlock_keep(struct zf_rwlock *rwlock);
void zf_rwlock_resume(struct zf_rwlock *rwlock);
/*
 * Takes the lock exclusively, but *beside* a thread that keeps it. Only for changes that the thread
 * which keeps the lock allows; docs/locking.md says which. Released by zf_rwlock_unlock().
 */
void zf_rwlock_wrlock_beside(struct zf_rwlock *rwlock);
bool zf_rwlock_trywrlock_beside(struct zf_rwlock *rwlock);

void zf_cond_init(struct zf_cond *cond);
void zf_cond_deinit(struct zf_cond *cond);
void zf_cond_wait(struct zf_cond *cond, struct zf_mutex *mutex);
/* Returns false on timeout. */
bool zf_cond_wait_ms(struct zf_cond *cond, struct zf_mutex *mutex, uint64_t timeout_ms);
void zf_cond_signal(struct zf_cond *cond);
void zf_cond_broadcast(struct zf_cond *cond);

/*
 * For something that is waited for like a lock but is none, such as joining a transaction. Debug
 * builds only.
 */
void zf_rank_enter(enum zf_rank rank);
void zf_rank_leave(enum zf_rank rank);

/* Debug builds abort here if this thread holds a lock of this rank or of a later one. */
void zf_lock_assert_outside(enum zf_rank rank);

#endif

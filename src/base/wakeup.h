/* SPDX-License-Identifier: MIT */
/*
 * One thread sleeps until another thread wakes it.
 *
 * With a condition variable, each thread that wakes takes a mutex to look whether its own condition
 * holds. If sixteen threads wait for sixteen events, each event wakes all of them. Here each
 * sleeping thread has a wakeup of its own. Before the wakeup is sent, the sender records what has
 * happened. The woken thread reads that without a lock.
 */
#ifndef ZF_BASE_WAKEUP_H
#define ZF_BASE_WAKEUP_H

#include <semaphore.h>

struct zf_wakeup {
	sem_t sent;
};

void zf_wakeup_init(struct zf_wakeup *wakeup);
void zf_wakeup_deinit(struct zf_wakeup *wakeup);
/*
 * Sleeps until zf_wakeup_send(), or returns at once if that has come already. Each call of
 * zf_wakeup_send() lets one call return. Only one thread calls it.
 */
void zf_wakeup_wait(struct zf_wakeup *wakeup);
/*
 * Wakes the thread that waits, or that will wait. What the caller has written before is visible to
 * the woken thread. The woken thread may free the wakeup, and what it read, at once: after this
 * call the caller must not touch either.
 */
void zf_wakeup_send(struct zf_wakeup *wakeup);

#endif

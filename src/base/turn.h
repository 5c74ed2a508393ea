/* SPDX-License-Identifier: MIT */
/*
 * Threads that need the same work done wait in a group. One thread of the group does the work for
 * many of them, and then offers the next turn to one that still waits.
 *
 *      waits --end--> its work was done by another thread
 *        |
 *        +--offer--> it does the work, if no other thread has taken the turn first; else it waits
 *                    for its end
 *
 * A thread that runs already may take a turn that was offered to a sleeping thread. So the work
 * need not wait until that thread has woken up, which takes long when the processors are busy.
 *
 * The group has a lock, and knows to which thread a turn is offered. Offer and end are noted with
 * the lock held; the thread is woken, once for each, after the lock was given up. A thread that
 * takes a turn leaves the group: it gets no further offer, and no end.
 */
#ifndef ZF_BASE_TURN_H
#define ZF_BASE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/wakeup.h"

/* One thread that waits; on its stack. */
struct zf_turn {
	struct zf_wakeup wakeup;
	unsigned int noted, woken; /* offers and the end; how often the thread was woken */
	atomic_bool ended;
};

void zf_turn_init(struct zf_turn *turn);
/* Waits until each wakeup has come for which an offer or an end was noted. */
void zf_turn_deinit(struct zf_turn *turn);

/* With the group's lock held. One zf_turn_wake() must follow for each. */
void zf_turn_offer(struct zf_turn *turn);
void zf_turn_end(struct zf_turn *turn);
/* Without the lock. The caller must not touch the turn afterwards. */
void zf_turn_wake(struct zf_turn *turn);

/*
 * Without the lock: sleeps until an offer or the end. True: the end has come, and what its sender
 * has written before is visible. False: a turn was offered. The caller takes the lock. If the turn
 * is still offered to this thread, it takes the turn; otherwise it waits again.
 */
bool zf_turn_wait(struct zf_turn *turn);

#endif

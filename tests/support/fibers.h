/* SPDX-License-Identifier: MIT */
/*
 * Threads whose order is drawn from a seed.
 *
 * A program that links fibers.c and fibers_lock.c gets the library's own code with other threads:
 * fibers_lock.c stands in for base/lock.c, and what the library takes from the C library beside
 * that (pthread_create and its kin, the clock) is replaced by the linker (fiber_wraps in
 * tests/crash/meson.build). All threads, those of a threaded mount too, become *fibers* of one
 * process, of which one runs at a time. Wherever a fiber takes or gives back a lock, or calls
 * zf_fibers_point(), another may go on; which one, the seed says. So one seed is one history.
 *
 * Time is virtual: it stands still while anybody can run. A wait with a timeout may end by it at
 * any moment that is drawn; the clock then stands at that timeout.
 *
 * Nobody can go on: a deadlock. Too many switches: a livelock. Both abort(), after they have said
 * who waits where.
 */
#ifndef ZF_TESTS_FIBERS_H
#define ZF_TESTS_FIBERS_H

#include <stdbool.h>
#include <stdint.h>

#define FIBERS_MAX 24u

/*
 * Fibers are switched from now on, with this seed; the caller is the first of them. With
 * zf_fibers_end(), all others have ended.
 */
void zf_fibers_begin(uint64_t seed);
void zf_fibers_end(void);

/* Another fiber, and the wait for its end. */
unsigned int zf_fibers_spawn(const char *name, void *(*fn)(void *arg), void *arg);
void zf_fibers_join(unsigned int fiber);

/* How likely it is to go on, in comparison with others; drawn from 1, 4, 16, 64 otherwise. */
void zf_fibers_set_weight(unsigned int fiber, unsigned int weight);

/* Somebody else may go on here. */
void zf_fibers_point(void);
/* Between the two nobody else goes on, unless this fiber has to wait. */
void zf_fibers_hold(void);
void zf_fibers_release(void);
/* Until it says true: asked whenever it is drawn who goes on. For few. */
void zf_fibers_wait_until(const char *what, bool (*is_over)(void *arg), void *arg);

/* From now on who waits for ever is told with the calls that led to it: slow. */
void zf_fibers_trace(void);

/* Since zf_fibers_begin(). */
uint64_t zf_fibers_switches(void);
/*
 * How often nobody could go on but by a timeout, though one of zf_fibers_spawn() waited without
 * one: for a wake-up that never came, perhaps, which something that happens now and then makes up
 * for.
 */
uint64_t zf_fibers_stalls(void);

/* ---- for fibers_lock.c ---- */

/* Until fibers_wake_all() or fibers_wake_one() with the same address. */
void fibers_block(const void *on, const char *what);
/* Returns false on timeout. */
bool fibers_block_ms(const void *on, const char *what, uint64_t ms);
void fibers_wake_all(const void *on);
void fibers_wake_one(const void *on); /* of several one is drawn */

/* Of the fiber that runs; any address but NULL. */
const void *fibers_self(void);
unsigned int *fibers_held(void); /* locks that it holds, by rank */

#endif

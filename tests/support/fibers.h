/* SPDX-License-Identifier: MIT */
/*
 * Threads whose order is drawn from a seed.
 *
 * A program that links fibers.c and fibers_lock.c runs the library's own code on other threads:
 * fibers_lock.c replaces base/lock.c and base/wakeup.c, and the linker replaces the other functions
 * that the library takes from the C library (pthread_create and its kin, the clock; fiber_wraps in
 * tests/crash/meson.build). All threads, those of a threaded mount too, become *fibers* of one
 * process, and one fiber runs at a time. Wherever a fiber takes or gives back a lock, or calls
 * zf_fibers_point(), another fiber may go on; the seed decides which one. So one seed is one
 * history.
 *
 * Time is virtual: the clock stands still while any fiber can run. A wait with a timeout may time
 * out at any moment that is drawn; the clock then advances to the end of that timeout.
 *
 * If no fiber can go on, that is a deadlock; too many switches are a livelock. Both abort(), after
 * a message that says where each fiber waits.
 */
#ifndef ZF_TESTS_FIBERS_H
#define ZF_TESTS_FIBERS_H

#include <stdbool.h>
#include <stdint.h>

#define FIBERS_MAX 24u

/*
 * Fibers are switched from now on, with this seed; the caller is the first of them. At
 * zf_fibers_end() all other fibers must have ended.
 */
void zf_fibers_begin(uint64_t seed);
void zf_fibers_end(void);

/* Starts another fiber, and waits for its end. */
unsigned int zf_fibers_spawn(const char *name, void *(*fn)(void *arg), void *arg);
void zf_fibers_join(unsigned int fiber);

/* The weight of this fiber when the next one is drawn; without a call: 1, 4, 16 or 64, drawn. */
void zf_fibers_set_weight(unsigned int fiber, unsigned int weight);

/* Another fiber may go on here. */
void zf_fibers_point(void);
/* Between the two no other fiber goes on, unless this fiber has to wait. */
void zf_fibers_hold(void);
void zf_fibers_release(void);
/*
 * Waits until is_over() returns true. It is called whenever the next fiber is drawn, so only few
 * fibers should wait like this.
 */
void zf_fibers_wait_until(const char *what, bool (*is_over)(void *arg), void *arg);

/* From now on the message of a deadlock or livelock has the backtrace of each wait: slow. */
void zf_fibers_trace(void);

/* Since zf_fibers_begin(). */
uint64_t zf_fibers_switches(void);
/*
 * How often only a timeout let a fiber go on while a fiber of zf_fibers_spawn() (or, when those
 * have all ended, the first fiber) waited without a timeout. That wait may have missed its wake-up,
 * and a periodic event may hide this.
 */
uint64_t zf_fibers_stalls(void);

/* ---- for fibers_lock.c ---- */

/* Waits until fibers_wake_all() or fibers_wake_one() with the same address. */
void fibers_block(const void *on, const char *what);
/* Returns false on timeout. */
bool fibers_block_ms(const void *on, const char *what, uint64_t ms);
void fibers_wake_all(const void *on);
void fibers_wake_one(const void *on); /* of several one is drawn */

/* The fiber that runs, as an address that is not NULL. */
const void *fibers_self(void);
unsigned int *fibers_held(void); /* locks that it holds, by rank */

#endif

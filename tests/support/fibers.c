/* SPDX-License-Identifier: MIT */
/* This file uses _longjmp() to change stacks, which the fortified version would refuse. */
#undef _FORTIFY_SOURCE
#include "support/fibers.h"

#include <assert.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/lock.h"
#include "sim/rng.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES    (1024u << 10)
#define SWITCHES_MAX   4000000u
#define TRAIL_MAX      12
#define STALLS_MAX     100u
#define EPOCH_NS       (UINT64_C(1600000000) * 1000000000)
#define TIMEOUT_CHANCE 2u /* percent, of each choice */

enum state {
	READY,
	BLOCKED,
	BLOCKED_MS, /* with a timeout */
	ASKS,	    /* zf_fibers_wait_until() */
	OVER,
};

struct fiber {
	enum state state;
	char name[16];
	bool started, timed_out;
	bool own;	     /* by zf_fibers_spawn(), not by the library */
	unsigned int weight; /* of a choice */
	unsigned int quiet;  /* zf_fibers_hold() */
	const void *on;
	const char *what;
	uint64_t until_ns;
	void *trail[TRAIL_MAX]; /* backtrace of the wait, with zf_fibers_trace() */
	int trail_len;
	bool (*is_over)(void *arg);
	void *is_over_arg;
	void *(*fn)(void *arg);
	void *arg;
	unsigned int held[ZF_RANK_COUNT];
	uint8_t *stack; /* kept for the next fiber of this number; fiber 0: as the sanitizer says */
	size_t stack_bytes;
	void *fake_stack; /* the address sanitizer's */
	ucontext_t start;
	jmp_buf context;
};

static struct {
	struct fiber fibers[FIBERS_MAX];
	unsigned int count, current, previous;
	bool active, traces;
	struct zf_rng rng;
	uint64_t now_ns, switches, stalls;
	unsigned int interval, left; /* number of points until another fiber may go on */
} sched = {.count = 1, .now_ns = EPOCH_NS};

static struct fiber *current(void)
{
	return &sched.fibers[sched.current];
}

const void *fibers_self(void)
{
	return current();
}

unsigned int *fibers_held(void)
{
	return current()->held;
}

/* ---- no fiber can go on ---- */

static void tell_fiber(const struct fiber *fiber)
{
	static const char *const states[] = {
		[READY] = "can go on", [BLOCKED] = "waits for", [BLOCKED_MS] = "waits for",
		[ASKS] = "waits for",  [OVER] = "has ended",
	};

	fprintf(stderr, "  %-14s %s", fiber->name, states[fiber->state]);
	if (fiber->state != READY && fiber->state != OVER)
		fprintf(stderr, " %s %p%s", fiber->what, fiber->on,
			fiber->state == BLOCKED_MS ? " (with a timeout)" : "");
	fprintf(stderr, "; holds");
	for (unsigned int rank = 0; rank < ZF_RANK_COUNT; rank++)
		if (fiber->held[rank])
			fprintf(stderr, " %u", rank);
	fprintf(stderr, "\n");
	fflush(stderr);
	if (fiber->state != READY && fiber->state != OVER)
		backtrace_symbols_fd(fiber->trail, fiber->trail_len, STDERR_FILENO);
}

static _Noreturn void give_up(const char *why)
{
	fprintf(stderr,
		"fibers: %s. What each fiber waits for, and the ranks of the locks that it holds "
		"(base/lock.h):\n",
		why);
	for (unsigned int i = 0; i < sched.count; i++)
		tell_fiber(&sched.fibers[i]);
	abort();
}

/* ---- which fiber goes on ---- */

static unsigned int weight_of(const struct fiber *fiber)
{
	switch (fiber->state) {
	case READY:
		return fiber->weight;
	case ASKS:
		return fiber->is_over(fiber->is_over_arg) ? fiber->weight : 0;
	default:
		return 0;
	}
}

/* The fiber whose timeout ends first. FIBERS_MAX: no fiber has a timeout. */
static unsigned int first_timeout(void)
{
	unsigned int first = FIBERS_MAX;

	for (unsigned int i = 0; i < sched.count; i++) {
		const struct fiber *fiber = &sched.fibers[i];

		if (fiber->state == BLOCKED_MS &&
		    (first == FIBERS_MAX || fiber->until_ns < sched.fibers[first].until_ns))
			first = i;
	}
	return first;
}

static unsigned int end_by_timeout(unsigned int i)
{
	struct fiber *fiber = &sched.fibers[i];

	sched.now_ns = zf_max_u64(sched.now_ns, fiber->until_ns);
	fiber->timed_out = true;
	fiber->state = READY;
	return i;
}

/* Does one of the program's own fibers wait, or, when all those have ended, the first fiber? */
static bool any_fiber_stalls(void)
{
	bool all_over = true;

	for (unsigned int i = 1; i < sched.count; i++) {
		const struct fiber *fiber = &sched.fibers[i];

		if (fiber->own && fiber->state == BLOCKED)
			return true;
		all_over = all_over && (!fiber->own || fiber->state == OVER);
	}
	return all_over && sched.fibers[0].state == BLOCKED;
}

static unsigned int choose(void)
{
	unsigned int weights[FIBERS_MAX], sum = 0, first;
	uint64_t n;

	for (unsigned int i = 0; i < sched.count; i++)
		sum += weights[i] = weight_of(&sched.fibers[i]);
	if (sum == 0 || zf_rng_chance(&sched.rng, TIMEOUT_CHANCE)) {
		first = first_timeout();
		if (first < FIBERS_MAX) {
			sched.stalls += sum == 0 && any_fiber_stalls();
			if (sched.stalls > STALLS_MAX)
				give_up("fibers go on only after timeouts");
			return end_by_timeout(first);
		}
		if (sum == 0)
			give_up("deadlock");
	}
	n = zf_rng_below(&sched.rng, sum);
	for (unsigned int i = 0;; i++) {
		if (n < weights[i])
			return i;
		n -= weights[i];
	}
}

/* ---- the address sanitizer wants to know on which stack it is ---- */

#ifdef __SANITIZE_ADDRESS__
static void leave_stack(struct fiber *from, const struct fiber *to)
{
	__sanitizer_start_switch_fiber(from->state == OVER ? NULL : &from->fake_stack, to->stack,
				       to->stack_bytes);
}

static void enter_stack(struct fiber *fiber)
{
	const void *from;
	size_t from_bytes;

	__sanitizer_finish_switch_fiber(fiber->fake_stack, &from, &from_bytes);
	if (sched.previous > 0)
		return;
	sched.fibers[0].stack = (uint8_t *)(uintptr_t)from;
	sched.fibers[0].stack_bytes = from_bytes;
}

static void forget_stack(const uint8_t *stack)
{
	__asan_unpoison_memory_region(stack, STACK_BYTES);
}
#else
static void leave_stack(struct fiber *from, const struct fiber *to)
{
}

static void enter_stack(struct fiber *fiber)
{
}

static void forget_stack(const uint8_t *stack)
{
}
#endif

static void go(unsigned int to)
{
	struct fiber *from = current(), *next = &sched.fibers[to];

	next->state = READY;
	if (next == from)
		return;
	if (++sched.switches > SWITCHES_MAX)
		give_up("livelock: too many switches");
	sched.previous = sched.current;
	sched.current = to;
	leave_stack(from, next);
	if (_setjmp(from->context) != 0) {
		enter_stack(current());
		return;
	}
	if (next->started)
		_longjmp(next->context, 1);
	next->started = true;
	setcontext(&next->start);
	abort();
}

void zf_fibers_point(void)
{
	if (!sched.active || current()->quiet > 0 || sched.left-- > 0)
		return;
	sched.left = (unsigned int)zf_rng_below(&sched.rng, 2 * sched.interval - 1);
	go(choose());
}

void zf_fibers_trace(void)
{
	sched.traces = true;
}

void zf_fibers_hold(void)
{
	current()->quiet++;
}

void zf_fibers_release(void)
{
	assert(current()->quiet > 0);
	current()->quiet--;
}

/* ---- waiting ---- */

static void wait_as(enum state state, const void *on, const char *what)
{
	struct fiber *fiber = current();

	fiber->state = state;
	fiber->on = on;
	fiber->what = what;
	fiber->timed_out = false;
	if (sched.traces)
		fiber->trail_len = backtrace(fiber->trail, TRAIL_MAX);
	go(choose());
}

void fibers_block(const void *on, const char *what)
{
	wait_as(BLOCKED, on, what);
}

bool fibers_block_ms(const void *on, const char *what, uint64_t ms)
{
	current()->until_ns = sched.now_ns + ms * 1000000;
	wait_as(BLOCKED_MS, on, what);
	return !current()->timed_out;
}

static bool waits_for(const struct fiber *fiber, const void *on)
{
	return (fiber->state == BLOCKED || fiber->state == BLOCKED_MS) && fiber->on == on;
}

void fibers_wake_all(const void *on)
{
	for (unsigned int i = 0; i < sched.count; i++)
		if (waits_for(&sched.fibers[i], on))
			sched.fibers[i].state = READY;
}

void fibers_wake_one(const void *on)
{
	unsigned int count = 0;
	uint64_t n;

	for (unsigned int i = 0; i < sched.count; i++)
		count += waits_for(&sched.fibers[i], on);
	if (count == 0)
		return;
	n = zf_rng_below(&sched.rng, count);
	for (unsigned int i = 0;; i++) {
		if (waits_for(&sched.fibers[i], on) && n-- == 0) {
			sched.fibers[i].state = READY;
			return;
		}
	}
}

void zf_fibers_wait_until(const char *what, bool (*is_over)(void *arg), void *arg)
{
	struct fiber *fiber = current();

	fiber->is_over = is_over;
	fiber->is_over_arg = arg;
	wait_as(ASKS, arg, what);
}

/* ---- fibers ---- */

static void fiber_main(void)
{
	struct fiber *fiber = current();

	enter_stack(fiber);
	fiber->fn(fiber->arg);
	fiber->state = OVER;
	fibers_wake_all(fiber);
	go(choose());
	abort();
}

static uint8_t *stack_new(void)
{
	void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	/* The lowest page is a guard page. */
	if (stack == MAP_FAILED || mprotect(stack, 4096, PROT_NONE) < 0)
		abort();
	return stack;
}

/* Makes some fibers quick and some slow. */
static unsigned int draw_weight(void)
{
	static const unsigned int weights[] = {1, 4, 16, 64};

	return weights[zf_rng_below(&sched.rng, ZF_ARRAY_SIZE(weights))];
}

static unsigned int spawn(const char *name, void *(*fn)(void *arg), void *arg)
{
	struct fiber *fiber = &sched.fibers[sched.count];

	assert(sched.active && sched.count < FIBERS_MAX);
	*fiber = (struct fiber){.stack = fiber->stack ? fiber->stack : stack_new(),
				.stack_bytes = STACK_BYTES};
	forget_stack(fiber->stack);
	fiber->fn = fn;
	fiber->arg = arg;
	fiber->weight = draw_weight();
	snprintf(fiber->name, sizeof(fiber->name), "%s", name);
	if (getcontext(&fiber->start) < 0)
		abort();
	fiber->start.uc_stack.ss_sp = fiber->stack;
	fiber->start.uc_stack.ss_size = STACK_BYTES;
	makecontext(&fiber->start, fiber_main, 0);
	return sched.count++;
}

unsigned int zf_fibers_spawn(const char *name, void *(*fn)(void *arg), void *arg)
{
	unsigned int fiber = spawn(name, fn, arg);

	sched.fibers[fiber].own = true;
	return fiber;
}

void zf_fibers_set_weight(unsigned int fiber, unsigned int weight)
{
	sched.fibers[fiber].weight = weight;
}

void zf_fibers_join(unsigned int fiber)
{
	while (sched.fibers[fiber].state != OVER)
		fibers_block(&sched.fibers[fiber], "the end of");
}

void zf_fibers_begin(uint64_t seed)
{
	static const unsigned int intervals[] = {1, 1, 2, 4, 8, 32};

	assert(!sched.active && sched.current == 0);
	zf_rng_seed(&sched.rng, seed);
	sched.count = 1;
	sched.active = true;
	sched.now_ns = EPOCH_NS;
	sched.switches = 0;
	sched.stalls = 0;
	sched.interval = intervals[zf_rng_below(&sched.rng, ZF_ARRAY_SIZE(intervals))];
	sched.left = 0;
	snprintf(sched.fibers[0].name, sizeof(sched.fibers[0].name), "main");
	sched.fibers[0].weight = draw_weight();
	sched.fibers[0].started = true;
}

void zf_fibers_end(void)
{
	for (unsigned int i = 1; i < sched.count; i++)
		assert(sched.fibers[i].state == OVER);
	sched.active = false;
	sched.count = 1;
}

uint64_t zf_fibers_stalls(void)
{
	return sched.stalls;
}

uint64_t zf_fibers_switches(void)
{
	return sched.switches;
}

/* ---- in place of the C library's ---- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_sched_yield(void);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	*thread = spawn("thread", fn, arg);
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
	zf_fibers_join((unsigned int)thread);
	return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
	struct fiber *fiber = &sched.fibers[thread];

	snprintf(fiber->name, sizeof(fiber->name), "%s", name);
	return 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return 0;
}

int __wrap_sched_yield(void)
{
	zf_fibers_point();
	return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	ts->tv_sec = (time_t)(sched.now_ns / 1000000000);
	ts->tv_nsec = (long)(sched.now_ns % 1000000000);
	return 0;
}

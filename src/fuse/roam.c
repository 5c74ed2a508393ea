/* SPDX-License-Identifier: MIT */
#include "fuse/roam.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define MS INT64_C(1000000)

/*
 * How often the kernel's counters are read; the kernel counts idle time in hundredths of a second.
 */
#define LOOK_NS (50 * MS)
/* If the last look is older than this, the thread has had little to do since. */
#define STALE_NS (4 * LOOK_NS)
/*
 * For this time a thread is released. Then it is bound again for two or three looks, to find out
 * whether binding still hurts. A thread that binding hurts while all processors are busy is left
 * alone for the same time, because /proc/stat is long on large machines.
 */
#define RELEASE_NS (1000 * MS)
/*
 * A thread is released after two looks in turn, in each of which it had waited a quarter of the
 * time, or half of its requests had come from clients that moved, if the idle time of all
 * processors between the two comes to 70 % of one. If less is idle, released threads displace each
 * other: with 16 clients that sync on two processors half of one is idle, and released threads were
 * a third slower.
 */
#define WAIT_SHARE   4
#define MOVED_SHARE  2
#define IDLE_PERCENT 70
/* If fewer requests moved between two looks, a look is not worth the read of /proc/stat. */
#define MOVED_MIN 100u

static bool waits(const struct zf_roam *roam, const struct zf_roam_sample *sample)
{
	int64_t passed = sample->at_ns - roam->before.at_ns;

	return (int64_t)(sample->wait_ns - roam->before.wait_ns) * WAIT_SHARE >= passed;
}

static bool clients_move(const struct zf_roam *roam, const struct zf_roam_sample *sample)
{
	uint64_t moved = sample->moved - roam->before.moved;

	return moved >= MOVED_MIN &&
	       moved * MOVED_SHARE >= sample->requests - roam->before.requests;
}

bool zf_roam_hurts(const struct zf_roam *roam, const struct zf_roam_sample *sample)
{
	return roam->before.at_ns > 0 && sample->at_ns - roam->before.at_ns <= STALE_NS &&
	       (waits(roam, sample) || clients_move(roam, sample));
}

static bool has_idle(const struct zf_roam *roam, const struct zf_roam_sample *sample)
{
	int64_t passed = sample->at_ns - roam->before.at_ns;
	/* The kernel's sum may go back a little. */
	int64_t idle = (int64_t)(sample->idle_ns - roam->before.idle_ns);

	return idle * 100 >= passed * IDLE_PERCENT;
}

enum zf_roam_move zf_roam_step(struct zf_roam *roam, const struct zf_roam_sample *sample)
{
	bool known = zf_roam_hurts(roam, sample) && roam->before.idle_ns > 0;
	bool leave = known && has_idle(roam, sample);

	roam->before = *sample;
	roam->next_ns = sample->at_ns + (known ? RELEASE_NS : LOOK_NS);
	if (roam->released) {
		roam->released = false;
		roam->next_ns = sample->at_ns + LOOK_NS;
		return ZF_ROAM_BIND;
	}
	roam->released = leave;
	return leave ? ZF_ROAM_RELEASE : ZF_ROAM_STAY;
}

/* ---- clients that move ---- */

/*
 * For some clients, the last request: the client's number in the upper half, the processor of the
 * queue in the lower half. If two clients share an element, a move of either may be missed. The
 * threads of one program have numbers in turn; they get elements in different cache lines.
 */
#define LINE	 64u /* bytes of a cache line */
#define LINES	 32u
#define PER_LINE (LINE / sizeof(uint64_t))
static _Alignas(LINE) _Atomic uint64_t last_requests[LINES * PER_LINE];

void zf_roam_count(struct zf_roam *roam, pid_t client)
{
	uint64_t number = (uint32_t)client;
	_Atomic uint64_t *last =
		&last_requests[number % LINES * PER_LINE + number / LINES % PER_LINE];
	uint64_t now = number << 32 | (uint32_t)roam->own;
	uint64_t before;

	if (client == 0)
		return;
	before = atomic_load_explicit(last, memory_order_relaxed);
	roam->requests++;
	roam->moved += before != now && before >> 32 == number;
	if (before != now)
		atomic_store_explicit(last, now, memory_order_relaxed);
}

/* ---- the kernel's counters ---- */

static bool read_start(int fd, char *buf, size_t size)
{
	ssize_t len = pread(fd, buf, size - 1, 0);

	buf[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static bool read_wait(const struct zf_roam *roam, uint64_t *ret_ns)
{
	char text[128];

	return read_start(roam->wait_file, text, sizeof(text)) &&
	       sscanf(text, "%*u %" SCNu64, ret_ns) == 1;
}

/* 0: it cannot be read. Time for which a processor waits for a device is idle time, too. */
static uint64_t read_idle(void)
{
	int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	uint64_t idle = 0, iowait = 0;
	char text[256];

	if (fd < 0)
		return 0;
	if (!read_start(fd, text, sizeof(text)) ||
	    sscanf(text, "cpu %*u %*u %*u %" SCNu64 " %" SCNu64, &idle, &iowait) != 2)
		idle = iowait = 0;
	close(fd);
	return (idle + iowait) * (uint64_t)(1000 * MS / sysconf(_SC_CLK_TCK));
}

/* ---- the thread ---- */

/* Gets the processors that the process may use, from its first thread, which is not bound. */
static int get_allowed(cpu_set_t *ret_set)
{
	return sched_getaffinity(getpid(), sizeof(*ret_set), ret_set);
}

/*
 * False: the thread is not bound to one processor; or the process may not use all processors, so
 * that idle time of other processors says nothing about its own; or the kernel does not count.
 */
static bool begin(struct zf_roam *roam)
{
	cpu_set_t own, allowed;

	if (sched_getaffinity(0, sizeof(own), &own) < 0 || get_allowed(&allowed) < 0 ||
	    CPU_COUNT(&own) != 1 || CPU_COUNT(&allowed) < 2 ||
	    CPU_COUNT(&allowed) != sysconf(_SC_NPROCESSORS_ONLN))
		return false;
	while (!CPU_ISSET(roam->own, &own))
		roam->own++;
	roam->wait_file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	return roam->wait_file > 0;
}

/* False: another program has moved the thread or the process meanwhile, and its setting stays. */
static bool move(const struct zf_roam *roam, enum zf_roam_move move)
{
	cpu_set_t now, own, allowed;
	const cpu_set_t *from = &own, *to = &allowed;

	CPU_ZERO(&own);
	CPU_SET(roam->own, &own);
	if (move == ZF_ROAM_BIND) {
		from = &allowed;
		to = &own;
	}
	return get_allowed(&allowed) == 0 && sched_getaffinity(0, sizeof(now), &now) == 0 &&
	       CPU_EQUAL(&now, from) && sched_setaffinity(0, sizeof(*to), to) == 0;
}

void zf_roam_look(struct zf_roam *roam, int64_t now_ns)
{
	struct zf_roam_sample sample = {
		.at_ns = now_ns, .requests = roam->requests, .moved = roam->moved};
	enum zf_roam_move step;

	if ((roam->wait_file == 0 && !begin(roam)) || !read_wait(roam, &sample.wait_ns)) {
		roam->next_ns = INT64_MAX;
		return;
	}
	if (zf_roam_hurts(roam, &sample))
		sample.idle_ns = read_idle();
	step = zf_roam_step(roam, &sample);
	if (step != ZF_ROAM_STAY && !move(roam, step))
		roam->next_ns = INT64_MAX;
}

/* SPDX-License-Identifier: MIT */
#include "fuse/roam.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define MS INT64_C(1000000)

/* What was counted is looked at so often. /proc/uptime counts in hundredths of a second. */
#define LOOK_NS (50 * MS)
/* Longer than this without a look, the thread had little to do. */
#define STALE_NS (4 * LOOK_NS)
/* So long it is released: for one part in twenty of the time it is bound, to find out. */
#define RELEASE_NS (1000 * MS)
/*
 * It is released if it waited a quarter of the time, and if the idle time of all processors comes
 * to 70 % of one. Where less is idle, threads that move displace each other: with 16 clients that
 * sync on two processors half of one is idle, and released threads were a third slower.
 */
#define WAIT_SHARE   4
#define IDLE_PERCENT 70

static bool is_crowded(const struct zf_roam_sample *before, const struct zf_roam_sample *now)
{
	int64_t passed = now->at_ns - before->at_ns;
	int64_t waited = (int64_t)(now->wait_ns - before->wait_ns);
	int64_t idle = (int64_t)(now->idle_ns - before->idle_ns); /* may go back a little */

	return waited * WAIT_SHARE >= passed && idle * 100 >= passed * IDLE_PERCENT;
}

enum zf_roam_move zf_roam_step(struct zf_roam *roam, const struct zf_roam_sample *sample)
{
	const struct zf_roam_sample before = roam->before;
	bool fresh = before.at_ns > 0 && sample->at_ns - before.at_ns <= STALE_NS;

	roam->before = *sample;
	roam->next_ns = sample->at_ns + LOOK_NS;
	if (roam->released) {
		roam->released = false;
		return ZF_ROAM_BIND;
	}
	if (!fresh || !is_crowded(&before, sample))
		return ZF_ROAM_STAY;
	roam->released = true;
	roam->next_ns = sample->at_ns + RELEASE_NS;
	return ZF_ROAM_RELEASE;
}

/* ---- the kernel's counters ---- */

static bool read_line(int fd, char *buf, size_t size)
{
	ssize_t len = pread(fd, buf, size - 1, 0);

	buf[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static bool take_sample(const struct zf_roam *roam, int64_t now_ns,
			struct zf_roam_sample *ret_sample)
{
	uint64_t seconds, hundredths;
	char line[128];

	ret_sample->at_ns = now_ns;
	if (!read_line(roam->wait_file, line, sizeof(line)) ||
	    sscanf(line, "%*u %" SCNu64, &ret_sample->wait_ns) != 1)
		return false;
	if (!read_line(roam->idle_file, line, sizeof(line)) ||
	    sscanf(line, "%*s %" SCNu64 ".%" SCNu64, &seconds, &hundredths) != 2)
		return false;
	ret_sample->idle_ns = (seconds * 100 + hundredths) * 10 * MS;
	return true;
}

/* ---- the thread ---- */

/* The processors that the process may use: its first thread is not bound. */
static int get_allowed(cpu_set_t *ret_set)
{
	return sched_getaffinity(getpid(), sizeof(*ret_set), ret_set);
}

/* False: the thread is not bound to one of several processors, or the kernel does not count. */
static bool begin(struct zf_roam *roam)
{
	cpu_set_t own, allowed;

	if (sched_getaffinity(0, sizeof(own), &own) < 0 || get_allowed(&allowed) < 0 ||
	    CPU_COUNT(&own) != 1 || CPU_COUNT(&allowed) < 2)
		return false;
	while (!CPU_ISSET(roam->own, &own))
		roam->own++;
	roam->wait_file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	roam->idle_file = open("/proc/uptime", O_RDONLY | O_CLOEXEC);
	return roam->wait_file > 0 && roam->idle_file > 0;
}

static void move(const struct zf_roam *roam, enum zf_roam_move move)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (move == ZF_ROAM_BIND)
		CPU_SET(roam->own, &set);
	else if (get_allowed(&set) < 0)
		return;
	/* Where it fails, the thread stays where it is, and is no worse off. */
	(void)sched_setaffinity(0, sizeof(set), &set);
}

void zf_roam_look(struct zf_roam *roam, int64_t now_ns)
{
	struct zf_roam_sample sample;
	enum zf_roam_move step;

	if ((roam->wait_file == 0 && !begin(roam)) || !take_sample(roam, now_ns, &sample)) {
		roam->next_ns = INT64_MAX;
		return;
	}
	step = zf_roam_step(roam, &sample);
	if (step != ZF_ROAM_STAY)
		move(roam, step);
}

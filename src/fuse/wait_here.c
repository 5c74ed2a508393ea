/* SPDX-License-Identifier: MIT */
#include "fuse/wait_here.h"

/*
 * A request that comes so soon after the end of the last one was waiting already: its sender cannot
 * have waited for the last answer. A program that waits for an answer needs some 10 us to send the
 * next request.
 */
#define BACKLOG_NS 5000

/*
 * If the last small reads took less than QUICK_READ_NS each, the device has its data in memory.
 * Then all small reads wait here: handing one over would take longer than the read. To find out
 * whether the device is quick, one read in PROBE_READS waits here in any case. If reads take
 * SLOW_READ_NS or longer, only one in SLOW_PROBE_READS does so, because on a disk a read that waits
 * here holds up all other requests of its queue.
 */
#define QUICK_READ_NS	 20000
#define PROBE_READS	 64u
#define SLOW_READ_NS	 40000
#define SLOW_PROBE_READS 1024u

/*
 * After a durable write that held up another request, this many durable writes are handed over.
 * Then one waits here again, to find out whether durable writes still hold up others. The syncs of
 * several workers share records of the log (log/log.h), and this thread serves other requests
 * meanwhile.
 */
#define HAND_OVER_DURABLE 63u

static bool came_on_heels(const struct zf_wait_here *here, const struct zf_wait_request *request)
{
	return request->began_ns - here->ended_ns <= BACKLOG_NS;
}

static bool is_lone(const struct zf_wait_here *here, const struct zf_wait_request *request)
{
	return !request->others_parked && !came_on_heels(here, request);
}

static bool may_read(struct zf_wait_here *here, const struct zf_wait_request *request)
{
	unsigned int every = here->read_ns < SLOW_READ_NS ? PROBE_READS : SLOW_PROBE_READS;
	bool probe = here->reads++ % every == 0;

	return here->read_ns < QUICK_READ_NS || probe || is_lone(here, request);
}

/*
 * The kernel sends an O_DSYNC write as two requests: the sync follows directly after its own write.
 */
static bool is_lone_write(struct zf_wait_here *here, const struct zf_wait_request *request)
{
	bool lone = is_lone(here, request);

	if (request->is_sync && !request->others_parked)
		lone |= here->lone_ino == request->ino;
	here->lone_ino = lone ? request->ino : 0;
	return lone;
}

static bool may_durable(struct zf_wait_here *here, const struct zf_wait_request *request)
{
	if (!is_lone_write(here, request))
		return false;
	if (here->hand_over == 0)
		return true;
	here->hand_over--;
	return false;
}

bool zf_wait_here_may(struct zf_wait_here *here, const struct zf_wait_request *request)
{
	if (here->waited_durable && came_on_heels(here, request))
		here->hand_over = HAND_OVER_DURABLE;
	here->waited_durable = false;
	switch (request->kind) {
	case ZF_WAIT_SMALL_READ:
		return may_read(here, request);
	case ZF_WAIT_DURABLE:
		return may_durable(here, request);
	case ZF_WAIT_WRITE:
		(void)is_lone_write(here, request);
		return false;
	case ZF_WAIT_OTHER:
		break;
	}
	return false;
}

/* A time in which another thread had the processor must not count for more than a slow device. */
static void learn_read(struct zf_wait_here *here, int64_t took_ns)
{
	if (took_ns > 4 * QUICK_READ_NS)
		took_ns = 4 * QUICK_READ_NS;
	here->read_ns += (took_ns - here->read_ns) / 8;
}

void zf_wait_here_ended(struct zf_wait_here *here, const struct zf_wait_request *request,
			bool waited, int64_t now_ns)
{
	here->ended_ns = now_ns;
	if (waited && request->kind == ZF_WAIT_SMALL_READ)
		learn_read(here, now_ns - request->began_ns);
	/* A sync that finds nothing to write holds up no other request. */
	here->waited_durable = waited && request->kind == ZF_WAIT_DURABLE &&
			       now_ns - request->began_ns > BACKLOG_NS;
}

/* SPDX-License-Identifier: MIT */
/*
 * On which processors does the thread of a queue run?
 *
 * FUSE over io_uring has a queue for each processor, and libfuse binds the queue's thread to that
 * processor. So a request is served where its client runs, and no other processor has to be woken.
 * That fails in two ways while other processors are idle:
 * - Clients keep their processor busy, and the thread waits for it.
 * - A client moves: the kernel wakes it with each answer on another processor, which is idle, and
 *   not on the one that the thread has at that moment. The next request comes by the queue there.
 * Such a thread is released for a while: the kernel may run it on any processor. Then it is bound
 * again, to find out whether binding still hurts. Decision 0040 has measurements.
 *
 * One struct zf_roam for each thread, zeroed at first; only that thread uses it, so it has no lock.
 */
#ifndef ZF_FUSE_ROAM_H
#define ZF_FUSE_ROAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What was counted so far. */
struct zf_roam_sample {
	int64_t at_ns;	   /* CLOCK_MONOTONIC */
	uint64_t wait_ns;  /* the time that this thread was ready, and did not run */
	uint64_t requests; /* of clients, by this queue */
	uint64_t moved;	   /* those of them whose client's last request came by another queue */
	/*
	 * The idle time of all processors, added up; 0: not read, because binding did not hurt.
	 */
	uint64_t idle_ns;
};

struct zf_roam {
	int64_t next_ns; /* the time of the next look, CLOCK_MONOTONIC; INT64_MAX: never */
	bool released;
	struct zf_roam_sample before; /* at_ns 0: none */
	int own;		      /* the processor that libfuse bound the thread to */
	int wait_file;		      /* descriptor, open until the process ends; 0: not yet */
	uint64_t requests, moved;     /* as in a sample */
};

enum zf_roam_move {
	ZF_ROAM_STAY,
	ZF_ROAM_RELEASE, /* from its processor */
	ZF_ROAM_BIND,	 /* to it again */
};

/* Has the thread waited, or have clients moved, so much since roam->before that idle_ns matters? */
bool zf_roam_hurts(const struct zf_roam *roam, const struct zf_roam_sample *sample);

/* Decides, from the counters up to now, whether the thread moves, and when to look again. */
enum zf_roam_move zf_roam_step(struct zf_roam *roam, const struct zf_roam_sample *sample);

/* For zf_roam_note(): reads the counters, and moves the calling thread. */
void zf_roam_look(struct zf_roam *roam, int64_t now_ns);

/* For zf_roam_note(): counts a request of the thread `client`. */
void zf_roam_count(struct zf_roam *roam, pid_t client);

/*
 * The calling thread, which may be the thread of a queue, has handled a request of the thread
 * `client`. client 0: the kernel names no client, as for RELEASE and for writeback.
 */
static inline void zf_roam_note(struct zf_roam *roam, pid_t client, int64_t now_ns)
{
	if (now_ns >= roam->next_ns)
		zf_roam_look(roam, now_ns);
	if (roam->next_ns < INT64_MAX)
		zf_roam_count(roam, client);
}

#endif

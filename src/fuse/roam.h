/* SPDX-License-Identifier: MIT */
/*
 * On which processors does the thread of a queue run?
 *
 * FUSE over io_uring has a queue for each processor, and libfuse binds the queue's thread to that
 * processor. So a request is served where its client runs, and no other processor has to be woken.
 * But if clients keep their processor busy, the thread waits for it, while other processors may be
 * idle. Such a thread is released for a while: the kernel may run it on any processor. Then it is
 * bound again, to find out whether it still waits. Decision 0040 has measurements.
 *
 * One struct zf_roam for each thread, zeroed at first; only that thread uses it, so it has no lock.
 */
#ifndef ZF_FUSE_ROAM_H
#define ZF_FUSE_ROAM_H

#include <stdbool.h>
#include <stdint.h>

/* What the kernel has counted so far, in nanoseconds. */
struct zf_roam_sample {
	int64_t at_ns;	  /* CLOCK_MONOTONIC */
	uint64_t wait_ns; /* the time that this thread was ready, and did not run */
	/*
	 * The idle time of all processors, added up; 0: not read, because the thread did not wait.
	 */
	uint64_t idle_ns;
};

struct zf_roam {
	int64_t next_ns; /* the time of the next look, CLOCK_MONOTONIC; INT64_MAX: never */
	bool released;
	struct zf_roam_sample before; /* at_ns 0: none */
	int own;		      /* the processor that libfuse bound the thread to */
	int wait_file;		      /* descriptor, open until the process ends; 0: not yet */
};

enum zf_roam_move {
	ZF_ROAM_STAY,
	ZF_ROAM_RELEASE, /* from its processor */
	ZF_ROAM_BIND,	 /* to it again */
};

/* Has the thread waited so much since roam->before that idle_ns matters? */
bool zf_roam_waits(const struct zf_roam *roam, const struct zf_roam_sample *sample);

/* Decides, from the counters up to now, whether the thread moves, and when to look again. */
enum zf_roam_move zf_roam_step(struct zf_roam *roam, const struct zf_roam_sample *sample);

/* For zf_roam_note(): reads the counters, and moves the calling thread. */
void zf_roam_look(struct zf_roam *roam, int64_t now_ns);

/* The calling thread, which is the thread of a queue, has handled a request. */
static inline void zf_roam_note(struct zf_roam *roam, int64_t now_ns)
{
	if (now_ns >= roam->next_ns)
		zf_roam_look(roam, now_ns);
}

#endif

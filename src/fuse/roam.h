/* SPDX-License-Identifier: MIT */
/*
 * On which processors does the thread of a queue run?
 *
 * FUSE over io_uring has a queue for each processor, and libfuse binds the queue's thread to that
 * processor. So a request is served where its client runs, and no other processor has to be woken.
 * But where clients keep their processor busy, the thread waits for it, and others may have nothing
 * to do. Such a thread is released for a while: it may run where the kernel finds room. Then it is
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
	uint64_t wait_ns; /* that this thread was ready, and another one had its processor */
	/* That processors had nothing to do, the sum of all; 0: not asked, for the thread did not wait. */
	uint64_t idle_ns;
};

struct zf_roam {
	int64_t next_ns; /* when to look again, CLOCK_MONOTONIC; INT64_MAX: never */
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

/* Decides, from what was counted up to now, and when to look again. */
enum zf_roam_move zf_roam_step(struct zf_roam *roam, const struct zf_roam_sample *sample);

/* Looks, and moves the calling thread. For zf_roam_note(). */
void zf_roam_look(struct zf_roam *roam, int64_t now_ns);

/* The thread of a queue, the calling one, has handled a request. */
static inline void zf_roam_note(struct zf_roam *roam, int64_t now_ns)
{
	if (now_ns >= roam->next_ns)
		zf_roam_look(roam, now_ns);
}

#endif

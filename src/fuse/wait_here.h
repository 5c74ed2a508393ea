/* SPDX-License-Identifier: MIT */
/*
 * Does a request that has to wait for the device do so on the thread that brought it?
 *
 * Waking a worker costs a good part of the time that a fast device takes. But while a thread waits,
 * no other request of its processor is answered. So a request waits on the thread that brought it
 * only if no other request waits behind it. The thread cannot know that, and guesses it from three
 * facts: how soon after the last request this one came; whether requests that this thread brought
 * wait at workers, or on its ring (ring_read.h); and whether the last request that waited here had
 * another one waiting behind it. Decision 0007 has measurements.
 *
 * One struct zf_wait_here for each thread that brings requests, zeroed at first; only that thread
 * uses it, so it has no lock. All times are of CLOCK_MONOTONIC, in nanoseconds.
 */
#ifndef ZF_FUSE_WAIT_HERE_H
#define ZF_FUSE_WAIT_HERE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_wait_here {
	int64_t ended_ns;	/* when the last request was answered, or handed over */
	uint64_t lone_ino;	/* of the last write or sync, if that was lone; else 0 */
	int64_t read_ns;	/* average time of the last few small reads that waited here */
	unsigned int reads;	/* small reads so far */
	bool waited_durable;	/* the last request waited here for a durable write */
	unsigned int hand_over; /* the number of durable writes that are still to be handed over */
};

enum zf_wait_kind {
	ZF_WAIT_OTHER,	    /* may wait for a commit, so it never waits here */
	ZF_WAIT_SMALL_READ, /* of at most ZF_WAIT_SMALL_READ_MAX bytes */
	ZF_WAIT_WRITE,	    /* not durable */
	ZF_WAIT_DURABLE,    /* a durable write or a sync: mostly waits for one device write */
};

/*
 * Larger reads come from read-ahead, where several must be under way at once: reads of 128 KiB one
 * after the other reached 2,000 a second, and several at once 4,000.
 */
#define ZF_WAIT_SMALL_READ_MAX 16384u

struct zf_wait_request {
	enum zf_wait_kind kind;
	bool is_sync;	    /* fsync, fdatasync */
	uint64_t ino;	    /* of a write or sync */
	int64_t began_ns;   /* when the request came */
	bool others_parked; /* requests that this thread brought wait at workers, or on its ring */
};

/* To be called before the request is run: may it wait here? */
bool zf_wait_here_may(struct zf_wait_here *here, const struct zf_wait_request *request);
/*
 * The request was answered, or handed to a worker. `waited`: the result of zf_wait_here_may();
 * false if the request was handed over.
 */
void zf_wait_here_ended(struct zf_wait_here *here, const struct zf_wait_request *request,
			bool waited, int64_t now_ns);

#endif

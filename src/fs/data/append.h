/* SPDX-License-Identifier: MIT */
/*
 * One append: blocks of one inode or several, packed into one write to the device.
 *
 *      zf_append_new(), packed (flush.c)
 *        |
 *        v
 *      waiting
 *        |       a zone has room
 *        v
 *      submitted
 *        |       completed, and the checksums are computed
 *        v
 *      done --land.c: some blocks wait for earlier ones of their file--> held
 *        |  <--another block has landed--------------------------------
 *        |       all blocks landed or revoked
 *        v
 *      zf_append_end()
 *
 * A failed one goes back to waiting once. An append belongs to whoever has it off the lists.
 * Each segment holds a use of its inode.
 */
#ifndef ZF_FS_APPEND_H
#define ZF_FS_APPEND_H

#include <stdatomic.h>

#include "alloc/zone.h"
#include "fs/data/block.h"
#include "io/dev.h"

struct zf_segment {
	struct zf_inode *inode;
	unsigned int first, count; /* of append->blocks, ascending by index */
	unsigned int gone;	   /* so many of the first ones are known to be out of flight */
	bool finished;		   /* all of them landed or were revoked */
};

struct zf_append {
	struct zf_io io;
	STAILQ_ENTRY(zf_append) link;
	struct zf_fs *fs;
	struct zf_append_grant grant;
	bool granted;
	bool in_place;		/* of one segment, and without a grant: fs/data/in_place.h ... */
	unsigned int hold;	/* ... but with one of these: alloc/overwrite.h */
	unsigned int tries;	/* that failed */
	bool fua;		/* what lands is durable */
	bool looked_at;		/* its unfinished segments count as held */
	atomic_uint unfinished; /* the device, and the checksums */
	int error;		/* that kept it from being submitted */
	unsigned int count, capacity, segment_count;
	unsigned int put_back;	  /* of the blocks: dirty again, NULL here */
	struct zf_block **blocks; /* NULL: put back */
	uint64_t *csums;
	struct iovec *iov;
	struct zf_segment *segments;
};

/* NULL: no memory. */
struct zf_append *zf_append_new(struct zf_fs *fs, unsigned int capacity);
/* Unused: without blocks. */
void zf_append_free(struct zf_append *append);
/* Nothing of it is in flight as a block any more: gives back room, reservations, buffers and uses.
 */
void zf_append_end(struct zf_append *append);

/* What the submission of others does for those that ride with a record of the log. */
void zf_append_sum(struct zf_append *append);
unsigned int zf_append_fill_iov(struct zf_append *append); /* how many segments */
/* The record has brought the blocks to `address`; they are durable there. */
void zf_append_arrived(struct zf_append *append, const struct zf_append_grant *grant,
		       uint64_t address);
/* It cannot be written: its blocks' inodes will be told; or, for want of memory, get them back. */
void zf_append_fail(struct zf_append *append, int error);

/* Last in the line for room in a zone. */
void zf_append_enqueue(struct zf_append *append);
/*
 * Submits what waits, as far as zones have room. 0, or -EAGAIN: something waits for an append in
 * flight or a commit.
 */
int zf_append_submit_waiting(struct zf_fs *fs);
/* The device failed it: once more, in another zone. False: that was the second time, or no room. */
bool zf_append_retry(struct zf_append *append);
/* Writes one that is in place: later on to be landed like others; or now, by this thread. */
void zf_append_submit_in_place(struct zf_append *append, bool fua);
void zf_append_run_in_place(struct zf_append *append);
/* Nothing in flight can make room any more: gives up the first one that waits. */
void zf_append_give_up_waiting(struct zf_fs *fs, int error);

/* It has completed, and is to be landed by whoever does that next. */
void zf_append_again(struct zf_append *append);
/* The next completed one, or NULL; zf_append_landed() must follow, with what *ret_let_go says. */
struct zf_append *zf_append_take_done(struct zf_fs *fs, uint64_t *ret_let_go);
/* `append`: to be held, or NULL if it has ended or is waiting again. */
void zf_append_landed(struct zf_fs *fs, struct zf_append *append, uint64_t let_go);
/* Blocks that others waited for have landed or are gone: the held ones are done again. */
void zf_append_retry_held(struct zf_fs *fs);

/*
 * zf_alloc_append_begin() said -EAGAIN, `seen` being zf_alloc_limit_events() of before: finishes a
 * zone, or waits until others have written theirs. 0: try again. -EROFS; -EIO: nothing is under way
 * and nothing can be finished, which is reported: the device has failed. No lock of the flush's,
 * and no join held.
 */
int zf_append_wait_limits(struct zf_fs *fs, uint64_t seen);

/* ---- waiting ---- */

/* zf_flush_event(), but of one that gives the flusher nothing to do: it is left asleep. */
void zf_append_event_for_askers(struct zf_fs *fs);
/* Until another event than those `seen`; at once if none can come. */
void zf_append_wait(struct zf_fs *fs, uint64_t seen);
/* For any event, but no longer than that; not at all without threads. */
void zf_append_wait_ms(struct zf_fs *fs, unsigned int ms);
/*
 * Until as many appends have ended as are on the device now: also those of which nothing is dirty
 * any more, for their blocks were revoked. No lock of the flush's, and no join held.
 */
void zf_append_await_all(struct zf_fs *fs);
/*
 * Lands or submits something, or waits until something happens; commits if that is what is
 * missing. No lock and no join held.
 */
void zf_append_progress(struct zf_fs *fs, uint64_t seen);
/* The same for the flusher, who wants nothing for itself. */
void zf_append_serve(struct zf_fs *fs, uint64_t seen);

#endif

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
 * A failed append goes back to waiting: once, or up to eight times if its zones have turned
 * read-only or offline. An append that is on no list belongs to the thread that took it off. Each
 * segment holds a use of its inode.
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
	unsigned int gone;	   /* the first `gone` blocks are known to be out of flight */
	bool finished;		   /* all blocks have landed or were revoked */
};

struct zf_append {
	struct zf_io io;
	STAILQ_ENTRY(zf_append) link;
	struct zf_fs *fs;
	struct zf_append_grant grant;
	bool granted;
	bool in_place;		/* written in place: one segment, no grant (fs/data/in_place.h) */
	unsigned int hold;	/* if in_place: its hold (alloc/overwrite.h) */
	unsigned int tries;	/* failed tries */
	bool fua;		/* its blocks are durable when they land */
	bool looked_at;		/* its unfinished segments are counted in data->held */
	atomic_uint unfinished; /* parts that are not done: the write, the checksums */
	int error;		/* the reason why it cannot be written; 0: none */
	unsigned int count, capacity, segment_count;
	unsigned int put_back;	  /* blocks that are dirty again and NULL in blocks[] */
	struct zf_block **blocks; /* NULL: put back */
	uint64_t *csums;
	struct iovec *iov;
	struct zf_segment *segments;
};

/* NULL: no memory. */
struct zf_append *zf_append_new(struct zf_fs *fs, unsigned int capacity);
/* Frees an append that has no blocks. */
void zf_append_free(struct zf_append *append);
/*
 * Frees an append after all its blocks have left flight. Gives back its grant, reservations,
 * buffers and uses of inodes.
 */
void zf_append_end(struct zf_append *append);

/* Computes the checksums. For riders; other appends get theirs when they are submitted. */
void zf_append_sum(struct zf_append *append);
unsigned int zf_append_fill_iov(struct zf_append *append); /* returns the length of append->iov */
/* The log record has written the rider's blocks: they are durable at `address`. */
void zf_append_arrived(struct zf_append *append, const struct zf_append_grant *grant,
		       uint64_t address);
/*
 * Gives up an append that cannot be written. Landing then notes the error in its inodes; if the
 * error is -ENOMEM, it makes the blocks dirty again.
 */
void zf_append_fail(struct zf_append *append, int error);

/* Puts the append at the end of the list that waits for room in a zone. */
void zf_append_enqueue(struct zf_append *append);
/*
 * Submits waiting appends as far as zones have room. 0, or -EAGAIN: the next one has to wait for an
 * append in flight or for a commit.
 */
int zf_append_submit_waiting(struct zf_fs *fs);
/*
 * The append failed on the device: puts it back to be written in another zone. False: it has been
 * tried often enough, or there is no room.
 */
bool zf_append_retry(struct zf_append *append);
/*
 * Both write an append that is in place. The first one submits it, and it lands like others. The
 * second one writes it on this thread.
 */
void zf_append_submit_in_place(struct zf_append *append, bool fua);
void zf_append_run_in_place(struct zf_append *append);
/* Gives up the first append that waits, because nothing in flight can make room for it. */
void zf_append_give_up_waiting(struct zf_fs *fs, int error);

/* Puts an append that has completed on the list of those to be landed. */
void zf_append_again(struct zf_append *append);
/*
 * Takes the next completed append, or returns NULL. The caller must call zf_append_landed() with
 * *ret_let_go.
 */
struct zf_append *zf_append_take_done(struct zf_fs *fs, uint64_t *ret_let_go);
/* `append`: the append is held; NULL: the append has ended, or waits for a zone again. */
void zf_append_landed(struct zf_fs *fs, struct zf_append *append, uint64_t let_go);
/*
 * Has all held appends landed again, because blocks that they may wait for have landed or are GONE.
 */
void zf_append_retry_held(struct zf_fs *fs);

/*
 * Called after zf_alloc_append_begin() returned -EAGAIN, because too many zones are active. `seen`
 * is the value of zf_alloc_limit_events() before that. Finishes a zone, or waits until an append to
 * another zone was written. 0: try again. -EROFS. -EIO: nothing is in flight and no zone can be
 * finished, so the device has failed; this is reported. flush->lock and joins are not held.
 */
int zf_append_wait_limits(struct zf_fs *fs, uint64_t seen);

/* ---- waiting ---- */

/*
 * As zf_flush_event(), but for an event that gives the flusher no work: it does not wake the
 * flusher.
 */
void zf_append_event_for_askers(struct zf_fs *fs);
/* Waits for an event after those `seen`. Returns at once if none can come. */
void zf_append_wait(struct zf_fs *fs, uint64_t seen);
/* Waits for any event, at most `ms`. Without threads it does not wait. */
void zf_append_wait_ms(struct zf_fs *fs, unsigned int ms);
/*
 * Waits until all appends that exist now have ended, also those whose blocks were all revoked.
 * flush->lock and joins are not held.
 */
void zf_append_await_all(struct zf_fs *fs);
/*
 * Makes progress: lands completed appends; or else submits waiting ones; or else waits for an
 * event, or commits if only a commit can give a zone. No lock and no join held.
 */
void zf_append_progress(struct zf_fs *fs, uint64_t seen);
/* The same for the flusher, which does not count as a waiting caller (flush->askers). */
void zf_append_serve(struct zf_fs *fs, uint64_t seen);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * An *effort* is an attempt to make room: in src/txn/ tidying and a commit, in src/fs/space/
 * reclaim. It was *in vain* if it gave nothing back. An effort that was in vain is not repeated
 * while nothing has changed, because each costs a commit, and a program that gets ENOSPC may try
 * again a thousand times.
 *
 * The result of an effort depends neither on the caller nor on how much room the caller wants. Each
 * caller checks before the effort and after it whether it has room. So a remembered effort refuses
 * no caller: it only says that the effort would change nothing.
 *
 *      struct zf_vain_trial trial;
 *
 *      if (zf_vain_is_known(&vain, alloc))
 *              return false;
 *      zf_vain_begin(&trial, alloc);
 *      ... the effort ...
 *      if (it gave nothing back)
 *              zf_vain_end(&vain, alloc, &trial);
 *
 * The memory of an effort ends when one of these events has happened since:
 *
 *   1. bytes of files were freed, by whatever means; or the last reader has left a zone in which
 *      nothing is live; or the last pending append to a zone with garbage has ended;
 *   2. there are fewer nodes than there were;
 *   3. there are more zones in which nothing is live: a commit gives them back;
 *   4. a transaction has become durable: the old copies of the nodes that it changed, which 2 does
 *      not see, are garbage from now on.
 *
 * Invariants. An effort during which event 1, 2 or 3 has happened is not remembered, because it may
 * have looked too early. The commits of the effort itself do not end its memory. Removals never ask
 * whether an effort is known to be in vain, because they have to work.
 *
 * Locking: alloc.h; struct zf_vain is protected by the allocator's lock, too. No call does I/O or
 * waits.
 */
#ifndef ZF_ALLOC_VAIN_H
#define ZF_ALLOC_VAIN_H

#include <stdbool.h>
#include <stdint.h>

struct zf_alloc;

/* What an effort could give back depends on these values only. */
struct zf_vain_trial {
	uint64_t freed;	      /* counts event 1 */
	uint64_t node_blocks; /* live in all trees */
	uint32_t coming;      /* zones in which nothing is live */
	uint64_t committed;   /* generation */

	/* The least values, in blocks, since the effort began. */
	uint64_t garbage;
	uint64_t stuck;	   /* garbage in zones with live blocks */
	unsigned int idle; /* rounds since either value became less */
};

/* Embedded in the state of the module that makes the effort. Zeroed: no effort is remembered. */
struct zf_vain {
	bool known;
	struct zf_vain_trial trial; /* at the end of the effort */
};

/* Returns whether the effort is remembered: it would give nothing back. */
bool zf_vain_is_known(const struct zf_vain *vain, struct zf_alloc *alloc);
/* An effort begins. */
void zf_vain_begin(struct zf_vain_trial *ret_trial, struct zf_alloc *alloc);
/*
 * Returns, after a round of the effort that did something, whether another round is worth it.
 * Another round is not worth it after two rounds in a row that left as much garbage as before:
 * emptying a zone of metadata may cost all that it gives back.
 */
bool zf_vain_goes_on(struct zf_vain_trial *trial, struct zf_alloc *alloc);
/* The effort has given nothing back: remembers it, if nothing was freed meanwhile. */
void zf_vain_end(struct zf_vain *vain, struct zf_alloc *alloc, const struct zf_vain_trial *trial);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Efforts in vain: what was done to make room and made none is not done again while nothing has
 * changed. An effort costs a commit, and a program that meets ENOSPC may try again a thousand
 * times.
 *
 * An effort (src/txn/: tidying and a commit; src/fs/space/: reclaim) depends neither on who asks
 * for room nor on how much he wants: it gives back what can be given back. Whoever asks looks
 * whether there is room for him before the effort and after it. So what is remembered here refuses
 * nobody: it says only that the effort would change nothing.
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
 * What is remembered is forgotten when one of these has happened since:
 *
 *   1. bytes of files were freed, by whatever means; a reader has left a zone in which nothing is
 *      live;
 *   2. there are fewer nodes than there were;
 *   3. there are more zones in which nothing is live: a commit gives them back;
 *   4. a transaction has become durable: the old copies of the nodes that it changed, which 2 does
 *      not see, are garbage from now on.
 *
 * An effort during which 1, 2 or 3 has happened is not remembered: it may have looked too early.
 * Its own commits are no reason to forget it.
 *
 * Removals never ask whether an effort is known to be in vain: they have to work.
 */
#ifndef ZF_ALLOC_VAIN_H
#define ZF_ALLOC_VAIN_H

#include <stdbool.h>
#include <stdint.h>

struct zf_alloc;

/* What an effort could give back depends on this, and on nothing else that lasts. */
struct zf_vain_trial {
	uint64_t freed;	      /* counts 1 */
	uint64_t node_blocks; /* live in all trees */
	uint32_t coming;      /* zones in which nothing is live */
	uint64_t committed;   /* generation */

	/* Blocks, the least of both that there was since the effort began. */
	uint64_t garbage;
	uint64_t stuck;	   /* of it, beside what is live */
	unsigned int idle; /* rounds since either has become less */
};

/* Embedded in whoever makes the effort; zeroed: nothing is known. Protected by alloc's lock. */
struct zf_vain {
	bool known;
	struct zf_vain_trial trial; /* at its end */
};

/* Would the effort give nothing back? */
bool zf_vain_is_known(const struct zf_vain *vain, struct zf_alloc *alloc);
/* An effort begins. */
void zf_vain_begin(struct zf_vain_trial *ret_trial, struct zf_alloc *alloc);
/*
 * After a round of an effort that did something: is another one worth it? Not if there is as much
 * garbage as before, twice in a row: to empty a zone of metadata may cost all that it gives.
 */
bool zf_vain_goes_on(struct zf_vain_trial *trial, struct zf_alloc *alloc);
/* It has given nothing back: remembers that, if nothing was freed meanwhile. */
void zf_vain_end(struct zf_vain *vain, struct zf_alloc *alloc, const struct zf_vain_trial *trial);

#endif

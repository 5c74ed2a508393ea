/* SPDX-License-Identifier: MIT */
/*
 * What may be found in the file when a recording is cut off at an event.
 *
 * Each block of the file has versions: one for each command or store that changed it, in the order
 * of the recording. One of them is durable for sure:
 *
 *     a durable write that is done      makes its own bytes durable
 *     a sync that is done               what was done before the sync began, in its range
 *
 * The host stops (CUT_HOST): of each block the durable version is found, or any later one; or, when
 * a write of it was under way in the device, sectors of one and of another. Nothing is said about
 * the order of blocks.
 *
 * The daemon is killed (CUT_KILL): of each block the last version whose command is done, or a later
 * one; stores to mapped memory are done at once. The host goes on.
 */
#ifndef ZF_TESTS_HOST_CUTS_H
#define ZF_TESTS_HOST_CUTS_H

#include "host/record.h"
#include "sim/rng.h"

enum cut_kind {
	CUT_HOST,
	CUT_KILL,
};

struct cuts; /* the state at one event; it goes forward only */

struct cuts *cuts_new(const struct recording *recording);
void cuts_free(struct cuts *cuts);

/* To the instant before event `at`, which is not before the one of the last call. */
void cuts_advance(struct cuts *cuts, uint64_t at);

/* Draws one of the files that may be found, and what its attribute is. */
void cuts_make(const struct cuts *cuts, enum cut_kind kind, struct zf_rng *rng, const char *path,
	       char ret_attribute[32]);

#endif

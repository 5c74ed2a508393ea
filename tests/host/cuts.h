/* SPDX-License-Identifier: MIT */
/*
 * The contents that the file may have when a recording is cut off at an event.
 *
 * Each block of the file has versions: one for each command or store that changed it, in the order
 * of the recording. One of them is known to be durable:
 *
 *     a durable write that is done      makes its own bytes durable
 *     a sync that is done               makes durable what was done, in its range, before it began
 *
 * The host stops (CUT_HOST): each block has the durable version or any later one; or, if a write of
 * the block was under way in the device, sectors of two versions. The order of different blocks is
 * not defined.
 *
 * The daemon is killed (CUT_KILL): each block has the last version whose command is done, or a
 * later one; stores to mapped memory are done at once. The host goes on.
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

/* Advances to the instant before event `at`, which must not be before that of the last call. */
void cuts_advance(struct cuts *cuts, uint64_t at);

/* Writes one of the files that may be found, drawn, to `path`, and returns its attribute. */
void cuts_make(const struct cuts *cuts, enum cut_kind kind, struct zf_rng *rng, const char *path,
	       char ret_attribute[32]);

#endif

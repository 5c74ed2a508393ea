/* SPDX-License-Identifier: MIT */
/*
 * Which ranges of a file's extent map have changed and are not durable yet, and whether its item
 * has otherwise than by an operation of the log: what a log record of the file has to describe.
 *
 * Each range, and the item, has the generation of the transaction that changed it last: once that
 * is durable the range is forgotten. So is everything that a record has described. A file with more
 * than ZF_CHANGES_MAX of them is not described range by range any more: its fsync commits.
 *
 * Under inode->lock, exclusively to change.
 */
#ifndef ZF_FS_CHANGES_H
#define ZF_FS_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#define ZF_CHANGES_MAX 64u

struct zf_change {
	uint64_t from, to; /* bytes, block multiples; disjoint, ascending */
	uint64_t generation;
};

struct zf_changes {
	struct zf_change *at;
	unsigned int count, room;
	uint64_t item; /* generation that stored the item last; 0: no operation lacks it */
	uint64_t lost; /* generation of the newest change that is not listed; 0: all are */
};

void zf_changes_init(struct zf_changes *changes);
void zf_changes_deinit(struct zf_changes *changes);
/* Without memory, or with too many, it is noted that the list lacks some. */
void zf_changes_add(struct zf_changes *changes, uint64_t from, uint64_t to, uint64_t generation);
/* The item was stored: its times, or its size where that grew by a hole. */
void zf_changes_add_item(struct zf_changes *changes, uint64_t generation);
/* An operation of the log has all of it, the size too. */
void zf_changes_clear_item(struct zf_changes *changes);
/* The list lacks some of that generation, and of earlier ones. */
void zf_changes_lose(struct zf_changes *changes, uint64_t generation);
/* The transaction `durable` is. */
void zf_changes_prune(struct zf_changes *changes, uint64_t durable);
/* All is described by a record. */
void zf_changes_clear(struct zf_changes *changes);
/* Is there anything to describe, listed or lost? */
bool zf_changes_any(const struct zf_changes *changes);
/* The generation of the newest; 0: there are none. */
uint64_t zf_changes_newest(const struct zf_changes *changes);
/* Are there any that are not in the list? */
bool zf_changes_are_lost(const struct zf_changes *changes);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Changes: the ranges of a file's extent map that have changed and are not durable yet, and whether
 * its item has changed other than by an operation of the log. A log record of the file has to
 * describe them.
 *
 * Each range, and the item, has the generation of the transaction that changed it last. It is
 * forgotten when that transaction is durable, or when a record has described it. A file with more
 * than ZF_CHANGES_MAX ranges is not described any more: its fsync commits.
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
	uint64_t item; /* generation that stored the item last; 0: the log need not describe it */
	uint64_t lost; /* generation of the newest change that is not listed; 0: all are listed */
};

void zf_changes_init(struct zf_changes *changes);
void zf_changes_deinit(struct zf_changes *changes);
/*
 * Adds a range. If there is no memory or there are too many ranges, only the fact that the list
 * lacks some is noted.
 */
void zf_changes_add(struct zf_changes *changes, uint64_t from, uint64_t to, uint64_t generation);
/* Notes that the item was stored: its times, or its size if the file grew by a hole. */
void zf_changes_add_item(struct zf_changes *changes, uint64_t generation);
/* Notes that an operation of the log has the whole item, including the size. */
void zf_changes_clear_item(struct zf_changes *changes);
/* Notes that the list lacks changes of that generation or of earlier ones. */
void zf_changes_lose(struct zf_changes *changes, uint64_t generation);
/* Forgets what changed up to the transaction `durable`, which is durable. */
void zf_changes_prune(struct zf_changes *changes, uint64_t durable);
/* Forgets everything, because a record has described it. */
void zf_changes_clear(struct zf_changes *changes);
/* Returns whether anything has changed, listed or not. */
bool zf_changes_any(const struct zf_changes *changes);
/* The generation of the newest change; 0: there is none. */
uint64_t zf_changes_newest(const struct zf_changes *changes);
/* Returns whether there are changes that are not in the list. */
bool zf_changes_are_lost(const struct zf_changes *changes);

#endif

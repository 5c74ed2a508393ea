/* SPDX-License-Identifier: MIT */
/*
 * What write.c and write_kept.c share: the state of one write, which is done in rounds of some
 * blocks.
 */
#ifndef ZF_FS_WRITE_INTERNAL_H
#define ZF_FS_WRITE_INTERNAL_H

#include "fs/data/block.h"
#include "fs/core/fs.h"
#include "fs/space/room.h"

/* One round: 1 MiB, wherever it begins. */
#define ROUND_BYTES  (UINT64_C(1) << 20)
#define ROUND_BLOCKS (ROUND_BYTES / ZF_BLOCK_SIZE + 1)

/* Results of a round that lends, besides 0 and -errno. */
#define ROUND_NOT_PROMISED 1 /* it has to reserve room: no promised block can be used now */
#define ROUND_NO_SLACK	   2 /* it has to wait for write->overwrites_wanted blocks of slack */

struct write {
	struct zf_inode *inode;
	const struct zf_ctx *ctx;
	unsigned int flags;
	struct zf_room_search search;

	/* This round. */
	uint64_t offset;
	const uint8_t *buf;
	size_t len;
	bool lends;			/* it reserves no room, and uses promised blocks: */
	bool kept[ROUND_BLOCKS];	/* which blocks are kept, */
	bool guaranteed[ROUND_BLOCKS];	/* and which are guaranteed */
	uint64_t address[ROUND_BLOCKS]; /* of blocks that are written in place and need no room */
	unsigned int overwrites;	/* blocks of slack that are reserved */
	unsigned int overwrites_wanted; /* blocks of slack that it needs */
	bool short_of_tail;		/* -ENOSPC came from zeroing the old end of the file */
	bool short_of_kept;		/* kept blocks were short: their room is missing */
	unsigned int reserved;		/* blocks with room, memory and a buffer */
	struct zf_block *chain;		/* buffers not yet used */
	uint64_t first;			/* block of the file */
	unsigned int count;		/* blocks that the write touches */
	struct zf_block *block[ROUND_BLOCKS]; /* the new bytes, until they are placed */
};

/*
 * Shortens the round to the blocks that are kept or guaranteed for the file. ROUND_NOT_PROMISED:
 * there are none. ROUND_NO_SLACK. -EAGAIN: only a part of the round has promised room, and the
 * caller may not wait for the rest. Inode locked exclusively.
 */
int zf_write_shorten_to_promised(struct write *write);
/*
 * Reserves the room for placing the round's blocks: kept blocks are lent, and guaranteed ones take
 * what they need of write->overwrites. ROUND_NOT_PROMISED, ROUND_NO_SLACK. Inode locked, and
 * data->lock held.
 */
int zf_write_lend_locked(struct write *write);
/*
 * Returns whether block `i` will use the block that is kept for it, and not an older version in
 * flight (`flight`).
 */
bool zf_write_takes_kept(const struct write *write, unsigned int i, const struct zf_block *flight);
/*
 * Waits until write->overwrites_wanted blocks of slack are reserved. No lock held. -ENOSPC, -EROFS.
 */
int zf_write_wait_for_slack(struct write *write);
/* Gives back the reserved slack, write->overwrites. */
void zf_write_give_up_slack(struct write *write);

#endif

/* SPDX-License-Identifier: MIT */
/* What write.c and write_kept.c share: one write, in rounds. */
#ifndef ZF_FS_WRITE_INTERNAL_H
#define ZF_FS_WRITE_INTERNAL_H

#include "fs/data/block.h"
#include "fs/core/fs.h"
#include "fs/space/room.h"

/* One round: 1 MiB, wherever it begins. */
#define ROUND_BYTES  (UINT64_C(1) << 20)
#define ROUND_BLOCKS (ROUND_BYTES / ZF_BLOCK_SIZE + 1)

/* The round has to find room of its own. */
#define ROUND_NOT_KEPT 1

struct write {
	struct zf_inode *inode;
	const struct zf_ctx *ctx;
	unsigned int flags;
	struct zf_room_search search;

	/* This round. */
	uint64_t offset;
	const uint8_t *buf;
	size_t len;
	bool lends;			/* its room comes from what ZERO extents keep ... */
	bool kept[ROUND_BLOCKS];	/* ... in these blocks */
	uint64_t address[ROUND_BLOCKS]; /* these need none: they are written in place */
	bool short_of_tail;		/* what failed is zeroing the old end of the file ... */
	bool short_of_kept;		/* ... or space that is kept, and was not there */
	unsigned int reserved;		/* blocks: reservation, room in memory and buffers */
	struct zf_block *chain;		/* buffers not yet used */
	uint64_t first;			/* block of the file */
	unsigned int count;		/* blocks that the write touches */
	struct zf_block *block[ROUND_BLOCKS]; /* the new bytes; NULL: taken into the inode */
};

/*
 * Leaves of the round what can be made in kept space. ROUND_NOT_KEPT: nothing. Inode locked
 * exclusively.
 */
int zf_write_shorten_to_kept(struct write *write);
/* Reserves what placing its blocks takes. ROUND_NOT_KEPT. Inode locked, and data->lock held. */
int zf_write_lend_locked(struct write *write);

#endif

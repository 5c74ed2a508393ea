/* SPDX-License-Identifier: MIT */
/*
 * What the files of reclaim and scrub share: finding the extents that name bytes, and moving
 * blocks.
 */
#ifndef ZF_FS_RECLAIM_INTERNAL_H
#define ZF_FS_RECLAIM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct zf_fs;

/* ---- the extents that name bytes (reclaim_find.c) ---- */

/* Bytes of the victim that an extent of `ino` named when it was looked at. */
struct zf_piece {
	uint64_t ino, offset; /* in the file, bytes */
	uint64_t address;
	uint32_t count; /* blocks */
};

struct zf_pieces {
	struct zf_piece *at;
	size_t count, room;
};

struct zf_found {
	struct zf_pieces files;	 /* that no other extent names; by inode and offset */
	struct zf_pieces shared; /* that other extents may name, too; by address */
	uint64_t start;		 /* of the zone */
	uint64_t *csums;	 /* of its blocks ... */
	bool *known;		 /* ... those that the summary has */
	bool left;		 /* an inode could not be read */
};

/*
 * Finds the pieces that begin in [from, to), bytes in the zone. The zone must count as having a
 * reader. -ENOMEM, -EIO, -EUCLEAN. The caller calls zf_found_free() in any case.
 */
int zf_reclaim_find(struct zf_fs *fs, uint32_t zone_no, uint64_t from, uint64_t to,
		    struct zf_found *ret_found);
void zf_found_free(struct zf_found *found);

/* ---- blocks on their way (reclaim_move.c) ---- */

struct zf_move_slot {
	uint64_t from, to; /* addresses; `to` 0: it could not be moved */
	uint64_t csum;
	bool bad; /* it could not be read, or is not what was written */
};

struct zf_move_write;

/* A batch of blocks, copied in the order of the slots. */
struct zf_move {
	struct zf_fs *fs;
	unsigned int count, capacity;
	struct zf_move_slot *slots;
	uint8_t *buf;	     /* one block for each slot */
	unsigned int *place; /* the slot of each good block in buf */
	struct zf_move_write *writes;
	unsigned int write_count, write_room;
};

int zf_move_init(struct zf_move *move, struct zf_fs *fs);
void zf_move_deinit(struct zf_move *move);
/*
 * Reads, verifies and appends the blocks of the slots. A returned error concerns the whole batch; a
 * bad block, or one that could not be written, is marked in its slot. Until zf_move_end() the zones
 * of the new addresses have pending appends, so they are not reset.
 */
int zf_move_run(struct zf_move *move);
/* Only reads and verifies what is in the slots. -ENOMEM. */
int zf_move_verify(struct zf_move *move);
/* Ends the batch, after its blocks were swapped, and empties it. */
void zf_move_end(struct zf_move *move);

/* ---- swapping (reclaim_swap.c) ---- */

/*
 * Swaps: where extents of the piece's file name the `from` of a slot, they name its `to` afterwards
 * (piece->count slots). *ret_swapped: how many blocks were swapped. It is no error if extents have
 * changed or the file is gone; an error concerns the filesystem.
 */
int zf_reclaim_swap(struct zf_fs *fs, const struct zf_piece *piece,
		    const struct zf_move_slot *slots, bool shared, unsigned int *ret_swapped);
/*
 * Called before shared bytes are swapped: inserts the summary entries of their new addresses, in
 * the name of one of the files that share them.
 */
int zf_reclaim_summarise(struct zf_fs *fs, const struct zf_piece *piece,
			 const struct zf_move_slot *slots);

#endif

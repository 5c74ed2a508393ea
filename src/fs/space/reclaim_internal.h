/* SPDX-License-Identifier: MIT */
/* What the files of reclaim and scrub share: found pieces, and blocks on their way. */
#ifndef ZF_FS_RECLAIM_INTERNAL_H
#define ZF_FS_RECLAIM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct zf_fs;

/* ---- who names what (reclaim_find.c) ---- */

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
	struct zf_pieces files;	 /* which nobody else names, by inode and offset */
	struct zf_pieces shared; /* names of bytes that others may name too, by address */
	uint64_t start;		 /* of the zone */
	uint64_t *csums;	 /* of its blocks ... */
	bool *known;		 /* ... those that the summary has */
	bool left;		 /* an inode could not be looked at */
};

/*
 * Of a zone that is held: what begins in [from, to), bytes in the zone. -ENOMEM, -EIO, -EUCLEAN.
 * zf_found_free() in any case.
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

/* A batch of them, copied in the order of the slots. */
struct zf_move {
	struct zf_fs *fs;
	unsigned int count, capacity;
	struct zf_move_slot *slots;
	uint8_t *buf;	     /* a block a slot */
	unsigned int *place; /* in buf, of each slot that was read */
	struct zf_move_write *writes;
	unsigned int write_count, write_room;
};

int zf_move_init(struct zf_move *move, struct zf_fs *fs);
void zf_move_deinit(struct zf_move *move);
/*
 * Reads, verifies and appends what is in the slots. An error concerns the whole; bad blocks and
 * those that could not be written are told in their slots. Until zf_move_end() the new places count
 * as pending.
 */
int zf_move_run(struct zf_move *move);
/* Only reads and verifies what is in the slots. -ENOMEM. */
int zf_move_verify(struct zf_move *move);
/* All that could be is swapped. Empties the batch. */
void zf_move_end(struct zf_move *move);

/* ---- swapping (reclaim_swap.c) ---- */

/*
 * Makes extents of the piece's file name `to` where they name `from`, block by block (piece->count
 * slots). *ret_swapped: blocks that they name there now. Errors concern the filesystem: what has
 * changed, or has gone, is no error.
 */
int zf_reclaim_swap(struct zf_fs *fs, const struct zf_piece *piece,
		    const struct zf_move_slot *slots, bool shared, unsigned int *ret_swapped);
/*
 * Before shared bytes are named at their new place: what the summary says of them, in the name of
 * one of those who will name them.
 */
int zf_reclaim_summarise(struct zf_fs *fs, const struct zf_piece *piece,
			 const struct zf_move_slot *slots);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * From requests to commands, without I/O: which command is to be sent next, and what is left to do
 * when one has come back.
 *
 *     zf_nvme_queue_add -> command->piece is sent -> zf_nvme_queue_step -> 1: the next piece
 *                                                          |
 *                                                 the request's result
 *                                                          v
 *                                                 zf_nvme_queue_release -> another command
 *
 * A request takes one of a fixed number of commands, or waits until one is free. What is larger
 * than the drive takes in one command, or goes over the end of a zone (reads only), is sent in
 * pieces, one after the other. An append is one command always, and many may be under way in one
 * zone. Of writes at the pointer, zeroes included, only one is under way in a zone, because a drive
 * is free to begin with whichever command it likes; the others wait behind it, in the order in
 * which they came.
 *
 * Not thread-safe: the caller holds his lock. Only the pieces of one request (zf_nvme_piece_*) need
 * none.
 */
#ifndef ZF_IO_NVME_QUEUE_H
#define ZF_IO_NVME_QUEUE_H

#include "io/nvme_command.h"
#include "io/nvme_geometry.h"

#define ZF_NVME_IN_FLIGHT_MAX 256

/* How often a read is sent in all. */
#define ZF_NVME_READS_MAX 5

struct zf_nvme_command {
	struct zf_io *io;
	struct zf_nvme_piece piece;	    /* under way, or to be sent */
	int refused;			    /* 0; or the request's result: nothing is to be sent */
	struct zf_nvme_command *next_ready; /* the ring's, until it is sent */

	/* Private to the queue. */
	uint64_t done; /* bytes, by earlier pieces */
	unsigned int tries;
	struct iovec *part; /* the piece's segments, where they are not the request's own */
	struct iovec zeroes;
	struct zf_nvme_command *next;	     /* free, or writing at a pointer */
	struct zf_io *behind, **behind_tail; /* writes to the same zone, in their order */
};

struct zf_nvme_queue {
	const struct zf_nvme_drive *drive;
	struct zf_nvme_command commands[ZF_NVME_IN_FLIGHT_MAX];
	struct zf_nvme_command *free, *writing;
	struct zf_io *waiting, **waiting_tail;
};

/* `drive` is kept. */
void zf_nvme_queue_init(struct zf_nvme_queue *queue, const struct zf_nvme_drive *drive);

/* Returns the command that carries the request, to be sent; NULL: it waits. */
struct zf_nvme_command *zf_nvme_queue_add(struct zf_nvme_queue *queue, struct zf_io *io);

/*
 * The command has come back with `status`, see zf_nvme_error(), and for an append with the address,
 * in blocks. Returns 1 when it is to be sent again, with another piece or the same; else
 * the request's result, 0 or -errno.
 */
int zf_nvme_queue_step(struct zf_nvme_queue *queue, struct zf_nvme_command *command, int status,
		       uint64_t lba);

/* The request is through. Returns the command that is to be sent now instead, or NULL. */
struct zf_nvme_command *zf_nvme_queue_release(struct zf_nvme_queue *queue,
					      struct zf_nvme_command *command);

/*
 * For whoever carries a request out himself, command by command, with a command of his own:
 * begin sets its first piece, step is as above. A write at the pointer must have the zone to
 * itself.
 */
void zf_nvme_piece_begin(const struct zf_nvme_drive *drive, struct zf_nvme_command *command,
			 struct zf_io *io);
int zf_nvme_piece_step(const struct zf_nvme_drive *drive, struct zf_nvme_command *command,
		       int status, uint64_t lba);
void zf_nvme_piece_end(struct zf_nvme_command *command);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * From requests to commands, without I/O: which command is to be sent next, and what is left to do
 * when one has come back.
 *
 *     zf_nvme_queue_add -> command->piece is sent -> zf_nvme_queue_step -> the next piece
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
 * Not thread-safe: the caller holds his lock.
 *
 * Read next: io/nvme_piece.h.
 */
#ifndef ZF_IO_NVME_QUEUE_H
#define ZF_IO_NVME_QUEUE_H

#include "io/command.h"
#include "io/nvme_command.h"
#include "io/nvme_geometry.h"

#define ZF_NVME_IN_FLIGHT_MAX 256

/* How often a read is sent in all. */
#define ZF_NVME_READS_MAX 5

struct zf_nvme_command {
	struct zf_command base;
	struct zf_nvme_piece piece;	     /* under way, or to be sent */
	int refused;			     /* 0; or the request's result: nothing is to be sent */
	STAILQ_ENTRY(zf_nvme_command) ready; /* the ring's, until it is sent */

	/* Private to the queue. */
	unsigned int tries;
	struct iovec zeroes;
	LIST_ENTRY(zf_nvme_command) writing; /* at a pointer */
	struct zf_io_list behind;	     /* writes to the same zone, in their order */
};

struct zf_nvme_queue {
	const struct zf_nvme_drive *drive;
	struct zf_nvme_command commands[ZF_NVME_IN_FLIGHT_MAX];
	struct zf_command_pool pool;
	LIST_HEAD(, zf_nvme_command) writing;
};

/* `drive` is kept. */
void zf_nvme_queue_init(struct zf_nvme_queue *queue, const struct zf_nvme_drive *drive);

/* Returns the command that carries the request, to be sent; NULL: it waits. */
struct zf_nvme_command *zf_nvme_queue_add(struct zf_nvme_queue *queue, struct zf_io *io);

/*
 * The command has come back with `status`, see zf_nvme_status_error(), and for an append with the address,
 * in blocks. Returns ZF_COMMAND_AGAIN when it is to be sent again, with another piece or the same;
 * else the request's result, 0 or -errno.
 */
int zf_nvme_queue_step(struct zf_nvme_queue *queue, struct zf_nvme_command *command, int status,
		       uint64_t lba);

/* The request is through. Returns the command that is to be sent now instead, or NULL. */
struct zf_nvme_command *zf_nvme_queue_release(struct zf_nvme_queue *queue,
					      struct zf_nvme_command *command);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * From requests to commands, without I/O: which command is to be sent next, and what is left to do
 * when a command has completed.
 *
 *     zf_nvme_queue_add -> command->piece is sent -> zf_nvme_queue_step -> the next piece
 *                                                          |
 *                                                 the request's result
 *                                                          v
 *                                                 zf_nvme_queue_release -> another command
 *
 * A request takes one of a fixed number of commands, or waits until one is free. A request that is
 * larger than the drive accepts in one command, or crosses the end of a zone (reads only), is sent
 * in pieces, one after the other. An append is always one command, and many appends may be under
 * way in one zone. Only one write at the pointer, zeroes included, is under way in a zone, because
 * a drive may carry out its commands in any order; further writes wait behind it, in the order in
 * which they were submitted.
 *
 * Not thread-safe: the caller holds its lock.
 *
 * Read next: io/nvme_piece.h.
 */
#ifndef ZF_IO_NVME_QUEUE_H
#define ZF_IO_NVME_QUEUE_H

#include "io/command.h"
#include "io/nvme_command.h"
#include "io/nvme_geometry.h"

#define ZF_NVME_IN_FLIGHT_MAX 256

/* A failing read is sent so often in all. */
#define ZF_NVME_READS_MAX 5

struct zf_nvme_command {
	struct zf_command base;
	struct zf_nvme_piece piece;	     /* under way, or to be sent */
	int refused;			     /* 0; or the request's result: send nothing */
	STAILQ_ENTRY(zf_nvme_command) ready; /* private to the ring, until it is sent */

	/* Private to the queue. */
	unsigned int tries;
	struct iovec zeroes;
	LIST_ENTRY(zf_nvme_command) writing; /* a write at the pointer */
	struct zf_io_list behind;	     /* waiting writes to the same zone, in order */
};

struct zf_nvme_queue {
	const struct zf_nvme_drive *drive;
	struct zf_nvme_command commands[ZF_NVME_IN_FLIGHT_MAX];
	struct zf_command_pool pool;
	LIST_HEAD(, zf_nvme_command) writing;
};

/* `drive` must outlive the queue. */
void zf_nvme_queue_init(struct zf_nvme_queue *queue, const struct zf_nvme_drive *drive);

/* Returns the command that carries the request, for the caller to send; NULL: the request waits. */
struct zf_nvme_command *zf_nvme_queue_add(struct zf_nvme_queue *queue, struct zf_io *io);

/*
 * The command has completed with `status`, see zf_nvme_status_error(); `lba` is the address of an
 * append, in blocks. Returns ZF_COMMAND_AGAIN if the command is to be sent again, with another
 * piece or the same; else the request's result, 0 or -errno.
 */
int zf_nvme_queue_step(struct zf_nvme_queue *queue, struct zf_nvme_command *command, int status,
		       uint64_t lba);

/* The request is done. Returns the command of a waiting request, to be sent now, or NULL. */
struct zf_nvme_command *zf_nvme_queue_release(struct zf_nvme_queue *queue,
					      struct zf_nvme_command *command);

#endif

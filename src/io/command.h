/* SPDX-License-Identifier: MIT */
/*
 * Requests that a backend has under way. A request takes a command from a pool of a fixed size, or
 * waits until a command is free; waiting requests begin in the order in which they were submitted.
 * A request may be transferred in several pieces: its command remembers how many bytes are done and
 * which segments come next.
 *
 *     zf_command_may_begin -> zf_command_begin -> pieces -> zf_command_end
 *        | false: waits                                        |
 *        +-----> zf_command_first_waiting <--------------------+
 *
 * A backend's own command struct begins with this one. Not thread-safe: the backend holds its lock.
 *
 * The functions that every request goes through are inline: as calls, they are 4 % of the
 * instructions of a 4 KiB append to an image.
 */
#ifndef ZF_IO_COMMAND_H
#define ZF_IO_COMMAND_H

#include <assert.h>
#include <stdlib.h>

#include "io/dev.h"

/* A result of functions that advance a request: it needs another operation, or the same again. */
#define ZF_COMMAND_AGAIN 1

struct zf_command {
	struct zf_io *io;
	uint64_t done;		 /* bytes of the request so far */
	const struct iovec *iov; /* the segments that come next */
	unsigned int iovcnt;

	/* Private. */
	struct iovec *part; /* the array of `iov`, unless it is the request's own; else NULL */
	SLIST_ENTRY(zf_command) link;
};

struct zf_command_pool {
	SLIST_HEAD(, zf_command) free;
	struct zf_io_list waiting;
};

static inline void zf_command_pool_init(struct zf_command_pool *pool)
{
	SLIST_INIT(&pool->free);
	STAILQ_INIT(&pool->waiting);
}

/* Adds a free command to the pool. */
static inline void zf_command_pool_add(struct zf_command_pool *pool, struct zf_command *command)
{
	SLIST_INSERT_HEAD(&pool->free, command, link);
}

/* True: a command is free, and no request waits for it. False: this request waits from now on. */
static inline bool zf_command_may_begin(struct zf_command_pool *pool, struct zf_io *io)
{
	if (!SLIST_EMPTY(&pool->free) && STAILQ_EMPTY(&pool->waiting))
		return true;
	STAILQ_INSERT_TAIL(&pool->waiting, io, link);
	return false;
}

/*
 * The request that has waited longest, if a command is free, else NULL. The caller removes the
 * request from pool->waiting.
 */
static inline struct zf_io *zf_command_first_waiting(const struct zf_command_pool *pool)
{
	return SLIST_EMPTY(&pool->free) ? NULL : STAILQ_FIRST(&pool->waiting);
}

/* For a command of the caller's own, of no pool. The command has all segments of the request. */
static inline void zf_command_init(struct zf_command *command, struct zf_io *io)
{
	*command = (struct zf_command){.io = io, .iov = io->iov, .iovcnt = io->iovcnt};
}

static inline void zf_command_deinit(struct zf_command *command)
{
	free(command->part);
	command->part = NULL;
}

/* The same for a command of the pool; the pool has a free one. */
static inline struct zf_command *zf_command_begin(struct zf_command_pool *pool, struct zf_io *io)
{
	struct zf_command *command = SLIST_FIRST(&pool->free);

	assert(command);
	SLIST_REMOVE_HEAD(&pool->free, link);
	zf_command_init(command, io);
	return command;
}

static inline void zf_command_end(struct zf_command_pool *pool, struct zf_command *command)
{
	zf_command_deinit(command);
	zf_command_pool_add(pool, command);
}

/* Sets `iov` to the next `len` bytes of the request, which has a buffer. 0 or -ENOMEM. */
int zf_command_select(struct zf_command *command, uint64_t len);

/*
 * An operation for all remaining bytes has transferred `count` bytes. Returns 0 if these were all,
 * ZF_COMMAND_AGAIN if a rest remains, -EIO if `count` is less than a block, or -ENOMEM.
 */
int zf_command_transferred(struct zf_command *command, uint32_t count);

#endif

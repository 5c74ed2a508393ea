/* SPDX-License-Identifier: MIT */
/*
 * Requests that a backend has under way. A request takes a command from a pool of a fixed size, or
 * waits until one is free; those that wait begin in the order in which they came. The command
 * remembers how much of the request is done and which segments come next, for what is transferred
 * in several pieces.
 *
 *     zf_command_may_begin -> zf_command_begin -> pieces -> zf_command_end
 *        | false: waits                                        |
 *        +-----> zf_command_first_waiting <--------------------+
 *
 * A backend's own command begins with this one. Not thread-safe: the backend holds its lock.
 *
 * What every request goes through is inline: as calls, it is 4 % of the instructions of a 4 KiB
 * append to an image.
 */
#ifndef ZF_IO_COMMAND_H
#define ZF_IO_COMMAND_H

#include <assert.h>
#include <stdlib.h>

#include "io/dev.h"

/* A result of functions that move a request on: an operation has to follow, or to be repeated. */
#define ZF_COMMAND_AGAIN 1

struct zf_command {
	struct zf_io *io;
	uint64_t done;		 /* bytes of the request so far */
	const struct iovec *iov; /* the segments that come next */
	unsigned int iovcnt;

	/* Private. */
	struct iovec *part; /* those, where they are not the request's own; else NULL */
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

/* A command that the pool may give out from now on. */
static inline void zf_command_pool_add(struct zf_command_pool *pool, struct zf_command *command)
{
	SLIST_INSERT_HEAD(&pool->free, command, link);
}

/* True: a command is free, and nobody waits for it. False: the request waits from now on. */
static inline bool zf_command_may_begin(struct zf_command_pool *pool, struct zf_io *io)
{
	if (!SLIST_EMPTY(&pool->free) && STAILQ_EMPTY(&pool->waiting))
		return true;
	STAILQ_INSERT_TAIL(&pool->waiting, io, link);
	return false;
}

/* Who has waited longest, if a command is free: the caller removes it from pool->waiting. */
static inline struct zf_io *zf_command_first_waiting(const struct zf_command_pool *pool)
{
	return SLIST_EMPTY(&pool->free) ? NULL : STAILQ_FIRST(&pool->waiting);
}

/* For a command of no pool: the caller's own. It begins with all segments of the request. */
static inline void zf_command_init(struct zf_command *command, struct zf_io *io)
{
	*command = (struct zf_command){.io = io, .iov = io->iov, .iovcnt = io->iovcnt};
}

static inline void zf_command_deinit(struct zf_command *command)
{
	free(command->part);
	command->part = NULL;
}

/* The same for a command of the pool, in which one is free. */
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

/* The segments are those of the next `len` bytes, of a request that has a buffer. 0 or -ENOMEM. */
int zf_command_select(struct zf_command *command, uint64_t len);

/*
 * An operation for all that was left has transferred `count` bytes. Returns 0 when that was all,
 * ZF_COMMAND_AGAIN when the rest is to be transferred, -EIO for less than a block, or -ENOMEM.
 */
int zf_command_transferred(struct zf_command *command, uint32_t count);

#endif

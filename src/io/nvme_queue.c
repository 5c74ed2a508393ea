/* SPDX-License-Identifier: MIT */
#include "io/nvme_queue.h"

#include "base/bits.h"
#include "io/nvme_piece.h"

void zf_nvme_queue_init(struct zf_nvme_queue *queue, const struct zf_nvme_drive *drive)
{
	*queue = (struct zf_nvme_queue){.drive = drive};
	zf_command_pool_init(&queue->pool);
	for (unsigned int i = 0; i < ZF_NVME_IN_FLIGHT_MAX; i++)
		zf_command_pool_add(&queue->pool, &queue->commands[i].base);
	LIST_INIT(&queue->writing);
}

/* ---- writes at the pointer: one under way in a zone ---- */

static bool writes_at_pointer(const struct zf_io *io)
{
	return io->op == ZF_IO_WRITE || io->op == ZF_IO_ZEROES;
}

static struct zf_nvme_command *find_writer(const struct zf_nvme_queue *queue,
					   const struct zf_io *io)
{
	uint64_t zone_size = queue->drive->geometry.zone_size;
	struct zf_nvme_command *command;

	LIST_FOREACH (command, &queue->writing, writing) {
		if (command->base.io->addr / zone_size == io->addr / zone_size)
			return command;
	}
	return NULL;
}

/* ---- requests ---- */

/* Returns NULL if the request waits behind another write. The pool has a free command. */
static struct zf_nvme_command *start(struct zf_nvme_queue *queue, struct zf_io *io)
{
	struct zf_nvme_command *command = writes_at_pointer(io) ? find_writer(queue, io) : NULL;

	if (command) {
		STAILQ_INSERT_TAIL(&command->behind, io, link);
		return NULL;
	}
	command = ZF_CONTAINER_OF(zf_command_begin(&queue->pool, io), struct zf_nvme_command, base);
	STAILQ_INIT(&command->behind);
	if (writes_at_pointer(io))
		LIST_INSERT_HEAD(&queue->writing, command, writing);
	zf_nvme_piece_begin(queue->drive, command);
	return command;
}

struct zf_nvme_command *zf_nvme_queue_add(struct zf_nvme_queue *queue, struct zf_io *io)
{
	return zf_command_may_begin(&queue->pool, io) ? start(queue, io) : NULL;
}

int zf_nvme_queue_step(struct zf_nvme_queue *queue, struct zf_nvme_command *command, int status,
		       uint64_t lba)
{
	return zf_nvme_piece_step(queue->drive, command, status, lba);
}

/* The command is reused for the first request that waited behind its own. */
static struct zf_nvme_command *start_behind(struct zf_nvme_queue *queue,
					    struct zf_nvme_command *command)
{
	struct zf_io *io = STAILQ_FIRST(&command->behind);

	STAILQ_REMOVE_HEAD(&command->behind, link);
	zf_command_deinit(&command->base);
	zf_command_init(&command->base, io);
	zf_nvme_piece_begin(queue->drive, command);
	return command;
}

struct zf_nvme_command *zf_nvme_queue_release(struct zf_nvme_queue *queue,
					      struct zf_nvme_command *command)
{
	struct zf_nvme_command *another = NULL;
	struct zf_io *io;

	if (!STAILQ_EMPTY(&command->behind))
		return start_behind(queue, command);
	if (writes_at_pointer(command->base.io))
		LIST_REMOVE(command, writing);
	zf_command_end(&queue->pool, &command->base);
	while (!another && (io = zf_command_first_waiting(&queue->pool))) {
		STAILQ_REMOVE_HEAD(&queue->pool.waiting, link);
		another = start(queue, io);
	}
	return another;
}

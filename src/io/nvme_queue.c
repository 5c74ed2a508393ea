/* SPDX-License-Identifier: MIT */
#include "io/nvme_queue.h"

#include "base/bits.h"

void zf_nvme_queue_init(struct zf_nvme_queue *queue, const struct zf_nvme_drive *drive)
{
	*queue = (struct zf_nvme_queue){.drive = drive};
	for (unsigned int i = 0; i < ZF_NVME_IN_FLIGHT_MAX; i++) {
		queue->commands[i].next = queue->free;
		queue->free = &queue->commands[i];
	}
	queue->waiting_tail = &queue->waiting;
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
	struct zf_nvme_command *command = queue->writing;

	while (command && command->io->addr / zone_size != io->addr / zone_size)
		command = command->next;
	return command;
}

static void push(struct zf_io ***tail, struct zf_io *io)
{
	io->next = NULL;
	**tail = io;
	*tail = &io->next;
}

static struct zf_io *pop(struct zf_io **head, struct zf_io ***tail)
{
	struct zf_io *io = *head;

	*head = io->next;
	if (!*head)
		*tail = head;
	io->next = NULL;
	return io;
}

static void stop_writing(struct zf_nvme_queue *queue, struct zf_nvme_command *command)
{
	struct zf_nvme_command **link = &queue->writing;

	while (*link != command)
		link = &(*link)->next;
	*link = command->next;
}

/* ---- ways of a request ---- */

/* Returns NULL if it waits behind another. There is a free command. */
static struct zf_nvme_command *start(struct zf_nvme_queue *queue, struct zf_io *io)
{
	struct zf_nvme_command *command;
	bool writes = writes_at_pointer(io);

	if (writes) {
		command = find_writer(queue, io);
		if (command) {
			push(&command->behind_tail, io);
			return NULL;
		}
	}
	command = queue->free;
	queue->free = command->next;
	command->behind = NULL;
	command->behind_tail = &command->behind;
	if (writes) {
		command->next = queue->writing;
		queue->writing = command;
	}
	zf_nvme_piece_begin(queue->drive, command, io);
	return command;
}

struct zf_nvme_command *zf_nvme_queue_add(struct zf_nvme_queue *queue, struct zf_io *io)
{
	/* While one is free, nobody waits for one. */
	if (queue->free)
		return start(queue, io);
	push(&queue->waiting_tail, io);
	return NULL;
}

int zf_nvme_queue_step(struct zf_nvme_queue *queue, struct zf_nvme_command *command, int status,
		       uint64_t lba)
{
	return zf_nvme_piece_step(queue->drive, command, status, lba);
}

struct zf_nvme_command *zf_nvme_queue_release(struct zf_nvme_queue *queue,
					      struct zf_nvme_command *command)
{
	struct zf_nvme_command *another = NULL;

	zf_nvme_piece_end(command);
	if (command->behind) {
		struct zf_io *io = pop(&command->behind, &command->behind_tail);

		zf_nvme_piece_begin(queue->drive, command, io);
		return command;
	}
	if (writes_at_pointer(command->io))
		stop_writing(queue, command);
	command->next = queue->free;
	queue->free = command;
	while (!another && queue->waiting)
		another = start(queue, pop(&queue->waiting, &queue->waiting_tail));
	return another;
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests to an image become io_uring operations.
 *
 * A request takes a `command` from a fixed pool, or waits in a queue until one is free. It begins
 * under the lock (image_zones.c), which says what its first step is. Most requests are one
 * operation; a reset is two (make the trailer durable, punch the zone out), zeroes and short
 * transfers are as many as it takes. What is decided already travels as a no-op, so that it comes
 * back the same way as everything else.
 *
 * Any thread submits (under the lock); one at a time reaps (under the framework's poll lock).
 */
#include "io/image_device.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>

#include "io/iov.h"

#define REAP_BATCH 64

void zf_image_init_commands(struct zf_image *image)
{
	for (unsigned int i = 0; i < ZF_IMAGE_IN_FLIGHT_MAX; i++) {
		image->commands[i].next_free = image->free_commands;
		image->free_commands = &image->commands[i];
	}
	image->waiting_tail = &image->waiting;
}

/* ---- operations on the ring ---- */

static struct io_uring_sqe *get_sqe_locked(struct zf_image *image, struct zf_image_command *command)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&image->ring);

	/* There are more entries than commands, and push_locked() leaves none behind. */
	assert(sqe);
	io_uring_sqe_set_data(sqe, command);
	return sqe;
}

/* Short of memory the kernel says EAGAIN: nothing better to do than to ask again. */
static void push_locked(struct zf_image *image)
{
	while (io_uring_sq_ready(&image->ring) > 0) {
		int r = io_uring_submit(&image->ring);

		assert(r >= 0 || r == -EAGAIN || r == -EBUSY || r == -EINTR);
		if (r < 0)
			sched_yield();
	}
}

static void prepare_transfer(struct zf_image *image, struct zf_image_command *command,
			     struct io_uring_sqe *sqe)
{
	const struct zf_io *io = command->io;
	const struct iovec *iov = command->rest ? command->rest : io->iov;
	unsigned int iovcnt = command->rest ? command->rest_count : io->iovcnt;
	uint64_t left = io->len - command->done;

	if (io->op == ZF_IO_ZEROES && left >= ZF_IMAGE_ZERO_CHUNK) {
		iov = image->zeroes;
		iovcnt = (unsigned int)zf_min_u64(left / ZF_IMAGE_ZERO_CHUNK, ZF_IMAGE_ZERO_CHUNKS);
	} else if (io->op == ZF_IO_ZEROES) {
		command->last_zeroes = (struct iovec){image->zero_chunk, left};
		iov = &command->last_zeroes;
		iovcnt = 1;
	}
	if (io->op == ZF_IO_READ)
		io_uring_prep_readv(sqe, image->fd, iov, iovcnt, io->addr + command->done);
	else
		io_uring_prep_writev2(sqe, image->fd, iov, iovcnt, io->addr + command->done,
				      zf_image_write_flags(io));
}

static void prepare_trailer_sync(struct zf_image *image, uint32_t zone_no, struct io_uring_sqe *sqe)
{
	io_uring_prep_fsync(sqe, image->fd, IORING_FSYNC_DATASYNC);
	sqe->off = zf_image_trailer_zone_block(&image->trailer, zone_no);
	sqe->len = ZF_BLOCK_SIZE;
}

static void launch_locked(struct zf_image *image, struct zf_image_command *command)
{
	struct io_uring_sqe *sqe = get_sqe_locked(image, command);
	const struct zf_io *io = command->io;

	switch (command->step) {
	case STEP_TRANSFER:
		prepare_transfer(image, command, sqe);
		break;
	case STEP_UNMAP:
		io_uring_prep_fallocate(sqe, image->fd, ZF_IMAGE_FALLOC_WRITE_ZEROES,
					(off_t)io->addr, (off_t)io->len);
		break;
	case STEP_FLUSH:
		io_uring_prep_fsync(sqe, image->fd, IORING_FSYNC_DATASYNC);
		break;
	case STEP_RESET_SYNC:
		prepare_trailer_sync(image, zf_image_zone_of(image, io), sqe);
		break;
	case STEP_RESET_PUNCH:
		io_uring_prep_fallocate(sqe, image->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)io->addr, (off_t)image->dev.geometry.zone_size);
		break;
	case STEP_DONE:
	case STEP_REFUSED:
		io_uring_prep_nop(sqe);
		break;
	}
	/* The prep functions of older liburing clear the data. */
	io_uring_sqe_set_data(sqe, command);
}

/* ---- submission ---- */

static struct zf_image_command *start_locked(struct zf_image *image, struct zf_io *io)
{
	struct zf_image_command *command = image->free_commands;

	image->free_commands = command->next_free;
	*command = (struct zf_image_command){.io = io};
	zf_image_begin_locked(image, command);
	return command;
}

/*
 * Where the host cannot do I/O without blocking (tmpfs), the kernel would wake a worker for each
 * request, which takes many times longer than the copying that it then does.
 */
static void submit_locked(struct zf_image *image, struct zf_io *io)
{
	struct zf_image_command *command = start_locked(image, io);

	if (image->host_blocks && zf_image_can_carry_out_here(command)) {
		zf_mutex_unlock(&image->lock);
		command->result = zf_image_carry_out_here(image, io);
		zf_mutex_lock(&image->lock);
		command->step = STEP_DONE;
	}
	launch_locked(image, command);
	push_locked(image);
}

void zf_image_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_image *image = zf_image_of(dev);

	zf_mutex_lock(&image->lock);
	zf_image_await_piece_locked(image, io);
	if (image->free_commands && !image->waiting) {
		submit_locked(image, io);
	} else {
		*image->waiting_tail = io;
		image->waiting_tail = &io->next;
	}
	zf_mutex_unlock(&image->lock);
}

static void start_waiting_locked(struct zf_image *image)
{
	while (image->waiting && image->free_commands) {
		struct zf_io *io = image->waiting;

		/* While it is the first in the queue, so that none overtakes it. */
		zf_image_await_piece_locked(image, io);
		image->waiting = io->next;
		if (!image->waiting)
			image->waiting_tail = &image->waiting;
		io->next = NULL;
		launch_locked(image, start_locked(image, io));
	}
}

/* ---- completions ---- */

/* What is left of the request's segments after command->done bytes. */
static int set_rest(struct zf_image_command *command)
{
	const struct zf_io *io = command->io;

	if (io->op == ZF_IO_ZEROES)
		return 0;
	if (!command->rest)
		command->rest = calloc(io->iovcnt, sizeof(*command->rest));
	if (!command->rest)
		return -ENOMEM;
	command->rest_count =
		zf_iov_slice(io->iov, command->done, io->len - command->done, command->rest);
	return 0;
}

/* Returns 1 when there is more to transfer. */
static int transferred(struct zf_image *image, struct zf_image_command *command, int res)
{
	const struct zf_io *io = command->io;
	const char *what = io->op == ZF_IO_READ ? "read" : "write";

	if (res < 0)
		return (io->fua ? zf_image_sync_error_locked : zf_image_host_error)(image, what,
										    io->addr, res);
	/* Part of a block does not count: direct I/O could not go on from there. */
	res -= res % (int)ZF_BLOCK_SIZE;
	if (res == 0)
		return zf_image_host_error(image, what, io->addr, -EIO);
	command->done += (uint64_t)res;
	if (command->done == io->len)
		return 0;
	return set_rest(command) < 0 ? -EIO : 1;
}

/* Returns the request's result, or 1 when another operation has to follow. */
static int advance_locked(struct zf_image *image, struct zf_image_command *command, int res)
{
	switch (command->step) {
	case STEP_TRANSFER:
		return transferred(image, command, res);
	case STEP_UNMAP:
		return zf_image_unmapped_locked(image, command, res);
	case STEP_FLUSH:
		return zf_image_flushed_locked(image, res);
	case STEP_RESET_SYNC:
		return zf_image_reset_synced_locked(image, command, res);
	case STEP_RESET_PUNCH:
		return 0; /* a host that cannot punch keeps the space, and nothing else is lost */
	case STEP_DONE:
	case STEP_REFUSED:
		return command->result;
	}
	return -EIO;
}

static void finish_locked(struct zf_image *image, struct zf_image_command *command, int result)
{
	struct zf_io *io = command->io;

	zf_image_end_locked(image, command);
	free(command->rest);
	command->next_free = image->free_commands;
	image->free_commands = command;
	zf_dev_complete(&image->dev, io, result);
}

/*
 * When a thread ends, the kernel cancels what it has submitted and not begun. Every step may be
 * repeated, and this time it belongs to the poller.
 */
static bool is_to_be_repeated(int res)
{
	return res == -ECANCELED || res == -EINTR || res == -EAGAIN;
}

static void reaped_locked(struct zf_image *image, struct zf_image_command *command, int res)
{
	int r = is_to_be_repeated(res) ? 1 : advance_locked(image, command, res);

	if (r > 0)
		launch_locked(image, command);
	else
		finish_locked(image, command, r);
}

/* Returns true if something was handed back, or somebody wants the poller to return. */
static bool reap(struct zf_image *image)
{
	struct io_uring_cqe *cqes[REAP_BATCH];
	unsigned int n = io_uring_peek_batch_cqe(&image->ring, cqes, REAP_BATCH);
	bool woken = false;

	if (n == 0)
		return false;
	zf_mutex_lock(&image->lock);
	for (unsigned int i = 0; i < n; i++) {
		struct zf_image_command *command = io_uring_cqe_get_data(cqes[i]);

		if (command)
			reaped_locked(image, command, cqes[i]->res);
		else
			woken = true;
	}
	io_uring_cq_advance(&image->ring, n);
	start_waiting_locked(image);
	push_locked(image);
	zf_mutex_unlock(&image->lock);
	return woken || image->dev.finished;
}

void zf_image_poll(struct zf_dev *dev, bool wait)
{
	struct zf_image *image = zf_image_of(dev);
	struct io_uring_cqe *cqe;

	while (!reap(image) && wait)
		io_uring_wait_cqe(&image->ring, &cqe);
}

void zf_image_wake(struct zf_dev *dev)
{
	struct zf_image *image = zf_image_of(dev);

	zf_mutex_lock(&image->lock);
	io_uring_prep_nop(get_sqe_locked(image, NULL));
	push_locked(image);
	zf_mutex_unlock(&image->lock);
}

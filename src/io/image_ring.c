/* SPDX-License-Identifier: MIT */
/*
 * Requests to an image become io_uring operations.
 *
 * A request takes a command from a pool (io/command.h), or waits until one is free. image_zones.c
 * begins it under the lock, and sets its first step. Most requests are one operation; a reset is
 * two (make the trailer durable, punch the zone out); zeroes and short transfers are as many as
 * needed. A request whose result is already known is sent as a no-op, so that it completes in the
 * same way as all others.
 *
 * Any thread submits (under the lock); one at a time reaps (under the framework's poll lock).
 */
#include "io/image_device.h"

#include <errno.h>
#include <fcntl.h>

_Static_assert(ZF_IMAGE_IN_FLIGHT_MAX < ZF_RING_ENTRIES, "and the no-op that wakes the poller");

static struct zf_image_command *image_command(struct zf_command *command)
{
	return ZF_CONTAINER_OF(command, struct zf_image_command, base);
}

/* ---- operations on the ring ---- */

static void select_zeroes(struct zf_image *image, struct zf_image_command *command)
{
	uint64_t left = command->base.io->len - command->base.done;

	if (left >= ZF_IMAGE_ZERO_CHUNK) {
		command->base.iov = image->zeroes;
		command->base.iovcnt =
			(unsigned int)zf_min_u64(left / ZF_IMAGE_ZERO_CHUNK, ZF_IMAGE_ZERO_CHUNKS);
	} else {
		command->last_zeroes = (struct iovec){image->zero_chunk, left};
		command->base.iov = &command->last_zeroes;
		command->base.iovcnt = 1;
	}
}

static void prepare_transfer(struct zf_image *image, struct zf_image_command *command,
			     struct io_uring_sqe *sqe)
{
	const struct zf_command *base = &command->base;
	uint64_t addr = base->io->addr + base->done;

	if (base->io->op == ZF_IO_ZEROES)
		select_zeroes(image, command);
	if (base->io->op == ZF_IO_READ)
		io_uring_prep_readv(sqe, image->fd, base->iov, base->iovcnt, addr);
	else
		io_uring_prep_writev2(sqe, image->fd, base->iov, base->iovcnt, addr,
				      zf_image_write_flags(base->io));
}

static void prepare_trailer_sync(struct zf_image *image, uint32_t zone_no, struct io_uring_sqe *sqe)
{
	io_uring_prep_fsync(sqe, image->fd, IORING_FSYNC_DATASYNC);
	sqe->off = zf_image_trailer_zone_block(&image->trailer, zone_no);
	sqe->len = ZF_BLOCK_SIZE;
}

static void launch_locked(struct zf_image *image, struct zf_image_command *command)
{
	struct io_uring_sqe *sqe = zf_ring_entry_locked(&image->ring, command);
	const struct zf_io *io = command->base.io;

	switch (command->step) {
	case ZF_IMAGE_STEP_TRANSFER:
		prepare_transfer(image, command, sqe);
		break;
	case ZF_IMAGE_STEP_UNMAP:
		io_uring_prep_fallocate(sqe, image->fd, ZF_IMAGE_FALLOC_WRITE_ZEROES,
					(off_t)io->addr, (off_t)io->len);
		break;
	case ZF_IMAGE_STEP_FLUSH:
		io_uring_prep_fsync(sqe, image->fd, IORING_FSYNC_DATASYNC);
		break;
	case ZF_IMAGE_STEP_RESET_SYNC:
		prepare_trailer_sync(image, zf_image_zone_of(image, io), sqe);
		break;
	case ZF_IMAGE_STEP_RESET_PUNCH:
		io_uring_prep_fallocate(sqe, image->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)io->addr, (off_t)image->dev.geometry.zone_size);
		break;
	case ZF_IMAGE_STEP_DONE:
	case ZF_IMAGE_STEP_REFUSED:
		io_uring_prep_nop(sqe);
		break;
	}
}

/* ---- submission ---- */

static struct zf_image_command *start_locked(struct zf_image *image, struct zf_io *io)
{
	struct zf_image_command *command = image_command(zf_command_begin(&image->pool, io));

	zf_image_begin_locked(image, command);
	return command;
}

/*
 * If the host has no non-blocking I/O (tmpfs), the request is carried out here if possible: the
 * kernel would wake a worker for each request, which takes many times longer than the copying.
 */
static void submit_locked(struct zf_image *image, struct zf_io *io)
{
	struct zf_image_command *command = start_locked(image, io);

	if (image->host_blocks && zf_image_can_carry_out_here(command)) {
		zf_mutex_unlock(&image->lock);
		command->result = zf_image_carry_out_here(image, io);
		zf_mutex_lock(&image->lock);
		command->step = ZF_IMAGE_STEP_DONE;
	}
	launch_locked(image, command);
	zf_ring_push_locked(&image->ring);
}

void zf_image_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_image *image = zf_image_of(dev);

	zf_mutex_lock(&image->lock);
	zf_image_await_piece_locked(image, io);
	if (zf_command_may_begin(&image->pool, io))
		submit_locked(image, io);
	zf_mutex_unlock(&image->lock);
}

static void start_waiting_locked(struct zf_dev *dev)
{
	struct zf_image *image = zf_image_of(dev);
	struct zf_io *io;

	while ((io = zf_command_first_waiting(&image->pool))) {
		/* The request stays first in the queue meanwhile, so that none overtakes it. */
		zf_image_await_piece_locked(image, io);
		STAILQ_REMOVE_HEAD(&image->pool.waiting, link);
		launch_locked(image, start_locked(image, io));
	}
}

/* ---- completions ---- */

static int transferred(struct zf_image *image, struct zf_image_command *command, int res)
{
	const struct zf_io *io = command->base.io;
	const char *what = io->op == ZF_IO_READ ? "read" : "write";
	int r;

	if (res < 0)
		return (io->fua ? zf_image_sync_error_locked : zf_image_host_error)(image, what,
										    io->addr, res);
	r = zf_command_transferred(&command->base, (uint32_t)res);
	return r < 0 ? zf_image_host_error(image, what, io->addr, r) : r;
}

/* Returns the request's result, or ZF_COMMAND_AGAIN. */
static int advance_locked(struct zf_image *image, struct zf_image_command *command, int res)
{
	switch (command->step) {
	case ZF_IMAGE_STEP_TRANSFER:
		return transferred(image, command, res);
	case ZF_IMAGE_STEP_UNMAP:
		return zf_image_unmapped_locked(image, command, res);
	case ZF_IMAGE_STEP_FLUSH:
		return zf_image_flushed_locked(image, res);
	case ZF_IMAGE_STEP_RESET_SYNC:
		return zf_image_reset_synced_locked(image, command, res);
	case ZF_IMAGE_STEP_RESET_PUNCH:
		return 0; /* on a host that cannot punch, the space stays allocated: no error */
	case ZF_IMAGE_STEP_DONE:
	case ZF_IMAGE_STEP_REFUSED:
		return command->result;
	}
	return -EIO;
}

static void finish_locked(struct zf_image *image, struct zf_image_command *command, int result)
{
	struct zf_io *io = command->base.io;

	zf_image_end_locked(image, command);
	zf_command_end(&image->pool, &command->base);
	zf_dev_complete(&image->dev, io, result);
}

/* Any step may have to be submitted again; the poller does it. */
static void reaped_locked(struct zf_dev *dev, const struct io_uring_cqe *cqe)
{
	struct zf_image *image = zf_image_of(dev);
	struct zf_image_command *command = io_uring_cqe_get_data(cqe);
	int r = ZF_COMMAND_AGAIN;

	if (!zf_ring_is_to_be_repeated(cqe->res))
		r = advance_locked(image, command, cqe->res);
	if (r == ZF_COMMAND_AGAIN)
		launch_locked(image, command);
	else
		finish_locked(image, command, r);
}

static const struct zf_ring_ops ring_ops = {
	.reaped_locked = reaped_locked,
	.settled_locked = start_waiting_locked,
};

int zf_image_ring_init(struct zf_image *image)
{
	zf_command_pool_init(&image->pool);
	for (unsigned int i = 0; i < ZF_IMAGE_IN_FLIGHT_MAX; i++)
		zf_command_pool_add(&image->pool, &image->commands[i].base);
	return zf_ring_init(&image->ring, 0, &ring_ops, &image->dev, &image->lock);
}

void zf_image_poll(struct zf_dev *dev, bool wait)
{
	zf_ring_poll(&zf_image_of(dev)->ring, wait);
}

void zf_image_wake(struct zf_dev *dev)
{
	zf_ring_wake(&zf_image_of(dev)->ring);
}

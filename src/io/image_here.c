/* SPDX-License-Identifier: MIT */
/*
 * Carries out requests to an image on the calling thread, without the ring, so that no other thread
 * has to be woken. Not on block devices, where the kernel makes two commands of a synchronous
 * durable write: FUA, and a flush.
 */
#include <errno.h>
#include <unistd.h>

#include "io/image_device.h"
#include "io/iov.h"

static int transfer(struct zf_image *image, const struct zf_io *io)
{
	bool reads = io->op == ZF_IO_READ;
	int flags = reads ? 0 : zf_image_write_flags(io);
	zf_iov_call *call = reads ? preadv2 : pwritev2;
	uint64_t addr = io->addr;
	int r;

	if (call(image->fd, io->iov, (int)io->iovcnt, (off_t)addr, flags) == (ssize_t)io->len)
		return 0;
	r = zf_iov_transfer_again(call, image->fd, io->iov, io->iovcnt, flags, &addr);
	if (r == 0)
		return 0;
	return (io->fua ? zf_image_sync_error
			: zf_image_host_error)(image, reads ? "read" : "write", addr, r);
}

bool zf_image_can_carry_out_here(const struct zf_image_command *command)
{
	return (command->step == ZF_IMAGE_STEP_TRANSFER && command->base.io->op != ZF_IO_ZEROES) ||
	       command->step == ZF_IMAGE_STEP_FLUSH;
}

int zf_image_carry_out_here(struct zf_image *image, const struct zf_io *io)
{
	int r;

	if (io->op != ZF_IO_FLUSH)
		return transfer(image, io);
	r = fdatasync(image->fd) < 0 ? -errno : 0;
	zf_mutex_lock(&image->lock);
	r = zf_image_flushed_locked(image, r);
	zf_mutex_unlock(&image->lock);
	return r;
}

int zf_image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt)
{
	struct zf_image *image = zf_image_of(dev);
	struct zf_io io = {.op = ZF_IO_READ,
			   .addr = addr,
			   .len = zf_iov_len(iov, iovcnt),
			   .iov = iov,
			   .iovcnt = iovcnt};
	int r = zf_zone_rules_check_read(&image->rules, addr, io.len);

	return r < 0 ? r : transfer(image, &io);
}

int zf_image_run(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_image *image = zf_image_of(dev);
	struct zf_image_command command;
	int r;

	if (!image->runs_here || (io->op != ZF_IO_READ && io->op != ZF_IO_WRITE &&
				  io->op != ZF_IO_APPEND && io->op != ZF_IO_FLUSH))
		return ZF_DEV_NOT_HERE;
	zf_mutex_lock(&image->lock);
	zf_image_await_piece_locked(image, io);
	/* Writes at the pointer must not overtake the waiting requests. */
	if (!STAILQ_EMPTY(&image->pool.waiting)) {
		zf_mutex_unlock(&image->lock);
		return ZF_DEV_NOT_HERE;
	}
	zf_command_init(&command.base, io);
	zf_image_begin_locked(image, &command);
	zf_mutex_unlock(&image->lock);
	if (!zf_image_can_carry_out_here(&command))
		return command.result;

	r = zf_image_carry_out_here(image, io);

	zf_mutex_lock(&image->lock);
	zf_image_end_locked(image, &command);
	zf_mutex_unlock(&image->lock);
	return r;
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests to a zoned block device become io_uring operations.
 *
 * Writes at a pointer go through the queue (io/append_queue.h), which decides when and where they
 * are written. Resets, finishes and reports take an ioctl, on a thread of their own (zbd_zones.c).
 * All other requests take a command from a pool (io/command.h), or wait until one is free.
 *
 * An operation's user data is its command, or its write with bit 0 set. Answered requests are
 * collected in `done`, and only the poller hands them back; any other thread that puts one there
 * wakes the poller.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/plant.h"
#include "io/iov.h"
#include "io/zbd_device.h"
#include "io/zone_rules.h"

#define IS_WRITE	    ((uintptr_t)1)
#define FALLOC_WRITE_ZEROES 0x80 /* FALLOC_FL_WRITE_ZEROES, since Linux 6.17 */

_Static_assert(ZF_ZBD_IN_FLIGHT_MAX + ZF_APPEND_WRITES < ZF_RING_ENTRIES,
	       "and the no-op that wakes the poller");

/* ---- operations on the ring ---- */

void zf_zbd_push_locked(struct zf_zbd *zbd)
{
	if (!STAILQ_EMPTY(&zbd->done))
		zf_ring_wake_locked(&zbd->ring);
	zf_ring_push_locked(&zbd->ring);
}

void zf_zbd_answer_locked(struct zf_zbd *zbd, struct zf_io *io, int result)
{
	io->result = result;
	STAILQ_INSERT_TAIL(&zbd->done, io, link);
}

static int write_flags(bool fua)
{
	return fua && !ZF_PLANTED(ZF_BUG_ZBD_FUA) ? RWF_DSYNC : 0;
}

void zf_zbd_write_locked(void *arg, struct zf_zone_write *write)
{
	struct zf_zbd *zbd = arg;
	void *data = (void *)((uintptr_t)write | IS_WRITE);

	io_uring_prep_writev2(zf_ring_entry_locked(&zbd->ring, data), zbd->fd, write->iov,
			      write->iovcnt, write->addr, write_flags(write->fua));
}

/* Zeroes in a conventional zone: by unmapping, or in the way that the kernel chooses. */
static void prepare_zeroes_locked(struct zf_zbd *zbd, struct zf_zbd_command *command,
				  struct io_uring_sqe *sqe)
{
	command->unmaps = zbd->dev.geometry.unmapping_zeroes && !zbd->unmapping_refused;
	io_uring_prep_fallocate(sqe, zbd->fd,
				command->unmaps ? FALLOC_WRITE_ZEROES
						: FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
				(off_t)command->base.io->addr, (off_t)command->base.io->len);
}

static void launch_locked(struct zf_zbd *zbd, struct zf_zbd_command *command)
{
	struct io_uring_sqe *sqe = zf_ring_entry_locked(&zbd->ring, command);
	const struct zf_command *base = &command->base;
	uint64_t addr = base->io->addr + base->done;

	switch (base->io->op) {
	case ZF_IO_READ:
		io_uring_prep_readv(sqe, zbd->fd, base->iov, base->iovcnt, addr);
		break;
	case ZF_IO_WRITE:
		io_uring_prep_writev2(sqe, zbd->fd, base->iov, base->iovcnt, addr,
				      write_flags(base->io->fua));
		break;
	case ZF_IO_ZEROES:
		prepare_zeroes_locked(zbd, command, sqe);
		break;
	default:
		io_uring_prep_fsync(sqe, zbd->fd, IORING_FSYNC_DATASYNC);
	}
}

/* ---- submission ---- */

static int check_read(const struct zf_zbd *zbd, uint64_t addr, uint64_t len)
{
	uint64_t size = zbd->dev.geometry.zone_size * zbd->dev.geometry.zone_count;

	if (len == 0 || !zf_is_aligned(addr | len, ZF_BLOCK_SIZE) || addr > size ||
	    len > size - addr)
		return -EINVAL;
	return 0;
}

/* A request that changes a conventional zone. */
static int check_conventional(const struct zf_zbd *zbd, const struct zf_io *io)
{
	uint64_t offset = io->addr % zbd->dev.geometry.zone_size;

	if (io->op != ZF_IO_WRITE && io->op != ZF_IO_ZEROES)
		return -EINVAL;
	if (io->len == 0 || !zf_is_aligned(io->addr | io->len, ZF_BLOCK_SIZE))
		return -EINVAL;
	if (offset >= zbd->dev.geometry.zone_capacity ||
	    io->len > zbd->dev.geometry.zone_capacity - offset)
		return -ENOSPC;
	return io->op == ZF_IO_ZEROES ? 0 : zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
}

static int check(const struct zf_zbd *zbd, const struct zf_io *io)
{
	int r;

	if (io->op == ZF_IO_FLUSH)
		return 0;
	if (io->op != ZF_IO_READ)
		return check_conventional(zbd, io);
	r = check_read(zbd, io->addr, io->len);
	return r < 0 ? r : zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
}

static void start_locked(struct zf_zbd *zbd, struct zf_io *io)
{
	struct zf_command *command = zf_command_begin(&zbd->pool, io);

	launch_locked(zbd, ZF_CONTAINER_OF(command, struct zf_zbd_command, base));
}

static void submit_command_locked(struct zf_zbd *zbd, struct zf_io *io)
{
	int r = check(zbd, io);

	if (r < 0)
		zf_zbd_answer_locked(zbd, io, r);
	else if (zf_command_may_begin(&zbd->pool, io))
		start_locked(zbd, io);
}

static void submit_change_locked(struct zf_zbd *zbd, struct zf_io *io)
{
	if (zbd->read_only) {
		zf_zbd_answer_locked(zbd, io, -EROFS);
		return;
	}
	if (zf_zbd_zone_of(zbd, io) < zbd->dev.geometry.conventional)
		submit_command_locked(zbd, io);
	else
		zf_append_queue_submit(zbd->queue, io);
}

void zf_zbd_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);

	zf_mutex_lock(&zbd->lock);
	if (io->op == ZF_IO_READ || io->op == ZF_IO_FLUSH)
		submit_command_locked(zbd, io);
	else
		submit_change_locked(zbd, io);
	zf_zbd_push_locked(zbd);
	zf_mutex_unlock(&zbd->lock);
}

/* ---- completions ---- */

static const char *name_of(const struct zf_io *io)
{
	switch (io->op) {
	case ZF_IO_READ:
		return "read";
	case ZF_IO_WRITE:
		return "write";
	case ZF_IO_ZEROES:
		return "zeroing";
	default:
		return "flush";
	}
}

/* Returns the request's result, or ZF_COMMAND_AGAIN. */
static int advance_locked(struct zf_zbd *zbd, struct zf_zbd_command *command, int res)
{
	const struct zf_io *io = command->base.io;
	int r = res;

	if (zf_ring_is_to_be_repeated(res))
		return ZF_COMMAND_AGAIN;
	if (io->op == ZF_IO_ZEROES && command->unmaps &&
	    (res == -EOPNOTSUPP || res == -EINVAL || res == -ENOSYS)) {
		/* The disk can unmap, but this kernel cannot ask it to. */
		zbd->unmapping_refused = true;
		return ZF_COMMAND_AGAIN;
	}
	if (res >= 0)
		r = io->op == ZF_IO_READ || io->op == ZF_IO_WRITE
			    ? zf_command_transferred(&command->base, (uint32_t)res)
			    : 0;
	if (r < 0 && io->fua)
		zf_zbd_durable_write_failed(zbd);
	return r < 0 ? zf_zbd_error(zbd, name_of(io), io->addr, r) : r;
}

static void command_reaped_locked(struct zf_zbd *zbd, struct zf_zbd_command *command, int res)
{
	int r = advance_locked(zbd, command, res);
	struct zf_io *io = command->base.io;

	if (r == ZF_COMMAND_AGAIN) {
		launch_locked(zbd, command);
		return;
	}
	zf_command_end(&zbd->pool, &command->base);
	zf_zbd_answer_locked(zbd, io, r);
	io = zf_command_first_waiting(&zbd->pool);
	if (!io)
		return;
	STAILQ_REMOVE_HEAD(&zbd->pool.waiting, link);
	start_locked(zbd, io);
}

static void reaped_locked(struct zf_dev *dev, const struct io_uring_cqe *cqe)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);
	uintptr_t data = (uintptr_t)io_uring_cqe_get_data(cqe);

	if (data & IS_WRITE)
		zf_append_queue_written(zbd->queue, (void *)(data & ~IS_WRITE), cqe->res);
	else
		command_reaped_locked(zbd, (void *)data, cqe->res);
}

static void hand_back_locked(struct zf_dev *dev)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);
	struct zf_io *io;

	while ((io = STAILQ_FIRST(&zbd->done))) {
		STAILQ_REMOVE_HEAD(&zbd->done, link);
		zf_dev_complete(dev, io, io->result);
	}
}

static const struct zf_ring_ops ring_ops = {
	.reaped_locked = reaped_locked,
	.settled_locked = hand_back_locked,
};

int zf_zbd_ring_init(struct zf_zbd *zbd)
{
	zf_command_pool_init(&zbd->pool);
	for (unsigned int i = 0; i < ZF_ZBD_IN_FLIGHT_MAX; i++)
		zf_command_pool_add(&zbd->pool, &zbd->commands[i].base);
	STAILQ_INIT(&zbd->done);
	return zf_ring_init(&zbd->ring, 0, &ring_ops, &zbd->dev, &zbd->lock);
}

void zf_zbd_poll(struct zf_dev *dev, bool wait)
{
	zf_ring_poll(&zf_zbd_of(dev)->ring, wait);
}

void zf_zbd_wake(struct zf_dev *dev)
{
	zf_ring_wake(&zf_zbd_of(dev)->ring);
}

/* ---- on the calling thread ---- */

int zf_zbd_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);
	uint64_t len = zf_iov_len(iov, iovcnt);
	int r = check_read(zbd, addr, len);

	if (r < 0 || preadv2(zbd->fd, iov, (int)iovcnt, (off_t)addr, 0) == (ssize_t)len)
		return r;
	r = zf_iov_transfer_again(preadv2, zbd->fd, iov, iovcnt, 0, &addr);
	return r < 0 ? zf_zbd_error(zbd, "read", addr, r) : 0;
}

/*
 * All writes go through the ring: a synchronous durable write would be two commands, FUA and a
 * flush.
 */
int zf_zbd_run(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);
	int r;

	if (io->op == ZF_IO_FLUSH)
		return fdatasync(zbd->fd) < 0 ? zf_zbd_error(zbd, "flush", 0, -errno) : 0;
	if (io->op != ZF_IO_READ)
		return ZF_DEV_NOT_HERE;
	r = zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
	return r < 0 ? r : zf_zbd_read(dev, io->addr, io->iov, io->iovcnt);
}

/* SPDX-License-Identifier: MIT */
/*
 * Requests to a zoned block device become io_uring operations.
 *
 * What goes to a pointer takes its way through the queue (io/append_queue.h), which decides when
 * and where it is written; resets, finishes and reports take an ioctl, on a thread of their own
 * (zbd_zones.c). Everything else takes a `command` from a fixed pool, or waits until one is free.
 *
 * Operations are prepared and submitted under one lock: that is what keeps writes to a zone in the
 * order of its pointer. An operation's user data is its command, or its write with bit 0 set, or 0
 * for a no-op that wakes the poller. Answers are collected in `done`, and only the poller hands
 * them back; whoever else has put one there wakes it.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plant.h"
#include "io/iov.h"
#include "io/zbd_device.h"
#include "io/zone_rules.h"

#define REAP_BATCH	    64
#define IS_WRITE	    ((uint64_t)1)
#define FALLOC_WRITE_ZEROES 0x80 /* FALLOC_FL_WRITE_ZEROES, since Linux 6.17 */

void zf_zbd_init_commands(struct zf_zbd *zbd)
{
	for (unsigned int i = 0; i < ZF_ZBD_IN_FLIGHT_MAX; i++) {
		zbd->commands[i].next_free = zbd->free_commands;
		zbd->free_commands = &zbd->commands[i];
	}
	zbd->waiting_tail = &zbd->waiting;
	zbd->done_tail = &zbd->done;
}

/* ---- operations on the ring ---- */

static struct io_uring_sqe *get_sqe_locked(struct zf_zbd *zbd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&zbd->ring);

	/* There are more entries than there can be operations. */
	assert(sqe);
	return sqe;
}

/* Short of memory the kernel says EAGAIN: nothing better to do than to ask again. */
void zf_zbd_push_locked(struct zf_zbd *zbd)
{
	while (io_uring_sq_ready(&zbd->ring) > 0) {
		int r = io_uring_submit(&zbd->ring);

		assert(r >= 0 || r == -EAGAIN || r == -EBUSY || r == -EINTR);
		if (r < 0)
			sched_yield();
	}
}

void zf_zbd_wake_locked(struct zf_zbd *zbd)
{
	struct io_uring_sqe *sqe;

	if (zbd->waking)
		return;
	zbd->waking = true;
	sqe = get_sqe_locked(zbd);
	io_uring_prep_nop(sqe);
	sqe->user_data = 0;
}

void zf_zbd_answer_locked(struct zf_zbd *zbd, struct zf_io *io, int result)
{
	io->result = result;
	io->next = NULL;
	*zbd->done_tail = io;
	zbd->done_tail = &io->next;
}

static int write_flags(bool fua)
{
	return fua && !ZF_PLANTED(ZF_BUG_ZBD_FUA) ? RWF_DSYNC : 0;
}

void zf_zbd_write_locked(void *arg, struct zf_zone_write *write)
{
	struct zf_zbd *zbd = arg;
	struct io_uring_sqe *sqe = get_sqe_locked(zbd);

	io_uring_prep_writev2(sqe, zbd->fd, write->iov, write->iovcnt, write->addr,
			      write_flags(write->fua));
	sqe->user_data = (uintptr_t)write | IS_WRITE;
}

/* Zeroes in a conventional zone: by unmapping, or as the kernel does it best. */
static void prepare_zeroes_locked(struct zf_zbd *zbd, struct zf_zbd_command *command,
				  struct io_uring_sqe *sqe)
{
	command->unmaps = zbd->dev.geometry.unmapping_zeroes && !zbd->unmapping_refused;
	io_uring_prep_fallocate(sqe, zbd->fd,
				command->unmaps ? FALLOC_WRITE_ZEROES
						: FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
				(off_t)command->io->addr, (off_t)command->io->len);
}

static void launch_locked(struct zf_zbd *zbd, struct zf_zbd_command *command)
{
	struct io_uring_sqe *sqe = get_sqe_locked(zbd);
	const struct zf_io *io = command->io;
	const struct iovec *iov = command->rest ? command->rest : io->iov;
	unsigned int iovcnt = command->rest ? command->rest_count : io->iovcnt;
	uint64_t addr = io->addr + command->done;

	switch (io->op) {
	case ZF_IO_READ:
		io_uring_prep_readv(sqe, zbd->fd, iov, iovcnt, addr);
		break;
	case ZF_IO_WRITE:
		io_uring_prep_writev2(sqe, zbd->fd, iov, iovcnt, addr, write_flags(io->fua));
		break;
	case ZF_IO_ZEROES:
		prepare_zeroes_locked(zbd, command, sqe);
		break;
	default:
		io_uring_prep_fsync(sqe, zbd->fd, IORING_FSYNC_DATASYNC);
	}
	/* The prep functions of older liburing clear it. */
	sqe->user_data = (uintptr_t)command;
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
	struct zf_zbd_command *command = zbd->free_commands;

	zbd->free_commands = command->next_free;
	*command = (struct zf_zbd_command){.io = io};
	launch_locked(zbd, command);
}

static void submit_command_locked(struct zf_zbd *zbd, struct zf_io *io)
{
	int r = check(zbd, io);

	if (r < 0) {
		zf_zbd_answer_locked(zbd, io, r);
	} else if (zbd->free_commands) {
		start_locked(zbd, io);
	} else {
		*zbd->waiting_tail = io;
		zbd->waiting_tail = &io->next;
	}
}

static void submit_change_locked(struct zf_zbd *zbd, struct zf_io *io)
{
	if (zbd->read_only) {
		zf_zbd_answer_locked(zbd, io, -EROFS);
		return;
	}
	free(zbd->first_report);
	zbd->first_report = NULL;
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
	if (zbd->done)
		zf_zbd_wake_locked(zbd);
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

/* Returns 1 when there is more to transfer. */
static int transferred(struct zf_zbd_command *command, int res)
{
	const struct zf_io *io = command->io;

	/* Part of a block does not count: direct I/O could not go on from there. */
	res -= res % (int)ZF_BLOCK_SIZE;
	if (res == 0)
		return -EIO;
	command->done += (uint64_t)res;
	if (command->done == io->len)
		return 0;
	if (!command->rest)
		command->rest = calloc(io->iovcnt, sizeof(*command->rest));
	if (!command->rest)
		return -EIO;
	command->rest_count =
		zf_iov_slice(io->iov, command->done, io->len - command->done, command->rest);
	return 1;
}

/* Returns the request's result, or 1 when it goes on. */
static int advance_locked(struct zf_zbd *zbd, struct zf_zbd_command *command, int res)
{
	const struct zf_io *io = command->io;
	int r = res;

	/* When a thread ends, the kernel cancels what it has submitted and not begun. */
	if (res == -ECANCELED || res == -EINTR || res == -EAGAIN)
		return 1;
	if (io->op == ZF_IO_ZEROES && command->unmaps &&
	    (res == -EOPNOTSUPP || res == -EINVAL || res == -ENOSYS)) {
		/* The disk could, but this kernel cannot ask for it. */
		zbd->unmapping_refused = true;
		return 1;
	}
	if (res >= 0)
		r = io->op == ZF_IO_READ || io->op == ZF_IO_WRITE ? transferred(command, res) : 0;
	if (r < 0 && io->fua)
		zf_zbd_durable_write_failed(zbd);
	return r < 0 ? zf_zbd_error(zbd, name_of(io), io->addr, r) : r;
}

static void reaped_locked(struct zf_zbd *zbd, struct zf_zbd_command *command, int res)
{
	int r = advance_locked(zbd, command, res);
	struct zf_io *io = command->io;

	if (r > 0) {
		launch_locked(zbd, command);
		return;
	}
	free(command->rest);
	command->next_free = zbd->free_commands;
	zbd->free_commands = command;
	zf_zbd_answer_locked(zbd, io, r);
	if (!zbd->waiting)
		return;
	io = zbd->waiting;
	zbd->waiting = io->next;
	if (!zbd->waiting)
		zbd->waiting_tail = &zbd->waiting;
	start_locked(zbd, io);
}

/* Returns what is to be handed back. */
static struct zf_io *reap_locked(struct zf_zbd *zbd, struct io_uring_cqe **cqes, unsigned int n,
				 bool *ret_woken)
{
	struct zf_io *done;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t data = cqes[i]->user_data;
		int res = cqes[i]->res;

		if (data == 0)
			zbd->waking = false;
		else if (data & IS_WRITE)
			zf_append_queue_written(zbd->queue, (void *)(uintptr_t)(data & ~IS_WRITE),
						res);
		else
			reaped_locked(zbd, (void *)(uintptr_t)data, res);
		*ret_woken |= data == 0;
	}
	io_uring_cq_advance(&zbd->ring, n);
	zf_zbd_push_locked(zbd);
	done = zbd->done;
	zbd->done = NULL;
	zbd->done_tail = &zbd->done;
	return done;
}

/* Returns true if something was handed back, or somebody wants the poller to return. */
static bool reap(struct zf_zbd *zbd)
{
	struct io_uring_cqe *cqes[REAP_BATCH];
	unsigned int n = io_uring_peek_batch_cqe(&zbd->ring, cqes, REAP_BATCH);
	struct zf_io *io, *next;
	bool woken = false;

	if (n == 0)
		return false;
	zf_mutex_lock(&zbd->lock);
	io = reap_locked(zbd, cqes, n, &woken);
	zf_mutex_unlock(&zbd->lock);
	for (; io; io = next) {
		next = io->next;
		zf_dev_complete(&zbd->dev, io, io->result);
	}
	return woken || zbd->dev.finished;
}

void zf_zbd_poll(struct zf_dev *dev, bool wait)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);
	struct io_uring_cqe *cqe;

	while (!reap(zbd) && wait)
		io_uring_wait_cqe(&zbd->ring, &cqe);
}

void zf_zbd_wake(struct zf_dev *dev)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);

	zf_mutex_lock(&zbd->lock);
	zf_zbd_wake_locked(zbd);
	zf_zbd_push_locked(zbd);
	zf_mutex_unlock(&zbd->lock);
}

/* ---- on the calling thread ---- */

static int read_segment(struct zf_zbd *zbd, uint64_t addr, struct iovec segment)
{
	while (segment.iov_len > 0) {
		ssize_t n = preadv(zbd->fd, &segment, 1, (off_t)addr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return zf_zbd_error(zbd, "read", addr, n < 0 ? -errno : -EIO);
		segment.iov_base = (char *)segment.iov_base + n;
		segment.iov_len -= (size_t)n;
		addr += (uint64_t)n;
	}
	return 0;
}

int zf_zbd_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);
	uint64_t len = zf_iov_len(iov, iovcnt);
	int r = check_read(zbd, addr, len);

	if (r < 0)
		return r;
	if (preadv(zbd->fd, iov, (int)iovcnt, (off_t)addr) == (ssize_t)len)
		return 0;
	/* Interrupted, short or failed: once more, segment by segment. */
	for (unsigned int i = 0; r == 0 && i < iovcnt; i++) {
		r = read_segment(zbd, addr, iov[i]);
		addr += iov[i].iov_len;
	}
	return r;
}

/*
 * Writes all go through the ring: a synchronous durable one would be two commands, FUA and a flush.
 */
int zf_zbd_run(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);
	int r;

	if (io->op == ZF_IO_FLUSH)
		return fdatasync(zbd->fd) < 0 ? zf_zbd_error(zbd, "flush", 0, -errno) : 0;
	if (io->op != ZF_IO_READ)
		return 1;
	r = zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
	return r < 0 ? r : zf_zbd_read(dev, io->addr, io->iov, io->iovcnt);
}

/* SPDX-License-Identifier: MIT */
/*
 * Commands travel by io_uring command passthrough: entries of 128 bytes hold the command, and
 * completions of 32 bytes hold its result, the address where an append has landed.
 *
 * The kernel finishes a command on the thread that has sent it, whatever that thread is doing, and
 * only then is there a completion to be reaped. So, if the device has a thread, that thread sends
 * all commands, many at a time: other threads put theirs in a list, and wake it if it sleeps.
 * Without such a thread the submitting thread sends.
 *
 * A refused request is sent as a no-op, so that it completes in the same way as all others.
 */
#include <errno.h>

#include "io/nvme_device.h"

_Static_assert(ZF_NVME_IN_FLIGHT_MAX < ZF_RING_ENTRIES, "and the no-op that wakes the poller");

/* ---- submission ---- */

static void launch_locked(struct zf_nvme *nvme, struct zf_nvme_command *command)
{
	struct io_uring_sqe *sqe = zf_ring_entry_locked(&nvme->ring, command);
	bool vectored = zf_nvme_command_is_vectored(&command->piece);

	if (command->refused < 0) {
		io_uring_prep_nop(sqe);
		return;
	}
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, nvme->claim.char_fd, NULL, 0, 0);
	sqe->cmd_op = vectored ? NVME_URING_CMD_IO_VEC : NVME_URING_CMD_IO;
	zf_nvme_command_encode(nvme->nsid, &command->piece,
			       (struct nvme_uring_cmd *)(void *)sqe->cmd);
}

static void wake_locked(struct zf_nvme *nvme)
{
	nvme->poller_sleeps = false;
	zf_ring_wake_locked(&nvme->ring);
	zf_ring_push_locked(&nvme->ring);
}

static void hand_over_locked(struct zf_nvme *nvme, struct zf_nvme_command *command)
{
	STAILQ_INSERT_TAIL(&nvme->ready, command, ready);
	if (nvme->poller_sleeps)
		wake_locked(nvme);
}

static void launch_ready_locked(struct zf_nvme *nvme)
{
	struct zf_nvme_command *command;

	STAILQ_FOREACH (command, &nvme->ready, ready)
		launch_locked(nvme, command);
	STAILQ_INIT(&nvme->ready);
}

void zf_nvme_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);
	struct zf_nvme_command *command;

	zf_mutex_lock(&nvme->lock);
	command = zf_nvme_queue_add(&nvme->queue, io);
	if (command && dev->threaded) {
		hand_over_locked(nvme, command);
	} else if (command) {
		launch_locked(nvme, command);
		zf_ring_push_locked(&nvme->ring);
	}
	zf_mutex_unlock(&nvme->lock);
}

/* ---- completions ---- */

static void reaped_locked(struct zf_dev *dev, const struct io_uring_cqe *cqe)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);
	struct zf_nvme_command *command = io_uring_cqe_get_data(cqe), *another;
	int r = zf_nvme_queue_step(&nvme->queue, command, cqe->res, cqe->big_cqe[0]);
	struct zf_io *io = command->base.io;

	if (r == ZF_COMMAND_AGAIN) {
		launch_locked(nvme, command);
		return;
	}
	if (r < 0 && command->refused == 0)
		zf_nvme_report_failure(nvme, &command->piece, cqe->res);
	another = zf_nvme_queue_release(&nvme->queue, command);
	if (another)
		launch_locked(nvme, another);
	zf_dev_complete(dev, io, r);
}

static void settled_locked(struct zf_dev *dev)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);

	nvme->poller_sleeps = false;
	launch_ready_locked(nvme);
}

static const struct zf_ring_ops ring_ops = {
	.reaped_locked = reaped_locked,
	.settled_locked = settled_locked,
};

void zf_nvme_poll(struct zf_dev *dev, bool wait)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);

	while (!zf_ring_reap(&nvme->ring)) {
		zf_mutex_lock(&nvme->lock);
		launch_ready_locked(nvme);
		zf_ring_push_locked(&nvme->ring);
		nvme->poller_sleeps = wait;
		zf_mutex_unlock(&nvme->lock);
		if (!wait)
			return;
		zf_ring_wait(&nvme->ring);
	}
}

void zf_nvme_wake(struct zf_dev *dev)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);

	zf_mutex_lock(&nvme->lock);
	wake_locked(nvme);
	zf_mutex_unlock(&nvme->lock);
}

int zf_nvme_ring_init(struct zf_nvme *nvme)
{
	int r = zf_ring_init(&nvme->ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32, &ring_ops,
			     &nvme->dev, &nvme->lock);

	STAILQ_INIT(&nvme->ready);
	if (r != -EINVAL)
		return r;
	zf_report(&nvme->dev.report, ZF_REPORT_ERROR,
		  "%s: this kernel has no NVMe commands over io_uring (Linux 5.19): choose "
		  "append=emulated",
		  nvme->dev.path);
	return -EOPNOTSUPP;
}

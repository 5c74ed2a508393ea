/* SPDX-License-Identifier: MIT */
/*
 * Commands travel by io_uring command passthrough: entries of 128 bytes hold the command, and
 * completions of 32 bytes what it gives back, the address where an append has landed.
 *
 * The kernel finishes a command on the thread that has sent it, whatever that is doing, and only
 * then is there a completion to be reaped. So, if the device has a thread, that one sends
 * everything, and many commands at a time: others leave theirs in a list, and wake it if it sleeps.
 * Without such a thread whoever submits sends.
 *
 * What was refused travels as a no-op, so that it comes back the same way as everything else.
 */
#include <assert.h>
#include <sched.h>
#include <string.h>

#include "io/nvme_device.h"

#define REAP_BATCH 64

/* One for every command, and no-ops that wake the poller on top. */
#define RING_ENTRIES 512

/* ---- submission ---- */

static struct io_uring_sqe *get_sqe_locked(struct zf_nvme *nvme, struct zf_nvme_command *command)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&nvme->ring);

	/* There are more entries than commands, and push_locked() leaves none behind. */
	assert(sqe);
	memset(sqe, 0, 2 * sizeof(*sqe));
	sqe->user_data = (uintptr_t)command;
	return sqe;
}

/* Short of memory the kernel says EAGAIN: nothing better to do than to ask again. */
static void push_locked(struct zf_nvme *nvme)
{
	while (io_uring_sq_ready(&nvme->ring) > 0) {
		int r = io_uring_submit(&nvme->ring);

		assert(r >= 0 || r == -EAGAIN || r == -EBUSY || r == -EINTR);
		if (r < 0)
			sched_yield();
	}
}

static void launch_locked(struct zf_nvme *nvme, struct zf_nvme_command *command)
{
	struct io_uring_sqe *sqe = get_sqe_locked(nvme, command);
	bool vectored = zf_nvme_is_vectored(&command->piece);

	if (command->refused < 0) {
		sqe->opcode = IORING_OP_NOP;
		return;
	}
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = nvme->claim.char_fd;
	sqe->cmd_op = vectored ? NVME_URING_CMD_IO_VEC : NVME_URING_CMD_IO;
	zf_nvme_encode(nvme->nsid, &command->piece, (struct nvme_uring_cmd *)(void *)sqe->cmd);
}

static void wake_locked(struct zf_nvme *nvme)
{
	nvme->poller_sleeps = false;
	get_sqe_locked(nvme, NULL)->opcode = IORING_OP_NOP;
	push_locked(nvme);
}

static void hand_over_locked(struct zf_nvme *nvme, struct zf_nvme_command *command)
{
	command->next_ready = NULL;
	*nvme->ready_tail = command;
	nvme->ready_tail = &command->next_ready;
	if (nvme->poller_sleeps)
		wake_locked(nvme);
}

static void send_ready_locked(struct zf_nvme *nvme)
{
	for (; nvme->ready; nvme->ready = nvme->ready->next_ready)
		launch_locked(nvme, nvme->ready);
	nvme->ready_tail = &nvme->ready;
	push_locked(nvme);
}

void zf_nvme_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);
	struct zf_nvme_command *command;

	zf_mutex_lock(&nvme->lock);
	zf_nvme_outdate_locked(nvme, io);
	command = zf_nvme_queue_add(&nvme->queue, io);
	if (command && dev->threaded) {
		hand_over_locked(nvme, command);
	} else if (command) {
		launch_locked(nvme, command);
		push_locked(nvme);
	}
	zf_mutex_unlock(&nvme->lock);
}

/* ---- completions ---- */

static void reaped_locked(struct zf_nvme *nvme, const struct io_uring_cqe *cqe)
{
	struct zf_nvme_command *command = io_uring_cqe_get_data(cqe), *another;
	int r = zf_nvme_queue_step(&nvme->queue, command, cqe->res, cqe->big_cqe[0]);
	struct zf_io *io = command->io;

	if (r > 0) {
		launch_locked(nvme, command);
		return;
	}
	if (r < 0 && command->refused == 0)
		zf_nvme_report_failure(nvme, &command->piece, cqe->res);
	another = zf_nvme_queue_release(&nvme->queue, command);
	if (another)
		launch_locked(nvme, another);
	zf_dev_complete(&nvme->dev, io, r);
}

/* Returns true if something was handed back, or somebody wants the poller to return. */
static bool reap(struct zf_nvme *nvme)
{
	struct io_uring_cqe *cqes[REAP_BATCH];
	unsigned int n = io_uring_peek_batch_cqe(&nvme->ring, cqes, REAP_BATCH);
	bool woken = false;

	if (n == 0)
		return false;
	zf_mutex_lock(&nvme->lock);
	for (unsigned int i = 0; i < n; i++) {
		if (io_uring_cqe_get_data(cqes[i]))
			reaped_locked(nvme, cqes[i]);
		else
			woken = true;
	}
	io_uring_cq_advance(&nvme->ring, n);
	nvme->poller_sleeps = false;
	send_ready_locked(nvme);
	zf_mutex_unlock(&nvme->lock);
	return woken || nvme->dev.finished;
}

void zf_nvme_poll(struct zf_dev *dev, bool wait)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);
	struct io_uring_cqe *cqe;

	while (!reap(nvme)) {
		zf_mutex_lock(&nvme->lock);
		send_ready_locked(nvme);
		nvme->poller_sleeps = wait;
		zf_mutex_unlock(&nvme->lock);
		if (!wait)
			return;
		io_uring_wait_cqe(&nvme->ring, &cqe);
	}
}

void zf_nvme_wake(struct zf_dev *dev)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);

	zf_mutex_lock(&nvme->lock);
	wake_locked(nvme);
	zf_mutex_unlock(&nvme->lock);
}

int zf_nvme_ring_init(struct zf_nvme *nvme, const struct zf_report *report)
{
	int r = io_uring_queue_init(RING_ENTRIES, &nvme->ring,
				    IORING_SETUP_SQE128 | IORING_SETUP_CQE32);

	nvme->ready_tail = &nvme->ready;
	if (r == -EINVAL)
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: this kernel has no NVMe commands over io_uring (Linux 5.19): choose "
			  "append=emulated",
			  nvme->dev.path);
	else if (r < 0)
		zf_report(report, ZF_REPORT_ERROR,
			  "io_uring is not available (see sysctl kernel.io_uring_disabled, or the "
			  "container's seccomp profile): %s",
			  strerror(-r));
	return r == -EINVAL ? -EOPNOTSUPP : r;
}

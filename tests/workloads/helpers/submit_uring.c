// SPDX-License-Identifier: MIT
#include "common.h"
#include "submit.h"

#include <liburing.h>

static struct io_uring ring;

static void uring_open(unsigned depth)
{
	int err = io_uring_queue_init(depth, &ring, 0);

	if (err)
		die("io_uring_queue_init: %s", strerror(-err));
}

static void submit_sqe(struct io_uring_sqe *sqe, unsigned slot)
{
	int count;

	io_uring_sqe_set_data64(sqe, slot);
	count = io_uring_submit(&ring);
	if (count != 1)
		die("io_uring_submit: %d", count);
}

static void uring_submit(const struct request *request)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (request->is_write)
		io_uring_prep_write(sqe, request->fd, request->buffer, (unsigned)request->len,
				    (uint64_t)request->at);
	else
		io_uring_prep_read(sqe, request->fd, request->buffer, (unsigned)request->len,
				   (uint64_t)request->at);
	submit_sqe(sqe, request->slot);
}

static unsigned uring_wait(long *ret_result)
{
	struct io_uring_cqe *cqe;
	unsigned slot;
	int err = io_uring_wait_cqe(&ring, &cqe);

	if (err)
		die("io_uring_wait_cqe: %s", strerror(-err));
	*ret_result = cqe->res;
	slot = (unsigned)io_uring_cqe_get_data64(cqe);
	io_uring_cqe_seen(&ring, cqe);
	return slot;
}

static void uring_sync(int fd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	long result;

	io_uring_prep_fsync(sqe, fd, 0);
	submit_sqe(sqe, 0);
	uring_wait(&result);
	if (result)
		die("io_uring fsync: %s", strerror((int)-result));
}

const struct engine uring_engine = {"io_uring", uring_open, uring_submit, uring_wait, uring_sync};

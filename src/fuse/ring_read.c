/* SPDX-License-Identifier: MIT */
#include "fuse/ring_read.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "fuse/call.h"

struct ring_read {
	struct fuse_uring_read io;
	struct zf_daemon *daemon;
	struct zf_call call;
	char *buf;
	zf_ring_read_answer_fn *answer;
	struct zf_reading *reading;
};

bool zf_ring_read_suits(const struct zf_call *call)
{
	return fuse_req_is_uring(call->req) && !call->ctx.may_wait &&
	       call->size <= ZF_WAIT_SMALL_READ_MAX;
}

/* Counts the read as parked, and as a call that runs, so that zf_call_end_all() waits for it. */
static void count(const struct ring_read *read, int by)
{
	atomic_fetch_add_explicit(&read->call.thread->parked, (unsigned int)by,
				  memory_order_relaxed);
	if (read->daemon->fuseblk)
		atomic_fetch_add(&read->daemon->calls_running, (unsigned int)by);
}

/*
 * A worker repeats a read that failed or came back short: a failing disk may take seconds for it.
 */
static void came(struct fuse_uring_read *io, int result)
{
	struct ring_read *read = ZF_CONTAINER_OF(io, struct ring_read, io);
	ssize_t len = zf_fs_read_end(read->reading, result);

	if (len == -EAGAIN) {
		zf_call_hand_over(read->daemon, &read->call);
	} else {
		read->answer(read->daemon, &read->call, read->buf, len);
		zf_call_note_answered(&read->call, len < 0 ? (int)len : 0);
	}
	count(read, -1);
	free(read);
}

static struct ring_read *new_read(struct zf_daemon *daemon, const struct zf_call *call, char *buf,
				  zf_ring_read_answer_fn *answer)
{
	struct ring_read *read = malloc(sizeof(*read));

	if (read)
		*read = (struct ring_read){.io.done = came,
					   .daemon = daemon,
					   .call = *call,
					   .buf = buf,
					   .answer = answer};
	return read;
}

ssize_t zf_ring_read(struct zf_daemon *daemon, struct zf_call *call, char *buf,
		     zf_ring_read_answer_fn *answer)
{
	struct ring_read *read = new_read(daemon, call, buf, answer);
	struct zf_reading_wants wants;
	ssize_t len;
	int r;

	if (!read)
		return -EAGAIN;
	len = zf_fs_read_begin(daemon->fs, &call->ctx, call->ino, call->offset, buf, call->size,
			       &read->reading, &wants);
	if (len != -EINPROGRESS) {
		free(read);
		return len;
	}
	count(read, 1);
	r = fuse_req_uring_readv(call->req, wants.fd, wants.iov, 1, wants.offset, &read->io);
	/* This is not expected, because the ring has room for one read of each request. */
	if (r < 0)
		came(&read->io, r);
	return -EINPROGRESS;
}

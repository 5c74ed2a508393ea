/* SPDX-License-Identifier: MIT */
/*
 * A small read that needs the device, on the ring of the queue that brought it: the queue's thread
 * goes on with other requests, and answers when the device has. No thread is woken, and the reads
 * of several requests are submitted together (decision 0038).
 *
 *      run --zf_ring_read--> -EINPROGRESS        the queue's thread serves others
 *                  device --> answer(): replied
 *
 * Only over io_uring, and only where one piece of the device is missing, as in most small reads.
 * Every other read that has to wait goes to a worker (call.h). A request whose read is on its way
 * counts as parked, for it keeps its slot.
 */
#ifndef ZF_FUSE_RING_READ_H
#define ZF_FUSE_RING_READ_H

#include <stdbool.h>
#include <sys/types.h>

struct zf_call;
struct zf_daemon;

/* Is this READ to be tried so? */
bool zf_ring_read_suits(const struct zf_call *call);

/* Replies: `len` bytes are in the call's buffer, or it is -errno. The call is a copy that goes away. */
typedef void zf_ring_read_answer_fn(struct zf_daemon *daemon, struct zf_call *call, char *buf,
				    ssize_t len);

/*
 * On the thread that brought the call, which suits; `buf` is its buffer (zf_call_buffer()).
 * -EINPROGRESS: answer() will be called by this thread, not from inside this call. Anything else as of
 * zf_fs_read(), which this call then was.
 */
ssize_t zf_ring_read(struct zf_daemon *daemon, struct zf_call *call, char *buf,
		     zf_ring_read_answer_fn *answer);

#endif

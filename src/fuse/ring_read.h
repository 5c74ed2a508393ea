/* SPDX-License-Identifier: MIT */
/*
 * A small read that needs the device, on the ring of the queue that brought it: the queue's thread
 * submits the read, serves other requests, and answers when the device has completed the read. No
 * thread is woken, and the reads of several requests are submitted together (decision 0038).
 *
 *      run --zf_ring_read--> -EINPROGRESS        the queue's thread serves others
 *                  device --> answer(): replied
 *
 * Only over io_uring, and only if a single read of the device is missing, as in most small reads;
 * other reads wait as wait_here.h and call.h say. A request whose read is under way counts as
 * parked, because it keeps its slot. A read that fails, or comes back short, is handed to a worker.
 *
 * DESTROY waits until the reads of its own queue have completed (libfuse patch 0004), and then for
 * the reads of the other queues (zf_call_end_all()).
 */
#ifndef ZF_FUSE_RING_READ_H
#define ZF_FUSE_RING_READ_H

#include <stdbool.h>
#include <sys/types.h>

struct zf_call;
struct zf_daemon;

/* May this call use zf_ring_read()? */
bool zf_ring_read_suits(const struct zf_call *call);

/*
 * Replies to the call: `len` bytes are in its buffer, or `len` is -errno. The call is a copy; it is
 * freed when this function returns.
 */
typedef void zf_ring_read_answer_fn(struct zf_daemon *daemon, struct zf_call *call, char *buf,
				    ssize_t len);

/*
 * To be called on the thread that brought the call, if zf_ring_read_suits(); `buf` is the call's
 * buffer (zf_call_buffer()). -EINPROGRESS: answer() or a worker replies to the call, perhaps before
 * this function returns. Any other value is what zf_fs_read() without may_wait returns, and no read
 * is under way.
 */
ssize_t zf_ring_read(struct zf_daemon *daemon, struct zf_call *call, char *buf,
		     zf_ring_read_answer_fn *answer);

#endif

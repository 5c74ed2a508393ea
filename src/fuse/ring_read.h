/* SPDX-License-Identifier: MIT */
/*
 * A small read that needs the device, on the ring of the queue that brought it: the queue's thread
 * goes on with other requests, and answers when the device has. No thread is woken, and the reads
 * of several requests are submitted together (decision 0038).
 *
 *      run --zf_ring_read--> -EINPROGRESS        the queue's thread serves others
 *                  device --> answer(): replied
 *
 * Only over io_uring, and only where one piece of the device is missing, as in most small reads; other
 * reads wait as wait_here.h and call.h say. A request whose read is on its way counts as parked, for
 * it keeps its slot. A read that fails, or comes back short, is handed to a worker.
 *
 * DESTROY waits until the reads of its own queue have come (libfuse patch 0004), and then for those
 * of the others (zf_call_end_all()).
 */
#ifndef ZF_FUSE_RING_READ_H
#define ZF_FUSE_RING_READ_H

#include <stdbool.h>
#include <sys/types.h>

struct zf_call;
struct zf_daemon;

/* Whether zf_ring_read() takes this call. */
bool zf_ring_read_suits(const struct zf_call *call);

/*
 * Replies to the call: `len` bytes are in its buffer, or `len` is -errno. The call is a copy; it is
 * freed when this function returns.
 */
typedef void zf_ring_read_answer_fn(struct zf_daemon *daemon, struct zf_call *call, char *buf,
				    ssize_t len);

/*
 * On the thread that brought the call, which zf_ring_read_suits(); `buf` is its buffer
 * (zf_call_buffer()). -EINPROGRESS: the call is replied to, by answer() or by a worker, perhaps before
 * this call returns. Any other value is what zf_fs_read() without may_wait returns, and nothing is on
 * its way.
 */
ssize_t zf_ring_read(struct zf_daemon *daemon, struct zf_call *call, char *buf,
		     zf_ring_read_answer_fn *answer);

#endif

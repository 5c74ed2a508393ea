/* SPDX-License-Identifier: MIT */
/*
 * The daemon: what its parts share.
 *
 *      main.c      from the command line to the mount, and back down to the last commit
 *      ops*.c      decode a request, call src/fs/, reply
 *      call.h      one request, and how it comes to be run again by a thread that may wait
 *      handle.h    an open file
 *      open_inode.h  its inode, and whether the kernel may have pages of it
 *      drop_pages.h  direct writes wait until those are gone
 *      mount.c     the filesystem on its device, or which older state is left of it
 *      anchor.h    an image as fuseblk, so that sync(2) stores
 *      marks.h     what is said about a fallocate before it comes
 *      control.c   the control socket: its clients; control_answer.c, control_socket.c
 *      trace.c     a trace of what happens
 *      shutdown.c  signals
 *      privileges.h, filter.h  what it gives up when it has opened its device, and has mounted
 *
 * Threads: libfuse's, which bring requests and answer all that need not wait; workers (workers.h)
 * for what must; others that have pages dropped; the filesystem's and the device's own; one for the
 * control socket; one for signals. Handlers hold no lock of the daemon's while they call src/fs/.
 */
#ifndef ZF_FUSE_DAEMON_H
#define ZF_FUSE_DAEMON_H

#define FUSE_USE_VERSION 318

#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"
#include "fs/core/fs.h"
#include "fuse/options.h"

/* What the kernel reads ahead of who reads a file from front to back. */
#define ZF_READ_AHEAD_KIB 1024u

struct zf_daemon {
	struct zf_options options;
	char *device;	       /* absolute */
	char *mountpoint;      /* absolute */
	bool claimed_by_mount; /* a block device, which the mount itself has claimed */
	bool fuseblk; /* the mount's type: the kernel waits for DESTROY, and sends SYNCFS */
	bool uring;   /* asked for; what came of it: uring_used */
	unsigned int uring_depth; /* requests in a queue of the kernel's */
	atomic_bool uring_used;	  /* a request has come this way */

	struct zf_report report;
	struct zf_trace_about trace_about; /* of that trace */
	int trace_fd; /* of -o trace=FILE, which is the trace's once that has begun; else -1 */
	struct zf_dev *dev;
	/*
	 * NULL when unmounted. Then still comes what the kernel does not wait for when it unmounts: FORGETs, which
	 * hold the gate; and on a fuseblk mount, whose unmount is a request of its own, reads ahead and releases,
	 * which are counted while they run (call.h).
	 */
	struct zf_fs *_Atomic fs;
	struct zf_rwlock gate;
	atomic_uint calls_running; /* counted where fuseblk is set */
	atomic_bool closing;	   /* no call begins any more */
	int fs_error;		   /* of the unmount: the last commit's */
	struct fuse_session *session;
	atomic_bool mounted;  /* in the kernel */
	_Atomic dev_t st_dev; /* of the mount; 0 until the kernel has sent its first request */

	struct zf_error_cursor sync_errors; /* of syncfs: SYNCFS does not say who calls it */
	struct zf_marks *marks;
	struct zf_open_inodes *open_inodes;
	struct zf_workers *workers;
	struct zf_droppers *droppers;
	struct zf_control *control;
	struct zf_shutdown *shutdown;
};

extern const struct fuse_lowlevel_ops zf_ops;

/*
 * The end: no more requests by the control socket, the last commit, and the device is free. Once;
 * later calls do nothing. From main(), or earlier by a fuseblk mount's DESTROY.
 */
void zf_daemon_close(struct zf_daemon *daemon);

/*
 * The mount is served: whoever started the daemon may see whether it answers, and go on. From the
 * thread of the control socket.
 */
void zf_daemon_ready(struct zf_daemon *daemon, dev_t st_dev);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The daemon: what its parts share.
 *
 *      main.c      from the command line to the mount, and back down to the last commit
 *      ops*.c      decode a request, call src/fs/, reply
 *      call.h      one request, and how a thread that may wait runs it again
 *      handle.h    an open file
 *      open_inode.h  its inode, and whether the kernel may have pages of the inode
 *      drop_pages.h  direct writes wait until those pages are dropped
 *      mount.c     mounts the filesystem on its device, or finds the newest older state
 *      anchor.h    an image as fuseblk, so that sync(2) stores
 *      marks.h     a program announces what its next fallocate means
 *      control.c   the control socket: its clients; control_answer.c, control_socket.c
 *      trace.c     a trace of what happens
 *      shutdown.c  signals
 *      privileges.h  what the daemon gives up when it has opened its device
 *      filter.h    the system calls that it may still make when it has mounted
 *
 * Threads: libfuse's, which bring requests and answer all that need not wait; workers (workers.h)
 * for requests that must wait; droppers, which have the kernel drop pages (drop_pages.h); the
 * filesystem's and the device's own; one for the control socket; one for signals. Handlers hold no
 * lock of the daemon while they call src/fs/.
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

/* The read-ahead of the kernel for a file that is read sequentially. */
#define ZF_READ_AHEAD_KIB 1024u

struct zf_daemon {
	struct zf_options options;
	char *device;	       /* absolute */
	char *mountpoint;      /* absolute */
	bool claimed_by_mount; /* a block device, which the fuseblk mount itself claims */
	bool fuseblk; /* the mount's type: the kernel waits for DESTROY, and sends SYNCFS */
	bool uring;   /* io_uring is asked for; uring_used: the kernel uses it */
	unsigned int uring_depth; /* slots for requests in each queue of the kernel */
	atomic_bool uring_used;	  /* a request has come over io_uring */

	struct zf_report report;
	struct zf_trace_about trace_about; /* of the trace that trace_fd belongs to */
	int trace_fd; /* of -o trace=FILE; -1: none. When the trace has begun, the trace owns it */
	struct zf_dev *dev;
	/*
	 * NULL when unmounted. The kernel does not wait for all requests when it unmounts, so some
	 * may still come: FORGETs, which hold the gate; and on a fuseblk mount, whose unmount is a
	 * request of its own, read-ahead and RELEASEs, which are counted while they run (call.h).
	 */
	struct zf_fs *_Atomic fs;
	struct zf_rwlock gate;
	atomic_uint calls_running; /* counted if fuseblk is set */
	atomic_bool closing;	   /* no call begins any more */
	int fs_error;		   /* of the unmount, that is of the last commit */
	struct fuse_session *session;
	atomic_bool mounted;  /* in the kernel */
	_Atomic dev_t st_dev; /* of the mount; 0 until the kernel has sent its first request */

	struct zf_error_cursor sync_errors; /* of syncfs: SYNCFS does not name its caller */
	struct zf_marks *marks;
	struct zf_open_inodes *open_inodes;
	struct zf_workers *workers;
	struct zf_droppers *droppers;
	struct zf_control *control;
	struct zf_shutdown *shutdown;
};

extern const struct fuse_lowlevel_ops zf_ops;

/*
 * The end: stops the control socket, makes the last commit, and closes the device. The first call
 * does this; later calls do nothing. Called by main(), or earlier by the DESTROY of a fuseblk
 * mount.
 */
void zf_daemon_close(struct zf_daemon *daemon);

/*
 * The mount is served: the process that the user started may now ask the mount, and exit. Called on
 * the thread of the control socket.
 */
void zf_daemon_ready(struct zf_daemon *daemon, dev_t st_dev);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the daemon keeps for each thread that runs requests: so that the common path shares no cache
 * line between processors. A struct lives until zf_threads_deinit(): others may still look at it
 * when its thread has gone.
 */
#ifndef ZF_FUSE_THREAD_H
#define ZF_FUSE_THREAD_H

#include <bsd/sys/queue.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of requests, as they are counted. */
enum zf_request {
	ZF_REQUEST_LOOKUP,
	ZF_REQUEST_FORGET,
	ZF_REQUEST_GETATTR,
	ZF_REQUEST_SETATTR,
	ZF_REQUEST_STATX,
	ZF_REQUEST_READLINK,
	ZF_REQUEST_MKNOD,
	ZF_REQUEST_MKDIR,
	ZF_REQUEST_SYMLINK,
	ZF_REQUEST_LINK,
	ZF_REQUEST_UNLINK,
	ZF_REQUEST_RMDIR,
	ZF_REQUEST_RENAME,
	ZF_REQUEST_CREATE,
	ZF_REQUEST_OPEN,
	ZF_REQUEST_READ,
	ZF_REQUEST_WRITE,
	ZF_REQUEST_FSYNC,
	ZF_REQUEST_FSYNCDIR,
	ZF_REQUEST_SYNCFS,
	ZF_REQUEST_READDIR,
	ZF_REQUEST_READDIRPLUS,
	ZF_REQUEST_LSEEK,
	ZF_REQUEST_STATFS,
	ZF_REQUEST_SETXATTR,
	ZF_REQUEST_GETXATTR,
	ZF_REQUEST_LISTXATTR,
	ZF_REQUEST_REMOVEXATTR,
	ZF_REQUEST_COUNT,
};

/* "lookup", ...: as the control socket names them. */
extern const char *const zf_request_names[ZF_REQUEST_COUNT];

struct zf_thread {
	_Atomic uint64_t requests[ZF_REQUEST_COUNT]; /* written by this thread only */
	_Atomic uint64_t waited;		     /* handed over from here so far */
	atomic_uint parked;			     /* handed over and not answered yet */
	int64_t ended_ns;			     /* when its last request was done with */
	void *scratch;
	SLIST_ENTRY(zf_thread) link;
};

void zf_threads_init(void);
/* No thread runs requests any more. */
void zf_threads_deinit(void);

/* Of the calling thread. NULL: no memory. */
struct zf_thread *zf_thread_self(void);

/* ZF_SCRATCH_SIZE bytes for the answer that this thread prepares. NULL: no memory. */
#define ZF_SCRATCH_SIZE ((size_t)1 << 20)
void *zf_thread_scratch(struct zf_thread *thread);

void zf_threads_count(uint64_t requests[ZF_REQUEST_COUNT], uint64_t *ret_waited);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * What the daemon keeps for each thread that runs requests, so that the common path shares hardly
 * any cache line between processors (the table in roam.c does). A struct lives until
 * zf_threads_deinit(), because other threads may still read it when its thread has ended.
 */
#ifndef ZF_FUSE_THREAD_H
#define ZF_FUSE_THREAD_H

#include <bsd/sys/queue.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "fuse/roam.h"
#include "fuse/wait_here.h"

/* The kinds of requests, as they are counted, and their names in the control socket. */
/* clang-format off */
#define ZF_REQUESTS(R) \
	R(LOOKUP, lookup) \
	R(FORGET, forget) \
	R(GETATTR, getattr) \
	R(SETATTR, setattr) \
	R(STATX, statx) \
	R(READLINK, readlink) \
	R(MKNOD, mknod) \
	R(MKDIR, mkdir) \
	R(SYMLINK, symlink) \
	R(LINK, link) \
	R(UNLINK, unlink) \
	R(RMDIR, rmdir) \
	R(RENAME, rename) \
	R(CREATE, create) \
	R(TMPFILE, tmpfile) \
	R(OPEN, open) \
	R(RELEASE, release) \
	R(READ, read) \
	R(WRITE, write) \
	R(FALLOCATE, fallocate) \
	R(FSYNC, fsync) \
	R(FSYNCDIR, fsyncdir) \
	R(SYNCFS, syncfs) \
	R(READDIR, readdir) \
	R(READDIRPLUS, readdirplus) \
	R(LSEEK, lseek) \
	R(COPY_FILE_RANGE, copy_file_range) \
	R(IOCTL, ioctl) \
	R(STATFS, statfs) \
	R(SETXATTR, setxattr) \
	R(GETXATTR, getxattr) \
	R(LISTXATTR, listxattr) \
	R(REMOVEXATTR, removexattr)
/* clang-format on */

enum zf_request {
#define ZF_REQUEST_ENTRY(kind, name) ZF_REQUEST_##kind,
	ZF_REQUESTS(ZF_REQUEST_ENTRY)
#undef ZF_REQUEST_ENTRY
		ZF_REQUEST_COUNT,
};

extern const char *const zf_request_names[ZF_REQUEST_COUNT];

/* The upper bounds of the latency buckets; one more bucket counts the requests that took longer. */
/* clang-format off */
#define ZF_LATENCY_BOUNDS_NS { \
	10000, 30000, 100000, 300000, 1000000, 3000000, 10000000, 30000000, 100000000, 300000000, \
	1000000000, 3000000000, 10000000000 }
/* clang-format on */
#define ZF_LATENCY_BOUNDS  13u
#define ZF_LATENCY_BUCKETS (ZF_LATENCY_BOUNDS + 1)

extern const uint64_t zf_latency_bounds_ns[ZF_LATENCY_BOUNDS];

/* Of one kind of requests. In a struct zf_thread, only that thread writes it. */
struct zf_latency {
	_Atomic uint64_t counts[ZF_LATENCY_BUCKETS];
	_Atomic uint64_t total_ns;
};

struct zf_thread {
	_Atomic uint64_t requests[ZF_REQUEST_COUNT]; /* written by this thread only */
	_Atomic uint64_t waited;		     /* calls handed over from here so far */
	atomic_uint parked; /* calls handed over, or being read on the ring, and not answered yet */
	struct zf_wait_here wait_here;
	struct zf_roam roam; /* of a queue's thread */
	void *scratch;
	struct zf_latency latencies[ZF_REQUEST_COUNT]; /* of requests answered from here */
	_Atomic uint64_t write_bytes;		       /* of WRITEs that succeeded here */
	SLIST_ENTRY(zf_thread) link;
};

void zf_threads_init(void);
/* To be called when no thread runs requests any more. */
void zf_threads_deinit(void);

/* The struct of the calling thread. NULL: no memory. */
struct zf_thread *zf_thread_self(void);

/* ZF_SCRATCH_SIZE bytes for the answer that this thread prepares. NULL: no memory. */
#define ZF_SCRATCH_SIZE ((size_t)1 << 20)
void *zf_thread_scratch(struct zf_thread *thread);

void zf_threads_count(uint64_t requests[ZF_REQUEST_COUNT], uint64_t *ret_waited);

/* The calling thread, `thread`, has answered a request. */
void zf_thread_note_latency(struct zf_thread *thread, enum zf_request kind, uint64_t took_ns);
/* A WRITE of `bytes` bytes has succeeded in the calling thread, `thread`. */
void zf_thread_note_written(struct zf_thread *thread, uint64_t bytes);
/* The sums of all threads. */
void zf_threads_get_latency(enum zf_request kind, uint64_t counts[ZF_LATENCY_BUCKETS],
			    uint64_t *ret_total_ns);
uint64_t zf_threads_get_written(void);

#endif

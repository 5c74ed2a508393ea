/* SPDX-License-Identifier: MIT */
#include "fuse/thread.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/lock.h"

/* A cache line of its own for what only one thread writes. */
#define CACHE_LINE 64

const char *const zf_request_names[ZF_REQUEST_COUNT] = {
	[ZF_REQUEST_LOOKUP] = "lookup",	      [ZF_REQUEST_FORGET] = "forget",
	[ZF_REQUEST_GETATTR] = "getattr",     [ZF_REQUEST_SETATTR] = "setattr",
	[ZF_REQUEST_STATX] = "statx",	      [ZF_REQUEST_READLINK] = "readlink",
	[ZF_REQUEST_MKNOD] = "mknod",	      [ZF_REQUEST_MKDIR] = "mkdir",
	[ZF_REQUEST_SYMLINK] = "symlink",     [ZF_REQUEST_LINK] = "link",
	[ZF_REQUEST_UNLINK] = "unlink",	      [ZF_REQUEST_RMDIR] = "rmdir",
	[ZF_REQUEST_RENAME] = "rename",	      [ZF_REQUEST_CREATE] = "create",
	[ZF_REQUEST_OPEN] = "open",	      [ZF_REQUEST_READ] = "read",
	[ZF_REQUEST_WRITE] = "write",	      [ZF_REQUEST_FSYNC] = "fsync",
	[ZF_REQUEST_FSYNCDIR] = "fsyncdir",   [ZF_REQUEST_SYNCFS] = "syncfs",
	[ZF_REQUEST_READDIR] = "readdir",     [ZF_REQUEST_READDIRPLUS] = "readdirplus",
	[ZF_REQUEST_LSEEK] = "lseek",	      [ZF_REQUEST_STATFS] = "statfs",
	[ZF_REQUEST_SETXATTR] = "setxattr",   [ZF_REQUEST_GETXATTR] = "getxattr",
	[ZF_REQUEST_LISTXATTR] = "listxattr", [ZF_REQUEST_REMOVEXATTR] = "removexattr",
};

/* libfuse starts its threads without asking anybody, so they register here with their first
 * request. */
static SLIST_HEAD(, zf_thread) threads = SLIST_HEAD_INITIALIZER(threads);
static struct zf_mutex threads_lock; /* of the list */
static _Thread_local struct zf_thread *self;

void zf_threads_init(void)
{
	zf_mutex_init(&threads_lock, ZF_RANK_DAEMON);
}

struct zf_thread *zf_thread_self(void)
{
	struct zf_thread *thread;

	if (self)
		return self;
	thread = aligned_alloc(CACHE_LINE, zf_align_up(sizeof(*thread), CACHE_LINE));
	if (!thread)
		return NULL;
	memset(thread, 0, sizeof(*thread));
	zf_mutex_lock(&threads_lock);
	SLIST_INSERT_HEAD(&threads, thread, link);
	zf_mutex_unlock(&threads_lock);
	self = thread;
	return thread;
}

void *zf_thread_scratch(struct zf_thread *thread)
{
	if (!thread->scratch)
		thread->scratch = aligned_alloc(ZF_BLOCK_SIZE, ZF_SCRATCH_SIZE);
	return thread->scratch;
}

void zf_threads_count(uint64_t requests[ZF_REQUEST_COUNT], uint64_t *ret_waited)
{
	struct zf_thread *thread;
	uint64_t waited = 0;

	memset(requests, 0, ZF_REQUEST_COUNT * sizeof(requests[0]));
	zf_mutex_lock(&threads_lock);
	SLIST_FOREACH(thread, &threads, link)
	{
		for (unsigned int i = 0; i < ZF_REQUEST_COUNT; i++)
			requests[i] +=
				atomic_load_explicit(&thread->requests[i], memory_order_relaxed);
		waited += atomic_load_explicit(&thread->waited, memory_order_relaxed);
	}
	zf_mutex_unlock(&threads_lock);
	*ret_waited = waited;
}

void zf_threads_deinit(void)
{
	struct zf_thread *thread;

	while ((thread = SLIST_FIRST(&threads)) != NULL) {
		SLIST_REMOVE_HEAD(&threads, link);
		free(thread->scratch);
		free(thread);
	}
	zf_mutex_deinit(&threads_lock);
}

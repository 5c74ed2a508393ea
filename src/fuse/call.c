/* SPDX-License-Identifier: MIT */
#include "fuse/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuse/workers.h"

/* A queue with this many free slots, or fewer, is crowded. */
#define SLOTS_KEPT 2
/* Requests from /dev/fuse have no slots: a parked one costs memory only. */
#define PARKED_MAX_DEV_FUSE 256

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum zf_wait_kind wait_kind(const struct zf_call *call)
{
	if (call->kind == ZF_REQUEST_READ && call->size <= ZF_WAIT_SMALL_READ_MAX)
		return ZF_WAIT_SMALL_READ;
	if (call->durable)
		return ZF_WAIT_DURABLE;
	return call->kind == ZF_REQUEST_WRITE ? ZF_WAIT_WRITE : ZF_WAIT_OTHER;
}

static struct zf_wait_request wait_request(const struct zf_call *call)
{
	return (struct zf_wait_request){
		.kind = wait_kind(call),
		.is_sync = call->kind == ZF_REQUEST_FSYNC,
		.ino = call->ino,
		.began_ns = call->began_ns,
		.others_parked =
			atomic_load_explicit(&call->thread->parked, memory_order_relaxed) > 0,
	};
}

/* Over io_uring the thread must not wait, because only it can hand other answers to the kernel. */
static bool may_park(const struct zf_call *call)
{
	return fuse_req_is_uring(call->req) ||
	       atomic_load_explicit(&call->thread->parked, memory_order_relaxed) <
		       PARKED_MAX_DEV_FUSE;
}

bool zf_call_is_crowded(const struct zf_daemon *daemon, const struct zf_call *call)
{
	unsigned int parked = atomic_load_explicit(&call->thread->parked, memory_order_relaxed);

	if (!fuse_req_is_uring(call->req))
		return parked >= PARKED_MAX_DEV_FUSE;
	return parked + SLOTS_KEPT >= daemon->uring_depth;
}

static size_t string_size(const char *string)
{
	return string ? strlen(string) + 1 : 0;
}

static void *copy_behind(char **end, const void *from, size_t size)
{
	void *to = *end;

	if (!from)
		return NULL;
	memcpy(to, from, size);
	*end += size;
	return to;
}

/* Copies a call so that it outlives the handler. NULL: no memory. */
static struct zf_call *copy_call(const struct zf_call *call)
{
	size_t name_size = string_size(call->name), other_size = string_size(call->other_name);
	size_t data_size = call->data ? call->size : 0;
	bool stays = fuse_req_is_uring(call->req);
	struct zf_call *copy =
		malloc(sizeof(*copy) + (stays ? 0 : name_size + other_size + data_size));
	char *end = (char *)(copy + 1);

	if (!copy)
		return NULL;
	*copy = *call;
	if (!stays) {
		copy->name = copy_behind(&end, call->name, name_size);
		copy->other_name = copy_behind(&end, call->other_name, other_size);
		copy->data = copy_behind(&end, call->data, data_size);
	}
	return copy;
}

static void count_parked(struct zf_thread *thread)
{
	atomic_fetch_add_explicit(&thread->parked, 1, memory_order_relaxed);
}

static void count_waited(struct zf_thread *thread)
{
	atomic_fetch_add_explicit(&thread->waited, 1, memory_order_relaxed);
}

struct zf_call *zf_call_park(const struct zf_call *call)
{
	struct zf_call *copy = may_park(call) ? copy_call(call) : NULL;

	if (copy)
		count_parked(copy->thread);
	return copy;
}

void zf_call_give_to_worker(struct zf_daemon *daemon, struct zf_call *call)
{
	count_waited(call->thread);
	zf_workers_run(daemon->workers, call);
}

static bool hand_over(struct zf_daemon *daemon, const struct zf_call *call)
{
	struct zf_call *copy = zf_call_park(call);

	if (copy)
		zf_call_give_to_worker(daemon, copy);
	return copy;
}

struct zf_call *zf_call_keep(const struct zf_call *call)
{
	struct zf_call *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *call;
	copy->name = copy->other_name = NULL;
	copy->data = NULL;
	copy->began_ns = 0;
	count_parked(copy->thread);
	count_waited(copy->thread);
	return copy;
}

/*
 * Counts the call, and then reads `closing`. zf_call_end_all() sets `closing`, and then reads the
 * count. So at least one of them sees the other.
 */
static int run_unless_closing(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = -ENOTCONN;

	if (!daemon->fuseblk || call->after_end)
		return call->run(daemon, call);
	atomic_fetch_add(&daemon->calls_running, 1);
	if (!atomic_load(&daemon->closing))
		r = call->run(daemon, call);
	atomic_fetch_sub(&daemon->calls_running, 1);
	return r;
}

void zf_call_end_all(struct zf_daemon *daemon)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	atomic_store(&daemon->closing, true);
	while (atomic_load(&daemon->calls_running) > 0)
		nanosleep(&moment, NULL);
}

/* Runs a call to its reply, and waits as long as that takes. */
static int run_waiting(struct zf_daemon *daemon, struct zf_call *call)
{
	int r;

	call->ctx.may_wait = true;
	r = run_unless_closing(daemon, call);
	if (r < 0)
		fuse_reply_err(call->req, -r);
	return r;
}

/* `thread` is the calling thread. */
static void note_answered(struct zf_thread *thread, const struct zf_call *call, int64_t now, int r)
{
	zf_thread_note_latency(thread, call->kind, (uint64_t)(now - call->began_ns));
	if (call->kind == ZF_REQUEST_WRITE && r >= 0)
		zf_thread_note_written(thread, call->size);
}

void zf_call_hand_over(struct zf_daemon *daemon, struct zf_call *call)
{
	if (!hand_over(daemon, call))
		(void)run_waiting(daemon, call);
}

void zf_call_note_answered(const struct zf_call *call, int result)
{
	struct zf_thread *thread = zf_thread_self();
	int64_t now = now_ns();

	if (!thread)
		return;
	note_answered(thread, call, now, result);
	thread->wait_here.ended_ns = now;
}

/* `client` is the thread that sent the request. */
static void dispatch(struct zf_daemon *daemon, struct zf_call *call, pid_t client)
{
	struct zf_thread *thread = call->thread;
	struct zf_wait_request request;
	bool waits, later = false;
	int64_t ended;
	int r;

	call->began_ns = now_ns();
	atomic_fetch_add_explicit(&thread->requests[call->kind], 1, memory_order_relaxed);
	request = wait_request(call);
	waits = zf_wait_here_may(&thread->wait_here, &request);
	call->ctx.may_wait = waits && request.kind == ZF_WAIT_SMALL_READ;
	call->ctx.may_wait_record = waits && request.kind == ZF_WAIT_DURABLE;
	r = run_unless_closing(daemon, call);
	if (r == -EAGAIN && !call->ctx.may_wait) {
		later = hand_over(daemon, call);
		if (!later)
			r = run_waiting(daemon, call);
	} else if (r == -EINPROGRESS) {
		later = true;
	} else if (r < 0) {
		fuse_reply_err(call->req, -r);
	}
	ended = now_ns();
	if (!later)
		note_answered(thread, call, ended, r);
	zf_wait_here_ended(&thread->wait_here, &request, waits && !later, ended);
	zf_roam_note(&thread->roam, client, ended);
}

void zf_call_dispatch(struct zf_call *call)
{
	struct zf_daemon *daemon = fuse_req_userdata(call->req);
	const struct fuse_ctx *ctx = fuse_req_ctx(call->req);

	call->ctx.uid = ctx->uid;
	call->ctx.gid = ctx->gid;
	call->ctx.umask = ctx->umask;
	call->thread = zf_thread_self();
	if (fuse_req_is_uring(call->req) &&
	    !atomic_load_explicit(&daemon->uring_used, memory_order_relaxed))
		atomic_store_explicit(&daemon->uring_used, true, memory_order_relaxed);
	if (!call->thread) {
		fuse_reply_err(call->req, ENOMEM);
		return;
	}
	dispatch(daemon, call, ctx->pid);
}

void zf_call_discard(struct zf_call *call)
{
	atomic_fetch_sub_explicit(&call->thread->parked, 1, memory_order_relaxed);
	free(call);
}

void zf_call_finish(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = run_waiting(daemon, call);

	if (call->began_ns > 0)
		zf_call_note_answered(call, r);
	zf_call_discard(call);
}

int zf_call_buffer(struct zf_call *call, size_t size, char **ret_buf)
{
	struct zf_thread *thread = zf_thread_self();
	size_t payload_size;

	/* A name of the call would lie in the same buffer. */
	if (fuse_req_is_uring(call->req) && !call->name) {
		if (fuse_req_get_payload(call->req, ret_buf, &payload_size, NULL) < 0)
			return -EINVAL;
		return size <= payload_size ? 0 : -EINVAL;
	}
	if (size > ZF_SCRATCH_SIZE)
		return -EINVAL;
	*ret_buf = thread ? zf_thread_scratch(thread) : NULL;
	return *ret_buf ? 0 : -ENOMEM;
}

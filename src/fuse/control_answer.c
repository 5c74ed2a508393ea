/* SPDX-License-Identifier: MIT */
#include "fuse/control_answer.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/report.h"
#include "fuse/daemon.h"
#include "fuse/thread.h"
#include "fuse/trace.h"

/* The most free memory that the allocator keeps for the next request. */
#define FREE_MEMORY_MAX ((size_t)16 << 20)

void zf_control_answer(int fd, int error, struct json_object *result)
{
	struct json_object *message = json_object_new_object(), *problem;

	if (error == 0) {
		json_object_object_add(message, "result", result);
	} else {
		problem = json_object_new_object();
		json_object_object_add(problem, "errno", json_object_new_int(-error));
		if (!result)
			result = json_object_new_string(strerror(-error));
		json_object_object_add(problem, "message", result);
		json_object_object_add(message, "error", problem);
	}
	/* An error means that the client has gone, and does not matter. */
	zf_ctl_write_message(fd, message, -1);
	json_object_put(message);
}

static const char *durability_name(const struct zf_daemon *daemon)
{
	return zf_dev_durability(daemon->dev) == ZF_DURABILITY_FLUSH ? "flush" : "fua";
}

/*
 * The descriptor shows the end of the mount before the loop has ended. When the loop has ended, the
 * number of the descriptor may belong to another file.
 */
static bool is_mounted(struct zf_daemon *daemon)
{
	struct pollfd pfd = {.fd = fuse_session_fd(daemon->session)};

	return poll(&pfd, 1, 0) == 0 && atomic_load(&daemon->mounted);
}

static struct json_object *describe_daemon(struct zf_daemon *daemon)
{
	struct json_object *ret = json_object_new_object();
	bool uring = atomic_load(&daemon->uring_used);

	json_object_object_add(ret, "pid", json_object_new_int(getpid()));
	json_object_object_add(ret, "version", json_object_new_string(ZF_VERSION));
	json_object_object_add(ret, "device", json_object_new_string(daemon->device));
	json_object_object_add(ret, "mountpoint", json_object_new_string(daemon->mountpoint));
	json_object_object_add(ret, "transport",
			       json_object_new_string(uring ? "io_uring" : "dev-fuse"));
	json_object_object_add(ret, "writeback",
			       json_object_new_boolean(daemon->options.writeback));
	json_object_object_add(ret, "durability", json_object_new_string(durability_name(daemon)));
	json_object_object_add(ret, "read_only",
			       json_object_new_boolean(zf_fs_is_read_only(daemon->fs)));
	json_object_object_add(ret, "mounted", json_object_new_boolean(is_mounted(daemon)));
	return ret;
}

static struct json_object *count_requests(void)
{
	struct json_object *ret = json_object_new_object();
	uint64_t requests[ZF_REQUEST_COUNT], waited;

	zf_threads_count(requests, &waited);
	for (unsigned int i = 0; i < ZF_REQUEST_COUNT; i++)
		json_object_object_add(ret, zf_request_names[i],
				       json_object_new_uint64(requests[i]));
	json_object_object_add(ret, "waited", json_object_new_uint64(waited));
	return ret;
}

static struct json_object *describe_latency(enum zf_request kind)
{
	struct json_object *ret = json_object_new_object(), *array = json_object_new_array();
	uint64_t counts[ZF_LATENCY_BUCKETS], total_ns;

	zf_threads_get_latency(kind, counts, &total_ns);
	for (unsigned int i = 0; i < ZF_LATENCY_BUCKETS; i++)
		json_object_array_add(array, json_object_new_uint64(counts[i]));
	json_object_object_add(ret, "counts", array);
	json_object_object_add(ret, "total_ns", json_object_new_uint64(total_ns));
	return ret;
}

static struct json_object *describe_latencies(void)
{
	struct json_object *ret = json_object_new_object(), *array = json_object_new_array();
	struct json_object *kinds = json_object_new_object();

	for (unsigned int i = 0; i < ZF_LATENCY_BOUNDS; i++)
		json_object_array_add(array, json_object_new_uint64(zf_latency_bounds_ns[i]));
	for (unsigned int i = 0; i < ZF_REQUEST_COUNT; i++)
		json_object_object_add(kinds, zf_request_names[i], describe_latency(i));
	json_object_object_add(ret, "bounds_ns", array);
	json_object_object_add(ret, "requests", kinds);
	json_object_object_add(ret, "write_bytes",
			       json_object_new_uint64(zf_threads_get_written()));
	return ret;
}

bool zf_control_is_command(struct json_object *request, const char *name)
{
	struct json_object *command;

	return json_object_object_get_ex(request, "command", &command) &&
	       json_object_is_type(command, json_type_string) &&
	       strcmp(json_object_get_string(command), name) == 0;
}

/* Where the parts of a long answer go. */
struct outlet {
	int fd;
	bool broken; /* the client takes no more of the answer */
};

static int send_part(void *arg, struct json_object *part)
{
	struct json_object *message = json_object_new_object();
	struct outlet *outlet = arg;
	int r;

	json_object_object_add(message, "part", json_object_get(part));
	r = zf_ctl_write_message(outlet->fd, message, -1);
	json_object_put(message);
	outlet->broken = r < 0;
	return r;
}

static int run(struct zf_daemon *daemon, struct json_object *request, struct outlet *outlet,
	       int *passed_fd, struct json_object **ret_result)
{
	const struct zf_control_parts parts = {.take = send_part, .arg = outlet};
	struct json_object *command, *args = NULL;

	if (!json_object_object_get_ex(request, "command", &command) ||
	    !json_object_is_type(command, json_type_string))
		return -EINVAL;
	json_object_object_get_ex(request, "args", &args);
	if (zf_control_is_command(request, "daemon"))
		*ret_result = describe_daemon(daemon);
	else if (zf_control_is_command(request, "requests"))
		*ret_result = count_requests();
	else if (zf_control_is_command(request, "latencies"))
		*ret_result = describe_latencies();
	else if (zf_control_is_command(request, "trace_start"))
		return zf_daemon_trace_start(daemon, passed_fd, ret_result);
	else if (zf_control_is_command(request, "trace_stop"))
		return zf_daemon_trace_stop(ret_result);
	else
		return zf_report_run_mounted(daemon->fs, json_object_get_string(command), args,
					     &parts, ret_result);
	return 0;
}

/* A check of many files takes far more memory than the daemon needs otherwise. */
static void give_memory_back(void)
{
	if (mallinfo2().fordblks > FREE_MEMORY_MAX)
		malloc_trim(0);
}

void zf_control_run(struct zf_daemon *daemon, struct json_object *request, int fd, int passed_fd)
{
	struct outlet outlet = {.fd = fd};
	struct json_object *result = NULL;
	int r = run(daemon, request, &outlet, &passed_fd, &result);

	zf_cleanup_close(&passed_fd);

	if (outlet.broken)
		json_object_put(result);
	else
		zf_control_answer(fd, r, result);
	give_memory_back();
}

/* SPDX-License-Identifier: MIT */
#include "fuse/control.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuse/daemon.h"
#include "fuse/thread.h"

/* How long a client may take to send its request, or to take its answer. */
#define CLIENT_TIMEOUT_S 10

/* Memory that is free in the allocator's heaps and not worth keeping for the next request. */
#define FREE_MEMORY_MAX ((size_t)16 << 20)

/* A client that waits for the daemon's end. */
struct waiter {
	int fd;
	SLIST_ENTRY(waiter) link;
};

struct zf_control {
	struct zf_daemon *daemon;
	pthread_t thread;
	int listen_fd, stop_fd, serving_fd;
	char path[ZF_CONTROL_PATH_MAX];
	ino_t path_ino;
	SLIST_HEAD(, waiter) waiters; /* the thread's, then, when that has ended, its owner's */
};

/* ---- answers ---- */

static void answer(int fd, int error, struct json_object *result)
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
	/* A client that has gone does not care. */
	zf_control_write_message(fd, message);
	json_object_put(message);
}

static const char *durability_name(const struct zf_daemon *daemon)
{
	return zf_dev_durability(daemon->dev) == ZF_DURABILITY_FLUSH ? "flush" : "fua";
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

static int run_reports(struct zf_daemon *daemon, const char *name, struct json_object *args,
		       struct json_object **ret_result)
{
	const struct zf_control_command *command;

	for (command = zf_report_commands; command->name; command++) {
		if (strcmp(command->name, name) == 0)
			return command->run(daemon->fs, args, ret_result);
	}
	*ret_result = json_object_new_string("unknown command");
	return -EOPNOTSUPP;
}

/* Takes over the client's descriptor only if it is to wait. */
static void handle_request(struct zf_control *control, struct json_object *request, int *fd)
{
	struct json_object *command, *args = NULL, *result = NULL;
	struct waiter *waiter;
	const char *name;
	int r = 0;

	if (!json_object_object_get_ex(request, "command", &command) ||
	    !json_object_is_type(command, json_type_string)) {
		answer(*fd, -EINVAL, NULL);
		return;
	}
	json_object_object_get_ex(request, "args", &args);
	name = json_object_get_string(command);

	if (strcmp(name, "wait") == 0) {
		waiter = malloc(sizeof(*waiter));
		if (waiter) {
			waiter->fd = zf_steal_fd(fd);
			SLIST_INSERT_HEAD(&control->waiters, waiter, link);
			return;
		}
		r = -ENOMEM;
	} else if (strcmp(name, "daemon") == 0) {
		result = describe_daemon(control->daemon);
	} else if (strcmp(name, "requests") == 0) {
		result = count_requests();
	} else {
		r = run_reports(control->daemon, name, args, &result);
	}
	answer(*fd, r, result);
}

/* A table of many zones, or a check of many files, takes far more than the daemon otherwise does.
 */
static void give_memory_back(void)
{
	if (mallinfo2().fordblks > FREE_MEMORY_MAX)
		malloc_trim(0);
}

static void handle_client(struct zf_control *control)
{
	const struct timeval timeout = {.tv_sec = CLIENT_TIMEOUT_S};
	struct json_object *request;
	_zf_close_ int fd = accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	int r;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	r = zf_control_read_message(fd, ZF_CONTROL_REQUEST_MAX, &request);
	if (r < 0) {
		if (r != -ECONNRESET)
			answer(fd, r, NULL);
		return;
	}
	handle_request(control, request, &fd);
	json_object_put(request);
	give_memory_back();
}

/* ---- the socket ---- */

static int make_directory(const char *socket_path)
{
	char directory[ZF_CONTROL_PATH_MAX];
	struct stat st;

	strcpy(directory, socket_path);
	*strrchr(directory, '/') = '\0';
	if (mkdir(directory, 0700) == 0)
		return 0;
	if (errno != EEXIST || lstat(directory, &st) < 0)
		return -errno;
	/* Others could put a socket of their own there. */
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

static int listen_at(const char *path, int *ret_fd, ino_t *ret_ino)
{
	struct stat st;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_zf_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = make_directory(path);
	if (r < 0)
		return r;
	/* The kernel gave the number to us, so what is there is of a daemon that is gone, or going.
	 */
	unlink(path);
	strcpy(address.sun_path, path);
	/* Nobody can connect before listen(), and by then the mode is right. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, 0600) < 0 ||
	    stat(path, &st) < 0 || listen(fd, 16) < 0)
		return -errno;
	*ret_ino = st.st_ino;
	*ret_fd = zf_steal_fd(&fd);
	return 0;
}

static void open_socket(struct zf_control *control, dev_t st_dev)
{
	int r = zf_control_path(st_dev, geteuid(), control->path);

	if (r == 0)
		r = listen_at(control->path, &control->listen_fd, &control->path_ino);
	/* Without it zfusectl cannot ask, but everything else works. */
	if (r < 0)
		zf_report(&control->daemon->report, ZF_REPORT_WARNING,
			  "no control socket at %s: %s", control->path, strerror(-r));
}

/*
 * Its device number, from the kernel alone. A daemon that is killed while it waits for an answer of
 * its own never ends: nobody is left to give it, and the one who waits keeps the connection open.
 */
static int find_mount(const char *mountpoint, dev_t *ret_st_dev)
{
	struct statx stx;

	if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &stx) < 0)
		return -errno;
	*ret_st_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	return 0;
}

static void get_ready(struct zf_control *control)
{
	struct zf_daemon *daemon = control->daemon;
	dev_t st_dev;
	int r = find_mount(daemon->mountpoint, &st_dev);

	if (r < 0) {
		zf_report(&daemon->report, ZF_REPORT_ERROR, "there is no mount at %s: %s",
			  daemon->mountpoint, strerror(-r));
		return;
	}
	open_socket(control, st_dev);
	zf_daemon_ready(daemon, st_dev);
}

static void *serve(void *arg)
{
	struct zf_control *control = arg;
	struct pollfd fds[] = {
		{.fd = control->stop_fd, .events = POLLIN},
		{.fd = control->serving_fd, .events = POLLIN},
	};

	while (!fds[0].revents && !fds[1].revents)
		poll(fds, 2, -1);
	if (fds[1].revents)
		get_ready(control);
	fds[1] = (struct pollfd){.fd = control->listen_fd, .events = POLLIN};
	while (!fds[0].revents) {
		if (poll(fds, 2, -1) > 0 && fds[1].revents)
			handle_client(control);
	}
	return NULL;
}

/* ---- life ---- */

int zf_control_start(struct zf_daemon *daemon, struct zf_control **ret_control)
{
	struct zf_control *control = calloc(1, sizeof(*control));
	int r;

	if (!control)
		return -ENOMEM;
	control->daemon = daemon;
	control->listen_fd = -1;
	SLIST_INIT(&control->waiters);
	control->stop_fd = eventfd(0, EFD_CLOEXEC);
	control->serving_fd = eventfd(0, EFD_CLOEXEC);
	r = control->stop_fd < 0 || control->serving_fd < 0
		    ? errno
		    : pthread_create(&control->thread, NULL, serve, control);
	if (r != 0) {
		zf_cleanup_close(&control->stop_fd);
		zf_cleanup_close(&control->serving_fd);
		free(control);
		return -r;
	}
	*ret_control = control;
	return 0;
}

void zf_control_serving(struct zf_control *control)
{
	eventfd_write(control->serving_fd, 1);
}

void zf_control_stop(struct zf_control *control)
{
	struct pollfd pfd = {.events = POLLIN};
	struct stat st;

	if (!control)
		return;
	eventfd_write(control->stop_fd, 1);
	pthread_join(control->thread, NULL);
	if (control->listen_fd < 0)
		return;
	/* First the name, unless the number is another mount's by now; then those who still came by
	 * it. */
	if (stat(control->path, &st) == 0 && st.st_ino == control->path_ino)
		unlink(control->path);
	pfd.fd = control->listen_fd;
	while (poll(&pfd, 1, 0) > 0)
		handle_client(control);
	close(control->listen_fd);
	control->listen_fd = -1;
}

void zf_control_finish(struct zf_control *control, int error)
{
	struct waiter *waiter;

	if (!control)
		return;
	while ((waiter = SLIST_FIRST(&control->waiters)) != NULL) {
		SLIST_REMOVE_HEAD(&control->waiters, link);
		answer(waiter->fd, error, NULL);
		close(waiter->fd);
		free(waiter);
	}
	close(control->stop_fd);
	close(control->serving_fd);
	free(control);
}

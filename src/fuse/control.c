/* SPDX-License-Identifier: MIT */
#include "fuse/control.h"

#include <bsd/sys/queue.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuse/control_answer.h"
#include "fuse/control_socket.h"
#include "fuse/daemon.h"
#include "fuse/shutdown.h"

#define CLIENTS_MAX 64 /* later clients wait in the queue of listen() */
#define RUNNING_MAX 4

/*
 * How long a client may take to send its request; and to take each part of its answer that fits
 * into the socket's buffer (some 32 KiB).
 */
#define REQUEST_TIMEOUT_S 5
#define ANSWER_TIMEOUT_S  10

/* If there is no descriptor for a new connection, accept() is tried again after this time. */
#define ACCEPT_AGAIN_NS INT64_C(1000000000)

/*
 *      accept --> READING --> READY --> RUNNING --> gone
 *                        \
 *                         --> WAITING --> answered by zf_control_finish(), or gone
 */
enum client_state {
	CLIENT_READING, /* its request has not come completely */
	CLIENT_READY,	/* its request waits for its turn */
	CLIENT_RUNNING, /* a thread of its own runs it */
	CLIENT_WAITING, /* waits for the daemon's end */
};

struct client {
	struct zf_control *control;
	enum client_state state;
	int fd;
	int64_t deadline_ns; /* READING */
	struct zf_ctl_inbox inbox;
	struct json_object *request;
	pthread_t thread;
	atomic_bool done; /* RUNNING: the thread has nothing more to do */
	TAILQ_ENTRY(client) link;
};

struct zf_control {
	struct zf_daemon *daemon;
	pthread_t thread;
	int listen_fd, stop_fd;
	int wake_fd;  /* signalled by the first request, and later when a request is done */
	int spare_fd; /* closed to accept one client when there are no more descriptors */
	char path[ZF_CONTROL_PATH_MAX];
	ino_t path_ino;

	/* Used by the thread only, and after its end by its owner. Oldest first. */
	TAILQ_HEAD(, client) clients;
	unsigned int client_count, running;
	int64_t accept_after_ns;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- one client ---- */

static void drop(struct client *client)
{
	struct zf_control *control = client->control;

	TAILQ_REMOVE(&control->clients, client, link);
	control->client_count--;
	close(client->fd);
	json_object_put(client->request);
	zf_ctl_inbox_deinit(&client->inbox);
	free(client);
	if (control->spare_fd < 0)
		control->spare_fd = fcntl(control->stop_fd, F_DUPFD_CLOEXEC, 0);
	control->accept_after_ns = 0;
}

/* Does not block: the answer is short, and nothing was sent to this client before. */
static void refuse(struct client *client, int error)
{
	zf_control_answer(client->fd, error, NULL);
	drop(client);
}

/* Receives what the client has sent. Returns whether the client is still there. */
static bool receive(struct client *client)
{
	int r = zf_ctl_inbox_fill(&client->inbox, client->fd);

	if (r == 0)
		r = zf_ctl_inbox_next(&client->inbox, &client->request);
	if (r == 0 || r == -EAGAIN)
		return true;
	if (r == -ECONNRESET) {
		drop(client);
		return false;
	}
	if (r < 0) {
		refuse(client, r);
		return false;
	}
	client->state =
		zf_control_is_command(client->request, "wait") ? CLIENT_WAITING : CLIENT_READY;
	return true;
}

static void *run(void *arg)
{
	struct client *client = arg;

	int passed_fd = zf_ctl_inbox_take_fd(&client->inbox);

	zf_control_run(client->control->daemon, client->request, client->fd, passed_fd);
	atomic_store(&client->done, true);
	eventfd_write(client->control->wake_fd, 1);
	return NULL;
}

static void start(struct client *client)
{
	const struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
	int r;

	fcntl(client->fd, F_SETFL, 0);
	setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	r = pthread_create(&client->thread, NULL, run, client);
	if (r != 0) {
		refuse(client, -r);
		return;
	}
	client->state = CLIENT_RUNNING;
	client->control->running++;
}

static void reap(struct client *client)
{
	pthread_join(client->thread, NULL);
	client->control->running--;
	drop(client);
}

/* ---- all clients ---- */

static int accept_descriptor(struct zf_control *control)
{
	const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = accept4(control->listen_fd, NULL, NULL, flags);

	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || control->spare_fd < 0)
		return fd;
	close(control->spare_fd);
	control->spare_fd = -1;
	return accept4(control->listen_fd, NULL, NULL, flags);
}

static bool accept_client(struct zf_control *control)
{
	struct client *client = calloc(1, sizeof(*client));
	int fd = client ? accept_descriptor(control) : -1, r;

	if (fd < 0) {
		/* When another client leaves, drop() allows a try before this time. */
		if (!client || (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR))
			control->accept_after_ns = now_ns() + ACCEPT_AGAIN_NS;
		free(client);
		return false;
	}
	client->control = control;
	client->fd = fd;
	client->deadline_ns = now_ns() + REQUEST_TIMEOUT_S * INT64_C(1000000000);
	client->inbox.size_max = ZF_CONTROL_REQUEST_MAX;
	client->inbox.takes_fd = true;
	TAILQ_INSERT_TAIL(&control->clients, client, link);
	control->client_count++;
	r = zf_control_check_peer(fd);
	if (r < 0)
		refuse(client, r);
	return true;
}

/* `revents` are not older than `now`. */
static void look_after(struct client *client, short revents, int64_t now)
{
	switch (client->state) {
	case CLIENT_READING:
		/* A request that has come is in time, even if the daemon was stopped for long. */
		if (revents && !receive(client))
			break;
		if (client->state == CLIENT_READING && now >= client->deadline_ns)
			refuse(client, -ETIMEDOUT);
		break;
	case CLIENT_RUNNING:
		if (atomic_load(&client->done))
			reap(client);
		break;
	case CLIENT_WAITING:
		if (revents & (POLLHUP | POLLERR))
			drop(client);
		break;
	case CLIENT_READY:
		break;
	}
}

static void start_ready(struct zf_control *control)
{
	struct client *client, *next;

	TAILQ_FOREACH_SAFE (client, &control->clients, link, next)
		if (client->state == CLIENT_READY && control->running < RUNNING_MAX)
			start(client);
}

/* ---- getting ready ---- */

static void open_socket(struct zf_control *control, dev_t st_dev)
{
	int r = zf_ctl_path(st_dev, geteuid(), control->path);

	if (r == 0)
		r = zf_control_listen(control->path, &control->listen_fd, &control->path_ino);
	/* Without a socket zfusectl cannot ask, but everything else works. */
	if (r < 0)
		zf_report(&control->daemon->report, ZF_REPORT_WARNING,
			  "no control socket at %s: %s", control->path, strerror(-r));
}

/*
 * Gets the mount's device number from the kernel alone. A daemon that is killed while it waits for
 * an answer from its own mount would never end: no thread is left to give the answer, and the
 * waiting thread keeps the connection open.
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
		zf_shutdown_request();
		return;
	}
	open_socket(control, st_dev);
	zf_daemon_ready(daemon, st_dev);
}

/* ---- the thread ---- */

/* The clients' places in the array of descriptors are behind these. */
enum {
	POLL_STOP,
	POLL_WAKE,
	POLL_LISTEN,
	POLL_CLIENTS,
};

static bool may_accept(const struct zf_control *control, int64_t now)
{
	return control->client_count < CLIENTS_MAX && now >= control->accept_after_ns;
}

/* Fills in the descriptors to poll, and the timeout. */
static unsigned int prepare(struct zf_control *control, struct pollfd *fds, int64_t now,
			    int *ret_timeout_ms)
{
	int64_t until = INT64_MAX;
	unsigned int count = POLL_CLIENTS;
	struct client *client;

	fds[POLL_STOP] = (struct pollfd){.fd = control->stop_fd, .events = POLLIN};
	fds[POLL_WAKE] = (struct pollfd){.fd = control->wake_fd, .events = POLLIN};
	fds[POLL_LISTEN] = (struct pollfd){.fd = -1, .events = POLLIN};
	if (may_accept(control, now))
		fds[POLL_LISTEN].fd = control->listen_fd;
	else if (control->client_count < CLIENTS_MAX)
		until = control->accept_after_ns;
	TAILQ_FOREACH (client, &control->clients, link) {
		bool reading = client->state == CLIENT_READING;
		bool polled = reading || client->state == CLIENT_WAITING;

		fds[count++] = (struct pollfd){.fd = polled ? client->fd : -1,
					       .events = reading ? POLLIN : 0};
		if (reading && client->deadline_ns < until)
			until = client->deadline_ns;
	}
	/* One millisecond more, because the division rounds down. */
	*ret_timeout_ms = until == INT64_MAX ? -1
			  : until <= now     ? 0
					     : (int)((until - now) / 1000000) + 1;
	return count;
}

static void serve_once(struct zf_control *control, bool *ret_stop)
{
	struct pollfd fds[POLL_CLIENTS + CLIENTS_MAX];
	struct client *client, *next;
	unsigned int at = POLL_CLIENTS;
	int timeout_ms;
	int64_t now = now_ns();
	unsigned int count = prepare(control, fds, now, &timeout_ms);
	eventfd_t value;

	if (poll(fds, count, timeout_ms) < 0)
		return;
	if (fds[POLL_WAKE].revents)
		eventfd_read(control->wake_fd, &value);
	TAILQ_FOREACH_SAFE (client, &control->clients, link, next)
		look_after(client, fds[at++].revents, now);
	while (fds[POLL_LISTEN].revents && control->client_count < CLIENTS_MAX &&
	       accept_client(control))
		;
	start_ready(control);
	*ret_stop = fds[POLL_STOP].revents;
}

/* At the end: answers requests that have come completely, and drops the other clients. */
static void finish_requests(struct zf_control *control)
{
	struct pollfd wake = {.fd = control->wake_fd, .events = POLLIN};
	struct client *client, *next;
	eventfd_t value;

	if (control->listen_fd < 0)
		return;
	/*
	 * First removes the name, then accepts the clients that have still connected by it, however
	 * many.
	 */
	zf_control_unlink(control->path, control->path_ino);
	while (accept_client(control))
		;
	TAILQ_FOREACH_SAFE (client, &control->clients, link, next)
		if (client->state == CLIENT_READING)
			receive(client);
	TAILQ_FOREACH_SAFE (client, &control->clients, link, next)
		if (client->state == CLIENT_READING)
			drop(client);
	for (start_ready(control); control->running > 0; start_ready(control)) {
		if (poll(&wake, 1, -1) > 0)
			eventfd_read(control->wake_fd, &value);
		TAILQ_FOREACH_SAFE (client, &control->clients, link, next)
			look_after(client, 0, 0);
	}
}

static void *serve(void *arg)
{
	struct zf_control *control = arg;
	struct pollfd fds[] = {
		{.fd = control->stop_fd, .events = POLLIN},
		{.fd = control->wake_fd, .events = POLLIN},
	};
	bool stop = false;

	while (!fds[0].revents && !fds[1].revents)
		poll(fds, 2, -1);
	if (fds[1].revents)
		get_ready(control);
	while (!stop)
		serve_once(control, &stop);
	finish_requests(control);
	return NULL;
}

/* ---- life ---- */

static void free_control(struct zf_control *control)
{
	zf_cleanup_close(&control->listen_fd);
	zf_cleanup_close(&control->stop_fd);
	zf_cleanup_close(&control->wake_fd);
	zf_cleanup_close(&control->spare_fd);
	free(control);
}

int zf_control_start(struct zf_daemon *daemon, struct zf_control **ret_control)
{
	struct zf_control *control = calloc(1, sizeof(*control));
	int r;

	if (!control)
		return -ENOMEM;
	control->daemon = daemon;
	control->listen_fd = -1;
	TAILQ_INIT(&control->clients);
	control->stop_fd = eventfd(0, EFD_CLOEXEC);
	control->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	control->spare_fd = fcntl(control->stop_fd, F_DUPFD_CLOEXEC, 0);
	r = control->stop_fd < 0 || control->wake_fd < 0 || control->spare_fd < 0
		    ? errno
		    : pthread_create(&control->thread, NULL, serve, control);
	if (r != 0) {
		free_control(control);
		return -r;
	}
	*ret_control = control;
	return 0;
}

void zf_control_serving(struct zf_control *control)
{
	eventfd_write(control->wake_fd, 1);
}

void zf_control_stop(struct zf_control *control)
{
	if (!control)
		return;
	eventfd_write(control->stop_fd, 1);
	pthread_join(control->thread, NULL);
	zf_cleanup_close(&control->listen_fd);
	control->listen_fd = -1;
}

void zf_control_finish(struct zf_control *control, int error)
{
	struct client *client;

	if (!control)
		return;
	while ((client = TAILQ_FIRST(&control->clients)) != NULL) {
		zf_control_answer(client->fd, error, NULL);
		drop(client);
	}
	free_control(control);
}

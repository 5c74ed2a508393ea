/* SPDX-License-Identifier: MIT */
#include "fuse/shutdown.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuse/background.h"
#include "fuse/daemon.h"
#include "fuse/privileges.h"
#include "fuse/status.h"
#include "fuse/sync_mount.h"
#include "fuse/unmount.h"

struct zf_shutdown {
	struct zf_daemon *daemon;
	pthread_t thread;
	int signal_fd, stop_fd;
	sem_t dropped; /* posted when `drop_error` has the result of giving up privileges */
	int drop_error;
	atomic_bool ready;
};

static void shut_down(struct zf_daemon *daemon, uint32_t signal_no)
{
	int r = zf_sync_mount(daemon->mountpoint, atomic_load(&daemon->st_dev));

	if (r < 0)
		zf_report(&daemon->report, ZF_REPORT_WARNING,
			  "%s could not be synced before the unmount: %s", daemon->mountpoint,
			  strerror(-r));
	if (r == -EINVAL)
		return;
	r = zf_unmount(daemon->mountpoint, false);
	if (r == -EBUSY) {
		r = zf_unmount(daemon->mountpoint, true);
		if (r == 0)
			zf_report(&daemon->report, ZF_REPORT_WARNING,
				  "signal %u: %s is in use; detached, and served until its last "
				  "user is gone",
				  signal_no, daemon->mountpoint);
	}
	if (r < 0)
		zf_report(&daemon->report, ZF_REPORT_ERROR, "signal %u: cannot unmount %s: %s",
			  signal_no, daemon->mountpoint, strerror(-r));
}

static void *handle_signals(void *arg)
{
	struct zf_shutdown *shutdown = arg;
	struct pollfd fds[] = {
		{.fd = shutdown->stop_fd, .events = POLLIN},
		{.fd = shutdown->signal_fd, .events = POLLIN},
	};
	struct signalfd_siginfo info;

	shutdown->drop_error = zf_privileges_drop();
	sem_post(&shutdown->dropped);
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			return NULL;
		if (read(shutdown->signal_fd, &info, sizeof(info)) != sizeof(info))
			continue;
		if (atomic_load(&shutdown->ready)) {
			shut_down(shutdown->daemon, info.ssi_signo);
			continue;
		}
		/* No program can have used the mount yet, so the process ends as in a crash. */
		if (atomic_load(&shutdown->daemon->mounted))
			zf_unmount(shutdown->daemon->mountpoint, true);
		zf_report(&shutdown->daemon->report, ZF_REPORT_ERROR,
			  "signal %u before the mount was ready", info.ssi_signo);
		zf_background_tell(ZF_EXIT_MOUNT);
		_exit(ZF_EXIT_MOUNT);
	}
}

static void set_up_signals(sigset_t *ret_signals)
{
	sigemptyset(ret_signals);
	sigaddset(ret_signals, SIGTERM);
	sigaddset(ret_signals, SIGINT);
	sigaddset(ret_signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	/*
	 * The parent process may have ignored SIGCHLD; then the exit status of a child could not be
	 * had.
	 */
	signal(SIGCHLD, SIG_DFL);
}

/*
 * The signal thread starts before the privileges are given up, and so drops its own. It must do so
 * before the filter is installed, which would refuse the call.
 */
static int wait_until_dropped(struct zf_shutdown *shutdown)
{
	while (sem_wait(&shutdown->dropped) < 0 && errno == EINTR)
		;
	if (shutdown->drop_error < 0)
		zf_shutdown_stop(shutdown);
	return shutdown->drop_error;
}

int zf_shutdown_start(struct zf_daemon *daemon, struct zf_shutdown **ret_shutdown)
{
	struct zf_shutdown *shutdown = calloc(1, sizeof(*shutdown));
	sigset_t signals;
	int r;

	if (!shutdown)
		return -ENOMEM;
	shutdown->daemon = daemon;
	set_up_signals(&signals);
	sem_init(&shutdown->dropped, 0, 0);
	shutdown->stop_fd = eventfd(0, EFD_CLOEXEC);
	shutdown->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	r = shutdown->stop_fd < 0 || shutdown->signal_fd < 0
		    ? -errno
		    : -pthread_create(&shutdown->thread, NULL, handle_signals, shutdown);
	if (r == 0)
		r = wait_until_dropped(shutdown);
	if (r < 0) {
		zf_shutdown_free(shutdown);
		return r;
	}
	*ret_shutdown = shutdown;
	return 0;
}

void zf_shutdown_ready(struct zf_shutdown *shutdown)
{
	atomic_store(&shutdown->ready, true);
}

void zf_shutdown_request(void)
{
	kill(getpid(), SIGTERM);
}

void zf_shutdown_stop(struct zf_shutdown *shutdown)
{
	eventfd_write(shutdown->stop_fd, 1);
	pthread_join(shutdown->thread, NULL);
}

void zf_shutdown_free(struct zf_shutdown *shutdown)
{
	if (!shutdown)
		return;
	zf_cleanup_close(&shutdown->stop_fd);
	zf_cleanup_close(&shutdown->signal_fd);
	sem_destroy(&shutdown->dropped);
	free(shutdown);
}

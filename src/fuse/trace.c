/* SPDX-License-Identifier: MIT */
#include "fuse/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/json.h"
#include "fuse/daemon.h"

const struct zf_trace_about zf_daemon_trace_about = {.program = ZF_VERSION};

static int open_file(struct zf_daemon *daemon, const char *option, const char *path, int *ret_fd)
{
	*ret_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (*ret_fd >= 0)
		return 0;
	zf_report(&daemon->report, ZF_REPORT_ERROR, "%s=%s: %s", option, path, strerror(errno));
	return -errno;
}

int zf_daemon_trace_open(struct zf_daemon *daemon)
{
	const char *path = daemon->options.trace, *data = daemon->options.trace_data;
	int r = 0;

	daemon->trace_fd = -1;
	daemon->trace_about = zf_daemon_trace_about;
	if (path)
		r = open_file(daemon, "trace", path, &daemon->trace_fd);
	if (r == 0 && data)
		r = open_file(daemon, "trace-data", data, &daemon->trace_about.data_fd);
	daemon->trace_about.has_data = r == 0 && data;
	return r;
}

/*
 * If the trace lay on the mount, each write of the trace would be traced, and so cause the next
 * one; and the daemon would wait for itself.
 */
static int check_file(struct zf_daemon *daemon, int fd, struct json_object **ret_result)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return zf_json_fail(ret_result, -EINVAL, "a trace goes to a regular file");
	if (st.st_dev == atomic_load(&daemon->st_dev))
		return zf_json_fail(ret_result, -EINVAL,
				    "the file lies on the filesystem that is to be traced: choose "
				    "one elsewhere");
	return 0;
}

int zf_daemon_trace_start(struct zf_daemon *daemon, int *fd, struct json_object **ret_result)
{
	int r;

	if (*fd < 0)
		return zf_json_fail(ret_result, -EINVAL, "no descriptor came with the request");
	r = check_file(daemon, *fd, ret_result);
	if (r == 0 && ftruncate(*fd, 0) < 0)
		r = -errno;
	if (r == 0)
		r = zf_fs_trace_start(daemon->fs, *fd, &zf_daemon_trace_about);
	if (r == -EBUSY)
		return zf_json_fail(ret_result, r,
				    "a trace is running already: 'zfusectl trace stop' ends it");
	if (r == 0)
		*fd = -1;
	return r;
}

int zf_daemon_trace_stop(struct json_object **ret_result)
{
	struct zf_trace_totals totals;
	int r = zf_trace_stop(&totals);

	if (r == -ESRCH)
		return zf_json_fail(ret_result, r, "no trace is running");
	if (r < 0)
		return zf_json_fail(
			ret_result, r,
			"the trace ended early, because its file could not be written: %s",
			strerror(-r));
	*ret_result = json_object_new_object();
	zf_json_add_u64(*ret_result, "events", totals.events);
	zf_json_add_u64(*ret_result, "dropped", totals.dropped);
	return *ret_result ? 0 : -ENOMEM;
}

void zf_daemon_trace_end(struct zf_daemon *daemon)
{
	struct zf_trace_totals totals;
	int r = zf_trace_stop(&totals);

	if (r == -ESRCH)
		return;
	if (r < 0)
		zf_report(&daemon->report, ZF_REPORT_WARNING,
			  "the trace ended early, because its file could not be written: %s",
			  strerror(-r));
	else if (totals.dropped > 0)
		zf_report(&daemon->report, ZF_REPORT_WARNING,
			  "%" PRIu64 " of %" PRIu64
			  " events are missing from the trace: they came faster than they could be "
			  "written",
			  totals.dropped, totals.events);
}

/* SPDX-License-Identifier: MIT */
#include "metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/report.h"
#include "ctl/ctl.h"
#include "ctl/json.h"
#include "metrics_text.h"
#include "mount/mountinfo.h"
#include "output.h"
#include "text.h"

/* A daemon that hangs must not hide the metrics of the others. */
#define ANSWER_TIMEOUT_S 10

static char prefix[] = "zfusectl metrics";
static const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};

struct gathering {
	struct json_object *filesystems;
	bool incomplete; /* a daemon did not answer; the reason was reported */
};

/* ---- asking ---- */

static int ask(dev_t st_dev, const char *command, struct json_object *args,
	       struct json_object **ret_result)
{
	const struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
	_zf_close_ int fd = -1;
	int r = zf_ctl_connect_dev(st_dev, &fd);

	if (r < 0)
		return r;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	r = zf_ctl_send(fd, command, args);
	if (r == 0)
		r = zf_ctl_receive(fd, NULL, ret_result, NULL);
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

/* The daemon may be older than this program. Commands that it does not know are left out. */
static int add_answer(struct json_object *filesystem, dev_t st_dev, const char *command)
{
	struct json_object *args = json_object_new_object(), *answer = NULL;
	int r;

	/* Asks for sums of the zones instead of a list. */
	zf_json_add_u64(args, "summary_above", 0);
	r = ask(st_dev, command, args, &answer);
	json_object_put(args);
	if (r == 0)
		zf_json_add(filesystem, command, answer);
	return r == -EOPNOTSUPP ? 0 : r;
}

static int add_answers(struct json_object *filesystem, dev_t st_dev)
{
	static const char *const commands[] = {"status", "stats",    "df",	 "gc_status",
					       "zones",	 "requests", "latencies"};
	int r = 0;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(commands) && r == 0; i++)
		r = add_answer(filesystem, st_dev, commands[i]);
	return r;
}

/* The index of the filesystem on this device; without one, the length of the array. */
static size_t find_device(struct json_object *filesystems, const char *device)
{
	size_t i = 0, count = json_object_array_length(filesystems);

	while (i < count &&
	       strcmp(zf_text_string(json_object_array_get_idx(filesystems, i), "device"),
		      device) != 0)
		i++;
	return i;
}

/*
 * Adds each device once, because Prometheus refuses duplicate samples. A filesystem may be mounted
 * at several places. If a killed daemon has left a mount and the filesystem is mounted again, the
 * mount whose daemon answers counts.
 */
static void add_filesystem(struct json_object *filesystems, struct json_object *filesystem,
			   const char *device, bool up)
{
	size_t at = find_device(filesystems, device);

	zf_json_add_text(filesystem, "device", device);
	zf_json_add_bool(filesystem, "up", up);
	if (up || at == json_object_array_length(filesystems))
		json_object_array_put_idx(filesystems, at, filesystem);
	else
		json_object_put(filesystem);
}

/*
 * `source`: the mount's name of its device, for a daemon that does not answer. NULL: such a daemon
 * is left out.
 */
static int gather(struct gathering *gathering, dev_t st_dev, const char *source)
{
	struct json_object *filesystem = json_object_new_object();
	int r = add_answer(filesystem, st_dev, "daemon");
	const char *device =
		r == 0 ? zf_text_string(zf_text_member(filesystem, "daemon"), "device") : source;

	if (r == 0)
		r = add_answers(filesystem, st_dev);
	if (device)
		add_filesystem(gathering->filesystems, filesystem, device, r == 0);
	else
		json_object_put(filesystem);
	return r;
}

static void tell(struct gathering *gathering, const char *path, int error)
{
	zf_report(&report, ZF_REPORT_ERROR, "%s: %s", path,
		  error == -ENOTCONN ? "no zfuse daemon answers" : strerror(-error));
	gathering->incomplete = true;
}

/* Skips the mounts of other users, whose daemons have their sockets elsewhere. */
static void gather_mount(const struct zf_mountinfo *mount, void *arg)
{
	int r = mount->user == geteuid() ? gather(arg, mount->st_dev, mount->source) : 0;

	if (r < 0)
		tell(arg, mount->mountpoint, r);
}

static void gather_all(struct gathering *gathering)
{
	int r = zf_mountinfo_each(gather_mount, gathering);

	if (r < 0)
		tell(gathering, "/proc/self/mountinfo", r);
}

static void gather_path(struct gathering *gathering, const char *path)
{
	struct stat st;
	int r = stat(path, &st) < 0 ? -errno : gather(gathering, st.st_dev, NULL);

	if (r == -ENOTCONN)
		zf_report(&report, ZF_REPORT_ERROR, "%s: not a zfuse mount", path);
	else if (r < 0)
		tell(gathering, path, r);
	gathering->incomplete |= r < 0;
}

static int print(FILE *out, void *arg)
{
	zf_metrics_print(out, arg);
	return 0;
}

int zf_metrics_main(const struct zf_args *args)
{
	struct gathering gathering = {.filesystems = json_object_new_array()};
	const char *path = args->operands[0];
	int status = ZF_EXIT_OK;

	if (path)
		gather_path(&gathering, path);
	else
		gather_all(&gathering);
	/* Without `path` the filesystems that did answer are printed even if some did not. */
	if (!path || !gathering.incomplete)
		status = zf_output(args, &report, print, gathering.filesystems);
	json_object_put(gathering.filesystems);
	return gathering.incomplete ? ZF_EXIT_PROBLEMS : status;
}

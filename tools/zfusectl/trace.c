/* SPDX-License-Identifier: MIT */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/trace_json.h"
#include "json_out.h"
#include "text.h"
#include "trace/read.h"

/* ---- asking the daemon ---- */

/* passed_fd -1: none. Errors are reported. */
static int ask(const char *path, const char *command, int passed_fd, const struct zf_report *report,
	       struct json_object **ret_result)
{
	_zf_close_ int fd = -1;
	char *message = NULL;
	int r = zf_ctl_connect(path, &fd);

	if (r == -ENOTCONN)
		message = strdup("nothing of zfuse is mounted here");
	if (r == 0)
		r = zf_ctl_send_with(fd, command, NULL, passed_fd);
	if (r == 0)
		r = zf_ctl_receive(fd, NULL, ret_result, &message);
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: %s", path,
			  message ? message : strerror(-r));
	free(message);
	return r;
}

/* *ret_new: the file was made. An existing file stays unchanged until the daemon agrees. */
static int open_file(const char *path, bool force, const struct zf_report *report, bool *ret_new)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	*ret_new = fd >= 0;
	if (fd < 0 && errno == EEXIST && force)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: %s%s", path, strerror(errno),
			  errno == EEXIST ? " (--force overwrites it)" : "");
	return fd;
}

static int start(const struct zf_args *args, const struct zf_report *report)
{
	const char *path = args->operands[1];
	struct json_object *result = NULL;
	_zf_close_ int fd = -1;
	bool is_new;
	int r;

	fd = open_file(path, args->options[ZF_OPTION_FORCE].given, report, &is_new);
	if (fd < 0)
		return ZF_EXIT_PROBLEMS;
	r = ask(args->operands[0], "trace_start", fd, report, &result);
	json_object_put(result);
	if (r == 0)
		return ZF_EXIT_OK;
	if (is_new)
		unlink(path);
	return ZF_EXIT_PROBLEMS;
}

static int stop(const struct zf_args *args, const struct zf_report *report)
{
	struct zf_json_out json = {.out = stdout};
	struct json_object *result = NULL;

	if (ask(args->operands[0], "trace_stop", -1, report, &result) < 0)
		return ZF_EXIT_PROBLEMS;
	if (zf_args_json(args))
		zf_json_out_result(&json, result);
	else
		printf("%" PRIu64 " events, of which %" PRIu64 " were dropped\n",
		       zf_text_u64(result, "events"), zf_text_u64(result, "dropped"));
	json_object_put(result);
	return zf_args_flush(args);
}

/* ---- printing ---- */

static void print_line(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
	json_object_put(object);
}

int zf_trace_load(const char *path, const struct zf_report *report, struct zf_trace_file *ret_file)
{
	_zf_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0) {
		r = -errno;
		zf_report(report, ZF_REPORT_ERROR, "%s: %s", path, strerror(-r));
		return r;
	}
	r = zf_trace_read(fd, path, report, ret_file);
	if (r == -ENOMEM)
		zf_report(report, ZF_REPORT_ERROR, "%s: %s", path, strerror(-r));
	return r;
}

static int print(const struct zf_args *args, const struct zf_report *report)
{
	struct zf_trace_file file;

	if (zf_trace_load(args->operands[0], report, &file) < 0)
		return ZF_EXIT_PROBLEMS;
	print_line(zf_trace_json_header(&file.header));
	for (size_t i = 0; i < file.count; i++)
		print_line(zf_trace_json_record(&file.header, &file.records[i]));
	zf_trace_file_free(&file);
	return zf_args_flush(args);
}

int zf_trace_main(const struct zf_args *args)
{
	const struct zf_report report = {.fn = zf_report_stderr,
					 .arg = (void *)(uintptr_t)args->program};

	if (args->id == ZF_COMMAND_TRACE_START)
		return start(args, &report);
	return args->id == ZF_COMMAND_TRACE_STOP ? stop(args, &report) : print(args, &report);
}

/* SPDX-License-Identifier: MIT */
#include "ctl/ctl.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"

static void cleanup_json(struct json_object **object)
{
	json_object_put(*object);
}

#define _json_ __attribute__((cleanup(cleanup_json)))

/* ---- client ---- */

static int connect_path(const char *path, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_zf_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	*ret_fd = zf_steal_fd(&fd);
	return 0;
}

int zf_ctl_connect_dev(dev_t st_dev, int *ret_fd)
{
	const uid_t uids[] = {0, geteuid()};
	int ret = -ENOTCONN;

	_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == ZF_CONTROL_PATH_MAX, "size");
	for (unsigned int i = 0; i < 2; i++) {
		char path[ZF_CONTROL_PATH_MAX];
		int r = zf_ctl_path(st_dev, uids[i], path);

		if (r == 0)
			r = connect_path(path, ret_fd);
		if (r == 0)
			return 0;
		/*
		 * There is no socket, or a killed daemon left it. The socket of the other user may
		 * exist.
		 */
		if (r != -ENOENT && r != -ECONNREFUSED)
			ret = r;
	}
	return ret;
}

int zf_ctl_connect(const char *path, int *ret_fd)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	return zf_ctl_connect_dev(st.st_dev, ret_fd);
}

int zf_ctl_send(int fd, const char *command, struct json_object *args)
{
	return zf_ctl_send_with(fd, command, args, -1);
}

int zf_ctl_send_with(int fd, const char *command, struct json_object *args, int passed_fd)
{
	_json_ struct json_object *request = json_object_new_object();

	if (!request)
		return -ENOMEM;
	json_object_object_add(request, "command", json_object_new_string(command));
	if (args)
		json_object_object_add(request, "args", json_object_get(args));
	return zf_ctl_write_message(fd, request, passed_fd);
}

static int take_error(struct json_object *error, char **ret_message)
{
	struct json_object *number, *text;

	if (!json_object_object_get_ex(error, "errno", &number) || json_object_get_int(number) <= 0)
		return -EBADMSG;
	if (ret_message && json_object_object_get_ex(error, "message", &text))
		*ret_message = strdup(json_object_get_string(text));
	return -json_object_get_int(number);
}

/* 1: more parts follow. */
static int take_message(struct json_object *message, const struct zf_control_parts *parts,
			struct json_object **ret_result, char **ret_message)
{
	struct json_object *value;
	int r;

	if (json_object_object_get_ex(message, "error", &value))
		return take_error(value, ret_message);
	if (json_object_object_get_ex(message, "part", &value) && parts) {
		r = parts->take(parts->arg, value);
		return r < 0 ? r : 1;
	}
	if (!json_object_object_get_ex(message, "result", &value))
		return -EBADMSG;
	*ret_result = json_object_get(value);
	return 0;
}

int zf_ctl_receive(int fd, const struct zf_control_parts *parts, struct json_object **ret_result,
		   char **ret_message)
{
	struct zf_ctl_inbox inbox = {.size_max = ZF_CONTROL_ANSWER_MAX};
	int r;

	if (ret_message)
		*ret_message = NULL;
	do {
		_json_ struct json_object *message = NULL;

		r = zf_ctl_read_message(&inbox, fd, &message);
		if (r == 0)
			r = take_message(message, parts, ret_result, ret_message);
	} while (r == 1);
	zf_ctl_inbox_deinit(&inbox);
	return r;
}

int zf_ctl_call(const char *path, const char *command, struct json_object *args,
		struct json_object **ret_result, char **ret_message)
{
	_zf_close_ int fd = -1;
	int r = zf_ctl_connect(path, &fd);

	if (ret_message)
		*ret_message = NULL;
	if (r == 0)
		r = zf_ctl_send(fd, command, args);
	return r < 0 ? r : zf_ctl_receive(fd, NULL, ret_result, ret_message);
}

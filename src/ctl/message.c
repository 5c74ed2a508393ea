/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/ctl.h"

#define FIRST_SIZE ((size_t)4096)

/* ---- sending ---- */

static int write_all(int fd, const char *buf, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

int zf_control_write_message(int fd, struct json_object *message)
{
	size_t len;
	const char *text = json_object_to_json_string_length(message, JSON_C_TO_STRING_PLAIN, &len);
	int r;

	if (!text)
		return -ENOMEM;
	r = write_all(fd, text, len);
	return r < 0 ? r : write_all(fd, "\n", 1);
}

/* ---- receiving ---- */

void zf_control_inbox_deinit(struct zf_control_inbox *inbox)
{
	free(inbox->buf);
}

static int make_room(struct zf_control_inbox *inbox)
{
	size_t size = inbox->size == 0 ? FIRST_SIZE : inbox->size * 2;
	char *buf;

	if (inbox->taken > 0) {
		inbox->len -= inbox->taken;
		memmove(inbox->buf, inbox->buf + inbox->taken, inbox->len);
		inbox->taken = 0;
	}
	if (inbox->len < inbox->size)
		return 0;
	if (inbox->size == inbox->size_max)
		return -EMSGSIZE;
	if (size > inbox->size_max)
		size = inbox->size_max;
	buf = realloc(inbox->buf, size);
	if (!buf)
		return -ENOMEM;
	inbox->buf = buf;
	inbox->size = size;
	return 0;
}

int zf_control_inbox_fill(struct zf_control_inbox *inbox, int fd)
{
	int r = make_room(inbox);
	ssize_t n;

	if (r < 0)
		return r;
	do
		n = read(fd, inbox->buf + inbox->len, inbox->size - inbox->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	inbox->len += (size_t)n;
	return n == 0 ? -ECONNRESET : 0;
}

static int parse(const char *line, size_t len, struct json_object **ret_message)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *message;

	if (!tokener)
		return -ENOMEM;
	message = json_tokener_parse_ex(tokener, line, (int)len);
	json_tokener_free(tokener);
	if (!json_object_is_type(message, json_type_object)) {
		json_object_put(message);
		return -EBADMSG;
	}
	*ret_message = message;
	return 1;
}

/* A newline ends a message: JSON's own newlines are escaped. */
int zf_control_inbox_next(struct zf_control_inbox *inbox, struct json_object **ret_message)
{
	const char *line = inbox->buf + inbox->taken, *end;
	size_t waiting = inbox->len - inbox->taken;

	if (waiting == inbox->searched)
		return 0;
	end = memchr(line + inbox->searched, '\n', waiting - inbox->searched);
	if (!end) {
		inbox->searched = waiting;
		return 0;
	}
	inbox->searched = 0;
	inbox->taken += (size_t)(end - line) + 1;
	return parse(line, (size_t)(end - line), ret_message);
}

int zf_control_read_message(struct zf_control_inbox *inbox, int fd,
			    struct json_object **ret_message)
{
	int r;

	while ((r = zf_control_inbox_next(inbox, ret_message)) == 0) {
		r = zf_control_inbox_fill(inbox, fd);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

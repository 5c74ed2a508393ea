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

/* Room for the control data of a message: one descriptor. */
union passed {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

/* Writes one byte, and passes the descriptor with it. */
static int write_with_fd(int fd, const char *byte, int passed_fd)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)byte, .iov_len = 1};
	union passed passed = {
		.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
			   .cmsg_level = SOL_SOCKET,
			   .cmsg_type = SCM_RIGHTS},
	};
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &passed,
		.msg_controllen = sizeof(passed),
	};
	ssize_t n;

	memcpy(CMSG_DATA(&passed.header), &passed_fd, sizeof(passed_fd));
	do
		n = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int zf_ctl_write_message(int fd, struct json_object *message, int passed_fd)
{
	size_t len, sent = 0;
	const char *text = json_object_to_json_string_length(message, JSON_C_TO_STRING_PLAIN, &len);
	int r = 0;

	if (!text)
		return -ENOMEM;
	if (passed_fd >= 0) {
		r = write_with_fd(fd, text, passed_fd);
		sent = 1;
	}
	if (r == 0)
		r = write_all(fd, text + sent, len - sent);
	return r < 0 ? r : write_all(fd, "\n", 1);
}

/* ---- receiving ---- */

void zf_ctl_inbox_deinit(struct zf_ctl_inbox *inbox)
{
	int fd = zf_ctl_inbox_take_fd(inbox);

	if (fd >= 0)
		close(fd);
	free(inbox->buf);
}

int zf_ctl_inbox_take_fd(struct zf_ctl_inbox *inbox)
{
	int fd = inbox->has_fd ? inbox->passed_fd : -1;

	inbox->has_fd = false;
	return fd;
}

static void keep_fd(struct zf_ctl_inbox *inbox, const struct cmsghdr *passed)
{
	int before = zf_ctl_inbox_take_fd(inbox);

	if (before >= 0)
		close(before);
	memcpy(&inbox->passed_fd, CMSG_DATA(passed), sizeof(inbox->passed_fd));
	inbox->has_fd = true;
}

/*
 * msg_controllen leaves room for one descriptor; the kernel closes any others that came with it.
 * (CMSG_SPACE() would have room for a second.)
 */
static ssize_t receive(struct zf_ctl_inbox *inbox, int fd, void *buf, size_t size)
{
	struct iovec iov = {.iov_base = buf, .iov_len = size};
	union passed passed;
	struct msghdr header = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &passed,
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	ssize_t n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *with = n < 0 ? NULL : CMSG_FIRSTHDR(&header);

	if (with && with->cmsg_level == SOL_SOCKET && with->cmsg_type == SCM_RIGHTS &&
	    with->cmsg_len == CMSG_LEN(sizeof(int)))
		keep_fd(inbox, with);
	return n;
}

static int make_room(struct zf_ctl_inbox *inbox)
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

int zf_ctl_inbox_fill(struct zf_ctl_inbox *inbox, int fd)
{
	int r = make_room(inbox);
	ssize_t n;

	if (r < 0)
		return r;
	do
		n = inbox->takes_fd
			    ? receive(inbox, fd, inbox->buf + inbox->len, inbox->size - inbox->len)
			    : read(fd, inbox->buf + inbox->len, inbox->size - inbox->len);
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

/* A newline ends a message; newlines in JSON strings are escaped. */
int zf_ctl_inbox_next(struct zf_ctl_inbox *inbox, struct json_object **ret_message)
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

int zf_ctl_read_message(struct zf_ctl_inbox *inbox, int fd, struct json_object **ret_message)
{
	int r;

	while ((r = zf_ctl_inbox_next(inbox, ret_message)) == 0) {
		r = zf_ctl_inbox_fill(inbox, fd);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Asking a running daemon: what the daemon and its clients share.
 *
 * A mounted filesystem has one socket, whose path follows from the st_dev that stat() gives for any
 * file in the mount, so a client needs only a path in the mount. The socket's directory belongs to
 * the daemon's user and has mode 0700, the socket 0600. The kernel never gives a device number to
 * two mounts at once, but reuses it later: a socket on which no process listens is a leftover of a
 * daemon that was killed.
 *
 * One connection carries one request and its answer. Each message is a JSON object followed by a
 * newline:
 *
 *     {"command": "tree", "args": {"tree": "fs"}}
 *
 *     {"part": {...}}   any number of times (most commands send none); then
 *     {"result": ...}   or   {"error": {"errno": 22, "message": "..."}}
 *
 * Errors have the numbers of the daemon's kernel, which is also the client's kernel. A connection
 * that ends without an answer means that the daemon died: -ECONNRESET.
 *
 * There are two kinds of commands. The commands of ctl/report.h use the filesystem and not the
 * daemon, so a program that opens a device itself can run the same code. The others only the daemon
 * can answer (fuse/control.h): "daemon", "requests", "latencies", "wait", "trace_start",
 * "trace_stop".
 *
 * Read next: fuse/control.h, the server.
 */
#ifndef ZF_CTL_CTL_H
#define ZF_CTL_CTL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Receives an answer in parts, before its end. The whole answer is the union of its parts and its
 * result: an object with the members of all of them, in which arrays of the same name are
 * concatenated. So an answer of any size takes little memory, in the daemon and in the client.
 */
struct zf_control_parts {
	/* The caller keeps its reference to the part. An error ends the answer. */
	int (*take)(void *arg, struct json_object *part);
	void *arg;
};

/* ---- where the socket is ---- */

#define ZF_CONTROL_PATH_MAX 108 /* sun_path */

/*
 * The socket of the mount `st_dev` whose daemon runs as `uid`: /run/zfuse/MAJOR:MINOR.sock for
 * root. For other users the same name below $XDG_RUNTIME_DIR of this process, or below
 * /run/user/UID if that is not set or `uid` is another user. -ENAMETOOLONG.
 */
int zf_ctl_path(dev_t st_dev, uid_t uid, char ret_path[ZF_CONTROL_PATH_MAX]);

/* ---- client ---- */

/*
 * Connects to the daemon that serves `path`, a mountpoint or any file in it: tries a daemon of root
 * first, then one of this user. *ret_fd is the connection. -ENOTCONN: neither of them serves it.
 * -EACCES: the daemon is another user's.
 */
int zf_ctl_connect(const char *path, int *ret_fd);
int zf_ctl_connect_dev(dev_t st_dev, int *ret_fd);

/* Sends a request. `args` may be NULL; the caller keeps its reference. */
int zf_ctl_send(int fd, const char *command, struct json_object *args);
/* The same, and passes a copy of `passed_fd` to the daemon. The caller keeps `passed_fd`. */
int zf_ctl_send_with(int fd, const char *command, struct json_object *args, int passed_fd);
/*
 * Waits for the answer, from a connection or from a file with a copy of an answer. An error of the
 * daemon is returned with its number; if ret_message is not NULL, it gets the daemon's message
 * about it (to be freed; NULL if there is none). `parts` may be NULL for commands whose answers
 * have none.
 */
int zf_ctl_receive(int fd, const struct zf_control_parts *parts, struct json_object **ret_result,
		   char **ret_message);

/* connect, send, receive, close. */
int zf_ctl_call(const char *path, const char *command, struct json_object *args,
		struct json_object **ret_result, char **ret_message);

/* ---- both ends ---- */

/* Writes one object and its newline, and passes a copy of a descriptor (-1: none). 0 or -errno. */
int zf_ctl_write_message(int fd, struct json_object *message, int passed_fd);

/*
 * Bytes that have come on a connection and are not a whole message yet. Begins as zeroes, except
 * for size_max.
 */
struct zf_ctl_inbox {
	size_t size_max; /* of a message */
	bool takes_fd;	 /* it is a socket, and the sender may pass a descriptor */
	char *buf;
	size_t size, len;
	size_t taken;	 /* of buf: messages that zf_ctl_inbox_next() has returned */
	size_t searched; /* bytes behind `taken` that have no newline */
	bool has_fd;
	int passed_fd; /* the last that came; closed with the inbox */
};

void zf_ctl_inbox_deinit(struct zf_ctl_inbox *inbox);
/* Returns the descriptor that was passed, which the caller then owns. -1: there is none. */
int zf_ctl_inbox_take_fd(struct zf_ctl_inbox *inbox);
/*
 * Reads once. -ECONNRESET at the end of the connection, -EMSGSIZE when a message is too long,
 * -EAGAIN if the descriptor does not block and has no data.
 */
int zf_ctl_inbox_fill(struct zf_ctl_inbox *inbox, int fd);
/*
 * 1: a message was returned; 0: there is no whole message; -EBADMSG: the message is no JSON object.
 */
int zf_ctl_inbox_next(struct zf_ctl_inbox *inbox, struct json_object **ret_message);
/* Fills the inbox until it has a message, and returns that: 0. */
int zf_ctl_read_message(struct zf_ctl_inbox *inbox, int fd, struct json_object **ret_message);

#define ZF_CONTROL_REQUEST_MAX ((size_t)64 << 10)
#define ZF_CONTROL_ANSWER_MAX  ((size_t)64 << 20) /* of one part */

#endif

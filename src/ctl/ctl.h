/* SPDX-License-Identifier: MIT */
/*
 * Asking a running daemon: what it and the programs that ask it share.
 *
 * A mounted filesystem has one socket, whose path follows from the st_dev that stat() gives for
 * anything in the mount; so a program needs nothing but a path in the mount. Its directory belongs
 * to the daemon's user and has mode 0700, the socket 0600. The kernel never gives a device number
 * to two mounts at once, but gives it again later: a socket that nobody listens on is a leftover of
 * a daemon that was killed.
 *
 * One connection carries one request and its answer, JSON objects followed by a newline each:
 *
 *     {"command": "tree", "args": {"tree": "fs"}}
 *
 *     {"part": {...}}   as often as it takes, which is never for most commands; then
 *     {"result": ...}   or   {"error": {"errno": 22, "message": "..."}}
 *
 * Errors travel with the numbers of the daemon's kernel, which is the client's. A connection that
 * ends without an answer means that the daemon died: -ECONNRESET.
 *
 * Commands are of two kinds. Those of ctl/report.h know the filesystem, not the daemon, so that a
 * program which opens a device itself can run the same code. Others only the daemon can answer
 * (fuse/control.h): "daemon", "requests", "latencies", "wait", "trace_start", "trace_stop".
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
 * Who is given an answer in parts, before its end. An answer is what its parts and its result are
 * together: an object with the members of all, in which arrays of one name are one array. So an
 * answer of any size takes little memory, here and there.
 */
struct zf_control_parts {
	/* The part stays the caller's. An error ends the answer. */
	int (*take)(void *arg, struct json_object *part);
	void *arg;
};

/* ---- where the socket is ---- */

#define ZF_CONTROL_PATH_MAX 108 /* sun_path */

/*
 * The socket of the mount `st_dev` whose daemon runs as `uid`: /run/zfuse/MAJOR:MINOR.sock for
 * root, the same below $XDG_RUNTIME_DIR (of this process; /run/user/UID if that is another user's)
 * for others. -ENAMETOOLONG.
 */
int zf_ctl_path(dev_t st_dev, uid_t uid, char ret_path[ZF_CONTROL_PATH_MAX]);

/* ---- client ---- */

/*
 * Connects to the daemon that serves `path`, a mountpoint or anything in it: root's, then this
 * user's. Returns a descriptor. -ENOTCONN: no daemon of ours serves it. -EACCES: another user's.
 */
int zf_ctl_connect(const char *path, int *ret_fd);
int zf_ctl_connect_dev(dev_t st_dev, int *ret_fd);

/* Sends a request; `args` may be NULL and stays the caller's. */
int zf_ctl_send(int fd, const char *command, struct json_object *args);
/* The same with a descriptor for the daemon, a copy of `passed_fd`, which stays the caller's. */
int zf_ctl_send_with(int fd, const char *command, struct json_object *args, int passed_fd);
/*
 * Waits for the answer, from a connection or a file that it was copied to. An error of the daemon's
 * is returned as it was there; if ret_message is not NULL, it gets what the daemon said about it
 * (to be freed; NULL if nothing). `parts` may be NULL for commands whose answers have none.
 */
int zf_ctl_receive(int fd, const struct zf_control_parts *parts, struct json_object **ret_result,
		   char **ret_message);

/* connect, send, receive, close. */
int zf_ctl_call(const char *path, const char *command, struct json_object *args,
		struct json_object **ret_result, char **ret_message);

/* ---- both ends ---- */

/* One object and its newline, with a copy of a descriptor (-1: none). 0 or -errno. */
int zf_ctl_write_message(int fd, struct json_object *message, int passed_fd);

/* What has come on a connection and is not a whole message yet. Begins as zeroes but for size_max.
 */
struct zf_ctl_inbox {
	size_t size_max; /* of a message */
	bool takes_fd;	 /* it is a socket, and who sends may pass a descriptor */
	char *buf;
	size_t size, len;
	size_t taken;	 /* of buf: messages that zf_ctl_inbox_next() has returned */
	size_t searched; /* behind these, without a newline */
	bool has_fd;
	int passed_fd; /* the last one; closed with the inbox */
};

void zf_ctl_inbox_deinit(struct zf_ctl_inbox *inbox);
/* Hands over the descriptor that was passed; -1: none was. */
int zf_ctl_inbox_take_fd(struct zf_ctl_inbox *inbox);
/*
 * Reads once. -ECONNRESET at the end of the connection, -EMSGSIZE when a message is too long,
 * -EAGAIN where the descriptor does not block and has nothing.
 */
int zf_ctl_inbox_fill(struct zf_ctl_inbox *inbox, int fd);
/* 1 and a message; 0: there is no whole one; -EBADMSG: it is no JSON object. */
int zf_ctl_inbox_next(struct zf_ctl_inbox *inbox, struct json_object **ret_message);
/* The two together, until there is a message: 0. */
int zf_ctl_read_message(struct zf_ctl_inbox *inbox, int fd, struct json_object **ret_message);

#define ZF_CONTROL_REQUEST_MAX ((size_t)64 << 10)
#define ZF_CONTROL_ANSWER_MAX  ((size_t)64 << 20) /* of one part */

#endif

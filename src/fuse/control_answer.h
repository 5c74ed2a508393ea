/* SPDX-License-Identifier: MIT */
/* What the control socket answers to one request (fuse/control.h lists them). */
#ifndef ZF_FUSE_CONTROL_ANSWER_H
#define ZF_FUSE_CONTROL_ANSWER_H

#include "ctl/ctl.h"

struct zf_daemon;

/*
 * Does the request ask for the command `name`? A request comes from outside and may be any JSON
 * object.
 */
bool zf_control_is_command(struct json_object *request, const char *name);

/*
 * Runs a request and sends its answer. It may wait, for the filesystem and for the client. Takes
 * over `passed_fd`, which came with the request; -1: none did.
 */
void zf_control_run(struct zf_daemon *daemon, struct json_object *request, int fd, int passed_fd);

/* Sends an answer; takes over the reference to `result`, which may be NULL. */
void zf_control_answer(int fd, int error, struct json_object *result);

#endif

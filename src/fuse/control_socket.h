/* SPDX-License-Identifier: MIT */
/* The name of the control socket in the file system (ctl/ctl.h). */
#ifndef ZF_FUSE_CONTROL_SOCKET_H
#define ZF_FUSE_CONTROL_SOCKET_H

#include <sys/types.h>

/* Makes the socket, and its directory. The descriptor does not block. */
int zf_control_listen(const char *path, int *ret_fd, ino_t *ret_ino);

/*
 * Whether the client at the other end is root, or who runs the daemon: 0 or -EACCES. The folder lets in
 * no others, unless somebody has changed its mode.
 */
int zf_control_check_peer(int fd);

/* Removes its name, unless the name is another socket's by now. */
void zf_control_unlink(const char *path, ino_t ino);

#endif

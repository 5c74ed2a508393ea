/* SPDX-License-Identifier: MIT */
/* The name of the control socket in the file system (ctl/ctl.h). */
#ifndef ZF_FUSE_CONTROL_SOCKET_H
#define ZF_FUSE_CONTROL_SOCKET_H

#include <sys/types.h>

/* Makes the socket, and its directory. The descriptor does not block. */
int zf_control_listen(const char *path, int *ret_fd, ino_t *ret_ino);

/*
 * 0: the client at the other end is root, or the user who runs the daemon. -EACCES: any other user.
 * The folder's mode keeps other users out already, unless it was changed.
 */
int zf_control_check_peer(int fd);

/* Removes the socket's name, unless the name belongs to another socket by now. */
void zf_control_unlink(const char *path, ino_t ino);

#endif

/* SPDX-License-Identifier: MIT */
#include "fuse/control_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"

static int make_directory(const char *socket_path)
{
	char directory[ZF_CONTROL_PATH_MAX];
	struct stat st;

	strcpy(directory, socket_path);
	*strrchr(directory, '/') = '\0';
	if (mkdir(directory, 0700) == 0)
		return 0;
	if (errno != EEXIST || lstat(directory, &st) < 0)
		return -errno;
	/* In a directory that other users can write, they could put a socket of their own. */
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

int zf_control_listen(const char *path, int *ret_fd, ino_t *ret_ino)
{
	struct stat st;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_zf_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = make_directory(path);
	if (r < 0)
		return r;
	/*
	 * The kernel gave the device number to our mount, so a socket of this name belongs to a
	 * daemon that is gone, or going.
	 */
	unlink(path);
	strcpy(address.sun_path, path);
	/* No client can connect before listen(), and the mode is right by then. */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, 0600) < 0 ||
	    stat(path, &st) < 0 || listen(fd, 64) < 0)
		return -errno;
	*ret_ino = st.st_ino;
	*ret_fd = zf_steal_fd(&fd);
	return 0;
}

int zf_control_check_peer(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	return peer.uid == 0 || peer.uid == geteuid() ? 0 : -EACCES;
}

void zf_control_unlink(const char *path, ino_t ino)
{
	struct stat st;

	if (stat(path, &st) == 0 && st.st_ino == ino)
		unlink(path);
}

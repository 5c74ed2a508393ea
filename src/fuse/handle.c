/* SPDX-License-Identifier: MIT */
#include "fuse/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "fuse/open_inode.h"

int zf_handle_new(const struct zf_daemon *daemon, struct fuse_file_info *fi)
{
	struct zf_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return -ENOMEM;
	handle->inode = zf_open_inode_spare();
	if (!handle->inode) {
		free(handle);
		return -ENOMEM;
	}
	handle->writable = (fi->flags & O_ACCMODE) != O_RDONLY;
	/* O_DSYNC is a bit of O_SYNC. */
	handle->durable = (fi->flags & O_DSYNC) || daemon->options.sync;
	fi->fh = (uintptr_t)handle;
	return 0;
}

void zf_handle_free(struct zf_daemon *daemon, struct fuse_file_info *fi)
{
	struct zf_handle *handle = zf_handle_of(fi);

	if (!handle)
		return;
	zf_open_inode_detach(daemon->open_inodes, handle);
	free(handle);
	fi->fh = 0;
}

struct zf_handle *zf_handle_of(const struct fuse_file_info *fi)
{
	return fi ? (struct zf_handle *)(uintptr_t)fi->fh : NULL;
}

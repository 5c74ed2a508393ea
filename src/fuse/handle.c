/* SPDX-License-Identifier: MIT */
#include "fuse/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

int zf_handle_new(const struct zf_daemon *daemon, struct fuse_file_info *fi)
{
	struct zf_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return -ENOMEM;
	handle->writable = (fi->flags & O_ACCMODE) != O_RDONLY;
	/* O_DSYNC is a bit of O_SYNC. */
	handle->durable = (fi->flags & O_DSYNC) || daemon->options.sync;
	fi->fh = (uintptr_t)handle;
	return 0;
}

static unsigned int counter_of(uint64_t ino)
{
	return (unsigned int)(ino % ZF_WRITER_COUNTERS);
}

void zf_handle_free(struct zf_daemon *daemon, struct fuse_file_info *fi)
{
	struct zf_handle *handle = zf_handle_of(fi);

	if (handle && handle->writer_of != 0)
		atomic_fetch_sub(&daemon->writers[counter_of(handle->writer_of)], 1);
	free(handle);
	fi->fh = 0;
}

void zf_handle_count_writer(struct zf_daemon *daemon, struct zf_handle *handle, uint64_t ino)
{
	if (!handle->writable)
		return;
	handle->writer_of = ino;
	atomic_fetch_add(&daemon->writers[counter_of(ino)], 1);
}

bool zf_handle_may_be_written(const struct zf_daemon *daemon, uint64_t ino)
{
	return atomic_load(&daemon->writers[counter_of(ino)]) > 0;
}

struct zf_handle *zf_handle_of(const struct fuse_file_info *fi)
{
	return fi ? (struct zf_handle *)(uintptr_t)fi->fh : NULL;
}

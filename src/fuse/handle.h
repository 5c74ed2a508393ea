/* SPDX-License-Identifier: MIT */
/*
 * An open file: what the daemon has to know of it until it is closed.
 *
 * The kernel keeps the handle's address (fi->fh) from the answer to OPEN, CREATE or TMPFILE on,
 * hands it back with each request on that open file, and sends RELEASE after the last of them. So a
 * handle is constant while requests use it, but for the cursor, and needs no lock. A directory has
 * none: OPENDIR is never sent.
 */
#ifndef ZF_FUSE_HANDLE_H
#define ZF_FUSE_HANDLE_H

#include <stdbool.h>

#include "fuse/daemon.h"

struct zf_handle {
	bool direct; /* opened with FOPEN_DIRECT_IO: each write is a WRITE */
	bool writable;
	bool durable; /* opened with O_SYNC or O_DSYNC, which F_SETFL cannot change */
	struct zf_error_cursor
		errors; /* of a regular file: what of its write errors was told by it */
};

/* Of a file that is being opened as fi says; fi then names the handle. -ENOMEM. */
int zf_handle_new(struct fuse_file_info *fi);
/* Forgets the handle that fi names, if any. */
void zf_handle_free(struct fuse_file_info *fi);
/* NULL: fi is NULL, or of a directory. */
struct zf_handle *zf_handle_of(const struct fuse_file_info *fi);

#endif

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

#include <bsd/sys/queue.h>
#include <stdbool.h>

#include "fuse/daemon.h"

struct zf_open_inode;

struct zf_handle {
	LIST_ENTRY(zf_handle)
	link; /* of the table of open inodes, as long as it is attached; under its lock */
	struct zf_open_inode *inode; /* until it is attached, memory for one */
	bool attached;		     /* open_inode.h */
	bool direct;		     /* opened with FOPEN_DIRECT_IO: each write is a WRITE */
	bool writable;
	/*
	 * What changes the file's content through it is to be durable when answered: opened with O_SYNC or O_DSYNC, which
	 * F_SETFL cannot change, or on a mount with the option sync.
	 */
	bool durable;
	struct zf_error_cursor
		errors; /* of a regular file: which of its write errors this open file was told of */
};

/* Of a file that is being opened as fi says; fi then names the handle. -ENOMEM. */
int zf_handle_new(const struct zf_daemon *daemon, struct fuse_file_info *fi);
/* Forgets the handle that fi names, if any. */
void zf_handle_free(struct zf_daemon *daemon, struct fuse_file_info *fi);
/* NULL: fi is NULL, or of a directory. */
struct zf_handle *zf_handle_of(const struct fuse_file_info *fi);

#endif

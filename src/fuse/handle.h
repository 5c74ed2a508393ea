/* SPDX-License-Identifier: MIT */
/*
 * An open file: what the daemon has to know about it until it is closed.
 *
 * The kernel gets the handle's address (fi->fh) with the answer to OPEN, CREATE or TMPFILE, sends
 * it with each request on that open file, and sends RELEASE after the last of them. So a handle
 * does not change while requests use it, except for its error cursor, and needs no lock. A
 * directory has no handle: OPENDIR is never sent.
 */
#ifndef ZF_FUSE_HANDLE_H
#define ZF_FUSE_HANDLE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>

#include "fuse/daemon.h"

struct zf_open_inode;

struct zf_handle {
	LIST_ENTRY(zf_handle)
	link; /* in the table of open inodes, under its lock; while `attached` */
	struct zf_open_inode *inode; /* before the handle is attached: memory for an inode */
	bool attached;		     /* open_inode.h */
	bool direct;		     /* opened with FOPEN_DIRECT_IO: each write is a WRITE */
	bool writable;
	/*
	 * A change of the file's content through this handle must be durable when it is answered:
	 * the file was opened with O_SYNC or O_DSYNC, which F_SETFL cannot change, or the mount has
	 * the option sync.
	 */
	bool durable;
	struct zf_error_cursor
		errors; /* of a regular file: the write errors that this open file was told of */
};

/* Makes a handle for a file that is opened as fi says, and stores it in fi. -ENOMEM. */
int zf_handle_new(const struct zf_daemon *daemon, struct fuse_file_info *fi);
/* Frees the handle that fi names, if any. */
void zf_handle_free(struct zf_daemon *daemon, struct fuse_file_info *fi);
/* NULL: fi is NULL, or belongs to a directory. */
struct zf_handle *zf_handle_of(const struct fuse_file_info *fi);

#endif

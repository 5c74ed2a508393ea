/* SPDX-License-Identifier: MIT */
/*
 * An open file: what the daemon has to know of it until it is closed.
 *
 * The kernel keeps the handle's address (fi->fh) from the answer to OPEN, CREATE or TMPFILE on, hands it
 * back with each request on that open file, and sends RELEASE after the last of them. So a handle is
 * constant while requests use it, and needs no lock. A directory has none: OPENDIR is never sent.
 *
 * The daemon also counts the handles that are open for writing, by a hash of the file's number: a counter may
 * count for several files, and so says for certain only that nobody has a file open for writing.
 */
#ifndef ZF_FUSE_HANDLE_H
#define ZF_FUSE_HANDLE_H

#include <stdbool.h>

#include "fuse/daemon.h"

struct zf_handle {
	bool direct; /* opened with FOPEN_DIRECT_IO: each write is a WRITE */
	bool writable;
	/*
	 * What changes the file's content through it is to be durable when answered: opened with O_SYNC or O_DSYNC, which
	 * F_SETFL cannot change, or on a mount with the option sync.
	 */
	bool durable;
	uint64_t writer_of; /* the file that it counts as a writer of; 0: of none */
};

/* Of a file that is being opened as fi says; fi then names the handle. -ENOMEM. */
int zf_handle_new(const struct zf_daemon *daemon, struct fuse_file_info *fi);
/* Forgets the handle that fi names, if any. */
void zf_handle_free(struct zf_daemon *daemon, struct fuse_file_info *fi);
/* Before the kernel knows of the handle: it is that of this file. */
void zf_handle_count_writer(struct zf_daemon *daemon, struct zf_handle *handle, uint64_t ino);
/* False: nobody has the file open for writing. */
bool zf_handle_may_be_written(const struct zf_daemon *daemon, uint64_t ino);
/* NULL: fi is NULL, or of a directory. */
struct zf_handle *zf_handle_of(const struct fuse_file_info *fi);

#endif

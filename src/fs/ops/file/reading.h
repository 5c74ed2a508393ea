/* SPDX-License-Identifier: MIT */
/* The state of a read in two steps (zf_fs_read_begin()), between the steps. */
#ifndef ZF_FS_READING_H
#define ZF_FS_READING_H

#include "fs/core/inode.h"
#include "fs/data/content.h"

struct zf_reading {
	struct zf_inode *inode; /* a use of it */
	struct zf_ctx ctx;
	bool counts; /* the read counts for the access time */
	ssize_t len; /* the answer, if nothing goes wrong */
	struct zf_content content;

	/* The read that the caller carries out. */
	int fd;
	struct zf_read read;
	struct iovec iov; /* read.iov */
};

#endif

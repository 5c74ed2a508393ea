/* SPDX-License-Identifier: MIT */
/*
 * The content of a range of a file: found under the inode's lock, then read without it.
 *
 * Finding settles where every byte comes from: from memory, which is copied at once, from a hole,
 * or from an address on the device. An address that was found stays readable until it was read: its
 * zone is held against a reset (zf_alloc_read_begin()). A block in an overwrite zone is held against
 * another use (alloc/overwrite.h); a read that meets a write of the same block may see part of each.
 */
#ifndef ZF_FS_CONTENT_H
#define ZF_FS_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/map/extent.h"
#include "io/dev.h"

struct zf_inode;

/* Of one range, at most: 1 MiB, wherever it begins. */
#define ZF_CONTENT_BLOCKS 257u

/* On the caller's stack; its fields are the implementation's. */
struct zf_content {
	struct zf_extent_reader reader;
	uint64_t first;	    /* block of the file */
	unsigned int count; /* blocks */
	uint64_t from, to;  /* bytes of the file wanted, within the blocks */
	uint8_t *buf;	    /* for the byte at `from` ... */
	uint64_t buf_end;   /* ... and up to this one, which may be behind `to` */
	uint64_t source[ZF_CONTENT_BLOCKS];
	uint64_t csum[ZF_CONTENT_BLOCKS];
	bool in_place[ZF_CONTENT_BLOCKS]; /* without a checksum: fs/map/overwrite.h */
	bool holds;			  /* because of these ... */
	unsigned int hold;		  /* ... this: alloc/overwrite.h */
};

/*
 * Finds [from, to) of the file, which lies within ZF_CONTENT_BLOCKS blocks, and copies to `buf` what
 * is in memory. `buf` has room for `room` bytes, at least to - from. A block that is read from the
 * device may fill room behind `to`, too. 0: zf_content_get() must follow, on this thread or another.
 * Inode locked.
 */
int zf_content_find(struct zf_content *content, struct zf_inode *inode, uint64_t from, uint64_t to,
		    uint8_t *buf, size_t room);
/*
 * The rest of it, verified (P4). -EAGAIN: the device would have to be read, and may_wait is false.
 * -EIO was reported. Whatever it returns, nothing is held any more. No lock needed.
 */
int zf_content_get(struct zf_content *content, bool may_wait);

/*
 * zf_content_get() in two steps, for a caller that reads the device on a ring of its own. True: one
 * read is all that is missing. The caller carries out *ret_read, which names *ret_iov
 * (zf_dev_read_begin()), and then calls zf_content_came() if the read succeeded, otherwise
 * zf_content_get(); on any thread. False: zf_content_get() must follow.
 */
bool zf_content_wants_one(const struct zf_content *content, struct zf_read *ret_read,
			  struct iovec *ret_iov);
/* The bytes of that read are there: verifies them, and returns what zf_content_get() would. */
int zf_content_came(struct zf_content *content);

/*
 * One block as the trees have it, whatever is in memory: verified; holes give zeroes. `bytes` is
 * aligned. -EAGAIN: the device would have to be read. Inode locked exclusively.
 */
int zf_content_read_stored(struct zf_inode *inode, uint64_t index, bool may_wait, uint8_t *bytes);

#endif

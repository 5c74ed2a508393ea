/* SPDX-License-Identifier: MIT */
/*
 * The content of a range of a file: found under the inode's lock, then read without it.
 *
 * zf_content_find() finds the source of every byte: memory, a hole, or an address on the device.
 * Bytes in memory are copied at once. An address on the device stays readable until it has been
 * read: its zone is held against a reset (zf_alloc_read_begin()). A block in an overwrite zone is
 * held against another use (alloc/overwrite.h). A read of such a block during a write of the same
 * block may return a mix of old and new bytes.
 */
#ifndef ZF_FS_CONTENT_H
#define ZF_FS_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/map/extent.h"
#include "io/dev.h"

struct zf_inode;

/* The most blocks of one range: enough for 1 MiB at any offset. */
#define ZF_CONTENT_BLOCKS 257u

/* On the caller's stack. Its fields are private to content.c. */
struct zf_content {
	struct zf_extent_reader reader;
	uint64_t first;	    /* block of the file */
	unsigned int count; /* blocks */
	uint64_t from, to;  /* the wanted bytes of the file, within the blocks */
	uint8_t *buf;	    /* gets the byte at `from`, and those behind it */
	uint64_t buf_end;   /* file offset at which buf ends; may be behind `to` */
	uint64_t source[ZF_CONTENT_BLOCKS];
	uint64_t csum[ZF_CONTENT_BLOCKS];
	bool in_place[ZF_CONTENT_BLOCKS]; /* without a checksum: fs/map/overwrite.h */
	uint64_t resets;   /* of the zone of the last run that was found: zf_alloc_resets() */
	bool holds;	   /* `hold` is taken, because some are in place */
	unsigned int hold; /* alloc/overwrite.h */
};

/*
 * Finds [from, to) of the file, which lies within ZF_CONTENT_BLOCKS blocks, and copies the bytes
 * that are in memory to `buf`. `buf` has room for `room` bytes, at least to - from. A block that is
 * read from the device may fill room behind `to`, too. 0: zf_content_get() must follow, on this
 * thread or another. Inode locked.
 */
int zf_content_find(struct zf_content *content, struct zf_inode *inode, uint64_t from, uint64_t to,
		    uint8_t *buf, size_t room);
/*
 * Gets the rest of the content and verifies it (P4). -EAGAIN: the device would have to be read, and
 * may_wait is false. -EIO has been reported. In any case the call ends all holds. No lock needed.
 */
int zf_content_get(struct zf_content *content, bool may_wait);

/*
 * zf_content_get() in two steps, for a caller that reads the device with an io_uring of its own.
 * True: only one read is missing. The caller carries out *ret_read, which uses *ret_iov
 * (zf_dev_read_begin()). If the read succeeds, the caller then calls zf_content_came(), otherwise
 * zf_content_get(); on any thread. False: zf_content_get() must follow.
 */
bool zf_content_wants_one(const struct zf_content *content, struct zf_read *ret_read,
			  struct iovec *ret_iov);
/* Verifies the bytes of that read, and returns what zf_content_get() would return. */
int zf_content_came(struct zf_content *content);

/*
 * Reads one block as the trees have it, also if a newer version is in memory. The bytes are
 * verified; a hole gives zeroes. `bytes` is aligned. -EAGAIN: the device would have to be read, and
 * may_wait is false. Inode locked exclusively.
 */
int zf_content_read_stored(struct zf_inode *inode, uint64_t index, bool may_wait, uint8_t *bytes);

#endif

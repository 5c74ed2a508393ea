/* SPDX-License-Identifier: MIT */
/*
 * What fs/ops/fs.c and others do with the content of a file whose inode they have a use of. None of
 * these is called with a lock or a join held, except where it says so.
 */
#ifndef ZF_FS_FILE_H
#define ZF_FS_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct zf_ctx;
struct zf_extent_info;
struct zf_inode;
struct zf_reading;

/* The bodies of zf_fs_read() and zf_fs_write(): the inode's lock is taken inside. */
ssize_t zf_file_read(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset, void *buf,
		     size_t len);
/* And of zf_fs_read_begin(), of at most ZF_READING_MAX bytes, and zf_fs_read_end(). */
ssize_t zf_file_read_begin(struct zf_reading *reading, struct zf_inode *inode,
			   const struct zf_ctx *ctx, uint64_t offset, void *buf, size_t len);
ssize_t zf_file_read_end(struct zf_reading *reading, int64_t result);
ssize_t zf_file_write(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset,
		      const void *buf, size_t len, unsigned int flags);

/*
 * The body of zf_fs_copy_range(), for two files (or one) of which the caller has uses.
 * ctx->may_wait is set, no lock held.
 */
ssize_t zf_file_copy_range(struct zf_inode *in, struct zf_inode *out, const struct zf_ctx *ctx,
			   uint64_t offset_in, uint64_t offset_out, uint64_t len);

/*
 * Sets the size, mtime and ctime, and stores the item: inode locked exclusively by the caller, who
 * holds no join. Shrinking drops dirty blocks, revokes tickets and drops extents in as many
 * transactions as it takes, behind a persistent intent when it takes more than one. Growing makes
 * sure that what lies behind the old end reads as zeroes; where data has to land for that, the lock
 * is dropped and taken again. On an error nothing has changed, unless the filesystem is read-only
 * now.
 */
int zf_file_set_size(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t size);

int zf_file_seek(struct zf_inode *inode, uint64_t offset, int whence, uint64_t *ret_offset);
int zf_file_extents(struct zf_inode *inode, uint64_t offset, struct zf_extent_info *extents,
		    unsigned int max);

#endif

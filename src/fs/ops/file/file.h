/* SPDX-License-Identifier: MIT */
/*
 * Operations on the content of a file, for callers that have a use of its inode. The caller holds
 * no lock and no join, unless a function says otherwise.
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

/* The bodies of zf_fs_read() and zf_fs_write(). They take the inode's lock. */
ssize_t zf_file_read(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset, void *buf,
		     size_t len);
/* The bodies of zf_fs_read_begin(), for at most ZF_READING_MAX bytes, and of zf_fs_read_end(). */
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
 * Sets the size, mtime and ctime, and stores the item. The caller has locked the inode exclusively
 * and holds no join. Shrinking drops dirty blocks, revokes tickets, and drops extents in as many
 * transactions as needed; if there are several, an intent item in the tree lets a mount finish the
 * work after a crash. Growing makes sure that the bytes behind the old end read as zeroes; if data
 * has to land for that, the lock is released and taken again. After an error nothing has changed,
 * unless the filesystem is read-only now.
 */
int zf_file_set_size(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t size);

int zf_file_seek(struct zf_inode *inode, uint64_t offset, int whence, uint64_t *ret_offset);
int zf_file_extents(struct zf_inode *inode, uint64_t offset, struct zf_extent_info *extents,
		    unsigned int max);

#endif

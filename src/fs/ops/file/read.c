/* SPDX-License-Identifier: MIT */
/* Reading a file, up to its size as of each round. */
#include <errno.h>

#include "fs/core/access.h"
#include "fs/core/inode.h"
#include "fs/data/content.h"
#include "fs/ops/file/file.h"
#include "fs/ops/file/reading.h"

/*
 * Finds where the bytes of one round come from, and returns their number. 0: `offset` is not before
 * the end of the file as it is now. *counts: see fs/core/access.h. If the result is more than 0,
 * zf_content_get() or zf_content_came() must follow.
 */
static ssize_t find_round(struct zf_content *content, struct zf_inode *inode,
			  const struct zf_ctx *ctx, uint64_t offset, uint8_t *buf, size_t len,
			  bool *counts)
{
	uint64_t last = (offset >> ZF_BLOCK_SHIFT) + ZF_CONTENT_BLOCKS, to;
	int r = 0;

	zf_rwlock_rdlock(&inode->lock);
	*counts = zf_access_counts(inode, ctx);
	to = zf_min_u64(zf_min_u64(offset + len, last << ZF_BLOCK_SHIFT), inode->item.size);
	if (offset < to)
		r = zf_content_find(content, inode, offset, to, buf, len);
	zf_rwlock_unlock(&inode->lock);
	if (r < 0)
		return r;
	return offset < to ? (ssize_t)(to - offset) : 0;
}

static ssize_t read_round(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset,
			  uint8_t *buf, size_t len, bool *counts)
{
	struct zf_content content;
	ssize_t found = find_round(&content, inode, ctx, offset, buf, len, counts);
	int r = 0;

	if (found > 0)
		r = zf_content_get(&content, ctx->may_wait);
	return r < 0 ? r : found;
}

ssize_t zf_file_read(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset, void *buf,
		     size_t len)
{
	size_t done = 0;
	bool counts = false;

	if (offset >= ZF_FILE_SIZE_MAX)
		return 0;
	len = zf_min_u64(len, ZF_FILE_SIZE_MAX - offset);
	while (done < len) {
		ssize_t r = read_round(inode, ctx, offset + done, (uint8_t *)buf + done, len - done,
				       &counts);

		if (r < 0)
			return done > 0 && r != -EAGAIN ? (ssize_t)done : r;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	if (counts)
		zf_access_note(inode, ctx);
	return (ssize_t)done;
}

/* ---- in two steps ---- */

ssize_t zf_file_read_begin(struct zf_reading *reading, struct zf_inode *inode,
			   const struct zf_ctx *ctx, uint64_t offset, void *buf, size_t len)
{
	int r = 0;

	if (offset >= ZF_FILE_SIZE_MAX)
		return 0;
	len = zf_min_u64(len, ZF_FILE_SIZE_MAX - offset);
	reading->inode = inode;
	reading->ctx = *ctx;
	reading->len =
		find_round(&reading->content, inode, ctx, offset, buf, len, &reading->counts);
	if (reading->len < 0)
		return reading->len;
	if (reading->len > 0 &&
	    zf_content_wants_one(&reading->content, &reading->read, &reading->iov)) {
		reading->fd = zf_dev_read_begin(inode->fs->dev, &reading->read);
		if (reading->fd >= 0)
			return -EINPROGRESS;
	}
	if (reading->len > 0)
		r = zf_content_get(&reading->content, false);
	if (r == 0 && reading->counts)
		zf_access_note(inode, ctx);
	return r < 0 ? r : reading->len;
}

ssize_t zf_file_read_end(struct zf_reading *reading, int64_t result)
{
	int r;

	zf_dev_read_end(reading->inode->fs->dev, &reading->read, result);
	if (reading->read.result < 0)
		return zf_content_get(&reading->content, false); /* -EAGAIN */
	r = zf_content_came(&reading->content);
	if (r == 0 && reading->counts)
		zf_access_note(reading->inode, &reading->ctx);
	return r < 0 ? r : reading->len;
}

/* SPDX-License-Identifier: MIT */
/* Reading a file, up to its size as of each round. */
#include <errno.h>

#include "fs/core/access.h"
#include "fs/core/inode.h"
#include "fs/data/content.h"
#include "fs/ops/file/file.h"

/* The size counts as of this round: 0 behind the end. *counts: see fs/core/access.h. */
static ssize_t read_round(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset,
			  uint8_t *buf, size_t len, bool *counts)
{
	uint64_t last = (offset >> ZF_BLOCK_SHIFT) + ZF_CONTENT_BLOCKS, to;
	struct zf_content content;
	int r;

	zf_rwlock_rdlock(&inode->lock);
	*counts = zf_access_counts(inode, ctx);
	to = zf_min_u64(zf_min_u64(offset + len, last << ZF_BLOCK_SHIFT), inode->item.size);
	if (offset >= to) {
		zf_rwlock_unlock(&inode->lock);
		return 0;
	}
	r = zf_content_find(&content, inode, offset, to, buf);
	zf_rwlock_unlock(&inode->lock);
	if (r == 0)
		r = zf_content_get(&content, ctx->may_wait);
	return r < 0 ? r : (ssize_t)(to - offset);
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

/* SPDX-License-Identifier: MIT */
/* The public functions of the data path, and those for the filesystem as a whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/data/durable.h"
#include "fs/ops/attr/xattr.h"
#include "fs/ops/file/file.h"
#include "fs/ops/file/reading.h"

/* ---- data ---- */

static int get_file(struct zf_fs *fs, uint64_t ino, struct zf_inode **ret_inode)
{
	struct zf_inode *inode;
	int r = zf_inode_get(fs, ino, &inode);

	if (r < 0)
		return r;
	if (inode->type != S_IFREG) {
		r = inode->type == S_IFDIR ? -EISDIR : -EINVAL;
		zf_inode_put(inode);
		return r;
	}
	*ret_inode = inode;
	return 0;
}

static ssize_t read_file(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
			 void *buf, size_t len)
{
	struct zf_inode *inode;
	ssize_t r = get_file(fs, ino, &inode);

	if (r < 0)
		return r;
	r = zf_file_read(inode, ctx, offset, buf, len);
	zf_inode_put(inode);
	return r;
}

ssize_t zf_fs_read(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		   void *buf, size_t len)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_READ, ino, offset, len);
	ssize_t r = read_file(fs, ctx, ino, offset, buf, len);

	return (ssize_t)zf_trace_ended(began, ZF_OPERATION_READ, ino, r);
}

static ssize_t begin_reading(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
			     uint64_t offset, void *buf, size_t len,
			     struct zf_reading **ret_reading)
{
	struct zf_reading *reading;
	struct zf_inode *inode;
	ssize_t r = get_file(fs, ino, &inode);

	if (r < 0)
		return r;
	reading = malloc(sizeof(*reading));
	r = reading ? zf_file_read_begin(reading, inode, ctx, offset, buf, len) : -EAGAIN;
	if (r == -EINPROGRESS) {
		*ret_reading = reading;
		return r;
	}
	free(reading);
	zf_inode_put(inode);
	return r;
}

ssize_t zf_fs_read_begin(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
			 void *buf, size_t len, struct zf_reading **ret_reading,
			 struct zf_reading_wants *ret_wants)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_READ, ino, offset, len);
	ssize_t r = begin_reading(fs, ctx, ino, offset, buf, len, ret_reading);

	if (r == -EINPROGRESS)
		*ret_wants = (struct zf_reading_wants){.fd = (*ret_reading)->fd,
						       .iov = &(*ret_reading)->iov,
						       .offset = (*ret_reading)->read.addr};
	return (ssize_t)zf_trace_ended(began, ZF_OPERATION_READ, ino, r);
}

ssize_t zf_fs_read_end(struct zf_reading *reading, int64_t result)
{
	struct zf_inode *inode = reading->inode;
	uint64_t ino = inode->ino;
	uint64_t began = zf_trace_began(ZF_OPERATION_READ, ino, reading->content.from,
					(uint64_t)reading->len);
	ssize_t r = zf_file_read_end(reading, result);

	free(reading);
	zf_inode_put(inode);
	return (ssize_t)zf_trace_ended(began, ZF_OPERATION_READ, ino, r);
}

static ssize_t write_file(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
			  const void *buf, size_t len, unsigned int flags)
{
	struct zf_inode *inode;
	ssize_t r;

	if (fs->read_only)
		return -EROFS;
	r = get_file(fs, ino, &inode);
	if (r < 0)
		return r;
	r = zf_xattr_drop_capability(inode, ctx);
	if (r == 0)
		r = zf_file_write(inode, ctx, offset, buf, len, flags);
	zf_inode_put(inode);
	return r;
}

ssize_t zf_fs_write(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		    const void *buf, size_t len, unsigned int flags)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_WRITE, ino, offset, len);
	ssize_t r = write_file(fs, ctx, ino, offset, buf, len, flags);

	return (ssize_t)zf_trace_ended(began, ZF_OPERATION_WRITE, ino, r);
}

static ssize_t copy_range_to(struct zf_inode *in, uint64_t ino_out, const struct zf_ctx *ctx,
			     uint64_t offset_in, uint64_t offset_out, uint64_t len)
{
	struct zf_inode *out;
	ssize_t r = get_file(in->fs, ino_out, &out);

	if (r < 0)
		return r;
	r = zf_xattr_drop_capability(out, ctx);
	if (r == 0)
		r = zf_file_copy_range(in, out, ctx, offset_in, offset_out, len);
	zf_inode_put(out);
	return r;
}

static ssize_t copy_range(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino_in,
			  uint64_t offset_in, uint64_t ino_out, uint64_t offset_out, uint64_t len)
{
	struct zf_inode *in;
	ssize_t r;

	if (fs->read_only)
		return -EROFS;
	if (!ctx->may_wait)
		return -EAGAIN;
	r = get_file(fs, ino_in, &in);
	if (r < 0)
		return r;
	r = copy_range_to(in, ino_out, ctx, offset_in, offset_out, len);
	zf_inode_put(in);
	return r;
}

ssize_t zf_fs_copy_range(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino_in,
			 uint64_t offset_in, uint64_t ino_out, uint64_t offset_out, uint64_t len)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_COPY_RANGE, ino_in, offset_in, len);
	ssize_t r = copy_range(fs, ctx, ino_in, offset_in, ino_out, offset_out, len);

	return (ssize_t)zf_trace_ended(began, ZF_OPERATION_COPY_RANGE, ino_out, r);
}

static int sync_file(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, bool data_only)
{
	struct zf_inode *inode;
	int r;

	if (!ctx->may_wait && !ctx->may_wait_record)
		return -EAGAIN;
	r = zf_inode_get(fs, ino, &inode);
	if (r < 0)
		return r;
	if (fs->read_only)
		r = zf_write_error_tell(inode, &ctx->told);
	else if (ctx->may_wait)
		r = zf_durable_inode(inode, ctx, data_only);
	else
		r = zf_durable_by_record(inode, ctx, data_only);
	zf_inode_put(inode);
	return r;
}

int zf_fs_fsync(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, bool data_only)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_FSYNC, ino, 0, 0);
	int r = sync_file(fs, ctx, ino, data_only);

	return (int)zf_trace_ended(began, ZF_OPERATION_FSYNC, ino, r);
}

int zf_fs_sync_later(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		     zf_syncing_ended_fn *ended, void *arg)
{
	struct zf_inode *inode;
	int r;

	if (fs->read_only)
		return -EAGAIN;
	r = zf_inode_get(fs, ino, &inode);
	if (r < 0)
		return r;
	r = zf_durable_later(inode, ctx, ended, arg);
	if (r != -EINPROGRESS)
		zf_inode_put(inode);
	return r;
}

int zf_fs_sync_later_end(struct zf_syncing *syncing)
{
	uint64_t ino = syncing->inode->ino, began = syncing->began;
	int r = zf_durable_later_end(syncing);

	return (int)zf_trace_ended(began, ZF_OPERATION_FSYNC, ino, r);
}

static int sync_all(struct zf_fs *fs, const struct zf_ctx *ctx)
{
	int r, error;

	if (fs->read_only)
		return zf_write_errors_tell(fs, &ctx->told);
	if (!ctx->may_wait)
		return -EAGAIN;
	r = zf_data_flush_all(fs, true);
	if (r == 0)
		/* Data that was written in place is in no transaction. */
		r = zf_txn_flush(fs->txn, zf_dev_write_mark(fs->dev));
	if (r == 0)
		r = zf_txn_sync(fs->txn);
	error = zf_write_errors_tell(fs, &ctx->told);
	return r < 0 ? r : error;
}

int zf_fs_syncfs(struct zf_fs *fs, const struct zf_ctx *ctx)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_SYNCFS, 0, 0, 0);
	int r = sync_all(fs, ctx);

	return (int)zf_trace_ended(began, ZF_OPERATION_SYNCFS, 0, r);
}

int zf_fs_seek(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
	       int whence, uint64_t *ret_offset)
{
	struct zf_inode *inode;
	int r = get_file(fs, ino, &inode);

	if (r < 0)
		return r;
	r = zf_file_seek(inode, offset, whence, ret_offset);
	zf_inode_put(inode);
	return r;
}

int zf_fs_extents(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		  struct zf_extent_info *extents, unsigned int max)
{
	struct zf_inode *inode;
	int r = get_file(fs, ino, &inode);

	if (r < 0)
		return r;
	r = zf_file_extents(inode, offset, extents, max);
	zf_inode_put(inode);
	return r;
}

/* ---- the whole ---- */

/* Room for one more empty file, with its name: an estimate, for files_free. */
#define BYTES_PER_FILE 512u

int zf_fs_statfs(struct zf_fs *fs, struct zf_statfs *ret_statfs)
{
	const struct zf_counters *counters = zf_txn_counters(fs->txn);
	struct zf_space space;
	struct zf_le64 fsid;

	zf_alloc_get_space(fs->alloc, &space);
	memcpy(fsid.b, fs->super.fsid, sizeof(fsid.b));
	*ret_statfs = (struct zf_statfs){
		.block_size = ZF_BLOCK_SIZE,
		.blocks = space.total / ZF_BLOCK_SIZE,
		.blocks_free = space.available / ZF_BLOCK_SIZE,
		.blocks_available = space.allocatable / ZF_BLOCK_SIZE,
		.files = counters->inode_count + space.available / BYTES_PER_FILE,
		.files_free = space.available / BYTES_PER_FILE,
		.name_max = ZF_NAME_MAX,
		.fsid = zf_le64_get(fsid),
	};
	return 0;
}

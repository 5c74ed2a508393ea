/* SPDX-License-Identifier: MIT */
/* Files: open, read, write, fallocate, sync, seek. */
#include "fuse/ops.h"
#include "fuse/ring_read.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuse/contiguous.h"
#include "fuse/drop_pages.h"
#include "fuse/marks.h"
#include "fuse/open_inode.h"
#include "fuse/sync_later.h"

/* ---- setuid and setgid ---- */

/*
 * With KILLPRIV_V2 the daemon has to drop setuid and setgid on a write or truncation, but the
 * kernel continues with the mode that it has cached. So the daemon tells the kernel before the
 * answer, and no program sees the old mode after the answer.
 */
static bool has_suidgid(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_attr attr;

	return zf_fs_getattr(daemon->fs, &call->ctx, call->ino, &attr) == 0 &&
	       (attr.mode & (S_ISUID | S_ISGID)) != 0;
}

void zf_fuse_forget_attr(struct zf_daemon *daemon, uint64_t ino)
{
	/*
	 * The offset -1 means attributes only, no pages. The sender of the change holds the inode's
	 * lock until the answer, so the notice does not wait for an inode that is being evicted.
	 */
	fuse_lowlevel_notify_inval_inode(daemon->session, ino, -1, 0);
}

/* ---- open ---- */

/*
 * Dirty pages from the writeback cache say neither where a write began nor when it was made. So
 * appends, and writes that must be durable when they are answered, bypass the cache and come one by
 * one.
 */
static bool must_come_singly(const struct zf_daemon *daemon, const struct zf_attr *attr)
{
	return daemon->options.writeback && (attr->flags & (ZF_INODE_APPEND | ZF_INODE_SYNC));
}

void zf_fuse_file_set_up(struct zf_daemon *daemon, uint64_t ino, const struct zf_attr *attr,
			 struct fuse_file_info *fi)
{
	struct zf_handle *handle = zf_handle_of(fi);

	zf_fs_begin_errors(daemon->fs, ino, &handle->errors);
	/* Only this kernel writes, so the pages that it has cached of the file are right. */
	fi->keep_cache = 1;
	/*
	 * The daemon needs no FLUSH at close(). Under the writeback cache close() still writes the
	 * dirty pages.
	 */
	fi->noflush = 1;
	if ((fi->flags & O_DIRECT) || must_come_singly(daemon, attr)) {
		handle->direct = true;
		fi->direct_io = 1;
		fi->parallel_direct_writes = 1;
	}
	zf_open_inode_attach(daemon->open_inodes, ino, handle);
}

int zf_fuse_file_truncate(struct zf_daemon *daemon, struct zf_call *call, uint64_t ino,
			  struct zf_attr *ret_attr)
{
	struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = 0};
	int r;

	if (call->fi.kill_suidgid)
		set.valid |= ZF_SET_KILL_SUIDGID;
	r = zf_fs_setattr(daemon->fs, &call->ctx, ino, &set, ret_attr);
	if (r == 0 && call->fi.kill_suidgid)
		zf_fuse_forget_attr(daemon, ino);
	return r;
}

static int open_file(struct zf_daemon *daemon, struct zf_call *call)
{
	int flags = call->fi.flags, r = 0;
	struct zf_attr attr = {0};

	if ((flags & O_ACCMODE) != O_RDONLY)
		r = zf_fs_open(daemon->fs, &call->ctx, call->ino, flags, &attr);
	if (r == 0)
		zf_fuse_file_set_up(daemon, call->ino, &attr, &call->fi);
	return r;
}

static int run_open(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_handle_new(daemon, &call->fi);

	if (r < 0)
		return r;
	r = open_file(daemon, call);
	/* If the reply fails, the kernel never got the handle and sends no RELEASE for it. */
	if (r < 0 || fuse_reply_open(call->req, &call->fi) < 0)
		zf_handle_free(daemon, &call->fi);
	return r;
}

void zf_fuse_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct zf_call call = {
		.req = req, .kind = ZF_REQUEST_OPEN, .run = run_open, .ino = ino, .fi = *fi};

	zf_call_dispatch(&call);
}

/* No client waits for the answer to a RELEASE, so an error would reach nobody. */
static int run_release(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_close(daemon->fs, &call->ctx, call->ino);

	if (r == -EAGAIN)
		return r;
	fuse_reply_err(call->req, 0);
	return 0;
}

void zf_fuse_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct zf_daemon *daemon = fuse_req_userdata(req);
	struct zf_call call = {
		.req = req, .kind = ZF_REQUEST_RELEASE, .run = run_release, .ino = ino};

	zf_marks_drop(daemon->marks, fi->fh);
	zf_handle_free(daemon, fi);
	if ((fi->flags & O_ACCMODE) == O_RDONLY)
		fuse_reply_err(req, 0);
	else
		zf_call_dispatch(&call);
}

/* ---- read, write ---- */

/*
 * Does a READ fill pages of the kernel? A READ by a direct handle does so only for a mapping; for a
 * direct read the kernel sets lock_owner.
 */
static bool fills_pages(const struct fuse_file_info *fi)
{
	return !zf_handle_of(fi)->direct || fi->lock_owner == 0;
}

/*
 * For a direct read the kernel writes only the dirty pages of its range. Under the writeback cache
 * there may be dirty pages behind the range, which end the file later than the size that the daemon
 * knows. And the kernel takes a short answer for the end of the file.
 */
static bool may_end_later(const struct zf_call *call, size_t len)
{
	return call->inode && len < call->size && zf_open_inode_is_cached(call->inode);
}

static void answer_read(struct zf_daemon *daemon, struct zf_call *call, char *buf, ssize_t len)
{
	if (len < 0)
		fuse_reply_err(call->req, (int)-len);
	else if (!may_end_later(call, (size_t)len) ||
		 !zf_droppers_write_out(daemon->droppers, call))
		fuse_reply_buf(call->req, buf, (size_t)len);
}

static int run_read(struct zf_daemon *daemon, struct zf_call *call)
{
	ssize_t len;
	char *buf;
	int r = zf_call_buffer(call, call->size, &buf);

	if (r < 0)
		return r;
	if (fuse_req_is_uring(call->req) && call->thread != zf_thread_self()) /* at a worker */
		zf_contiguous_make(buf, call->size);
	if (zf_ring_read_suits(call))
		len = zf_ring_read(daemon, call, buf, answer_read);
	else
		len = zf_fs_read(daemon->fs, &call->ctx, call->ino, call->offset, buf, call->size);
	if (len < 0)
		return (int)len;
	answer_read(daemon, call, buf, len);
	return 0;
}

void zf_fuse_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		  struct fuse_file_info *fi)
{
	const struct zf_daemon *daemon = fuse_req_userdata(req);
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_READ,
		.run = run_read,
		.ino = ino,
		.size = size,
		.offset = (uint64_t)offset,
		.ctx.no_atime = (fi->flags & O_NOATIME) != 0,
	};

	if (fills_pages(fi))
		zf_open_inode_note_pages(zf_handle_of(fi), size);
	else if (daemon->options.writeback)
		call.inode = zf_handle_of(fi)->inode;
	zf_call_dispatch(&call);
}

/*
 * A WRITE by a handle that caches is a direct write, too, if F_SETFL has set O_DIRECT since the
 * open: for a direct write the kernel sets lock_owner.
 */
static bool is_direct_write(const struct fuse_file_info *fi)
{
	return !fi->writepage && (zf_handle_of(fi)->direct || fi->lock_owner != 0);
}

/*
 * Must the write be durable when it is answered? If the kernel caches the file, it sends an FSYNC
 * after the WRITE, so the WRITE need not be durable. If it does not (FOPEN_DIRECT_IO), it relies on
 * the flags of the WRITE.
 */
static bool is_durable_write(const struct fuse_file_info *fi)
{
	return !fi->writepage && zf_handle_of(fi)->direct && (fi->flags & O_DSYNC);
}

/*
 * Answers a write whose call->size bytes are written. r: 0: they are durable, if they have to be;
 * -errno: they could not be made durable.
 */
static int answer_write(struct zf_daemon *daemon, struct zf_call *call, int r)
{
	if (call->direct && zf_open_inode_has_pages(call->inode)) {
		call->result = r < 0 ? r : (int)call->size;
		return zf_droppers_run(daemon->droppers, call);
	}
	if (r < 0)
		return r;
	if (call->inode && !call->direct && zf_open_inode_is_written_directly(call->inode))
		return zf_droppers_answer_and_run(daemon->droppers, call);
	fuse_reply_write(call->req, call->size);
	return 0;
}

/* The bytes are written; this makes them durable. */
static int run_write_sync(struct zf_daemon *daemon, struct zf_call *call)
{
	int r;

	if (call->syncing) {
		r = zf_sync_later_end(daemon, call);
	} else {
		r = zf_fs_fsync(daemon->fs, &call->ctx, call->ino, true);
		if (r == -EAGAIN && !call->ctx.may_wait)
			r = zf_sync_later(daemon, call);
	}
	return r == -EAGAIN || r == -EINPROGRESS ? r : answer_write(daemon, call, r);
}

static int run_write(struct zf_daemon *daemon, struct zf_call *call)
{
	bool loses_suidgid = (call->flags & ZF_WRITE_KILL_SUIDGID) && has_suidgid(daemon, call);
	ssize_t len = zf_fs_write(daemon->fs, &call->ctx, call->ino, call->offset, call->data,
				  call->size, call->flags);

	if (len < 0)
		return (int)len;
	/*
	 * The kernel assumes that writeback of its pages changes no attributes. But it changes the
	 * number of blocks, and the times unless the kernel keeps them.
	 */
	if (loses_suidgid || (call->flags & ZF_WRITE_PAGE))
		zf_fuse_forget_attr(daemon, call->ino);
	call->size = (size_t)len;
	call->data = NULL;
	if (call->durable) {
		call->run = run_write_sync;
		return run_write_sync(daemon, call);
	}
	return answer_write(daemon, call, 0);
}

static void note_write(const struct fuse_file_info *fi, struct zf_call *call)
{
	const struct zf_handle *handle = zf_handle_of(fi);

	call->direct = is_direct_write(fi);
	if (call->direct)
		zf_open_inode_note_direct_write(handle);
	else
		zf_open_inode_note_pages(handle, call->size);
	if (!fi->writepage)
		call->inode = handle->inode;
}

void zf_fuse_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
		   struct fuse_file_info *fi)
{
	const struct zf_daemon *daemon = fuse_req_userdata(req);
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_WRITE,
		.run = run_write,
		.durable = is_durable_write(fi),
		.ino = ino,
		.data = buf,
		.size = size,
		.offset = (uint64_t)offset,
		.ctx.told = zf_fs_told(&zf_handle_of(fi)->errors),
	};

	note_write(fi, &call);
	if (fi->kill_suidgid)
		call.flags |= ZF_WRITE_KILL_SUIDGID;
	/*
	 * Without the writeback cache these are pages of a shared mapping, and the daemon sets the
	 * times.
	 */
	if (fi->writepage)
		call.flags |= ZF_WRITE_PAGE;
	if (fi->writepage && daemon->options.writeback)
		call.flags |= ZF_WRITE_CACHE;
	zf_call_dispatch(&call);
}

/* ---- fallocate ---- */

/*
 * The kernel drops the pages of a range when a request that changes it succeeds, but not when it
 * fails. Yet part of the range may have changed, or all of it without being durable.
 */
static int fail_changed(struct zf_daemon *daemon, struct zf_call *call, int r)
{
	if (r == -EAGAIN)
		return r;
	call->result = r;
	return zf_droppers_run(daemon->droppers, call);
}

static int fail_fallocate(struct zf_daemon *daemon, struct zf_call *call, int r)
{
	if (call->flags & ~(unsigned int)FALLOC_FL_KEEP_SIZE)
		return fail_changed(daemon, call, r);
	/* Plain allocation changes no existing bytes, but perhaps the size. */
	if (r != -EAGAIN)
		zf_fuse_forget_attr(daemon, call->ino);
	return r;
}

/* As run_write_sync(). */
static int run_fallocate_sync(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_fsync(daemon->fs, &call->ctx, call->ino, true);

	if (r < 0)
		return fail_fallocate(daemon, call, r);
	fuse_reply_err(call->req, 0);
	return 0;
}

static int run_fallocate(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_fallocate(daemon->fs, &call->ctx, call->ino, (int)call->flags, call->offset,
				call->size);

	if (r < 0)
		return fail_fallocate(daemon, call, r);
	zf_fuse_forget_attr(daemon, call->ino);
	if (call->durable) {
		call->run = run_fallocate_sync;
		return run_fallocate_sync(daemon, call);
	}
	fuse_reply_err(call->req, 0);
	return 0;
}

/* Did the caller announce by a mark that this ZERO_RANGE means WRITE_ZEROES? */
static bool means_write_zeroes(fuse_req_t req, const struct zf_call *call, uint64_t fh)
{
	const struct zf_daemon *daemon = fuse_req_userdata(req);
	const struct zf_mark mark = {
		.fh = fh,
		.thread = fuse_req_ctx(req)->pid,
		.offset = call->offset,
		.len = call->size,
	};

	return call->flags == FALLOC_FL_ZERO_RANGE && zf_marks_take(daemon->marks, &mark);
}

void zf_fuse_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t len,
		       struct fuse_file_info *fi)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_FALLOCATE,
		.run = run_fallocate,
		.durable = zf_handle_of(fi)->durable,
		.ino = ino,
		.offset = (uint64_t)offset,
		.size = (size_t)len,
		.flags = (unsigned int)mode,
		.inode = zf_handle_of(fi)->inode,
		.ctx.told = zf_fs_told(&zf_handle_of(fi)->errors),
	};

	/* No kernel sends WRITE_ZEROES itself yet. */
	if (means_write_zeroes(req, &call, fi->fh))
		call.flags = ZF_FALLOC_WRITE_ZEROES;
	zf_call_dispatch(&call);
}

/* ---- copy_file_range ---- */

/* The most that Linux reads or writes at once. Older kernels count the copied bytes in 32 bits. */
#define COPY_MAX ((size_t)INT_MAX & ~(size_t)4095)

/* As run_write_sync(). */
static int run_copy_sync(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_fsync(daemon->fs, &call->ctx, call->ino, true);

	if (r < 0)
		return fail_changed(daemon, call, r);
	fuse_reply_write(call->req, call->size);
	return 0;
}

static int run_copy(struct zf_daemon *daemon, struct zf_call *call)
{
	bool loses_suidgid;
	ssize_t len;

	loses_suidgid = call->ctx.may_wait && call->ctx.uid != 0 && has_suidgid(daemon, call);
	len = zf_fs_copy_range(daemon->fs, &call->ctx, call->other_ino, call->other_offset,
			       call->ino, call->offset, call->size);
	if (len < 0)
		return fail_changed(daemon, call, (int)len);
	if (loses_suidgid)
		zf_fuse_forget_attr(daemon, call->ino);
	if (call->durable) {
		call->size = (size_t)len;
		call->run = run_copy_sync;
		return run_copy_sync(daemon, call);
	}
	fuse_reply_write(call->req, (size_t)len);
	return 0;
}

/* The kernel has written both files' dirty pages, and drops those of the target afterwards. */
void zf_fuse_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in,
			     struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t offset_out,
			     struct fuse_file_info *fi_out, size_t len, int flags)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_COPY_FILE_RANGE,
		.run = run_copy,
		.durable = zf_handle_of(fi_out)->durable,
		.ino = ino_out,
		.offset = (uint64_t)offset_out,
		.other_ino = ino_in,
		.other_offset = (uint64_t)offset_in,
		.size = len < COPY_MAX ? len : COPY_MAX,
		.inode = zf_handle_of(fi_out)->inode,
		.ctx.told = zf_fs_told(&zf_handle_of(fi_out)->errors),
	};

	(void)fi_in;
	(void)flags;
	zf_call_dispatch(&call);
}

/* ---- sync ---- */

static int run_fsync(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_fsync(daemon->fs, &call->ctx, call->ino, call->flags != 0);

	if (r == 0)
		fuse_reply_err(call->req, 0);
	return r;
}

static void sync_inode(fuse_req_t req, enum zf_request kind, fuse_ino_t ino, int data_only,
		       struct zf_error_cursor *errors)
{
	struct zf_call call = {
		.req = req,
		.kind = kind,
		.run = run_fsync,
		.durable = true,
		.ino = ino,
		.flags = data_only != 0,
		.ctx.told = zf_fs_told(errors),
	};

	zf_call_dispatch(&call);
}

void zf_fuse_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi)
{
	sync_inode(req, ZF_REQUEST_FSYNC, ino, data_only, &zf_handle_of(fi)->errors);
}

void zf_fuse_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi)
{
	(void)fi;
	sync_inode(req, ZF_REQUEST_FSYNCDIR, ino, data_only, NULL);
}

static int run_syncfs(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_syncfs(daemon->fs, &call->ctx);

	if (r == 0)
		fuse_reply_err(call->req, 0);
	return r;
}

void zf_fuse_syncfs(fuse_req_t req, fuse_ino_t ino)
{
	struct zf_daemon *daemon = fuse_req_userdata(req);
	struct zf_call call = {.req = req,
			       .kind = ZF_REQUEST_SYNCFS,
			       .run = run_syncfs,
			       .ino = ino,
			       .ctx.told = zf_fs_told(&daemon->sync_errors)};

	zf_call_dispatch(&call);
}

/* ---- seek ---- */

static int run_lseek(struct zf_daemon *daemon, struct zf_call *call)
{
	uint64_t offset;
	int r;

	/*
	 * The kernel sends LSEEK without writing its dirty pages first: under the writeback cache
	 * the daemon would report a hole where it has not got the data yet. After ENOSYS the kernel
	 * treats every file as one piece of data.
	 */
	if (daemon->options.writeback)
		return -ENOSYS;
	r = zf_fs_seek(daemon->fs, &call->ctx, call->ino, call->offset, (int)call->flags, &offset);
	if (r == 0)
		fuse_reply_lseek(call->req, (off_t)offset);
	return r;
}

void zf_fuse_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		   struct fuse_file_info *fi)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_LSEEK,
		.run = run_lseek,
		.ino = ino,
		.offset = (uint64_t)offset,
		.flags = (unsigned int)whence,
	};

	(void)fi;
	zf_call_dispatch(&call);
}

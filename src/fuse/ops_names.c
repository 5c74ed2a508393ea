/* SPDX-License-Identifier: MIT */
/* Names: looking up, making, linking, removing, renaming. */
#include "fuse/ops.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/*
 * The kernel counts a reference to an inode when it gets this answer. If the reply fails, it has
 * none.
 */
static int reply_entry(struct zf_daemon *daemon, struct zf_call *call, const struct zf_attr *attr)
{
	struct fuse_entry_param entry;

	zf_fuse_attr_to_entry(attr, &entry);
	if (fuse_reply_entry(call->req, &entry) < 0)
		zf_fs_forget(daemon->fs, attr->ino, 1);
	return 0;
}

static int reply_done(struct zf_call *call, int r)
{
	if (r == 0)
		fuse_reply_err(call->req, 0);
	return r;
}

/* Names in a directory have changed, and with them its times, size and number of links. */
static int forget_dir(struct zf_daemon *daemon, uint64_t dir, int r)
{
	if (r == 0)
		zf_fuse_forget_listing(daemon, dir);
	return r;
}

/* ---- lookup, forget ---- */

static int run_lookup(struct zf_daemon *daemon, struct zf_call *call)
{
	/* The kernel may remember a name that does not exist, as well. */
	static const struct fuse_entry_param absent = {.entry_timeout = ZF_FOREVER_S};
	struct zf_attr attr;
	int r = zf_fs_lookup(daemon->fs, &call->ctx, call->ino, call->name, &attr);

	if (r == -ENOENT) {
		fuse_reply_entry(call->req, &absent);
		return 0;
	}
	return r < 0 ? r : reply_entry(daemon, call, &attr);
}

void zf_fuse_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_LOOKUP,
		.run = run_lookup,
		.ino = parent,
		.name = name,
	};

	zf_call_dispatch(&call);
}

static int run_forget(struct zf_daemon *daemon, struct zf_call *call)
{
	const struct fuse_forget_data *forgets = call->data;

	/* FORGETs have no answer, so the kernel does not wait for them when it unmounts. */
	zf_rwlock_rdlock(&daemon->gate);
	for (size_t i = 0; daemon->fs && i < call->size / sizeof(*forgets); i++)
		zf_fs_forget(daemon->fs, forgets[i].ino, forgets[i].nlookup);
	zf_rwlock_unlock(&daemon->gate);
	fuse_reply_none(call->req);
	return 0;
}

/*
 * When io_uring is in use, only FORGETs come through /dev/fuse, and no client waits for them. The
 * kernel hands over all FORGETs that it has gathered, so this gives it time to gather some. While a
 * tree is removed, single FORGETs would wake this thread between the operations of the remover.
 */
static void let_forgets_gather(const struct zf_daemon *daemon)
{
	static const struct timespec pause = {.tv_nsec = 1000000};

	if (atomic_load_explicit(&daemon->uring_used, memory_order_relaxed))
		nanosleep(&pause, NULL);
}

void zf_fuse_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	const struct zf_daemon *daemon = fuse_req_userdata(req);
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_FORGET,
		.run = run_forget,
		.after_end = true,
		.data = forgets,
		.size = count * sizeof(*forgets),
	};

	zf_call_dispatch(&call);
	let_forgets_gather(daemon);
}

void zf_fuse_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
	struct fuse_forget_data forget = {.ino = ino, .nlookup = count};

	zf_fuse_forget_multi(req, 1, &forget);
}

/* ---- making ---- */

static int make(struct zf_daemon *daemon, struct zf_call *call, struct zf_attr *ret_attr)
{
	int r = zf_fs_make(daemon->fs, &call->ctx, call->ino, call->name, call->mode, call->rdev,
			   call->other_name, ret_attr);

	return forget_dir(daemon, call->ino, r);
}

static int run_make(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_attr attr;
	int r = make(daemon, call, &attr);

	return r < 0 ? r : reply_entry(daemon, call, &attr);
}

void zf_fuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_MKNOD,
		.run = run_make,
		.ino = parent,
		.name = name,
		.mode = mode,
		.rdev = rdev,
	};

	zf_call_dispatch(&call);
}

void zf_fuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_MKDIR,
		.run = run_make,
		.ino = parent,
		.name = name,
		.mode = mode | S_IFDIR,
	};

	zf_call_dispatch(&call);
}

void zf_fuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_SYMLINK,
		.run = run_make,
		.ino = parent,
		.name = name,
		.other_name = target,
		.mode = 0777 | S_IFLNK,
	};

	zf_call_dispatch(&call);
}

static int reply_create(struct zf_daemon *daemon, struct zf_call *call, const struct zf_attr *attr)
{
	struct fuse_entry_param entry;

	zf_fuse_attr_to_entry(attr, &entry);
	zf_fuse_file_set_up(daemon, attr->ino, attr, &call->fi);
	if (fuse_reply_create(call->req, &entry, &call->fi) < 0) {
		zf_fs_forget(daemon->fs, attr->ino, 1);
		zf_handle_free(daemon, &call->fi);
	}
	return 0;
}

/* Gives the reference back if it fails. */
static int open_existing(struct zf_daemon *daemon, struct zf_call *call, struct zf_attr *attr)
{
	uint64_t ino = attr->ino;
	int r = zf_fs_open(daemon->fs, &call->ctx, ino, call->fi.flags, attr);

	if (r == 0 && (call->fi.flags & O_TRUNC) && S_ISREG(attr->mode))
		r = zf_fuse_file_truncate(daemon, call, ino, attr);
	if (r < 0)
		zf_fs_forget(daemon->fs, ino, 1);
	return r;
}

/* make_open() makes the file, or opens the existing one, and counts a reference to it. */
static int with_handle(struct zf_daemon *daemon, struct zf_call *call,
		       int (*make_open)(struct zf_daemon *, struct zf_call *, struct zf_attr *))
{
	struct zf_attr attr;
	int r = zf_handle_new(daemon, &call->fi);

	if (r < 0)
		return r;
	r = make_open(daemon, call, &attr);
	if (r < 0)
		zf_handle_free(daemon, &call->fi);
	return r < 0 ? r : reply_create(daemon, call, &attr);
}

static int create(struct zf_daemon *daemon, struct zf_call *call, struct zf_attr *ret_attr)
{
	int r = make(daemon, call, ret_attr);

	/* Another caller has made the file meanwhile; without O_EXCL it can be opened. */
	if (r == -EEXIST && !(call->fi.flags & O_EXCL)) {
		r = zf_fs_lookup(daemon->fs, &call->ctx, call->ino, call->name, ret_attr);
		if (r == 0)
			r = open_existing(daemon, call, ret_attr);
	}
	return r;
}

static int run_create(struct zf_daemon *daemon, struct zf_call *call)
{
	return with_handle(daemon, call, create);
}

void zf_fuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		    struct fuse_file_info *fi)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_CREATE,
		.run = run_create,
		.ino = parent,
		.name = name,
		.mode = mode | S_IFREG,
		.fi = *fi,
	};

	zf_call_dispatch(&call);
}

static int tmpfile_open(struct zf_daemon *daemon, struct zf_call *call, struct zf_attr *ret_attr)
{
	return zf_fs_tmpfile(daemon->fs, &call->ctx, call->ino, call->mode, ret_attr);
}

static int run_tmpfile(struct zf_daemon *daemon, struct zf_call *call)
{
	return with_handle(daemon, call, tmpfile_open);
}

void zf_fuse_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, struct fuse_file_info *fi)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_TMPFILE,
		.run = run_tmpfile,
		.ino = parent,
		.mode = mode | S_IFREG,
		.fi = *fi,
	};

	zf_call_dispatch(&call);
}

static int run_link(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_attr attr;
	int r = zf_fs_link(daemon->fs, &call->ctx, call->ino, call->other_ino, call->name, &attr);

	r = forget_dir(daemon, call->other_ino, r);
	return r < 0 ? r : reply_entry(daemon, call, &attr);
}

void zf_fuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_LINK,
		.run = run_link,
		.ino = ino,
		.other_ino = parent,
		.name = name,
	};

	zf_call_dispatch(&call);
}

/* ---- removing, renaming ---- */

static int run_unlink(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_unlink(daemon->fs, &call->ctx, call->ino, call->name);

	return reply_done(call, forget_dir(daemon, call->ino, r));
}

void zf_fuse_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_UNLINK,
		.run = run_unlink,
		.ino = parent,
		.name = name,
	};

	zf_call_dispatch(&call);
}

static int run_rmdir(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_rmdir(daemon->fs, &call->ctx, call->ino, call->name);

	return reply_done(call, forget_dir(daemon, call->ino, r));
}

void zf_fuse_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_RMDIR,
		.run = run_rmdir,
		.ino = parent,
		.name = name,
	};

	zf_call_dispatch(&call);
}

/* A directory that moves to another parent has another "..", so its listing changes. */
static void forget_moved(struct zf_daemon *daemon, struct zf_call *call, uint64_t ino)
{
	struct zf_attr attr;

	if (call->ino != call->other_ino &&
	    zf_fs_getattr(daemon->fs, &call->ctx, ino, &attr) == 0 && S_ISDIR(attr.mode))
		zf_fuse_forget_listing(daemon, ino);
	else
		zf_fuse_forget_attr(daemon, ino);
}

static int run_rename(struct zf_daemon *daemon, struct zf_call *call)
{
	uint64_t moved[2];
	int r = zf_fs_rename(daemon->fs, &call->ctx, call->ino, call->name, call->other_ino,
			     call->other_name, call->flags, moved);

	if (r < 0)
		return r;
	zf_fuse_forget_listing(daemon, call->ino);
	if (call->other_ino != call->ino)
		zf_fuse_forget_listing(daemon, call->other_ino);
	for (size_t i = 0; i < 2 && moved[i] != 0; i++)
		forget_moved(daemon, call, moved[i]);
	return reply_done(call, 0);
}

void zf_fuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		    const char *new_name, unsigned int flags)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_RENAME,
		.run = run_rename,
		.ino = parent,
		.name = name,
		.other_ino = new_parent,
		.other_name = new_name,
		.flags = flags,
	};

	zf_call_dispatch(&call);
}

/* ---- readlink ---- */

static int run_readlink(struct zf_daemon *daemon, struct zf_call *call)
{
	ssize_t len;
	char *buf;
	int r = zf_call_buffer(call, ZF_SYMLINK_MAX + 1, &buf);

	if (r < 0)
		return r;
	len = zf_fs_readlink(daemon->fs, &call->ctx, call->ino, buf, ZF_SYMLINK_MAX);
	if (len < 0)
		return (int)len;
	buf[len] = '\0';
	fuse_reply_readlink(call->req, buf);
	return 0;
}

void zf_fuse_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct zf_call call = {
		.req = req, .kind = ZF_REQUEST_READLINK, .run = run_readlink, .ino = ino};

	zf_call_dispatch(&call);
}

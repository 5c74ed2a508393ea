/* SPDX-License-Identifier: MIT */
/*
 * ioctl: the flags of inodes, FS_IOC_GETFLAGS and its kin, and their version, FS_IOC_GETVERSION,
 * which lsattr(1) and chattr(1) use; the label, FS_IOC_GETFSLABEL and its kin; FITRIM, which
 * fstrim(8) uses; and zfuse's own calls (zfuse/ioctl.h).
 *
 * The kernel's VFS decodes the calls for flags (for 32-bit programs too), checks that the caller
 * owns the file and has CAP_LINUX_IMMUTABLE if that is needed, and sends a request of its own,
 * whose `arg` is NULL. In a request that comes from a program directly, `arg` is the program's
 * pointer, and nothing was checked: the kernel passes a call on like this when the VFS's request
 * was refused as unsupported. So such a request is refused again, whatever its buffer contains by
 * then.
 */
#include "fuse/ops.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <unistd.h>
#include <zfuse/ioctl.h>

#include "fuse/marks.h"

static const struct {
	uint32_t xflag, flag;
} xflags[] = {
	{FS_XFLAG_IMMUTABLE, ZF_INODE_IMMUTABLE}, {FS_XFLAG_APPEND, ZF_INODE_APPEND},
	{FS_XFLAG_SYNC, ZF_INODE_SYNC},		  {FS_XFLAG_NOATIME, ZF_INODE_NOATIME},
	{FS_XFLAG_NODUMP, ZF_INODE_NODUMP},	  {FS_XFLAG_PROJINHERIT, ZF_INODE_PROJINHERIT},
};
#define XFLAG_COUNT (sizeof(xflags) / sizeof(xflags[0]))

static int get_flags(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_attr attr;
	int r = zf_fs_getattr(daemon->fs, &call->ctx, call->ino, &attr);

	if (r == 0)
		fuse_reply_ioctl(call->req, 0, &attr.flags, sizeof(attr.flags));
	return r;
}

/* The version is the generation in which the inode was made. */
static int get_version(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_attr attr;
	uint32_t version;
	int r = zf_fs_getattr(daemon->fs, &call->ctx, call->ino, &attr);

	if (r < 0)
		return r;
	version = (uint32_t)attr.generation;
	fuse_reply_ioctl(call->req, 0, &version, sizeof(version));
	return 0;
}

static int get_xattr(struct zf_daemon *daemon, struct zf_call *call)
{
	struct fsxattr answer = {0};
	struct zf_attr attr;
	int r = zf_fs_getattr(daemon->fs, &call->ctx, call->ino, &attr);

	if (r < 0)
		return r;
	answer.fsx_projid = attr.project;
	for (size_t i = 0; i < XFLAG_COUNT; i++) {
		if (attr.flags & xflags[i].flag)
			answer.fsx_xflags |= xflags[i].xflag;
	}
	fuse_reply_ioctl(call->req, 0, &answer, sizeof(answer));
	return 0;
}

/*
 * A file that is protected from now on refuses pages of mappings, so pages that were dirtied before
 * have to be written first. During this notice the kernel sends them, from the calling thread, to
 * the queue of that thread's processor. So a thread that serves a queue must not send the notice.
 */
static int take_pages(struct zf_daemon *daemon, struct zf_call *call,
		      const struct zf_set_flags *set)
{
	if (!(set->flags & set->mask & (ZF_INODE_IMMUTABLE | ZF_INODE_APPEND)))
		return 0;
	if (call->thread == zf_thread_self())
		return -EAGAIN;
	fuse_lowlevel_notify_inval_inode(daemon->session, call->ino, 0, 0);
	return 0;
}

static int set(struct zf_daemon *daemon, struct zf_call *call, const struct zf_set_flags *set)
{
	int r = take_pages(daemon, call, set);

	if (r == 0)
		r = zf_fs_set_flags(daemon->fs, &call->ctx, call->ino, set);
	if (r < 0)
		return r;
	zf_fuse_forget_attr(daemon, call->ino); /* for the change time */
	fuse_reply_ioctl(call->req, 0, NULL, 0);
	return 0;
}

static int set_flags(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_set_flags wanted = {.mask = UINT32_MAX};

	memcpy(&wanted.flags, call->data, sizeof(wanted.flags));
	return set(daemon, call, &wanted);
}

static int set_xattr(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_set_flags wanted = {.set_project = true};
	struct fsxattr asked;

	memcpy(&asked, call->data, sizeof(asked));
	wanted.project = asked.fsx_projid;
	for (size_t i = 0; i < XFLAG_COUNT; i++) {
		wanted.mask |= xflags[i].flag;
		if (asked.fsx_xflags & xflags[i].xflag)
			wanted.flags |= xflags[i].flag;
		asked.fsx_xflags &= ~xflags[i].xflag;
	}
	return asked.fsx_xflags ? -EOPNOTSUPP : set(daemon, call, &wanted);
}

/* Does not wait, and does not use the filesystem. */
static int mark_write_zeroes(struct zf_daemon *daemon, struct zf_call *call)
{
	static const uint64_t reserved[4];
	const struct zf_handle *handle = zf_handle_of(&call->fi);
	struct zfuse_mark asked;
	struct zf_mark mark;
	int r;

	memcpy(&asked, call->data, sizeof(asked));
	if (!handle || !handle->writable)
		return -EBADF;
	if (asked.version != ZFUSE_MARK_VERSION || asked.flags ||
	    memcmp(asked.reserved, reserved, sizeof(reserved)) != 0 || asked.length == 0 ||
	    asked.length > INT64_MAX || asked.offset > INT64_MAX - asked.length)
		return -EINVAL;
	mark = (struct zf_mark){
		.fh = call->fi.fh,
		.user = fuse_req_ctx(call->req)->uid,
		.thread = fuse_req_ctx(call->req)->pid,
		.offset = asked.offset,
		.len = asked.length,
	};
	r = zf_marks_add(daemon->marks, &mark);
	if (r == 0)
		fuse_reply_ioctl(call->req, 0, NULL, 0);
	return r;
}

/* ---- of the whole filesystem ---- */

/*
 * The user who made the mount, and root, whom the kernel lets in only if the mount options allow
 * it.
 */
static bool may_administer(const struct zf_call *call)
{
	uid_t uid = fuse_req_ctx(call->req)->uid;

	return uid == 0 || uid == geteuid();
}

static int get_label(struct zf_daemon *daemon, struct zf_call *call)
{
	char answer[FSLABEL_MAX] = "";

	zf_fs_get_label(daemon->fs, answer);
	fuse_reply_ioctl(call->req, 0, answer, sizeof(answer));
	return 0;
}

static int set_label(struct zf_daemon *daemon, struct zf_call *call)
{
	char label[FSLABEL_MAX + 1] = "";
	int r;

	if (!may_administer(call))
		return -EPERM;
	/* Setting the label takes a commit. */
	if (!call->ctx.may_wait)
		return -EAGAIN;
	memcpy(label, call->data, FSLABEL_MAX);
	r = zf_fs_set_label(daemon->fs, label);
	if (r == 0)
		fuse_reply_ioctl(call->req, 0, NULL, 0);
	return r;
}

/*
 * fstrim(8). Only whole zones are given back, wherever they lie, so the range has no effect, as
 * long as it begins within this filesystem.
 */
static int trim(struct zf_daemon *daemon, struct zf_call *call)
{
	const struct zf_geometry *geometry = zf_dev_geometry(daemon->dev);
	struct fstrim_range range;
	uint64_t bytes = 0;
	int r = 0;

	if (!may_administer(call))
		return -EPERM;
	memcpy(&range, call->data, sizeof(range));
	if (range.start >= geometry->zone_size * geometry->zone_count)
		return -EINVAL;
	if (!call->ctx.may_wait)
		return -EAGAIN;
	if (range.minlen <= geometry->zone_capacity)
		r = zf_fs_trim(daemon->fs, &bytes);
	if (r < 0)
		return r;
	range.len = bytes;
	fuse_reply_ioctl(call->req, 0, &range, sizeof(range));
	return 0;
}

static const struct command {
	unsigned int number;
	size_t in_size, out_size; /* GETFLAGS, GETVERSION move an int, although they say long */
	int (*run)(struct zf_daemon *daemon, struct zf_call *call);
	bool own; /* the request comes from the program, not from the VFS */
} commands[] = {
	{FS_IOC_GETFLAGS, 0, sizeof(uint32_t), get_flags, false},
	{FS_IOC_SETFLAGS, sizeof(uint32_t), 0, set_flags, false},
	{FS_IOC32_GETVERSION, 0, sizeof(uint32_t), get_version, true},
	{FS_IOC_GETVERSION, 0, sizeof(uint32_t), get_version, true},
	{FS_IOC_FSGETXATTR, 0, sizeof(struct fsxattr), get_xattr, false},
	{FS_IOC_FSSETXATTR, sizeof(struct fsxattr), 0, set_xattr, false},
	{FS_IOC_GETFSLABEL, 0, FSLABEL_MAX, get_label, true},
	{FS_IOC_SETFSLABEL, FSLABEL_MAX, 0, set_label, true},
	{FITRIM, sizeof(struct fstrim_range), sizeof(struct fstrim_range), trim, true},
	{ZFUSE_IOC_MARK_WRITE_ZEROES, sizeof(struct zfuse_mark), 0, mark_write_zeroes, true},
};

static const struct command *find_command(unsigned int number)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].number == number)
			return &commands[i];
	}
	return NULL;
}

void zf_fuse_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int number, void *arg,
		   struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
		   size_t out_size)
{
	const struct command *command = find_command(number);
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_IOCTL,
		.ino = ino,
		.data = in,
		.size = in_size,
	};

	(void)flags;
	if (fi)
		call.fi.fh = fi->fh;
	if (!command) {
		fuse_reply_err(req, ENOTTY);
	} else if (!arg == command->own || in_size < command->in_size ||
		   out_size < command->out_size) {
		fuse_reply_err(req, EOPNOTSUPP);
	} else {
		call.run = command->run;
		zf_call_dispatch(&call);
	}
}

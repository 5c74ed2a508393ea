/* SPDX-License-Identifier: MIT */
/* Attributes, extended attributes, statfs. */
#include "fuse/ops.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "fuse/caller.h"
#include "fuse/open_inode.h"

static struct timespec to_timespec(struct zf_time time)
{
	return (struct timespec){.tv_sec = time.seconds, .tv_nsec = time.nanoseconds};
}

static struct zf_time from_timespec(struct timespec time)
{
	return (struct zf_time){.seconds = time.tv_sec, .nanoseconds = (uint32_t)time.tv_nsec};
}

void zf_fuse_attr_to_stat(const struct zf_attr *attr, struct stat *ret_stat)
{
	*ret_stat = (struct stat){
		.st_ino = attr->ino,
		.st_mode = attr->mode,
		.st_nlink = attr->nlink,
		.st_uid = attr->uid,
		.st_gid = attr->gid,
		.st_rdev = attr->rdev,
		.st_size = (off_t)attr->size,
		.st_blocks = (blkcnt_t)attr->blocks,
		.st_blksize = 4096,
		.st_atim = to_timespec(attr->atime),
		.st_mtim = to_timespec(attr->mtime),
		.st_ctim = to_timespec(attr->ctime),
	};
}

/*
 * While data is under way (`settling`), the number of blocks changes without a request of the
 * kernel, and so does the size of a file that has lost data. With writeback=on the kernel keeps its
 * own size.
 */
static double attr_timeout_s(const struct zf_attr *attr)
{
	return attr->settling ? 0 : ZF_FOREVER_S;
}

void zf_fuse_attr_to_entry(const struct zf_attr *attr, struct fuse_entry_param *ret_entry)
{
	*ret_entry = (struct fuse_entry_param){
		.ino = attr->ino,
		/*
		 * Inode numbers are never reused, so no generation is needed to tell two files
		 * apart.
		 */
		.generation = 0,
		.attr_timeout = attr_timeout_s(attr),
		.entry_timeout = ZF_FOREVER_S,
	};
	zf_fuse_attr_to_stat(attr, &ret_entry->attr);
}

static int reply_attr(struct zf_call *call, const struct zf_attr *attr)
{
	struct stat st;

	zf_fuse_attr_to_stat(attr, &st);
	fuse_reply_attr(call->req, &st, attr_timeout_s(attr));
	return 0;
}

/* ---- getattr, statx ---- */

static int run_getattr(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_attr attr;
	int r = zf_fs_getattr(daemon->fs, &call->ctx, call->ino, &attr);

	return r < 0 ? r : reply_attr(call, &attr);
}

void zf_fuse_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct zf_call call = {
		.req = req, .kind = ZF_REQUEST_GETATTR, .run = run_getattr, .ino = ino};

	(void)fi;
	zf_call_dispatch(&call);
}

static struct statx_timestamp to_statx_time(struct zf_time time)
{
	return (struct statx_timestamp){.tv_sec = time.seconds, .tv_nsec = time.nanoseconds};
}

/* The flags that statx(2) has a bit for. (Linux 6.18 does not pass them to the user.) */
static uint64_t to_statx_attributes(uint32_t flags)
{
	uint64_t r = 0;

	if (flags & ZF_INODE_IMMUTABLE)
		r |= STATX_ATTR_IMMUTABLE;
	if (flags & ZF_INODE_APPEND)
		r |= STATX_ATTR_APPEND;
	if (flags & ZF_INODE_NODUMP)
		r |= STATX_ATTR_NODUMP;
	return r;
}

static int run_statx(struct zf_daemon *daemon, struct zf_call *call)
{
	struct statx stx;
	struct zf_attr attr;
	int r = zf_fs_getattr(daemon->fs, &call->ctx, call->ino, &attr);

	if (r < 0)
		return r;
	stx = (struct statx){
		.stx_mask = STATX_BASIC_STATS | STATX_BTIME,
		.stx_blksize = 4096,
		.stx_attributes = to_statx_attributes(attr.flags),
		.stx_attributes_mask = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP,
		.stx_nlink = attr.nlink,
		.stx_uid = attr.uid,
		.stx_gid = attr.gid,
		.stx_mode = (uint16_t)attr.mode,
		.stx_ino = attr.ino,
		.stx_size = attr.size,
		.stx_blocks = attr.blocks,
		.stx_atime = to_statx_time(attr.atime),
		.stx_btime = to_statx_time(attr.btime),
		.stx_ctime = to_statx_time(attr.ctime),
		.stx_mtime = to_statx_time(attr.mtime),
		.stx_rdev_major = major(attr.rdev),
		.stx_rdev_minor = minor(attr.rdev),
	};
	fuse_reply_statx(call->req, 0, &stx, attr_timeout_s(&attr));
	return 0;
}

void zf_fuse_statx(fuse_req_t req, fuse_ino_t ino, int flags, int mask, struct fuse_file_info *fi)
{
	struct zf_call call = {.req = req, .kind = ZF_REQUEST_STATX, .run = run_statx, .ino = ino};

	(void)flags;
	(void)mask;
	(void)fi;
	zf_call_dispatch(&call);
}

/* ---- setattr ---- */

/* Asked only if there is setuid or setgid to drop, and the caller is neither the owner nor root. */
static bool may_as_owner(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_attr attr;

	return (call->set.valid & ZF_SET_SAME_OWNER) && !call->ctx.may_as_owner &&
	       zf_fs_getattr(daemon->fs, &call->ctx, call->ino, &attr) == 0 &&
	       zf_caller_may_as_owner(fuse_req_ctx(call->req)->pid, attr.uid);
}

static int run_setattr(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_attr attr;
	int r = zf_fs_setattr(daemon->fs, &call->ctx, call->ino, &call->set, &attr);

	if (r == -EPERM && may_as_owner(daemon, call)) {
		call->ctx.may_as_owner = true;
		r = zf_fs_setattr(daemon->fs, &call->ctx, call->ino, &call->set, &attr);
	}
	if (r == -EPERM && call->may_be_write)
		r = zf_fs_getattr(daemon->fs, &call->ctx, call->ino, &attr);
	return r < 0 ? r : reply_attr(call, &attr);
}

/*
 * With KILLPRIV_V2, the kernel sends a SETATTR with nothing to set, and fi NULL, in two cases:
 *
 *  - chown(-1, -1), for which no permission was checked. The SETATTR sets ctime if the kernel keeps
 *    the times, as it does for files of a mount with the writeback cache;
 *  - the first write, fallocate or copy to a file with setuid or setgid, by a caller who has it
 *    open for writing, but need not own it. The SETATTR must not fail then.
 *
 * If the caller may be writing, the SETATTR may leave the bits as they are: WRITE says itself that
 * it drops them, and FALLOCATE and COPY_FILE_RANGE drop them without being told.
 */
static void set_same_owner(const struct zf_daemon *daemon, struct zf_call *call)
{
	call->may_be_write = !(call->set.valid & ZF_SET_CTIME) &&
			     zf_open_inode_has_writer(daemon->open_inodes, call->ino);
	call->set.valid |= ZF_SET_SAME_OWNER;
}

void zf_fuse_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int valid,
		     struct fuse_file_info *fi)
{
	static const struct {
		int from;
		unsigned int to;
	} bits[] = {
		{FUSE_SET_ATTR_MODE, ZF_SET_MODE},
		{FUSE_SET_ATTR_UID, ZF_SET_UID},
		{FUSE_SET_ATTR_GID, ZF_SET_GID},
		{FUSE_SET_ATTR_SIZE, ZF_SET_SIZE},
		{FUSE_SET_ATTR_CTIME, ZF_SET_CTIME},
		/*
		 * With KILLPRIV_V2 the daemon has to drop setuid and setgid when the owner changes.
		 */
		{FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID, ZF_SET_KILL_SUIDGID},
		/* FATTR_KILL_SUIDGID: a truncation by a caller without CAP_FSETID. */
		{FUSE_SET_ATTR_KILL_SUID, ZF_SET_KILL_SUIDGID},
	};
	struct zf_call call = {
		.req = req, .kind = ZF_REQUEST_SETATTR, .run = run_setattr, .ino = ino};

	(void)fi;
	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		if (valid & bits[i].from)
			call.set.valid |= bits[i].to;
	}
	/*
	 * "Now" comes together with the plain bit. The kernel's clock and the daemon's are the
	 * same, but the daemon reads it with a finer resolution.
	 */
	if (valid & FUSE_SET_ATTR_ATIME_NOW)
		call.set.valid |= ZF_SET_ATIME_NOW;
	else if (valid & FUSE_SET_ATTR_ATIME)
		call.set.valid |= ZF_SET_ATIME;
	if (valid & FUSE_SET_ATTR_MTIME_NOW)
		call.set.valid |= ZF_SET_MTIME_NOW;
	else if (valid & FUSE_SET_ATTR_MTIME)
		call.set.valid |= ZF_SET_MTIME;
	if ((call.set.valid & ~(unsigned int)ZF_SET_CTIME) == 0)
		set_same_owner(fuse_req_userdata(req), &call);
	call.set.mode = attr->st_mode;
	call.set.uid = attr->st_uid;
	call.set.gid = attr->st_gid;
	call.set.size = (uint64_t)attr->st_size;
	call.set.atime = from_timespec(attr->st_atim);
	call.set.mtime = from_timespec(attr->st_mtim);
	call.set.ctime = from_timespec(attr->st_ctim);
	zf_call_dispatch(&call);
}

/* ---- statfs ---- */

static int run_statfs(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_statfs fs;
	struct statvfs st;
	int r = zf_fs_statfs(daemon->fs, &fs);

	if (r < 0)
		return r;
	st = (struct statvfs){
		.f_bsize = fs.block_size,
		.f_frsize = fs.block_size,
		.f_blocks = fs.blocks,
		.f_bfree = fs.blocks_free,
		.f_bavail = fs.blocks_available,
		.f_files = fs.files,
		.f_ffree = fs.files_free,
		.f_favail = fs.files_free,
		.f_fsid = fs.fsid,
		.f_namemax = fs.name_max,
	};
	fuse_reply_statfs(call->req, &st);
	return 0;
}

void zf_fuse_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct zf_call call = {
		.req = req, .kind = ZF_REQUEST_STATFS, .run = run_statfs, .ino = ino};

	zf_call_dispatch(&call);
}

/* ---- extended attributes ---- */

/* The kernel's own filesystems check the namespace; for FUSE the kernel passes every name on. */
static int check_namespace(const char *name)
{
	static const char *const prefixes[] = {"user.", "trusted.", "security."};

	if (strcmp(name, "system.posix_acl_access") == 0 ||
	    strcmp(name, "system.posix_acl_default") == 0)
		return 0;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], len) == 0)
			return name[len] != '\0' ? 0 : -EINVAL;
	}
	return -EOPNOTSUPP;
}

static void dispatch_named(struct zf_call *call)
{
	int r = check_namespace(call->name);

	if (r < 0)
		fuse_reply_err(call->req, -r);
	else
		zf_call_dispatch(call);
}

static int reply_changed(struct zf_daemon *daemon, struct zf_call *call, int r)
{
	if (r < 0)
		return r;
	zf_fuse_forget_attr(daemon, call->ino);
	fuse_reply_err(call->req, 0);
	return 0;
}

static int run_setxattr(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_setxattr(daemon->fs, &call->ctx, call->ino, call->name, call->data,
			       call->size, (int)call->flags);

	return reply_changed(daemon, call, r);
}

void zf_fuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		      size_t size, int flags, unsigned int more_flags)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_SETXATTR,
		.run = run_setxattr,
		.ino = ino,
		.name = name,
		.data = value,
		.size = size,
		.flags = (unsigned int)flags,
	};

	if (more_flags & FUSE_SET_XATTR_ACL_KILL_SGID)
		call.flags |= ZF_XATTR_KILL_SGID;
	dispatch_named(&call);
}

static int reply_xattr(struct zf_call *call, ssize_t len, const char *buf)
{
	if (len < 0)
		return (int)len;
	if (call->size == 0)
		fuse_reply_xattr(call->req, (size_t)len);
	else
		fuse_reply_buf(call->req, buf, (size_t)len);
	return 0;
}

static int run_getxattr(struct zf_daemon *daemon, struct zf_call *call)
{
	char *buf;
	int r = zf_call_buffer(call, call->size, &buf);

	return r < 0 ? r
		     : reply_xattr(call,
				   zf_fs_getxattr(daemon->fs, &call->ctx, call->ino, call->name,
						  buf, call->size),
				   buf);
}

void zf_fuse_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_GETXATTR,
		.run = run_getxattr,
		.ino = ino,
		.name = name,
		.size = size,
	};

	dispatch_named(&call);
}

static int run_listxattr(struct zf_daemon *daemon, struct zf_call *call)
{
	char *buf;
	int r = zf_call_buffer(call, call->size, &buf);

	return r < 0 ? r
		     : reply_xattr(
			       call,
			       zf_fs_listxattr(daemon->fs, &call->ctx, call->ino, buf, call->size),
			       buf);
}

void zf_fuse_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_LISTXATTR,
		.run = run_listxattr,
		.ino = ino,
		.size = size,
	};

	zf_call_dispatch(&call);
}

static int run_removexattr(struct zf_daemon *daemon, struct zf_call *call)
{
	return reply_changed(daemon, call,
			     zf_fs_removexattr(daemon->fs, &call->ctx, call->ino, call->name));
}

void zf_fuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct zf_call call = {
		.req = req,
		.kind = ZF_REQUEST_REMOVEXATTR,
		.run = run_removexattr,
		.ino = ino,
		.name = name,
	};

	dispatch_named(&call);
}

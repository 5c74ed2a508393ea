/* SPDX-License-Identifier: MIT */
/* The table of handlers, and what is agreed with the kernel at the start. */
#include "fuse/control.h"
#include "fuse/ops.h"

#define REQUEST_MAX ((unsigned int)1 << 20) /* bytes of one READ or WRITE */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct zf_daemon *daemon = userdata;
	static const uint64_t wanted[] = {
		FUSE_CAP_PARALLEL_DIROPS,
		FUSE_CAP_CACHE_SYMLINKS,
		/* A write or truncation says itself whether it drops setuid: no GETXATTR before
		   each. */
		FUSE_CAP_HANDLE_KILLPRIV_V2,
		/* ACLs are inherited by src/fs/, so the umask, which they override, is applied
		   there. */
		FUSE_CAP_POSIX_ACL,
		FUSE_CAP_DONT_MASK,
		/* Whether an access list costs setgid depends on all the caller's groups. */
		FUSE_CAP_SETXATTR_EXT,
		FUSE_CAP_NO_OPENDIR_SUPPORT,
		FUSE_CAP_DIRECT_IO_ALLOW_MMAP,
		/* Nobody else writes: pages are dropped when we say so (drop_pages.h). */
		FUSE_CAP_EXPLICIT_INVAL_DATA,
	};

	for (unsigned int i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		fuse_set_feature_flag(conn, wanted[i]);
	/* Else every write would cost the file's cached pages: its times change. */
	fuse_unset_feature_flag(conn, FUSE_CAP_AUTO_INVAL_DATA);
	/*
	 * O_TRUNC comes as a SETATTR behind the OPEN. With the OPEN it would come before the kernel
	 * has looked whether the file is a program that runs, where open() asks for reading only.
	 */
	fuse_unset_feature_flag(conn, FUSE_CAP_ATOMIC_O_TRUNC);
	if (daemon->options.writeback)
		fuse_set_feature_flag(conn, FUSE_CAP_WRITEBACK_CACHE);

	conn->max_write = REQUEST_MAX;
	/* With this answer the kernel lowers the mount's read-ahead to it. */
	conn->max_readahead = ZF_READ_AHEAD_KIB << 10;
	conn->max_background = ZF_BACKGROUND_MAX;
	conn->congestion_threshold = ZF_BACKGROUND_MAX * 3 / 4;
	/* Requests are short; to be interruptible each would go through a list under one lock. */
	conn->no_interrupt = 1;
	zf_control_serving(daemon->control);
}

/* Of a fuseblk mount: umount(2) returns when this has. */
static void op_destroy(void *userdata)
{
	struct zf_daemon *daemon = userdata;

	if (daemon->fuseblk)
		zf_calls_end(daemon);
	zf_daemon_close(daemon);
}

const struct fuse_lowlevel_ops zf_ops = {
	.init = op_init,
	.destroy = op_destroy,
	.lookup = zf_op_lookup,
	.forget = zf_op_forget,
	.forget_multi = zf_op_forget_multi,
	.mknod = zf_op_mknod,
	.mkdir = zf_op_mkdir,
	.symlink = zf_op_symlink,
	.link = zf_op_link,
	.unlink = zf_op_unlink,
	.rmdir = zf_op_rmdir,
	.rename = zf_op_rename,
	.readlink = zf_op_readlink,
	.create = zf_op_create,
	.tmpfile = zf_op_tmpfile,
	.readdir = zf_op_readdir,
	.readdirplus = zf_op_readdirplus,
	.getattr = zf_op_getattr,
	.statx = zf_op_statx,
	.setattr = zf_op_setattr,
	.statfs = zf_op_statfs,
	.setxattr_ext = zf_op_setxattr,
	.getxattr = zf_op_getxattr,
	.listxattr = zf_op_listxattr,
	.removexattr = zf_op_removexattr,
	.open = zf_op_open,
	.release = zf_op_release,
	.read = zf_op_read,
	.write = zf_op_write,
	.fallocate = zf_op_fallocate,
	.fsync = zf_op_fsync,
	.fsyncdir = zf_op_fsyncdir,
	.syncfs = zf_op_syncfs,
	.copy_file_range = zf_op_copy_file_range,
	.lseek = zf_op_lseek,
	.ioctl = zf_op_ioctl,
};

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
		/*
		 * A file handle works although the kernel has no name of the file cached: a LOOKUP of
		 * "." finds the inode.
		 */
		FUSE_CAP_EXPORT_SUPPORT,
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
		zf_call_end_all(daemon);
	zf_daemon_close(daemon);
}

const struct fuse_lowlevel_ops zf_ops = {
	.init = op_init,
	.destroy = op_destroy,
	.lookup = zf_fuse_lookup,
	.forget = zf_fuse_forget,
	.forget_multi = zf_fuse_forget_multi,
	.mknod = zf_fuse_mknod,
	.mkdir = zf_fuse_mkdir,
	.symlink = zf_fuse_symlink,
	.link = zf_fuse_link,
	.unlink = zf_fuse_unlink,
	.rmdir = zf_fuse_rmdir,
	.rename = zf_fuse_rename,
	.readlink = zf_fuse_readlink,
	.create = zf_fuse_create,
	.tmpfile = zf_fuse_tmpfile,
	.readdir = zf_fuse_readdir,
	.readdirplus = zf_fuse_readdirplus,
	.getattr = zf_fuse_getattr,
	.statx = zf_fuse_statx,
	.setattr = zf_fuse_setattr,
	.statfs = zf_fuse_statfs,
	.setxattr_ext = zf_fuse_setxattr,
	.getxattr = zf_fuse_getxattr,
	.listxattr = zf_fuse_listxattr,
	.removexattr = zf_fuse_removexattr,
	.open = zf_fuse_open,
	.release = zf_fuse_release,
	.read = zf_fuse_read,
	.write = zf_fuse_write,
	.fallocate = zf_fuse_fallocate,
	.fsync = zf_fuse_fsync,
	.fsyncdir = zf_fuse_fsyncdir,
	.syncfs = zf_fuse_syncfs,
	.copy_file_range = zf_fuse_copy_file_range,
	.lseek = zf_fuse_lseek,
	.ioctl = zf_fuse_ioctl,
};

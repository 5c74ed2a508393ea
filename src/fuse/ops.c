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
		/*
		 * A WRITE or SETATTR says itself whether it drops setuid and setgid, so the kernel
		 * sends no GETXATTR before each.
		 */
		FUSE_CAP_HANDLE_KILLPRIV_V2,
		/*
		 * src/fs/ lets new files inherit ACLs, and applies the umask there, because an ACL
		 * overrides it.
		 */
		FUSE_CAP_POSIX_ACL,
		FUSE_CAP_DONT_MASK,
		/*
		 * Whether setting an access ACL drops setgid depends on all groups of the caller,
		 * so the request says it.
		 */
		FUSE_CAP_SETXATTR_EXT,
		FUSE_CAP_NO_OPENDIR_SUPPORT,
		FUSE_CAP_DIRECT_IO_ALLOW_MMAP,
		/*
		 * A file handle (NFS) works even if the kernel has no name of the file cached: a
		 * LOOKUP of "." finds the inode.
		 */
		FUSE_CAP_EXPORT_SUPPORT,
		/*
		 * Only this kernel writes, so pages are dropped only when the daemon asks for it
		 * (drop_pages.h).
		 */
		FUSE_CAP_EXPLICIT_INVAL_DATA,
	};

	for (unsigned int i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		fuse_set_feature_flag(conn, wanted[i]);
	/*
	 * With this feature every write would drop the file's cached pages, because its times
	 * change.
	 */
	fuse_unset_feature_flag(conn, FUSE_CAP_AUTO_INVAL_DATA);
	/*
	 * Without this feature O_TRUNC comes as a SETATTR after the OPEN. With it, an open() for
	 * reading only would truncate a file before the kernel has checked whether the file is a
	 * running program.
	 */
	fuse_unset_feature_flag(conn, FUSE_CAP_ATOMIC_O_TRUNC);
	if (daemon->options.writeback)
		fuse_set_feature_flag(conn, FUSE_CAP_WRITEBACK_CACHE);

	conn->max_write = REQUEST_MAX;
	/* The kernel lowers the mount's read-ahead to this value if it is higher. */
	conn->max_readahead = ZF_READ_AHEAD_KIB << 10;
	conn->max_background = ZF_BACKGROUND_MAX;
	conn->congestion_threshold = ZF_BACKGROUND_MAX * 3 / 4;
	/*
	 * Requests are short. If they were interruptible, libfuse would put each into a list under
	 * one lock.
	 */
	conn->no_interrupt = 1;
	zf_control_serving(daemon->control);
}

/* On a fuseblk mount, umount(2) returns when this function has returned. */
static void op_destroy(void *userdata)
{
	struct zf_daemon *daemon = userdata;

	if (daemon->fuseblk)
		zf_call_end_all(daemon);
	zf_daemon_close(daemon);
}

/* There is no bmap, on purpose: the kernel would accept swap files, and write to the blocks that bmap names. */
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

/* SPDX-License-Identifier: MIT */
/*
 * The handlers, one for each kind of request, and what they share.
 *
 * Only this kernel changes the disk, so the kernel may keep for ever what it was told: names (also
 * those that do not exist), attributes, contents of directories and targets of links. Two attributes
 * change without the kernel's knowledge: the number of a file's blocks, while new data replaces old
 * data on the device, and when the kernel writes back its cached pages; and the size of a file that
 * has lost data (attr_timeout_s()).
 *
 * These requests have no handler, on purpose, because libfuse or the kernel then does what we want:
 *
 *      FLUSH                ENOSYS: never sent again; close() still writes the dirty pages
 *      OPENDIR, RELEASEDIR  ENOSYS: never sent again; the kernel caches directories
 *      ACCESS               never sent: the kernel checks permissions (default_permissions)
 *      GETLK, SETLK, FLOCK  never sent: the kernel locks by itself
 */
#ifndef ZF_FUSE_OPS_H
#define ZF_FUSE_OPS_H

#include "fuse/call.h"
#include "fuse/handle.h"

#define ZF_FOREVER_S 1e9

void zf_fuse_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void zf_fuse_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count);
void zf_fuse_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void zf_fuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void zf_fuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void zf_fuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void zf_fuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void zf_fuse_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void zf_fuse_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void zf_fuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		    const char *new_name, unsigned int flags);
void zf_fuse_readlink(fuse_req_t req, fuse_ino_t ino);
void zf_fuse_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		    struct fuse_file_info *fi);
void zf_fuse_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, struct fuse_file_info *fi);

void zf_fuse_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		     struct fuse_file_info *fi);
void zf_fuse_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
			 struct fuse_file_info *fi);

void zf_fuse_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void zf_fuse_statx(fuse_req_t req, fuse_ino_t ino, int flags, int mask, struct fuse_file_info *fi);
void zf_fuse_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int valid,
		     struct fuse_file_info *fi);
void zf_fuse_statfs(fuse_req_t req, fuse_ino_t ino);
void zf_fuse_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		      size_t size, int flags, unsigned int more_flags);
void zf_fuse_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void zf_fuse_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void zf_fuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

void zf_fuse_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void zf_fuse_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void zf_fuse_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		  struct fuse_file_info *fi);
void zf_fuse_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
		   struct fuse_file_info *fi);
void zf_fuse_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t len,
		       struct fuse_file_info *fi);
void zf_fuse_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in,
			     struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t offset_out,
			     struct fuse_file_info *fi_out, size_t len, int flags);
void zf_fuse_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi);
void zf_fuse_fsyncdir(fuse_req_t req, fuse_ino_t ino, int data_only, struct fuse_file_info *fi);
void zf_fuse_syncfs(fuse_req_t req, fuse_ino_t ino);
void zf_fuse_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		   struct fuse_file_info *fi);
void zf_fuse_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int number, void *arg,
		   struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
		   size_t out_size);

/* ---- shared ---- */

void zf_fuse_attr_to_stat(const struct zf_attr *attr, struct stat *ret_stat);
void zf_fuse_attr_to_entry(const struct zf_attr *attr, struct fuse_entry_param *ret_entry);

/*
 * Makes the kernel ask for the attributes anew. To be called before the answer to a request that
 * has changed them. After some changes the kernel drops its attributes by itself. But the answer to
 * an earlier request of another thread may still be on its way, and the kernel would keep those old
 * attributes for ever. This notice lets the kernel recognise them as old. (Without it the kernel
 * does so only when the answer to the change brings attributes, when it removes a name, and when it
 * writes a user's buffer.)
 */
void zf_fuse_forget_attr(struct zf_daemon *daemon, uint64_t ino);
/* For a directory whose entries have changed, and its attributes with them. */
void zf_fuse_forget_listing(struct zf_daemon *daemon, uint64_t dir);

/*
 * Sets in fi how the kernel may cache a file with these attributes that is opened as fi says, and
 * attaches the handle of fi.
 */
void zf_fuse_file_set_up(struct zf_daemon *daemon, uint64_t ino, const struct zf_attr *attr,
			 struct fuse_file_info *fi);
/*
 * Truncates a file that CREATE with O_TRUNC found; *ret_attr are the attributes afterwards. (After
 * OPEN with O_TRUNC the kernel sends a SETATTR instead.)
 */
int zf_fuse_file_truncate(struct zf_daemon *daemon, struct zf_call *call, uint64_t ino,
			  struct zf_attr *ret_attr);

#endif

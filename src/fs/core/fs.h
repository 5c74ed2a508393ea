/* SPDX-License-Identifier: MIT */
/*
 * The filesystem: every operation that a user can ask for, without FUSE.
 *
 * A filesystem is mounted on a device and then takes operations from any number of threads. Files are named
 * by inode number, directories' entries by name. Numbers are never reused, so a number that
 * is gone gives -ESTALE.
 *
 * Kernel references. lookup, make and link count one reference to the inode that they return;
 * forget takes them back. An inode without a name lives on until its last reference is gone; what a crash
 * leaves is deleted by the next mount.
 *
 * Waiting. With ctx->may_wait false an operation that would have to wait for a commit, for room, for dirty data
 * or for the device returns -EAGAIN having changed nothing: the caller hands it to a thread that may
 * wait. (Reading a B-tree node that is not cached is the exception: it happens on the spot.)
 *
 * Without threads (options->threads false) nothing happens behind the caller's back: commits and data flushes
 * happen in zf_fs_step(), in fsync and syncfs, and where an operation needs them. One seed, one history.
 *
 * Errors are those of the Linux calls of the same name; -EIO and -EUCLEAN for the device's faults;
 * -EROFS on a read-only mount or after a failed commit.
 *
 * Read next: fs/core/inode.h, then fs/data/data.h.
 */
#ifndef ZF_FS_FS_H
#define ZF_FS_FS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/report.h"
#include "fs/core/fs_format.h"
#include "io/dev.h"
#include "superblock/super_format.h"

struct zf_fs;

/* ---- mounting ---- */

/* When reading moves the access time: fs/core/access.h. */
enum zf_atime {
	ZF_ATIME_RELATIVE, /* once after each change, and once a day */
	ZF_ATIME_STRICT,
	ZF_ATIME_NEVER,
};

struct zf_mount_options {
	bool read_only;
	bool threads;	      /* background commits, flushes, tidying */
	uint64_t generation;  /* mount this superblock record, read-only; 0: the newest */
	bool abandon_log;     /* give up what of the log cannot be read: what it tells of is lost */
	uint64_t cache_bytes; /* of nodes in memory; of unused inodes half as much; 0: 64 MiB */
	uint64_t dirty_bytes; /* of file data not on the device yet; 0: 64 MiB */
	uint64_t commit_ms;   /* between commits; 0: 5000 */
	/*
	 * Zones that reclaim gets ready ahead of writers, so many, or so many percent of all (at
	 * most 50), besides the least that there must be; both 0: alloc's default.
	 */
	uint32_t reclaim_zones, reclaim_percent;
	bool reclaim_paused; /* as zf_reclaim_pause() does */
	enum zf_atime atime;
	bool no_dir_atime; /* never that of directories */
	bool lazy_time;	   /* access times may be stored a day late */
	bool sync_names;   /* every directory is as with ZF_INODE_DIRSYNC */
	/* Nanoseconds since 1970; NULL: the system's clock. */
	int64_t (*now_ns)(void *arg);
	void *now_arg;
	/*
	 * Not NULL: trace_fd gets a trace, as by zf_fs_trace_start(), from before what the mount
	 * itself writes and replays. If the mount fails, it may have been started: zf_trace_stop().
	 */
	const struct zf_trace_about *trace;
	int trace_fd;
};

/*
 * The device stays the caller's and outlives the filesystem. -ENODEV: no zfuse filesystem;
 * -EPROTONOSUPPORT: unknown format; -EUCLEAN: damaged beyond mounting; -EINVAL: more reclaim_zones
 * than half of what there is; each reported in words.
 */
int zf_fs_mount(struct zf_dev *dev, const struct zf_mount_options *options,
		const struct zf_report *report, struct zf_fs **ret_fs);

/*
 * Flushes, commits, and frees in any case. An error means that the last commit failed, or that data
 * was lost of which nobody was told.
 */
int zf_fs_unmount(struct zf_fs *fs);

/* Frees everything and writes nothing: what a crash leaves. Takes NULL. Threads are stopped. */
void zf_fs_abandon(struct zf_fs *fs);

/* One round of background work, without threads: flush, land, commit, tidy. */
int zf_fs_step(struct zf_fs *fs);

/* ---- who asks ---- */

/*
 * Up to which write error somebody has been told: data that was answered and then could not be
 * written. An open file has one, from zf_fs_begin_errors() to its close, and so has who calls
 * zf_fs_syncfs(): there it begins with 0. Any thread. fs/core/write_error.h
 */
struct zf_error_cursor {
	_Atomic uint64_t told;
};

struct zf_ctx {
	uid_t uid;
	gid_t gid;
	mode_t umask;	      /* applied by make; 0 if the kernel has applied it */
	bool may_wait;	      /* see above */
	bool may_wait_record; /* fsync: for one durable write, without may_wait */
	bool may_as_owner;    /* whoever owns the file: CAP_FOWNER */
	bool no_atime;	      /* reading leaves the access time alone (O_NOATIME) */
	/* Of the open file by which he asks; NULL: by none. */
	struct zf_error_cursor *errors;
};

struct zf_time {
	int64_t seconds;
	uint32_t nanoseconds;
};

struct zf_attr {
	uint64_t ino;
	uint64_t generation;
	uint64_t size;	 /* bytes */
	uint64_t blocks; /* of 512 bytes, what is on its way to the device included */
	uint64_t rdev;
	uint32_t mode, nlink, uid, gid, project;
	uint32_t flags; /* enum zf_inode_flag */
	struct zf_time atime, mtime, ctime, btime;
	bool settling; /* data is on its way: `blocks` may still change by itself */
};

/* ---- names ---- */

/*
 * The name "." finds `parent` itself, which may be of any type. -ESTALE: `parent` has no name left. The
 * name ".." finds the parent of a directory.
 */
int zf_fs_lookup(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
		 struct zf_attr *ret_attr);
void zf_fs_forget(struct zf_fs *fs, uint64_t ino, uint64_t count);

/*
 * A file, directory, symbolic link (target), device (rdev), fifo or socket, by mode's type. The group and setgid
 * come from a setgid parent. `target` is NULL but for symbolic links. -EOVERFLOW: ctx has the uid or gid -1.
 */
int zf_fs_make(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
	       mode_t mode, uint64_t rdev, const char *target, struct zf_attr *ret_attr);
/* A regular file without a name (O_TMPFILE), which zf_fs_link() may give one. `parent` as for make. */
int zf_fs_tmpfile(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, mode_t mode,
		  struct zf_attr *ret_attr);
int zf_fs_link(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t parent,
	       const char *name, struct zf_attr *ret_attr);
int zf_fs_unlink(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name);
int zf_fs_rmdir(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name);
/*
 * flags: RENAME_NOREPLACE, RENAME_WHITEOUT, both, or RENAME_EXCHANGE; others -EINVAL. A whiteout is a character
 * device 0:0 that takes the old name in the same step. ret_moved (may be NULL; set on success): whose names have
 * moved, and with that their change times; 0 where nobody's.
 */
int zf_fs_rename(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
		 uint64_t new_parent, const char *new_name, unsigned int flags,
		 uint64_t ret_moved[2]);
/* At most `size` bytes, not terminated; returns the length or -errno. */
ssize_t zf_fs_readlink(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, char *buf,
		       size_t size);

struct zf_dirent {
	uint64_t ino;
	uint64_t cookie; /* give it to the next call to go on behind this entry */
	uint8_t type;	 /* DT_* */
	uint8_t name_len;
	char name[ZF_NAME_MAX + 1]; /* terminated */
};
/*
 * The entries behind `cookie` (0: from the start), "." and ".." first (cookies 1 and 2), at most `max`.
 * Cookies are stable: an entry that exists during the whole listing is seen exactly once, whatever is
 * made or removed meanwhile. Returns how many, 0 at the end, or -errno.
 */
int zf_fs_readdir(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t cookie,
		  struct zf_dirent *entries, unsigned int max);

/* ---- attributes ---- */

int zf_fs_getattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		  struct zf_attr *ret_attr);

enum zf_set {
	ZF_SET_MODE = 1 << 0,
	ZF_SET_UID = 1 << 1,
	ZF_SET_GID = 1 << 2,
	ZF_SET_SIZE = 1 << 3,
	ZF_SET_ATIME = 1 << 4, /* to the given time */
	ZF_SET_MTIME = 1 << 5,
	ZF_SET_CTIME = 1 << 6,
	ZF_SET_ATIME_NOW = 1 << 7,
	ZF_SET_MTIME_NOW = 1 << 8,
	ZF_SET_KILL_SUIDGID = 1 << 9, /* of a file: drop setuid and, mostly, setgid */
	/*
	 * chown(2) that names no owner and no group, which drops the same. The kernel does not
	 * check who asks, so this does: -EPERM if there is something to drop and the caller is
	 * neither the owner nor root, nor may_as_owner.
	 */
	ZF_SET_SAME_OWNER = 1 << 10,
};
struct zf_setattr {
	unsigned int valid; /* enum zf_set */
	uint32_t mode, uid, gid;
	uint64_t size;
	struct zf_time atime, mtime, ctime;
};
int zf_fs_setattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		  const struct zf_setattr *set, struct zf_attr *ret_attr);

/*
 * What chattr(1) does: the flags in `mask` become those in `flags`; what a type of file cannot have is dropped.
 * Whether the caller may (CAP_LINUX_IMMUTABLE, ownership) is the kernel's to check. -EOPNOTSUPP: unknown flags.
 * -EPERM: the inode is immutable and stays so.
 */
struct zf_set_flags {
	uint32_t mask, flags; /* enum zf_inode_flag */
	bool set_project;
	uint32_t project;
};
int zf_fs_set_flags(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		    const struct zf_set_flags *set);

/*
 * flags: XATTR_CREATE, XATTR_REPLACE; and ZF_XATTR_KILL_SGID: the caller is outside the inode's group, so that an
 * access list costs the inode setgid. The kernel knows that, and src/fs/ does not: a caller may be in many groups.
 * -ENODATA: no such attribute.
 */
#define ZF_XATTR_KILL_SGID (1 << 16)
int zf_fs_setxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name,
		   const void *value, size_t len, int flags);
/* With size 0 the length only; -ERANGE if `size` is too small. */
ssize_t zf_fs_getxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name,
		       void *value, size_t size);
/* Names in the trusted namespace for root alone. */
ssize_t zf_fs_listxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, char *list,
			size_t size);
int zf_fs_removexattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name);

/* ---- data ---- */

/*
 * What open(2) with these flags asks of a file, beyond permission: -EPERM if it is immutable, or may only be appended
 * to, and this would be more. Truncates nothing, and keeps nothing: there is no close.
 */
int zf_fs_open(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, int flags,
	       struct zf_attr *ret_attr);

/*
 * A regular file has been opened: its data that is lost from now on will be told of by the cursor,
 * and what was lost before if nobody was told. Costs two loads, mostly. The caller keeps a kernel
 * reference (zf_fs_lookup) as long as the file is open, or errors that others were told of may be
 * forgotten.
 */
void zf_fs_begin_errors(struct zf_fs *fs, uint64_t ino, struct zf_error_cursor *ret_cursor);

/*
 * Returns bytes read: less than asked for only at the end of the file. What `buf` holds behind them is
 * undefined then: the last block of the file may have been read into it as a whole.
 */
ssize_t zf_fs_read(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		   void *buf, size_t len);

/*
 * zf_fs_read() without may_wait, of at most ZF_READING_MAX bytes, for a caller that reads the device on
 * a ring of its own. -EINPROGRESS: the caller carries out the read *ret_wants, and then gives its result
 * and *ret_reading to zf_fs_read_end(); `buf` must stay until then. -EAGAIN: zf_fs_read() with may_wait
 * has to do it, because more than one read is missing, the buffer is not aligned to blocks, the device
 * cannot be read like this, or there is no memory. Any other value is the answer.
 */
#define ZF_READING_MAX ((size_t)1 << 20)
struct zf_reading;
struct zf_reading_wants {
	int fd;
	const struct iovec *iov; /* one; lives as long as the reading */
	uint64_t offset;
};
ssize_t zf_fs_read_begin(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
			 void *buf, size_t len, struct zf_reading **ret_reading,
			 struct zf_reading_wants *ret_wants);
/*
 * `result` is that of readv(2): bytes, or -errno. Returns the answer, or -EAGAIN if the result was no
 * good: then zf_fs_read() with may_wait has to do it. The reading is gone in any case. Any thread; once
 * for each reading, before zf_fs_unmount().
 */
ssize_t zf_fs_read_end(struct zf_reading *reading, int64_t result);

/*
 * The last close of an open file: nothing is made durable, and nothing waits for the device. But of a
 * file that was truncated to nothing, what was written since starts its way there.
 */
int zf_fs_close(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino);

enum zf_write_flags {
	ZF_WRITE_APPEND = 1 << 0, /* at the end of the file, wherever that is now */
	ZF_WRITE_DSYNC = 1 << 1,  /* durable when answered */
	ZF_WRITE_KILL_SUIDGID = 1 << 2,
	/* Collected by the kernel: the times are its, and the inode's flags were asked before. */
	ZF_WRITE_CACHE = 1 << 3,
	/* Pages of the kernel's cache: not durable by the inode's flags; all of them, or an error. */
	ZF_WRITE_PAGE = 1 << 4,
};
ssize_t zf_fs_write(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		    const void *buf, size_t len, unsigned int flags);

/*
 * copy_file_range(2): as many bytes of `len` as are in the file, into it or another. Whole blocks that
 * lie alike within their blocks are not copied but shared; holes, and what is written as zeroes, become
 * holes. Returns how many bytes were copied: fewer than asked for if an error came in between, 0 at
 * the end of the source. -EINVAL if the ranges overlap in one file.
 */
ssize_t zf_fs_copy_range(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino_in,
			 uint64_t offset_in, uint64_t ino_out, uint64_t offset_out, uint64_t len);

/*
 * Makes the file durable, or says that some of its data is lost: once by each ctx->errors; without
 * one, as long as nobody was told by an open file. The same holds for what is durable when it is
 * answered.
 */
int zf_fs_fsync(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, bool data_only);
/* The same of everything. ctx->errors is here the cursor of who syncs the whole. */
int zf_fs_syncfs(struct zf_fs *fs, const struct zf_ctx *ctx);

/* whence: SEEK_DATA or SEEK_HOLE. -ENXIO past the end. */
int zf_fs_seek(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
	       int whence, uint64_t *ret_offset);

/* FALLOC_FL_WRITE_ZEROES, which libcs older than Linux 6.17 do not know. */
#define ZF_FALLOC_WRITE_ZEROES 0x80

/*
 * mode: 0, FALLOC_FL_KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE [| KEEP_SIZE],
 * ZF_FALLOC_WRITE_ZEROES; others -EOPNOTSUPP. Space that 0, KEEP_SIZE and ZERO_RANGE allocate is the
 * file's: the first write to each block of it does not fail for want of space; what WRITE_ZEROES
 * has zeroed can be overwritten twice, and again as zones come back (docs/write-zeroes.md).
 * -ENOSPC: not for the whole range; nothing has changed, but that WRITE_ZEROES may have zeroed the
 * front of it in place.
 */
int zf_fs_fallocate(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, int mode,
		    uint64_t offset, uint64_t len);

/* What stands where: for `zfusectl file`. Extents as the tree has them, after a flush of the file. */
struct zf_extent_info {
	uint64_t offset, len; /* in the file */
	uint64_t address;     /* on the device; 0 where type has none */
	uint64_t generation;
	uint8_t type; /* enum zf_extent_type */
	uint8_t flags;
};
int zf_fs_extents(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		  struct zf_extent_info *extents, unsigned int max);

/*
 * A path of the inode from the root, for people: "/a/b", as its names are while it is looked up, which
 * somebody may change meanwhile. -ENOENT: it has no name; -ENAMETOOLONG: `size` is too small.
 */
int zf_fs_path(struct zf_fs *fs, uint64_t ino, char *buf, size_t size);

/* ---- the whole ---- */

struct zf_statfs {
	uint64_t block_size;
	/*
	 * Of block_size. What can be written is free; what fallocate can set aside, with the room for
	 * its metadata, is available: that is less.
	 */
	uint64_t blocks, blocks_free, blocks_available;
	uint64_t files, files_free;
	uint32_t name_max;
	uint64_t fsid;
};
int zf_fs_statfs(struct zf_fs *fs, struct zf_statfs *ret_statfs);

/*
 * Makes the filesystem larger, in use as it is: to `zone_count` zones, or, with 0, to all that the
 * device has or can get (zf_dev_grow()). Durable when it returns 0; a crash in between leaves the old
 * size, the new one, or, of many thousand zones, one between them: doing it again goes on. One caller
 * at a time. -EINVAL: fewer zones than there are; -ENOSPC: no room for the device to grow,
 * or for the items of the new zones; -EOPNOTSUPP: a device that cannot grow; -EROFS.
 */
int zf_fs_grow(struct zf_fs *fs, uint32_t zone_count);

/* One commit, and the resets that it allows: two of them give back what was emptied. */
int zf_fs_settle(struct zf_fs *fs);
/*
 * Resets the zones in which nothing is live any more, with as many commits as that takes, and tells
 * their capacity in bytes. Nothing is moved: garbage beside live data stays. -EROFS, or what a
 * commit fails with.
 */
int zf_fs_trim(struct zf_fs *fs, uint64_t *ret_bytes);

/*
 * Read-only: stores everything, as zf_fs_unmount() does, and then nothing is written until the
 * filesystem is writable again. The caller sees to it that no operation changes anything meanwhile
 * (the kernel has made the mount read-only). Operations and tools get -EROFS from then on, access
 * times do not move, and an inode whose last name went before is deleted at the next mount. An error
 * of storing: the filesystem stays writable.
 * Writable: -EROFS if it was mounted read-only, or a commit has failed.
 */
int zf_fs_remount(struct zf_fs *fs, bool read_only);

/* As the mount options of these names. Any thread. -EINVAL: more zones than half, reported. */
int zf_fs_set_reclaim_target(struct zf_fs *fs, uint32_t zones, uint32_t percent);
void zf_fs_set_commit_ms(struct zf_fs *fs, uint64_t commit_ms);

/*
 * The label is UTF-8 of less than ZF_SUPER_LABEL_SIZE bytes without control characters, else
 * -EINVAL. A new one is durable when this returns 0. -EROFS, or what a commit fails with: it stays
 * the old one.
 */
int zf_fs_set_label(struct zf_fs *fs, const char *label);
void zf_fs_get_label(struct zf_fs *fs, char ret_label[ZF_SUPER_LABEL_SIZE]);

/*
 * Begins a trace (trace/trace.h) with the state of all zones and the newest superblock. Of `run`
 * the caller fills in what the filesystem does not know: clock, program, and perhaps workload and
 * seed. zf_trace_stop() ends it, at the latest after the unmount. Errors as of zf_trace_start(), or
 * of reading the ring.
 */
int zf_fs_trace_start(struct zf_fs *fs, int fd, const struct zf_trace_about *run);

bool zf_fs_is_read_only(struct zf_fs *fs);

/* For tools, tests and the checker; see the modules' headers. They belong to the fs. */
struct zf_dev *zf_fs_dev(struct zf_fs *fs);
struct zf_alloc *zf_fs_alloc(struct zf_fs *fs);
struct zf_forest *zf_fs_forest(struct zf_fs *fs);
struct zf_txn *zf_fs_txn(struct zf_fs *fs);
struct zf_log *zf_fs_log(struct zf_fs *fs); /* NULL on a read-only mount */
struct zf_ring *zf_fs_ring(struct zf_fs *fs);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * The filesystem: every operation that a user can ask for, without FUSE.
 *
 * A filesystem is mounted on a device and then takes operations from any number of threads. Files
 * are named by inode number, directory entries by name. Inode numbers are never reused: a number
 * whose inode was deleted gives -ESTALE.
 *
 * Kernel references. lookup, make and link count one reference to the inode that they return;
 * forget takes references back. An inode without a name lives until its last reference is gone.
 * After a crash the next mount deletes the inodes without a name.
 *
 * Waiting. If ctx->may_wait is false, an operation that would have to wait for a commit, for room,
 * for dirty data or for the device changes nothing and returns -EAGAIN. The caller then hands the
 * operation to a thread that may wait. (Exception: a B-tree node that is not cached is read at
 * once, by the calling thread.)
 *
 * Without threads (options->threads false) there is no background work: commits and data flushes
 * happen in zf_fs_step(), in fsync and syncfs, and where an operation needs them. So one seed
 * always gives the same history.
 *
 * Errors are those of the Linux calls of the same name. -EIO and -EUCLEAN: faults of the device.
 * -EROFS: a read-only mount, or a commit has failed.
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

/* When reading updates the access time: fs/core/access.h. */
enum zf_atime {
	ZF_ATIME_RELATIVE, /* once after each change, and once a day */
	ZF_ATIME_STRICT,
	ZF_ATIME_NEVER,
};

struct zf_mount_options {
	bool read_only;
	bool threads;	      /* background commits, flushes, tidying */
	uint64_t generation;  /* mount this superblock record, read-only; 0: the newest */
	bool abandon_log;     /* end the log before a part that cannot be read; the rest is lost */
	uint64_t cache_bytes; /* of nodes in memory; unused inodes: half as much;
				 copies of data (fs/data/recent.h): a 16th; 0: 64 MiB */
	uint64_t dirty_bytes; /* of file data not on the device yet; 0: 64 MiB */
	uint64_t commit_ms;   /* between commits; 0: 5000 */
	/*
	 * How many zones reclaim empties ahead of writers, as a number or as a percentage of all
	 * zones (at most 50), besides the few that must always be empty. Both 0: alloc's default.
	 */
	uint32_t reclaim_zones, reclaim_percent;
	bool reclaim_paused; /* as zf_reclaim_pause() does */
	enum zf_atime atime;
	bool no_dir_atime; /* reading a directory never updates its access time */
	bool lazy_time;	   /* access times may be stored a day late */
	bool sync_names;   /* every directory behaves as if it had ZF_INODE_DIRSYNC */
	/* Nanoseconds since 1970; NULL: the system's clock. */
	int64_t (*now_ns)(void *arg);
	void *now_arg;
	/*
	 * Not NULL: trace_fd gets a trace, as by zf_fs_trace_start(), that begins before the mount
	 * writes or replays anything. After a failed mount the trace may have been started, so the
	 * caller calls zf_trace_stop().
	 */
	const struct zf_trace_about *trace;
	int trace_fd;
};

/*
 * The caller owns the device, and keeps it open until the filesystem is unmounted. -ENODEV: no
 * zfuse filesystem; -EPROTONOSUPPORT: unknown format; -EUCLEAN: damaged beyond mounting; -EINVAL:
 * reclaim_zones is more than half of all zones. Each error is also reported in words.
 */
int zf_fs_mount(struct zf_dev *dev, const struct zf_mount_options *options,
		const struct zf_report *report, struct zf_fs **ret_fs);

/*
 * Flushes and commits, and frees the filesystem in any case. An error means that the last commit
 * failed, or that data was lost and no caller was told of the loss.
 */
int zf_fs_unmount(struct zf_fs *fs);

/* Stops the threads and frees everything. Writes nothing, as in a crash. Takes NULL. */
void zf_fs_abandon(struct zf_fs *fs);

/* One round of background work, without threads: flush, land, commit, tidy. */
int zf_fs_step(struct zf_fs *fs);

/* ---- the caller ---- */

/*
 * The number of the newest write error that the owner of the cursor has been told of. A write error
 * is the loss of data of a write that was answered (fs/core/write_error.h). An open file has a
 * cursor from zf_fs_begin_errors() to its close. A caller of zf_fs_syncfs() has one that begins
 * with 0. Any thread may use it.
 */
struct zf_error_cursor {
	_Atomic uint64_t told;
};

/*
 * What the owner of a cursor knows when a request comes. A request whose data is lost must get the
 * error, even if another request of the same owner is told of it first.
 */
struct zf_told {
	struct zf_error_cursor *cursor; /* it stays until the request is answered; NULL: none */
	uint64_t number;
};

struct zf_ctx {
	uid_t uid;
	gid_t gid;
	mode_t umask;	      /* applied by make; 0 if the kernel has applied it */
	bool may_wait;	      /* see above */
	bool may_wait_record; /* without may_wait: an fsync may wait for one durable write */
	bool may_as_owner;    /* the caller counts as the owner of any file: CAP_FOWNER */
	bool no_atime;	      /* reading leaves the access time alone (O_NOATIME) */
	struct zf_told told;  /* of the open file that the request came through */
};

struct zf_time {
	int64_t seconds;
	uint32_t nanoseconds;
};

struct zf_attr {
	uint64_t ino;
	uint64_t generation;
	uint64_t size;	 /* bytes */
	uint64_t blocks; /* of 512 bytes, including data on its way to the device */
	uint64_t rdev;
	uint32_t mode, nlink, uid, gid, project;
	uint32_t flags; /* enum zf_inode_flag */
	struct zf_time atime, mtime, ctime, btime;
	bool settling; /* data is on its way: `blocks` may still change by itself */
};

/* ---- names ---- */

/*
 * The name "." finds `parent` itself, which may be of any type. -ESTALE: `parent` has no name left.
 * The name ".." finds the parent of a directory.
 */
int zf_fs_lookup(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
		 struct zf_attr *ret_attr);
void zf_fs_forget(struct zf_fs *fs, uint64_t ino, uint64_t count);

/*
 * Makes a file, directory, symbolic link (target), device (rdev), fifo or socket: the type is in
 * mode. If the parent has setgid, the new inode takes its group and, if it is a directory, setgid.
 * `target` is NULL except for symbolic links. -EOVERFLOW: ctx has the uid or gid -1.
 */
int zf_fs_make(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
	       mode_t mode, uint64_t rdev, const char *target, struct zf_attr *ret_attr);
/* A regular file without a name (O_TMPFILE). zf_fs_link() may name it. `parent` as for make. */
int zf_fs_tmpfile(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, mode_t mode,
		  struct zf_attr *ret_attr);
int zf_fs_link(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t parent,
	       const char *name, struct zf_attr *ret_attr);
int zf_fs_unlink(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name);
int zf_fs_rmdir(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name);
/*
 * flags: RENAME_NOREPLACE, RENAME_WHITEOUT, both, or RENAME_EXCHANGE; others -EINVAL. A whiteout is
 * a character device 0:0 that takes the old name in the same step. ret_moved (may be NULL; set on
 * success): the inodes that have moved to another name, and whose change times are new: the source,
 * and with RENAME_EXCHANGE the target; 0: none. A replaced inode is not among them.
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
 * Lists at most `max` entries behind `cookie` (0: from the start). "." and ".." come first, with
 * cookies 1 and 2. Cookies are stable: an entry that exists during the whole listing is listed
 * exactly once, whatever is made or removed meanwhile. Returns the number of entries, 0 at the end,
 * or -errno.
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
	 * A chown(2) without an owner and without a group. It drops the same bits. The kernel does
	 * not check the caller's permission, so zf_fs_setattr() does: -EPERM if there is a bit to
	 * drop and the caller is not the owner, not root, and has no may_as_owner.
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
 * What chattr(1) does: the flags in `mask` become those in `flags`. A flag that this type of file
 * cannot have is dropped. The kernel has checked the caller's permission (CAP_LINUX_IMMUTABLE,
 * ownership). -EOPNOTSUPP: unknown flags. -EPERM: the inode is immutable and would stay immutable.
 */
struct zf_set_flags {
	uint32_t mask, flags; /* enum zf_inode_flag */
	bool set_project;
	uint32_t project;
};
int zf_fs_set_flags(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		    const struct zf_set_flags *set);

/*
 * flags: XATTR_CREATE, XATTR_REPLACE; and ZF_XATTR_KILL_SGID: the caller is not in the inode's
 * group, so setting an access control list clears setgid. Only the kernel knows this, because a
 * caller may be in many groups. -ENODATA: no such attribute.
 */
#define ZF_XATTR_KILL_SGID (1 << 16)
int zf_fs_setxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name,
		   const void *value, size_t len, int flags);
/* Returns the length. With size 0 it copies nothing. -ERANGE: `size` is too small. */
ssize_t zf_fs_getxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name,
		       void *value, size_t size);
/* Names in the trusted namespace are listed only for root. */
ssize_t zf_fs_listxattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, char *list,
			size_t size);
int zf_fs_removexattr(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, const char *name);

/* ---- data ---- */

/*
 * Checks what open(2) with these flags must check besides permissions. -EPERM: the file is
 * immutable, or it is append-only and the flags allow more than appending. The call does not
 * truncate the file and keeps no state, so no close belongs to it.
 */
int zf_fs_open(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, int flags,
	       struct zf_attr *ret_attr);

/*
 * Called when a regular file has been opened. The cursor will report the loss of data from now on,
 * and an earlier loss that no caller was told of. In most cases this costs two loads. The caller
 * keeps a kernel reference (zf_fs_lookup()) as long as the file is open. Without one, an error that
 * another open file was told of may be forgotten.
 */
void zf_fs_begin_errors(struct zf_fs *fs, uint64_t ino, struct zf_error_cursor *ret_cursor);
/* For ctx->told: to be called when a request comes, before anything is done. Takes NULL. */
struct zf_told zf_fs_told(struct zf_error_cursor *cursor);

/*
 * Returns the number of bytes read: less than asked for at the end of the file, or if an error came
 * after more than 1 MiB. In both cases the rest of `buf` is undefined, because the whole last block
 * of the file may have been read into it.
 */
ssize_t zf_fs_read(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		   void *buf, size_t len);

/*
 * zf_fs_read() without may_wait, of at most ZF_READING_MAX bytes, for a caller that reads the
 * device with an io_uring of its own. -EINPROGRESS: the caller carries out the read *ret_wants, and
 * then gives its result and *ret_reading to zf_fs_read_end(); `buf` must stay until then. -EAGAIN:
 * the caller has to use zf_fs_read() with may_wait, because more than one read of the device is
 * needed, the buffer is not aligned to blocks, the device cannot be read like this, or there is no
 * memory. Any other value is the result of the read.
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
 * `result` is that of readv(2): bytes, or -errno. Returns the result of the read, or -EAGAIN if
 * `result` was an error or too short: the caller then uses zf_fs_read() with may_wait. The reading
 * is freed in any case. Any thread; once for each reading, before zf_fs_unmount().
 */
ssize_t zf_fs_read_end(struct zf_reading *reading, int64_t result);

/*
 * The last close of an open file. It makes nothing durable and does not wait for the device. But if
 * the file was truncated to nothing, it starts the writes of the data written since
 * (fs/data/close.h).
 */
int zf_fs_close(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino);

enum zf_write_flags {
	ZF_WRITE_APPEND = 1 << 0, /* at the end of the file, wherever that is now */
	ZF_WRITE_DSYNC = 1 << 1,  /* durable when answered */
	ZF_WRITE_KILL_SUIDGID = 1 << 2,
	/* From the kernel's writeback cache: the kernel sets the times; the flags were checked. */
	ZF_WRITE_CACHE = 1 << 3,
	/* Pages of the kernel's cache: ZF_INODE_SYNC is ignored, and a short write is an error. */
	ZF_WRITE_PAGE = 1 << 4,
};
ssize_t zf_fs_write(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		    const void *buf, size_t len, unsigned int flags);

/*
 * copy_file_range(2): copies at most `len` bytes, up to the end of the source, into another file or
 * the same one. Whole blocks are shared instead of copied if both offsets have the same remainder
 * modulo the block size, neither range is guaranteed, and the source is neither inline nor written
 * in place. (A source that is written all the time is copied.) Where blocks are shared, holes and
 * extents of zeroes become holes; where bytes are copied, they become data. Returns how many bytes
 * were copied: fewer than asked for if an error came in between, 0 at the end of the source.
 * -EINVAL: the ranges overlap in one file.
 */
ssize_t zf_fs_copy_range(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino_in,
			 uint64_t offset_in, uint64_t ino_out, uint64_t offset_out, uint64_t len);

/*
 * Makes the file durable, or returns the error if some of its data was lost: once for each cursor
 * ctx->told.cursor; with NULL, until an open file was told. Operations that are durable when they
 * are answered return such errors in the same way.
 */
int zf_fs_fsync(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, bool data_only);
/*
 * zf_fs_fsync() of the data, for a caller that does not wait on its thread. -EINPROGRESS: ended()
 * is called once, by any thread, without locks, perhaps before this function returns. Then
 * zf_fs_sync_later_end() has to be called. -EAGAIN: nothing was done, because there is no memory,
 * or the filesystem has data that is written in place; the caller uses zf_fs_fsync().
 */
struct zf_syncing;
typedef void zf_syncing_ended_fn(struct zf_syncing *syncing, bool served, void *arg);
int zf_fs_sync_later(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino,
		     zf_syncing_ended_fn *ended, void *arg);
/*
 * Returns the result of the sync. After ended() with `served`, another caller's sync has served
 * this one, and the function does not wait. Otherwise it runs the sync, on a thread that may wait;
 * other callers may be waiting for that. Once for each call of ended(), before zf_fs_unmount().
 */
int zf_fs_sync_later_end(struct zf_syncing *syncing);
/* The same for all files. ctx->told is that of the caller of syncfs. */
int zf_fs_syncfs(struct zf_fs *fs, const struct zf_ctx *ctx);

/* whence: SEEK_DATA or SEEK_HOLE. -ENXIO past the end. */
int zf_fs_seek(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
	       int whence, uint64_t *ret_offset);

/* FALLOC_FL_WRITE_ZEROES, which libcs older than Linux 6.17 do not know. */
#define ZF_FALLOC_WRITE_ZEROES 0x80

/*
 * mode: 0, FALLOC_FL_KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE [| KEEP_SIZE],
 * ZF_FALLOC_WRITE_ZEROES; others -EOPNOTSUPP. The modes 0, KEEP_SIZE and ZERO_RANGE allocate space
 * to the file: the first write to each block of it does not fail for want of space. A range that
 * WRITE_ZEROES has zeroed can be overwritten twice, and again as zones come back
 * (docs/write-zeroes.md). -ENOSPC: there is no room for the whole range. Nothing has changed then,
 * except that WRITE_ZEROES may have zeroed the front of the range in place.
 */
int zf_fs_fallocate(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, int mode,
		    uint64_t offset, uint64_t len);

/* For `zfusectl file`: flushes the file, and lists its extents as the tree has them. */
struct zf_extent_info {
	uint64_t offset, len; /* in the file */
	uint64_t address;     /* on the device; 0: the type has none */
	uint64_t generation;
	uint8_t type; /* enum zf_extent_type */
	uint8_t flags;
};
int zf_fs_extents(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, uint64_t offset,
		  struct zf_extent_info *extents, unsigned int max);

/*
 * A path of the inode from the root, for messages: "/a/b". A rename during the call may make the
 * path wrong. -ENOENT: the inode has no name; -ENAMETOOLONG: `size` is too small.
 */
int zf_fs_path(struct zf_fs *fs, uint64_t ino, char *buf, size_t size);

/* ---- the whole ---- */

struct zf_statfs {
	uint64_t block_size;
	/*
	 * In units of block_size. Free: the blocks that can be written. Available: the blocks that
	 * fallocate can set aside; these are fewer, because each needs room for its metadata, too.
	 */
	uint64_t blocks, blocks_free, blocks_available;
	uint64_t files, files_free;
	uint32_t name_max;
	uint64_t fsid;
};
int zf_fs_statfs(struct zf_fs *fs, struct zf_statfs *ret_statfs);

/*
 * Makes the mounted filesystem larger: to `zone_count` zones, or, with 0, to all zones that the
 * device has or can get (zf_dev_grow()). The new size is durable when the call returns 0. A crash
 * before that leaves the old size, the new one, or, if many thousand zones are added, a size
 * between them; another call then adds the rest. One caller at a time. -EINVAL: `zone_count` is
 * less than the number of zones now; -ENOSPC: no room for the device to grow, or for the items of
 * the new zones; -EOPNOTSUPP: a device that cannot grow; -EROFS.
 */
int zf_fs_grow(struct zf_fs *fs, uint32_t zone_count);

/* One commit, and the resets that it allows. Two calls give back the zones that were emptied. */
int zf_fs_settle(struct zf_fs *fs);
/*
 * Resets the zones that have no live bytes, with as many commits as that takes. *ret_bytes: their
 * capacity in bytes. The call moves no data, so garbage in zones with live data stays. -EROFS, or
 * the error of a commit.
 */
int zf_fs_trim(struct zf_fs *fs, uint64_t *ret_bytes);

/*
 * read_only true: stores everything, as zf_fs_unmount() does. Nothing is written afterwards until
 * the filesystem is writable again. The caller ensures that no operation changes anything during
 * the call (the kernel has made the mount read-only). From then on operations and tools get -EROFS,
 * access times do not change, and an inode that has lost its last name is deleted by the next
 * mount. If storing fails, its error is returned and the filesystem stays writable. read_only
 * false: -EROFS if the filesystem was mounted read-only, or a commit has failed.
 */
int zf_fs_remount(struct zf_fs *fs, bool read_only);

/* Like the mount options. Any thread. -EINVAL: more than half of all zones; this is reported. */
int zf_fs_set_reclaim_target(struct zf_fs *fs, uint32_t zones, uint32_t percent);
void zf_fs_set_commit_ms(struct zf_fs *fs, uint64_t commit_ms);

/*
 * The label is UTF-8 of less than ZF_SUPER_LABEL_SIZE bytes without control characters, else
 * -EINVAL. The new label is durable when the call returns 0. After -EROFS, or the error of a
 * commit, the filesystem keeps the old label.
 */
int zf_fs_set_label(struct zf_fs *fs, const char *label);
void zf_fs_get_label(struct zf_fs *fs, char ret_label[ZF_SUPER_LABEL_SIZE]);

/*
 * Begins a trace (trace/trace.h) with the state of all zones and the newest superblock. In `run`
 * the caller sets what the filesystem does not know: clock, program, and perhaps workload and seed.
 * zf_trace_stop() ends the trace, at the latest after the unmount. Errors are those of
 * zf_trace_start(), or of reading the superblock ring.
 */
int zf_fs_trace_start(struct zf_fs *fs, int fd, const struct zf_trace_about *run);

bool zf_fs_is_read_only(struct zf_fs *fs);

/* For tools, tests and the checker; see the modules' headers. The fs owns what they return. */
struct zf_dev *zf_fs_dev(struct zf_fs *fs);
struct zf_alloc *zf_fs_alloc(struct zf_fs *fs);
struct zf_forest *zf_fs_forest(struct zf_fs *fs);
struct zf_txn *zf_fs_txn(struct zf_fs *fs);
struct zf_log *zf_fs_log(struct zf_fs *fs); /* NULL on a read-only mount */
struct zf_ring *zf_fs_ring(struct zf_fs *fs);

#endif

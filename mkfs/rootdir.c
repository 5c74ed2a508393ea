/* SPDX-License-Identifier: MIT */
/* Copies a tree into a filesystem that is mounted in this process, without FUSE or threads. */
#include "rootdir.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "fs/core/fs.h"
#include "fs/data/data.h"
#include "mkfs.h"
#include "source.h"
#include "superblock/ring.h"

/*
 * The most data and files between two commits. Dirty state takes memory, but each commit writes
 * nodes anew.
 */
#define COMMIT_BYTES (UINT64_C(64) << 20)
#define COMMIT_FILES 10000u
/* The most bytes of one read and write. */
#define PIECE_MAX (UINT64_C(1) << 20)

struct copier {
	const struct mkfs_fill *fill;
	struct zf_fs *fs;
	struct zf_ctx ctx;
	void *links;		   /* a tree of tsearch() with struct link */
	uint8_t *piece;		   /* of piece_size bytes */
	uint32_t piece_size;	   /* at most the append limit */
	uint64_t dirty_bytes;	   /* written since the last flush, in whole blocks */
	uint64_t commit_bytes;	   /* flushed since the last commit */
	unsigned int commit_files; /* files made since the last commit */
	struct mkfs_content copied;
};

/* The file that is being copied. */
struct target {
	struct copier *copier;
	const FTSENT *entry;
	uint64_t ino;
	uint64_t end; /* end of the data written so far */
};

/* ---- errors, commits ---- */

static int target_error(const struct copier *copier, const FTSENT *entry, int error)
{
	if (error != -ENOSPC)
		return mkfs_entry_error(entry, "cannot be copied", error);
	return mkfs_entry_error(entry, "does not fit", error);
}

/*
 * At most one append is in flight at a time. With two, either might land first, and the same tree
 * would not always give the same B-trees.
 */
static int flush(struct copier *copier)
{
	int r = zf_data_flush_all(copier->fs, true);

	copier->commit_bytes += copier->dirty_bytes;
	copier->dirty_bytes = 0;
	return r;
}

static int commit_sometimes(struct copier *copier)
{
	int r;

	if (copier->commit_bytes < COMMIT_BYTES && copier->commit_files < COMMIT_FILES)
		return 0;
	r = flush(copier);
	copier->commit_bytes = 0;
	copier->commit_files = 0;
	return r < 0 ? r : zf_fs_settle(copier->fs);
}

/* ---- hard links ---- */

struct link {
	dev_t dev;
	ino_t ino;
	uint64_t copy;
};

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

static bool may_have_links(const FTSENT *entry)
{
	return entry->fts_info != FTS_D && entry->fts_statp->st_nlink > 1;
}

/* The copy of the same file under an earlier name, or 0. */
static uint64_t find_link(const struct copier *copier, const FTSENT *entry)
{
	const struct link key = {.dev = entry->fts_statp->st_dev, .ino = entry->fts_statp->st_ino};
	struct link *const *found;

	if (!may_have_links(entry))
		return 0;
	found = tfind(&key, &copier->links, compare_links);
	return found ? (*found)->copy : 0;
}

static int note_link(struct copier *copier, const FTSENT *entry, uint64_t copy)
{
	struct link *link;

	if (!may_have_links(entry))
		return 0;
	link = malloc(sizeof(*link));
	if (!link)
		return -ENOMEM;
	*link = (struct link){entry->fts_statp->st_dev, entry->fts_statp->st_ino, copy};
	if (tsearch(link, &copier->links, compare_links))
		return 0;
	free(link);
	return -ENOMEM;
}

/* ---- data ---- */

static int write_piece(struct target *target, int fd, uint64_t offset, size_t len)
{
	struct copier *copier = target->copier;
	uint64_t blocks_len =
		zf_align_up(offset + len, ZF_BLOCK_SIZE) - zf_align_down(offset, ZF_BLOCK_SIZE);
	ssize_t n = pread(fd, copier->piece, len, (off_t)offset);
	int r = mkfs_check_signals();

	if (n < 0)
		return mkfs_entry_error(target->entry, "cannot be read", -errno);
	if (r < 0)
		return r;
	/* The file has become shorter: mkfs_source_is_unchanged() reports it. */
	if ((size_t)n < len)
		return 0;
	if (copier->dirty_bytes + blocks_len > copier->piece_size)
		r = flush(copier);
	if (r == 0)
		n = zf_fs_write(copier->fs, &copier->ctx, target->ino, offset, copier->piece, len,
				0);
	copier->dirty_bytes += blocks_len;
	if (r == 0 && n != (ssize_t)len)
		r = n < 0 ? (int)n : -ENOSPC;
	if (r == 0)
		r = commit_sometimes(copier);
	return r < 0 ? target_error(copier, target->entry, r) : 0;
}

static int write_range(void *arg, int fd, uint64_t offset, uint64_t len)
{
	struct target *target = arg;
	uint64_t end = offset + len, piece_size = target->copier->piece_size;
	int r = 0;

	/* Pieces end at multiples of their size, so that none begins in the middle of a block. */
	for (uint64_t at = offset, n; at < end && r == 0; at += n) {
		n = zf_min_u64(end - at, piece_size - at % piece_size);
		r = write_piece(target, fd, at, n);
	}
	target->end = end;
	target->copier->copied.bytes += len;
	return r;
}

static int set(const struct target *target, const struct zf_setattr *set)
{
	struct copier *copier = target->copier;
	struct zf_attr attr;
	int r = zf_fs_setattr(copier->fs, &copier->ctx, target->ino, set, &attr);

	return r < 0 ? target_error(copier, target->entry, r) : 0;
}

static int copy_data(struct target *target)
{
	const struct zf_setattr whole = {
		.valid = ZF_SET_SIZE,
		.size = (uint64_t)target->entry->fts_statp->st_size,
	};
	_zf_close_ int fd = -1;
	int r = mkfs_source_open(target->entry, &fd);

	if (r == 0)
		r = mkfs_source_ranges(target->entry, fd, write_range, target);
	if (r == 0)
		r = mkfs_source_is_unchanged(target->entry, fd);
	return r == 0 && target->end < whole.size ? set(target, &whole) : r;
}

/* ---- attributes ---- */

static int copy_attribute(void *arg, const char *name, const void *value, size_t len)
{
	struct target *target = arg;
	struct copier *copier = target->copier;
	int r = zf_fs_setxattr(copier->fs, &copier->ctx, target->ino, name, value, len, 0);

	if (r < 0)
		mkfs_error("%s: the extended attribute %s cannot be copied: %s",
			   target->entry->fts_path, name, strerror(-r));
	return r;
}

static struct zf_time to_time(const struct copier *copier, const struct timespec *time)
{
	int64_t latest = copier->fill->latest_ns, seconds = latest / 1000000000;

	if (latest >= 0 && time->tv_sec >= seconds)
		return (struct zf_time){.seconds = seconds};
	return (struct zf_time){time->tv_sec, (uint32_t)time->tv_nsec};
}

/*
 * Times are copied last, because all other changes move them. Access times depend on who has read
 * the tree, mkfs included, so they cannot be kept if the same tree must give the same bytes.
 */
static int copy_times(const struct target *target)
{
	const struct stat *st = target->entry->fts_statp;
	bool fixed = target->copier->fill->latest_ns >= 0;
	const struct zf_setattr times = {
		.valid = ZF_SET_ATIME | ZF_SET_MTIME,
		.atime = to_time(target->copier, fixed ? &st->st_mtim : &st->st_atim),
		.mtime = to_time(target->copier, &st->st_mtim),
	};

	return set(target, &times);
}

static int copy_attributes(struct target *target)
{
	int r = mkfs_source_attributes(target->entry, copy_attribute, target);

	return r < 0 ? r : copy_times(target);
}

/*
 * Finishes a directory after its content was copied, because what a directory hands down to new
 * entries (setgid, the default access control list) must not change the copied entries.
 */
static int finish_directory(struct copier *copier, const FTSENT *entry)
{
	const struct stat *st = entry->fts_statp;
	struct target target = {copier, entry, (uint64_t)entry->fts_number, 0};
	const struct zf_setattr owner = {
		.valid = ZF_SET_MODE | ZF_SET_UID | ZF_SET_GID,
		.mode = st->st_mode & 07777,
		.uid = st->st_uid,
		.gid = st->st_gid,
	};
	int r = mkfs_source_is_unchanged(entry, -1);

	if (r == 0)
		r = set(&target, &owner);
	return r < 0 ? r : copy_attributes(&target);
}

/* ---- names ---- */

static int read_target(const FTSENT *entry, char target[ZF_SYMLINK_MAX + 1])
{
	ssize_t n = readlink(entry->fts_accpath, target, ZF_SYMLINK_MAX + 1);

	if (n < 0)
		return mkfs_entry_error(entry, "cannot be read", -errno);
	if (n > (ssize_t)ZF_SYMLINK_MAX)
		return mkfs_entry_error(entry, "symbolic link", -ENAMETOOLONG);
	target[n] = '\0';
	return 0;
}

static int make(struct copier *copier, const FTSENT *entry, uint64_t *ret_ino)
{
	const struct stat *st = entry->fts_statp;
	mode_t mode = S_ISDIR(st->st_mode) ? S_IFDIR | 0700 : st->st_mode;
	struct zf_ctx ctx = copier->ctx;
	char target[ZF_SYMLINK_MAX + 1];
	struct zf_attr attr;
	int r = 0;

	if (S_ISLNK(st->st_mode))
		r = read_target(entry, target);
	if (r < 0)
		return r;
	ctx.uid = st->st_uid;
	ctx.gid = st->st_gid;
	r = zf_fs_make(copier->fs, &ctx, (uint64_t)entry->fts_parent->fts_number, entry->fts_name,
		       mode, st->st_rdev, S_ISLNK(mode) ? target : NULL, &attr);
	if (r == 0) {
		zf_fs_forget(copier->fs, attr.ino, 1);
		r = note_link(copier, entry, attr.ino);
	}
	if (r < 0)
		return target_error(copier, entry, r);
	*ret_ino = attr.ino;
	return 0;
}

static int make_link(struct copier *copier, const FTSENT *entry, uint64_t ino)
{
	struct zf_attr attr;
	int r = zf_fs_link(copier->fs, &copier->ctx, ino, (uint64_t)entry->fts_parent->fts_number,
			   entry->fts_name, &attr);

	if (r < 0)
		return target_error(copier, entry, r);
	zf_fs_forget(copier->fs, ino, 1);
	return 0;
}

static int copy_new(struct copier *copier, FTSENT *entry)
{
	struct target target = {.copier = copier, .entry = entry};
	int r = make(copier, entry, &target.ino);

	if (r < 0)
		return r;
	entry->fts_number = (long)target.ino;
	if (entry->fts_info == FTS_D)
		return 0;
	if (entry->fts_info == FTS_F)
		r = copy_data(&target);
	return r < 0 ? r : copy_attributes(&target);
}

static int copy_entry(void *arg, FTSENT *entry)
{
	struct copier *copier = arg;
	uint64_t linked;
	int r;

	if (entry->fts_info == FTS_DP)
		return finish_directory(copier, entry);
	if (entry->fts_level == 0) {
		entry->fts_number = ZF_INO_ROOT;
		return 0;
	}
	copier->copied.files++;
	copier->commit_files++;
	linked = find_link(copier, entry);
	r = linked ? make_link(copier, entry, linked) : copy_new(copier, entry);
	if (r < 0)
		return r;
	r = commit_sometimes(copier);
	return r < 0 ? target_error(copier, entry, r) : 0;
}

/* ---- the whole ---- */

static int64_t fixed_now(void *arg)
{
	const struct mkfs_fill *fill = arg;

	return fill->latest_ns;
}

static int mount_for(struct copier *copier, struct zf_dev *dev, const struct zf_report *report)
{
	const struct zf_mount_options options = {
		.now_ns = copier->fill->latest_ns >= 0 ? fixed_now : NULL,
		.now_arg = (void *)(uintptr_t)copier->fill,
	};
	int r = zf_fs_mount(dev, &options, report, &copier->fs);

	if (r < 0)
		return r;
	r = zf_ring_withhold(zf_fs_ring(copier->fs));
	if (r < 0)
		mkfs_error("%s: the superblock cannot be emptied: %s", zf_dev_path(dev),
			   strerror(-r));
	return r;
}

/* Only a complete copy gets a superblock record: the record that the unmount writes. */
static int publish(struct copier *copier)
{
	int r = flush(copier);

	if (r == 0)
		r = zf_fs_settle(copier->fs);
	if (r == 0) {
		zf_ring_publish(zf_fs_ring(copier->fs));
		r = zf_fs_unmount(copier->fs);
		copier->fs = NULL;
	}
	if (r < 0)
		mkfs_error("%s: the copy cannot be stored: %s", copier->fill->tree->device,
			   strerror(-r));
	return r;
}

static int copy(struct copier *copier, struct zf_dev *dev, const struct zf_report *report)
{
	_zf_free_ uint8_t *piece = NULL;
	int r;

	copier->piece_size = (uint32_t)zf_min_u64(zf_dev_geometry(dev)->append_limit, PIECE_MAX);
	piece = malloc(copier->piece_size);
	if (!piece) {
		mkfs_error("no memory");
		return -ENOMEM;
	}
	copier->piece = piece;
	r = mount_for(copier, dev, report);
	if (r == 0)
		r = mkfs_walk(copier->fill->tree, copy_entry, copier);
	return r < 0 ? r : publish(copier);
}

/* The unmount may have written a superblock and failed after that. */
static void leave_nothing(struct zf_dev *dev, const struct zf_report *report)
{
	struct zf_ring *ring;

	if (zf_ring_format(dev, report, &ring) == 0)
		zf_ring_close(ring);
}

int mkfs_fill(struct zf_dev *dev, const struct mkfs_fill *fill, const struct zf_report *report,
	      struct mkfs_content *ret_copied)
{
	struct copier copier = {
		.fill = fill,
		.ctx = {.may_wait = true, .may_as_owner = true},
	};
	int r = copy(&copier, dev, report);

	tdestroy(copier.links, free);
	if (r < 0) {
		zf_fs_abandon(copier.fs);
		leave_nothing(dev, report);
		return r;
	}
	*ret_copied = copier.copied;
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Operations at random. */
#include <assert.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/bits.h"
#include "support/workload.h"

#define BYTES_15 "123456789012345"
#define BYTES_255                                                                                  \
	BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15  \
		BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15 BYTES_15

static const char *const names[] = {
	"a", "b", "c", "d", "e", "f", "g", "Grüße aus Köln", "a name with spaces", BYTES_255,
};
/* More names, for large directories and deep trees. */
#define MANY_NAMES 150u
static char many_names[MANY_NAMES][16];

static const char too_long[] = BYTES_255 "6";

static const char *const xattr_names[] = {"user.a", "user.b", "user.mime_type", "trusted.x",
					  "user." BYTES_15 BYTES_15 BYTES_15 BYTES_15};

static const char *const targets[] = {"a", "../b", "/etc/passwd", BYTES_255 "/" BYTES_255,
				      BYTES_255 "/" BYTES_255 "/" BYTES_255 "/" BYTES_255
						"/" BYTES_255 "/" BYTES_255 "/" BYTES_255};

const struct workload_profile workload_everything = {
	.weights =
		{[OP_LOOKUP] = 40,	[OP_FORGET] = 40,    [OP_MAKE] = 130,	 [OP_LINK] = 40,
		 [OP_UNLINK] = 60,	[OP_RMDIR] = 20,     [OP_RENAME] = 90,	 [OP_READLINK] = 5,
		 [OP_READDIR] = 15,	[OP_SETATTR] = 80,   [OP_SETXATTR] = 40, [OP_GETXATTR] = 20,
		 [OP_REMOVEXATTR] = 20, [OP_READ] = 120,     [OP_WRITE] = 220,	 [OP_COPY] = 90,
		 [OP_SEEK] = 30,	[OP_SETFLAGS] = 30,  [OP_FSYNC] = 10,	 [OP_SYNCFS] = 2,
		 [OP_STEP] = 10,	[OP_FALLOCATE] = 70, [OP_FREEZE] = 10,	 [OP_TMPFILE] = 30,
		 [OP_RECLAIM] = 8},
	.size_max = 256 << 10,
	.far_percent = 5,
	.files_max = 400,
	.dirs_max = 20,
	.big_values = true,
};

/* Few and small files, because a crash test compares all of them after every cut. */
const struct workload_profile workload_crash = {
	.weights =
		{[OP_LOOKUP] = 15,    [OP_FORGET] = 15,	     [OP_MAKE] = 130,	 [OP_LINK] = 30,
		 [OP_UNLINK] = 60,    [OP_RMDIR] = 20,	     [OP_RENAME] = 120,	 [OP_SETATTR] = 70,
		 [OP_SETXATTR] = 20,  [OP_REMOVEXATTR] = 10, [OP_SETFLAGS] = 20, [OP_READ] = 10,
		 [OP_READLINK] = 3,   [OP_READDIR] = 5,	     [OP_WRITE] = 300,	 [OP_COPY] = 80,
		 [OP_FSYNC] = 60,     [OP_SYNCFS] = 10,	     [OP_STEP] = 60,	 [OP_FREEZE] = 60,
		 [OP_FALLOCATE] = 80, [OP_TMPFILE] = 30,     [OP_RECLAIM] = 30},
	.size_max = 48 << 10,
	.far_percent = 2,
	.files_max = 14,
	.dirs_max = 5,
	.unsettled_max = 8,
	.nospace = true,
};

const struct workload_profile workload_crowded = {
	.weights = {[OP_MAKE] = 60,
		    [OP_UNLINK] = 30,
		    [OP_RENAME] = 40,
		    [OP_SETATTR] = 30,
		    [OP_WRITE] = 400,
		    [OP_COPY] = 60,
		    [OP_FSYNC] = 60,
		    [OP_SYNCFS] = 10,
		    [OP_STEP] = 60,
		    [OP_FREEZE] = 60,
		    [OP_FALLOCATE] = 50,
		    [OP_RECLAIM] = 30},
	.size_max = 96 << 10,
	.files_max = 14,
	.dirs_max = 3,
	.unsettled_max = 8,
	.nospace = true,
};

const struct workload_profile workload_close = {
	.weights = {[OP_MAKE] = 20,
		    [OP_UNLINK] = 10,
		    [OP_RENAME] = 10,
		    [OP_SETATTR] = 160,
		    [OP_SETFLAGS] = 4,
		    [OP_READ] = 120,
		    [OP_WRITE] = 300,
		    [OP_COPY] = 100,
		    [OP_FALLOCATE] = 160,
		    [OP_SEEK] = 20,
		    [OP_FSYNC] = 10,
		    [OP_SYNCFS] = 2,
		    [OP_STEP] = 20,
		    [OP_RECLAIM] = 10,
		    [OP_FREEZE] = 10},
	.size_max = 12 << 10,
	.far_percent = 1,
	.files_max = 9,
	.dirs_max = 2,
};

/* ---- picking existing inodes and names ---- */

static uint64_t below(struct workload *w, uint64_t limit)
{
	return zf_rng_below(&w->rng, limit);
}

static bool chance(struct workload *w, unsigned int percent)
{
	return zf_rng_chance(&w->rng, percent) != 0;
}

static bool is_dir(const struct oracle_inode *inode)
{
	return S_ISDIR(inode->mode);
}

static bool is_file(const struct oracle_inode *inode)
{
	return S_ISREG(inode->mode);
}

static bool is_held(const struct oracle_inode *inode)
{
	return inode->held > 0;
}

static bool is_nameless(const struct oracle_inode *inode)
{
	return is_file(inode) && inode->nlink == 0;
}

static bool is_anything(const struct oracle_inode *inode)
{
	return true;
}

/* Picks an inode that fits, or NULL. */
static const struct oracle_inode *pick(struct workload *w,
				       bool (*fits)(const struct oracle_inode *inode))
{
	const struct oracle *oracle = w->oracle;
	unsigned int start = (unsigned int)below(w, oracle->count);

	for (unsigned int i = 0; i < oracle->count; i++) {
		const struct oracle_inode *inode = oracle->all[(start + i) % oracle->count];

		if (fits(inode))
			return inode;
	}
	return NULL;
}

static unsigned int count(const struct oracle *oracle, bool (*fits)(const struct oracle_inode *))
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < oracle->count; i++)
		n += fits(oracle->all[i]);
	return n;
}

/* An inode of the kind wanted; now and then one of another kind, or none. */
static uint64_t pick_ino(struct workload *w, bool (*fits)(const struct oracle_inode *inode))
{
	const struct oracle_inode *inode;

	if (chance(w, 1))
		return w->oracle->highest_ino + 1 + below(w, 100);
	inode = pick(w, chance(w, 2) ? is_anything : fits);
	return inode ? inode->ino : ZF_INO_ROOT;
}

static const char *draw_name(struct workload *w)
{
	if (chance(w, 1))
		return too_long;
	if (w->oracle->count > 30 && chance(w, 70)) {
		unsigned int i = (unsigned int)below(w, MANY_NAMES);

		snprintf(many_names[i], sizeof(many_names[i]), "file-%u", i);
		return many_names[i];
	}
	return names[below(w, ZF_ARRAY_SIZE(names))];
}

/* A directory and a name in it that mostly exists. */
static void draw_existing(struct workload *w, uint64_t *ret_dir, const char **ret_name)
{
	const struct oracle_inode *dir = NULL;

	*ret_dir = pick_ino(w, is_dir);
	*ret_name = draw_name(w);
	if (chance(w, 85))
		dir = oracle_find(w->oracle, *ret_dir);
	if (dir && dir->entry_count > 0)
		*ret_name = dir->entries[below(w, dir->entry_count)].name;
}

static bool is_empty_dir(const struct oracle_inode *inode)
{
	return is_dir(inode) && inode->entry_count == 0 && inode->nlink > 0;
}

/* The name of a directory, if there is a chance to remove it. */
static void draw_dir_name(struct workload *w, struct zf_op *op)
{
	const struct oracle_inode *dir = pick(w, is_empty_dir), *parent;

	draw_existing(w, &op->dir, &op->name);
	if (!dir || chance(w, 30))
		return;
	parent = oracle_find(w->oracle, dir->parent);
	for (unsigned int i = 0; i < parent->entry_count; i++) {
		if (parent->entries[i].ino != dir->ino)
			continue;
		op->dir = parent->ino;
		op->name = parent->entries[i].name;
	}
}

/* ---- each operation ---- */

static void draw_make(struct workload *w, struct zf_op *op)
{
	static const uint32_t modes[] = {0644, 0755, 0600, 0777, 04755, 02755, 0};
	uint64_t dice = below(w, 100);

	op->dir = pick_ino(w, is_dir);
	op->name = draw_name(w);
	op->mode = modes[below(w, ZF_ARRAY_SIZE(modes))];
	op->uid = chance(w, 50) ? 0 : 1000;
	op->gid = chance(w, 50) ? 0 : 100;
	op->hold = chance(w, 10);
	if (dice < 70) {
		op->mode |= S_IFREG;
	} else if (dice < 88) {
		op->mode |= S_IFDIR;
	} else if (dice < 95) {
		op->mode = S_IFLNK | 0777;
		op->target = targets[below(w, ZF_ARRAY_SIZE(targets))];
		return;
	} else {
		static const uint32_t types[] = {S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};

		op->mode |= types[dice % ZF_ARRAY_SIZE(types)];
		if (S_ISCHR(op->mode) || S_ISBLK(op->mode))
			op->rdev = 0x12345678;
	}
	op->umask = chance(w, 30) ? 0027 : 0;
	op->mode &= ~(uint32_t)op->umask;
}

static void draw_tmpfile(struct workload *w, struct zf_op *op)
{
	op->dir = pick_ino(w, is_dir);
	op->umask = chance(w, 30) ? 0027 : 0;
	op->mode = (S_IFREG | (uint32_t)below(w, 010000)) & ~(uint32_t)op->umask;
	op->uid = chance(w, 50) ? 0 : 1000;
	op->gid = chance(w, 50) ? 0 : 100;
}

static void draw_rename(struct workload *w, struct zf_op *op)
{
	uint64_t dice = below(w, 100);

	draw_existing(w, &op->dir, &op->name);
	if (chance(w, 50)) {
		draw_existing(w, &op->dir2, &op->name2);
	} else {
		op->dir2 = chance(w, 50) ? op->dir : pick_ino(w, is_dir);
		op->name2 = draw_name(w);
	}
	if (dice < 10)
		op->flags = RENAME_NOREPLACE;
	else if (dice < 25)
		op->flags = RENAME_EXCHANGE;
	else if (dice < 26)
		op->flags = RENAME_EXCHANGE | (chance(w, 50) ? RENAME_NOREPLACE : RENAME_WHITEOUT);
	else if (dice < 36)
		op->flags = RENAME_WHITEOUT | (chance(w, 30) ? RENAME_NOREPLACE : 0);
}

/* Draws where a write begins or a file ends, now and then up to the greatest possible offset. */
static uint64_t draw_offset(struct workload *w, const struct oracle_inode *file)
{
	uint64_t size = file ? file->data.size : 0, dice = below(w, 100);

	if (chance(w, w->profile->far_percent)) {
		if (chance(w, 20))
			return ZF_FILE_SIZE_MAX - below(w, 10000);
		return zf_rng_next(&w->rng) >> (1 + below(w, 40));
	}
	if (dice < 15)
		return 0;
	if (dice < 40 && size <= w->profile->size_max)
		return size;
	if (dice < 70)
		return zf_align_down(below(w, w->profile->size_max), ZF_BLOCK_SIZE);
	return below(w, chance(w, 30) ? 3000 : w->profile->size_max);
}

static uint64_t draw_len(struct workload *w)
{
	static const uint64_t limits[] = {100, 2100, 2100, 4096, 9000, 20000, 70000};
	uint64_t limit =
		chance(w, 3) ? w->profile->size_max / 2 : limits[below(w, ZF_ARRAY_SIZE(limits))];
	uint64_t len = 1 + below(w, zf_min_u64(limit, w->profile->size_max / 2));

	if (len > ZF_BLOCK_SIZE && chance(w, 50))
		len = zf_align_down(len, ZF_BLOCK_SIZE);
	return chance(w, 1) ? 0 : len;
}

static void draw_fallocate(struct workload *w, struct zf_op *op)
{
	static const unsigned int modes[] = {
		0,
		FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
		ZF_FALLOC_WRITE_ZEROES,
		ZF_FALLOC_WRITE_ZEROES,
	};

	op->flags = modes[below(w, ZF_ARRAY_SIZE(modes))];
	if (chance(w, 1))
		op->flags = FALLOC_FL_COLLAPSE_RANGE;
	op->uid = chance(w, 50) || w->profile->unsettled_max ? 0 : 1000;
	if (op->flags & FALLOC_FL_PUNCH_HOLE && chance(w, 10))
		op->len = zf_min_u64(zf_rng_next(&w->rng) >> 1, ZF_FILE_SIZE_MAX - op->offset);
}

static void draw_data(struct workload *w, struct zf_op *op)
{
	const struct oracle_inode *file;

	op->ino = pick_ino(w, is_file);
	file = oracle_find(w->oracle, op->ino);
	op->offset = draw_offset(w, file);
	op->len = draw_len(w);
	if (op->kind == OP_SEEK)
		op->flags = chance(w, 50) ? SEEK_DATA : SEEK_HOLE;
	if (op->kind == OP_FALLOCATE)
		draw_fallocate(w, op);
	if (op->kind != OP_WRITE && op->kind != OP_FALLOCATE)
		return;
	if (file && w->profile->unsettled_max && file->unsettled >= w->profile->unsettled_max)
		op->kind = OP_FSYNC;
	if (op->kind != OP_WRITE)
		return;
	if (chance(w, 10))
		op->flags |= ZF_WRITE_APPEND;
	if (chance(w, 3))
		op->flags |= ZF_WRITE_DSYNC;
	if (chance(w, 20) && !w->profile->unsettled_max)
		op->flags |= ZF_WRITE_KILL_SUIDGID;
}

/* Source and target mostly have the same offset within their blocks: such data can be shared. */
static void draw_copy(struct workload *w, struct zf_op *op)
{
	const struct oracle_inode *from, *to;
	uint64_t dice = below(w, 100);

	op->from_ino = pick_ino(w, is_file);
	op->ino = chance(w, 20) ? op->from_ino : pick_ino(w, is_file);
	from = oracle_find(w->oracle, op->from_ino);
	to = oracle_find(w->oracle, op->ino);
	if (to && w->profile->unsettled_max && to->unsettled >= w->profile->unsettled_max) {
		op->kind = OP_FSYNC;
		return;
	}
	op->from_offset = chance(w, 30) ? 0 : below(w, from ? from->data.size + 1 : 1);
	op->offset = chance(w, 30) ? op->from_offset : draw_offset(w, to);
	op->len = chance(w, 40) ? w->profile->size_max : draw_len(w);
	if (dice < 75) {
		op->from_offset = zf_align_down(op->from_offset, ZF_BLOCK_SIZE);
		op->offset = zf_align_down(op->offset, ZF_BLOCK_SIZE);
	} else if (dice < 90) {
		op->offset =
			zf_align_down(op->offset, ZF_BLOCK_SIZE) + op->from_offset % ZF_BLOCK_SIZE;
	}
	if (chance(w, 20) && !w->profile->unsettled_max)
		op->uid = 1000;
}

static void draw_setattr(struct workload *w, struct zf_op *op)
{
	struct zf_setattr *set = &op->set;

	if (chance(w, 50)) {
		op->ino = pick_ino(w, is_file);
		set->valid = ZF_SET_SIZE;
		set->size = chance(w, 20) ? 0 : draw_offset(w, oracle_find(w->oracle, op->ino));
		if (chance(w, 1))
			set->size = UINT64_C(1) << 63;
		return;
	}
	op->ino = pick_ino(w, is_anything);
	if (chance(w, 40))
		set->valid |= ZF_SET_MODE;
	if (chance(w, 20))
		set->valid |= ZF_SET_UID;
	if (chance(w, 20))
		set->valid |= ZF_SET_GID;
	if (chance(w, 20))
		set->valid |= chance(w, 50) ? ZF_SET_ATIME : ZF_SET_ATIME_NOW;
	if (chance(w, 20))
		set->valid |= chance(w, 50) ? ZF_SET_MTIME : ZF_SET_MTIME_NOW;
	if (set->valid == 0)
		set->valid = ZF_SET_MODE;
	set->mode = (uint32_t)below(w, 010000);
	set->uid = (uint32_t)below(w, 3) * 1000;
	set->gid = (uint32_t)below(w, 3) * 100;
	set->atime.seconds = (int64_t)below(w, 1000000000) - 300000000;
	set->atime.nanoseconds = (uint32_t)below(w, 1000000000);
	set->mtime.seconds = (int64_t)below(w, 1000000000) - 300000000;
	set->mtime.nanoseconds = (uint32_t)below(w, 1000000000);
}

static bool is_protected(const struct oracle_inode *inode)
{
	return (inode->flags & (ZF_INODE_IMMUTABLE | ZF_INODE_APPEND)) != 0;
}

/* Flags that forbid changes do not stay for long, or soon most operations would fail. */
static void draw_flags(struct workload *w, struct zf_op *op)
{
	static const uint32_t flags[] = {
		ZF_INODE_IMMUTABLE, ZF_INODE_APPEND,  ZF_INODE_NODUMP, ZF_INODE_NOATIME,
		ZF_INODE_SYNC,	    ZF_INODE_DIRSYNC, 0x80000000,
	};
	const struct oracle_inode *inode = pick(w, is_protected);

	if (inode && chance(w, 70)) {
		op->ino = inode->ino;
		op->flags = inode->flags & ZF_INODE_NODUMP;
		return;
	}
	op->ino = pick_ino(w, is_anything);
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(flags); i++)
		op->flags |= chance(w, 15) ? flags[i] : 0;
}

static void draw_acl(struct workload *w, struct zf_op *op)
{
	bool access = chance(w, 50);

	op->name = access ? ORACLE_ACL_ACCESS : ORACLE_ACL_DEFAULT;
	if (!access && chance(w, 80))
		op->ino = pick_ino(w, is_dir);
	if (op->kind != OP_SETXATTR)
		return;
	op->uid = chance(w, 50) ? 0 : 1000;
	op->gid = chance(w, 50) ? 0 : 100;
	/* setxattr(2) ignores its flags for lists. The kernel's own flag says that the caller is
	 * not in the group. */
	op->flags = op->uid != 0 && op->gid != 0 ? ZF_XATTR_KILL_SGID : 0;
	workload_draw_acl(&w->rng, &op->acl);
	op->len = oracle_acl_len(&op->acl);
	if (chance(w, 10))
		op->len = below(w, op->len);
	else if (chance(w, 10))
		op->len = chance(w, 50) ? 0 : 4;
}

static void draw_xattr(struct workload *w, struct zf_op *op)
{
	uint64_t dice = below(w, 100);

	op->ino = pick_ino(w, is_anything);
	op->name = xattr_names[below(w, ZF_ARRAY_SIZE(xattr_names))];
	op->len = below(w, 200);
	if (w->profile->big_values && dice < 10)
		op->len = below(w, dice < 2 ? ZF_XATTR_VALUE_MAX + 100 : 5000);
	if (op->kind == OP_SETXATTR && chance(w, 30))
		op->flags = chance(w, 50) ? XATTR_CREATE : XATTR_REPLACE;
	if (op->kind == OP_GETXATTR && chance(w, 60))
		op->len = chance(w, 50) ? 0 : ZF_XATTR_VALUE_MAX;
	if (chance(w, 35))
		draw_acl(w, op);
}

/* Reclaims the worst zone, or one with data of a file, whatever else is in it. */
static void draw_reclaim(struct workload *w, struct zf_op *op)
{
	const struct oracle_inode *file = pick(w, is_file);

	if (chance(w, 50))
		op->flags = 1 + (unsigned int)below(w, 3);
	if (!file || chance(w, 40))
		return;
	op->ino = file->ino;
	op->offset = zf_align_down(below(w, file->data.size + 1), ZF_BLOCK_SIZE);
}

static enum zf_op_kind next_commit_step(const struct workload *w)
{
	switch (w->commit) {
	case COMMIT_FROZEN:
		return OP_COMMIT_WRITE;
	case COMMIT_WRITTEN:
		return OP_COMMIT_FINISH;
	default:
		return OP_FREEZE;
	}
}

static void fill_op(struct workload *w, struct zf_op *op)
{
	switch (op->kind) {
	case OP_RMDIR:
		draw_dir_name(w, op);
		break;
	case OP_LOOKUP:
	case OP_UNLINK:
		draw_existing(w, &op->dir, &op->name);
		op->hold = op->kind == OP_LOOKUP;
		break;
	case OP_MAKE:
		draw_make(w, op);
		break;
	case OP_TMPFILE:
		draw_tmpfile(w, op);
		break;
	case OP_LINK:
		op->dir = pick_ino(w, is_dir);
		op->name = draw_name(w);
		op->ino = pick_ino(w, chance(w, 30) ? is_nameless : is_file);
		op->hold = chance(w, 10);
		break;
	case OP_RENAME:
		draw_rename(w, op);
		break;
	case OP_READLINK:
		op->ino = pick_ino(w, is_anything);
		break;
	case OP_READDIR:
		op->ino = pick_ino(w, is_dir);
		op->len = 1 + below(w, 20);
		break;
	case OP_SETATTR:
		draw_setattr(w, op);
		break;
	case OP_SETFLAGS:
		draw_flags(w, op);
		break;
	case OP_SETXATTR:
	case OP_GETXATTR:
	case OP_REMOVEXATTR:
		draw_xattr(w, op);
		break;
	case OP_READ:
	case OP_WRITE:
	case OP_FALLOCATE:
	case OP_SEEK:
		draw_data(w, op);
		break;
	case OP_COPY:
		draw_copy(w, op);
		break;
	case OP_FSYNC:
		op->ino = pick_ino(w, is_file);
		op->flags = chance(w, 50);
		break;
	case OP_FREEZE:
		op->kind = next_commit_step(w);
		break;
	case OP_RECLAIM:
		draw_reclaim(w, op);
		break;
	default:
		break;
	}
}

static enum zf_op_kind draw_kind(struct workload *w)
{
	const unsigned int *weights = w->profile->weights;
	unsigned int sum = 0, kind = 0;
	uint64_t dice;

	for (unsigned int i = 0; i < OP_KIND_COUNT; i++)
		sum += weights[i];
	for (dice = below(w, sum); dice >= weights[kind]; kind++)
		dice -= weights[kind];
	return kind;
}

/* The limit rises and falls, so that trees grow deep, and become shallow again. */
static unsigned int files_max(const struct workload *w)
{
	unsigned int phase = w->number / 3000 % 4;

	return phase == 0 ? (unsigned int)zf_min_u64(20, w->profile->files_max)
			  : w->profile->files_max * phase / 3;
}

/* Keeps the number of files and directories within bounds, and forgets only held inodes. */
static void adjust(struct workload *w, struct zf_op *op)
{
	if (op->kind == OP_WRITE && op->ino == ZF_INO_ROOT && !pick(w, is_file)) {
		*op = (struct zf_op){
			.kind = OP_MAKE, .number = op->number, .may_wait = op->may_wait};
		draw_make(w, op);
	}
	if (op->kind == OP_MAKE && S_ISDIR(op->mode) &&
	    count(w->oracle, is_dir) >= w->profile->dirs_max) {
		op->kind = OP_RMDIR;
		draw_dir_name(w, op);
	} else if (op->kind == OP_MAKE && w->oracle->count >= files_max(w)) {
		op->kind = OP_UNLINK;
		draw_existing(w, &op->dir, &op->name);
	}
	if (op->kind == OP_TMPFILE && w->oracle->count >= files_max(w))
		op->kind = OP_FORGET;
	if (op->kind == OP_FORGET) {
		const struct oracle_inode *held = pick(w, is_held);

		op->ino = held ? held->ino : 0;
		if (!held)
			op->kind = OP_STEP;
	}
}

bool workload_goes_to_log(const struct zf_op *op)
{
	return op->kind == OP_FSYNC || (op->kind == OP_WRITE && op->flags & ZF_WRITE_DSYNC);
}

bool workload_has_to_wait(const struct workload *workload, const struct zf_op *op)
{
	return op->kind == OP_SYNCFS || op->kind == OP_STEP || op->kind == OP_FORGET ||
	       op->kind == OP_COPY || workload->kept_count + 2 > WORKLOAD_KEPT_MAX;
}

void workload_draw(struct workload *workload, struct zf_op *ret_op)
{
	*ret_op = (struct zf_op){
		.kind = draw_kind(workload),
		.number = ++workload->number,
		.may_wait = chance(workload, 80),
	};
	fill_op(workload, ret_op);
	adjust(workload, ret_op);
	/* An operation that has to wait for a commit cannot come between its steps. */
	if (workload->commit != COMMIT_NONE) {
		ret_op->may_wait = workload_goes_to_log(ret_op);
		if (workload_has_to_wait(workload, ret_op))
			ret_op->kind = next_commit_step(workload);
	}
}

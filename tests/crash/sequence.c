/* SPDX-License-Identifier: MIT */
/*
 * Sequences of a few operations on a small tree, by number: every operation in every form that
 * makes a difference, each with or without a following operation that makes it durable. Most crash
 * bugs need no more than two or three operations ("Finding Crash-Consistency Bugs with Bounded
 * Black-Box Crash Testing", Mohan et al., 2018).
 *
 * The digits of the number, in base sequence_base(), are the operations; the lowest digit is first.
 */
#include <assert.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "explore.h"

#define FILE_MODE (S_IFREG | 0644)
#define DIR_MODE  (S_IFDIR | 0755)
#define BLOCK	  ZF_BLOCK_SIZE
#define ANY	  UINT64_MAX

/* The inodes of the tree that steps are about, wherever their names are by then. */
enum thing {
	NOTHING,
	ROOT,
	D,   /* an empty directory */
	E,   /* a directory with x, and another name of f */
	F,   /* a small file, inline, with an attribute; held */
	G,   /* several blocks and a part of one; two names; later one block is overwritten */
	H,   /* a hole between data */
	N,   /* new, written, not committed; held */
	X,   /* in E; held */
	S,   /* a symbolic link */
	Z,   /* removed again: its garbage lies where the others' data is, and after that */
	NEW, /* made by a step of the sequence */
	THINGS
};

struct step {
	enum zf_op_kind kind;
	enum thing dir;
	const char *name;
	enum thing dir2;
	const char *name2;
	enum thing on;	    /* what an operation by inode works on; what OP_MAKE makes */
	enum thing from;    /* of a copy */
	enum thing subject; /* the inode of an fsync after it, if not `on` */
	uint64_t offset, len, from_offset;
	unsigned int flags;
	uint32_t mode;
	const char *target;
	struct zf_setattr set;
	bool hold;
};

/* ---- the tree ---- */

static const struct step preparation[] = {
	{OP_MAKE, ROOT, "d", .on = D, .mode = DIR_MODE},
	{OP_MAKE, ROOT, "e", .on = E, .mode = DIR_MODE},
	{OP_MAKE, ROOT, "f", .on = F, .mode = FILE_MODE, .hold = true},
	{OP_WRITE, .on = F, .offset = 0, .len = 500},
	{OP_SETXATTR, .on = F, .name = "user.b", .len = 20},
	{OP_MAKE, ROOT, "g", .on = G, .mode = FILE_MODE},
	{OP_WRITE, .on = G, .offset = 0, .len = 14000},
	{OP_LINK, ROOT, "l", .on = G},
	{OP_MAKE, ROOT, "h", .on = H, .mode = FILE_MODE},
	{OP_WRITE, .on = H, .offset = 0, .len = BLOCK},
	{OP_WRITE, .on = H, .offset = 3 * BLOCK, .len = BLOCK},
	{OP_MAKE, E, "x", .on = X, .mode = FILE_MODE, .hold = true},
	{OP_WRITE, .on = X, .offset = 0, .len = 5000},
	{OP_MAKE, ROOT, "s", .on = S, .mode = S_IFLNK | 0777, .target = "e/x"},
	/* More than the zone has left: so the zone is full, and can be a victim of reclaim. */
	{OP_MAKE, ROOT, "z", .on = Z, .mode = FILE_MODE},
	{OP_WRITE, .on = Z, .offset = 0, .len = 32 * BLOCK},
	{OP_SYNCFS},
	{OP_UNLINK, ROOT, "z"},
	{OP_SYNCFS},
	/* From here on nothing is durable. */
	{OP_LINK, E, "y", .on = F},
	{OP_WRITE, .on = G, .offset = BLOCK, .len = BLOCK},
	{OP_MAKE, ROOT, "n", .on = N, .mode = FILE_MODE, .hold = true},
	{OP_WRITE, .on = N, .offset = 0, .len = 6000},
};

/* ---- the operations ---- */

#define SET_SIZE(bytes) .set = {.valid = ZF_SET_SIZE, .size = (bytes)}
#define PUNCH		(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

static const struct step forms[] = {
	{OP_MAKE, ROOT, "new", .on = NEW, .mode = FILE_MODE},
	{OP_MAKE, D, "new", .on = NEW, .mode = FILE_MODE},
	{OP_MAKE, ROOT, "new", .on = NEW, .mode = DIR_MODE},
	{OP_MAKE, E, "new", .on = NEW, .mode = DIR_MODE},
	{OP_MAKE, ROOT, "new", .on = NEW, .mode = S_IFLNK | 0777, .target = "f"},
	{OP_LINK, ROOT, "k", .on = F},
	{OP_LINK, D, "k", .on = N},
	{OP_UNLINK, ROOT, "f", .subject = F},
	{OP_UNLINK, ROOT, "g", .subject = G},
	{OP_UNLINK, ROOT, "l", .subject = G},
	{OP_UNLINK, ROOT, "h", .subject = ROOT},
	{OP_UNLINK, ROOT, "n", .subject = N},
	{OP_UNLINK, ROOT, "s", .subject = ROOT},
	{OP_UNLINK, E, "x", .subject = X},
	{OP_RMDIR, ROOT, "d", .subject = ROOT},

	{OP_RENAME, ROOT, "f", ROOT, "new", .subject = F},
	{OP_RENAME, ROOT, "n", D, "new", .subject = N},
	{OP_RENAME, ROOT, "n", ROOT, "f", .subject = N},
	{OP_RENAME, ROOT, "g", ROOT, "h", .subject = G},
	{OP_RENAME, E, "x", ROOT, "f", .subject = X},
	{OP_RENAME, ROOT, "f", E, "x", .subject = F},
	{OP_RENAME, ROOT, "e", ROOT, "d", .subject = E},
	{OP_RENAME, ROOT, "d", E, "d", .subject = D},
	{OP_RENAME, ROOT, "e", D, "e", .subject = E},
	{OP_RENAME, ROOT, "f", D, "f", .subject = F, .flags = RENAME_NOREPLACE},
	{OP_RENAME, ROOT, "f", ROOT, "g", .subject = F, .flags = RENAME_EXCHANGE},
	{OP_RENAME, ROOT, "n", E, "x", .subject = N, .flags = RENAME_EXCHANGE},
	{OP_RENAME, ROOT, "d", E, "x", .subject = D, .flags = RENAME_EXCHANGE},
	{OP_RENAME, ROOT, "f", ROOT, "new", .subject = F, .flags = RENAME_WHITEOUT},
	{OP_RENAME, ROOT, "n", ROOT, "g", .subject = N, .flags = RENAME_WHITEOUT},

	{OP_SETATTR, .on = G, SET_SIZE(0)},
	{OP_SETATTR, .on = G, SET_SIZE(100)},
	{OP_SETATTR, .on = G, SET_SIZE(2 * BLOCK)},
	{OP_SETATTR, .on = G, SET_SIZE(30000)},
	{OP_SETATTR, .on = H, SET_SIZE(2 * BLOCK + 1)},
	{OP_SETATTR, .on = F, SET_SIZE(10)},
	{OP_SETATTR, .on = F, SET_SIZE(9000)},
	{OP_SETATTR, .on = N, SET_SIZE(0)},
	{OP_SETATTR, .on = N, SET_SIZE(5000)},

	{OP_WRITE, .on = G, .offset = BLOCK, .len = BLOCK},
	{OP_WRITE, .on = G, .offset = 5000, .len = 100},
	{OP_WRITE, .on = G, .offset = 0, .len = 3 * BLOCK},
	{OP_WRITE, .on = G, .len = 5000, .flags = ZF_WRITE_APPEND},
	{OP_WRITE, .on = H, .offset = BLOCK, .len = BLOCK},
	{OP_WRITE, .on = H, .offset = 10 * BLOCK, .len = BLOCK},
	{OP_WRITE, .on = N, .len = 3000, .flags = ZF_WRITE_APPEND},
	{OP_WRITE, .on = F, .offset = 10, .len = 50},
	{OP_WRITE, .on = F, .offset = 0, .len = 5000},
	{OP_WRITE, .on = X, .offset = 2 * BLOCK, .len = 100},

	{OP_FALLOCATE, .on = G, .offset = BLOCK, .len = BLOCK, .flags = PUNCH},
	{OP_FALLOCATE, .on = G, .offset = 100, .len = 9000, .flags = PUNCH},
	{OP_FALLOCATE, .on = H, .offset = 0, .len = 4 * BLOCK, .flags = PUNCH},
	{OP_FALLOCATE, .on = G, .offset = BLOCK, .len = 2 * BLOCK, .flags = FALLOC_FL_ZERO_RANGE},
	{OP_FALLOCATE, .on = G, .offset = 9000, .len = 20000, .flags = FALLOC_FL_ZERO_RANGE},
	{OP_FALLOCATE, .on = G, .offset = 3 * BLOCK, .len = 4 * BLOCK,
	 .flags = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE},
	{OP_FALLOCATE, .on = G, .offset = 2 * BLOCK, .len = 4 * BLOCK},
	{OP_FALLOCATE, .on = H, .offset = 0, .len = 4 * BLOCK},
	{OP_FALLOCATE, .on = F, .offset = 0, .len = 10000},
	{OP_FALLOCATE, .on = G, .offset = 4 * BLOCK, .len = 4 * BLOCK,
	 .flags = FALLOC_FL_KEEP_SIZE},
	{OP_FALLOCATE, .on = G, .offset = BLOCK, .len = 2 * BLOCK, .flags = ZF_FALLOC_WRITE_ZEROES},
	{OP_FALLOCATE, .on = H, .offset = 0, .len = 20000, .flags = ZF_FALLOC_WRITE_ZEROES},

	{OP_COPY, .from = G, .on = N, .len = 2 * BLOCK},
	{OP_COPY, .from = G, .on = G, .offset = 4 * BLOCK, .len = BLOCK},
	{OP_COPY, .from = G, .on = H, .from_offset = 2 * BLOCK, .offset = BLOCK, .len = ANY},
	{OP_COPY, .from = N, .on = G, .len = ANY},
	{OP_COPY, .from = H, .on = X, .len = ANY},
	{OP_COPY, .from = F, .on = X, .offset = 100, .len = 300},

	{OP_SETATTR, .on = G, .set = {.valid = ZF_SET_MODE, .mode = 04755}},
	{OP_SETATTR, .on = D, .set = {.valid = ZF_SET_MODE, .mode = 0700}},
	{OP_SETATTR, .on = F, .set = {.valid = ZF_SET_UID | ZF_SET_GID, .uid = 1000, .gid = 100}},
	{OP_SETATTR, .on = N,
	 .set = {.valid = ZF_SET_ATIME | ZF_SET_MTIME, .atime = {5, 6}, .mtime = {7, 8}}},
	{OP_SETXATTR, .on = G, .name = "user.a", .len = 100},
	{OP_SETXATTR, .on = N, .name = "user.a", .len = 3000},
	{OP_REMOVEXATTR, .on = F, .name = "user.b"},
	{OP_SETFLAGS, .on = G, .flags = ZF_INODE_NODUMP},
	{OP_SETFLAGS, .on = N, .flags = ZF_INODE_SYNC},
	{OP_SETFLAGS, .on = D, .flags = ZF_INODE_DIRSYNC},

	/* The last RECLAIM_FORMS forms. */
	{OP_RECLAIM, .subject = G},
	{OP_RECLAIM, .on = G},
	{OP_RECLAIM, .on = H},
	{OP_RECLAIM, .on = G, .flags = 1},
	{OP_RECLAIM, .on = G, .flags = 2},
};
#define RECLAIM_FORMS 5u

/* What follows an operation. */
enum suffix {
	AND_NOTHING,
	AND_FSYNC,
	AND_FDATASYNC,
	AND_DSYNC, /* of the write itself; after another operation, an fsync of another file */
	AND_FSYNC_DIR,
	AND_SYNCFS,
	AND_STEP,   /* of background work */
	AND_COMMIT, /* in its three phases */
	SUFFIXES
};

uint64_t sequence_base(void)
{
	return ZF_ARRAY_SIZE(forms) * SUFFIXES;
}

uint64_t sequence_draw(uint64_t seed, unsigned int length)
{
	uint64_t number = 0;
	struct zf_rng rng;

	zf_rng_seed(&rng, seed);
	while (length-- > 0)
		number = number * sequence_base() + zf_rng_below(&rng, sequence_base());
	return number;
}

uint64_t sequence_draw_reclaim(uint64_t seed, unsigned int length)
{
	uint64_t number = sequence_draw(seed, length), place = 1, digit, reclaim;
	struct zf_rng rng;

	zf_rng_seed(&rng, ~seed);
	for (uint64_t i = zf_rng_below(&rng, length); i > 0; i--)
		place *= sequence_base();
	digit = number / place % sequence_base();
	reclaim = ZF_ARRAY_SIZE(forms) - 1 - zf_rng_below(&rng, RECLAIM_FORMS);
	return number - digit * place + (reclaim * SUFFIXES + digit % SUFFIXES) * place;
}

/* ---- making operations of steps ---- */

static uint64_t ino_of(const struct sequence *sequence, enum thing thing)
{
	static_assert(THINGS <= SEQUENCE_THINGS, "they have no room");
	return thing == ROOT ? ZF_INO_ROOT : sequence->inos[thing];
}

static void make_op(const struct sequence *sequence, const struct step *step, struct zf_op *op)
{
	op->kind = step->kind;
	op->may_wait = true;
	op->dir = ino_of(sequence, step->dir);
	op->dir2 = ino_of(sequence, step->dir2);
	op->name = step->name;
	op->name2 = step->name2;
	op->ino = step->kind == OP_MAKE ? 0 : ino_of(sequence, step->on);
	op->from_ino = ino_of(sequence, step->from);
	op->offset = step->offset;
	op->from_offset = step->from_offset;
	op->len = step->len == ANY ? WORKLOAD_IO_MAX : step->len;
	op->flags = step->flags;
	op->mode = step->mode;
	op->target = step->target;
	op->set = step->set;
	op->hold = step->hold;
}

static void make_fsync(const struct sequence *sequence, enum thing of, unsigned int data_only,
		       struct zf_op *op)
{
	op->kind = OP_FSYNC;
	op->may_wait = true;
	op->ino = ino_of(sequence, of);
	op->flags = data_only;
}

static enum thing subject_of(const struct step *step)
{
	return step->subject ? step->subject : step->on;
}

static enum thing parent_of(const struct step *step)
{
	return step->dir2 ? step->dir2 : step->dir ? step->dir : ROOT;
}

/* Makes operation number `part` after a form. False: none is left. */
static bool make_suffix(const struct sequence *sequence, const struct step *step,
			enum suffix suffix, unsigned int part, struct zf_op *op)
{
	static const enum zf_op_kind commit[] = {OP_FREEZE, OP_COMMIT_WRITE, OP_COMMIT_FINISH};

	if (part >= (suffix == AND_COMMIT ? ZF_ARRAY_SIZE(commit) : 1))
		return false;
	switch (suffix) {
	case AND_FSYNC:
		make_fsync(sequence, subject_of(step), 0, op);
		return true;
	case AND_FDATASYNC:
		make_fsync(sequence, subject_of(step), 1, op);
		return true;
	case AND_DSYNC:
		make_fsync(sequence, subject_of(step) == X ? F : X, 0, op);
		return step->kind != OP_WRITE;
	case AND_FSYNC_DIR:
		make_fsync(sequence, parent_of(step), 0, op);
		return true;
	case AND_SYNCFS:
		op->kind = OP_SYNCFS;
		op->may_wait = true;
		return true;
	case AND_STEP:
		op->kind = OP_STEP;
		op->may_wait = true;
		return true;
	case AND_COMMIT:
		op->kind = commit[part];
		return true;
	default:
		return false;
	}
}

static void make_form(const struct sequence *sequence, const struct step *step, enum suffix suffix,
		      struct zf_op *op)
{
	make_op(sequence, step, op);
	if (suffix == AND_DSYNC && step->kind == OP_WRITE)
		op->flags |= ZF_WRITE_DSYNC;
}

/* ---- one after the other ---- */

void sequence_begin(struct sequence *sequence, unsigned int length, uint64_t number)
{
	*sequence = (struct sequence){.length = length, .number = number};
}

bool sequence_is_prepared(const struct sequence *sequence)
{
	return sequence->prepared >= ZF_ARRAY_SIZE(preparation);
}

bool sequence_next(struct sequence *sequence, struct zf_op *op)
{
	if (!sequence_is_prepared(sequence)) {
		sequence->step = &preparation[sequence->prepared++];
		make_op(sequence, sequence->step, op);
		return true;
	}
	while (sequence->length > 0) {
		uint64_t digit = sequence->number % sequence_base();
		const struct step *form = &forms[digit / SUFFIXES];
		enum suffix suffix = (enum suffix)(digit % SUFFIXES);
		unsigned int part = sequence->part++;

		sequence->step = part == 0 ? form : NULL;
		if (part == 0) {
			make_form(sequence, form, suffix, op);
			return true;
		}
		if (make_suffix(sequence, form, suffix, part - 1, op))
			return true;
		*op = (struct zf_op){.number = op->number};
		sequence->part = 0;
		sequence->number /= sequence_base();
		sequence->length--;
	}
	return false;
}

void sequence_ran(struct sequence *sequence, const struct zf_op *op)
{
	if (sequence->step && op->kind == OP_MAKE && op->result == 0)
		sequence->inos[sequence->step->on] = op->attr.ino;
}

/* SPDX-License-Identifier: MIT */
/*
 * Operations on a filesystem as values: they are drawn from a seed, run on the real filesystem,
 * passed to the oracle, kept in a record, printed.
 *
 * The sets of names, directories and sizes are small, so that operations meet: names that exist,
 * directories that are not empty, writes over writes, holes filled, files removed while they are
 * held.
 */
#ifndef ZF_TESTS_WORKLOAD_H
#define ZF_TESTS_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fs/core/fs.h"
#include "support/oracle.h"
#include "sim/rng.h"

enum zf_op_kind {
	OP_LOOKUP, /* and hold what is found */
	OP_FORGET,
	OP_MAKE,    /* and hold it if `hold` */
	OP_TMPFILE, /* and hold it */
	OP_LINK,
	OP_UNLINK,
	OP_RMDIR,
	OP_RENAME,
	OP_READLINK,
	OP_READDIR, /* all of it, in pieces of `len` entries */
	OP_SETATTR,
	OP_SETFLAGS, /* to `flags` */
	OP_SETXATTR,
	OP_GETXATTR,
	OP_REMOVEXATTR,
	OP_READ,
	OP_WRITE,
	OP_FALLOCATE,
	OP_COPY, /* of len bytes at from_offset of from_ino */
	OP_SEEK,
	OP_FSYNC,
	OP_SYNCFS,
	OP_STEP,    /* background work */
	OP_RECLAIM, /* of the zone that `ino` has at `offset`; without `ino`, of the next victim;
		     * `flags`: so many of the next operations run while data is moved */
	OP_FREEZE,  /* the phases of a commit */
	OP_COMMIT_WRITE,
	OP_COMMIT_FINISH,
	OP_KIND_COUNT,
};

struct zf_op {
	enum zf_op_kind kind;
	uint32_t number;    /* from 1; also the number of the write, and the time */
	uint64_t dir, dir2; /* parents */
	const char *name, *name2;
	uint64_t ino, from_ino;
	uint64_t offset, from_offset;
	uint64_t len;
	unsigned int flags; /* of the call */
	uint32_t mode, uid, gid;
	uint64_t rdev;
	const char *target;
	struct zf_setattr set;
	struct oracle_acl acl; /* its first `len` bytes are the value of the attribute `name` */
	bool hold;
	bool may_wait; /* at the first try */
	mode_t umask;  /* of the caller; `mode` no longer has these bits */
	bool durable;  /* a flag of an inode that it changes asks for that; set before the run */

	/* After the run. */
	int64_t result;
	/* Of the inode that was looked up, made, linked or set, or of the whiteout. */
	struct zf_attr attr;
};

/* The clock: operation n happens n microseconds after this. */
#define WORKLOAD_EPOCH_NS INT64_C(1700000000000000000)

static inline int64_t workload_time(uint32_t number)
{
	return WORKLOAD_EPOCH_NS + number * INT64_C(1000);
}

/* The number of the operation whose time this is; 0: it is no operation's. */
static inline uint32_t workload_op_of_time(const struct zf_time *time)
{
	int64_t ns = time->seconds * 1000000000 + time->nanoseconds - WORKLOAD_EPOCH_NS;

	return ns > 0 ? (uint32_t)(ns / 1000) : 0;
}

struct workload_profile {
	unsigned int weights[OP_KIND_COUNT];
	uint64_t size_max;	  /* bytes: most writes end at or before this */
	unsigned int far_percent; /* of writes and truncates that go anywhere up to 2^63 - 1 */
	unsigned int files_max, dirs_max;
	unsigned int unsettled_max; /* writes to one file before it is synced; 0: no limit */
	bool big_values;	    /* attributes up to 64 KiB */
	bool nospace;		    /* the device is small: -ENOSPC is an answer too */
};

extern const struct workload_profile workload_everything;
/* Few files of a few blocks: operations meet within one. */
extern const struct workload_profile workload_close;
extern const struct workload_profile workload_crash;
extern const struct workload_profile workload_crowded; /* the same on a nearly full device */

#define WORKLOAD_KEPT_MAX 64u

struct workload {
	const struct workload_profile *profile;
	struct zf_rng rng;
	struct oracle *oracle;
	struct zf_fs *fs; /* changes with every mount */
	uint32_t number;  /* of the last operation */
	enum {
		COMMIT_NONE,
		COMMIT_FROZEN,
		COMMIT_WRITTEN,
	} commit;		    /* how far the commit under way has got */
	uint64_t commit_generation; /* the generation that it makes durable */
	/*
	 * Inodes that are held while a commit is under way, so that they are deleted after it.
	 * Without threads the call that gives up the last reference deletes the inode, and may need
	 * a commit for that.
	 */
	uint64_t kept[WORKLOAD_KEPT_MAX];
	unsigned int kept_count;
	void (*beside)(void *arg); /* a reclaim with flags calls it when it has copied */
	void *beside_arg;
	void (*within)(bool in); /* called when the filesystem is entered, and left; or NULL */
	bool verbose;
	uint8_t *buf, *expected; /* WORKLOAD_IO_MAX each */
	uint64_t done[OP_KIND_COUNT], failed[OP_KIND_COUNT], nospace;
	char wrong[160]; /* what was wrong with the data read */
};

#define WORKLOAD_IO_MAX (UINT64_C(1) << 20)

void workload_init(struct workload *workload, uint64_t seed,
		   const struct workload_profile *profile);
void workload_deinit(struct workload *workload);

/* For zf_mount_options: the clock; arg is the workload. */
int64_t workload_now(void *workload);

/* The next operation, drawn from the seed and the oracle's state (draw.c). */
void workload_draw(struct workload *workload, struct zf_op *ret_op);

/*
 * Whether the intent log makes the operation durable, also between the steps of a commit. If the
 * operation needs a commit after all, this first completes the commit under way.
 */
bool workload_goes_to_log(const struct zf_op *op);
/* Whether it cannot come between the steps of a commit, because it may need a commit itself. */
bool workload_has_to_wait(const struct workload *workload, const struct zf_op *op);

/* An access control list, now and then an invalid one (draw_acl.c). */
void workload_draw_acl(struct zf_rng *rng, struct oracle_acl *ret_acl);

/*
 * Runs the operation on the filesystem, sets its results, and compares the data read with the
 * oracle. If the operation has to wait for a commit under way, the steps left are taken first.
 */
void workload_run(struct workload *workload, struct zf_op *op);

/* Takes the steps that are left of a commit. 0 or -errno. */
int workload_finish_commit(struct workload *workload);

/*
 * Passes the operation to the oracle and compares the answers. False, and a message to stderr, if
 * they differ. With profile->nospace -ENOSPC is right too, and changes nothing.
 */
bool workload_check(struct workload *workload, const struct zf_op *op);

/* The filesystem was unmounted, or left to itself as in a crash, and mounted again. */
void workload_remounted(struct workload *workload, struct zf_fs *fs);

const char *workload_op_name(enum zf_op_kind kind);
void workload_print(FILE *out, const struct zf_op *op);

/* ---- comparing everything (compare.c) ---- */

/* The first attribute that is wrong, as a message, or NULL. */
const char *workload_compare_attr(const struct oracle_inode *inode, const struct zf_attr *attr);

/*
 * The whole tree against the oracle: names, attributes, attributes' values, links' targets, and
 * every byte of every file. False, and messages to stderr, if anything differs. With `keep_old`,
 * changes that a crash may lose according to the oracle may be missing.
 */
bool workload_compare(struct zf_fs *fs, struct oracle *oracle);

/*
 * Whether the figures of statfs(2) agree with each other, and its number of inodes with the oracle.
 * `exact`: no inode that has neither a name nor a reference may be left.
 */
bool workload_compare_statfs(struct zf_fs *fs, struct oracle *oracle, bool exact);

/* Compares only the size and the bytes of every file. */
bool workload_compare_content(struct zf_fs *fs, struct oracle *oracle);

/* The operation with the greatest change or access time in the tree: how far operations got. */
int workload_newest(struct zf_fs *fs, uint32_t *ret_number);

#endif

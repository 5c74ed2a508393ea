/* SPDX-License-Identifier: MIT */
/*
 * Operations on a filesystem as values: made at random from a seed, run on the real filesystem,
 * told to the oracle, kept in a record, printed.
 *
 * Small sets of names, directories and sizes are chosen so that operations meet: names that exist,
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
	OP_RECLAIM, /* of the zone that `ino` has at `offset`; without one, of the next victim;
		     * `flags`: how many of the operations behind it run while data is moved */
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
	struct oracle_acl acl; /* whose first `len` bytes are the value of the attribute `name` */
	bool hold;
	bool may_wait; /* at the first try */
	mode_t umask;  /* of the caller; mode is what is left */
	bool durable;  /* flags of what it changes ask for that; set before the run */

	/* After the run. */
	int64_t result;
	/* Of what was looked up, made, linked or set, or the whiteout; attr.ino: its number. */
	struct zf_attr attr;
};

/* The clock: operation n happens n microseconds after this. */
#define WORKLOAD_EPOCH_NS INT64_C(1700000000000000000)

static inline int64_t workload_time(uint32_t number)
{
	return WORKLOAD_EPOCH_NS + number * INT64_C(1000);
}

/* The operation whose time this is; 0: none's. */
static inline uint32_t workload_op_of_time(const struct zf_time *time)
{
	int64_t ns = time->seconds * 1000000000 + time->nanoseconds - WORKLOAD_EPOCH_NS;

	return ns > 0 ? (uint32_t)(ns / 1000) : 0;
}

struct workload_profile {
	unsigned int weights[OP_KIND_COUNT];
	uint64_t size_max;	  /* bytes: where most writes end at most */
	unsigned int far_percent; /* of writes and truncates, anywhere up to 2^63 - 1 */
	unsigned int files_max, dirs_max;
	unsigned int unsettled_max; /* writes to one file until it is synced; 0: no limit */
	bool big_values;	    /* attributes up to 64 KiB */
	bool nospace;		    /* the device is small: -ENOSPC is an answer too */
};

extern const struct workload_profile workload_everything;
/* Few files of a few blocks: operations meet within one. */
extern const struct workload_profile workload_close;
extern const struct workload_profile workload_crash;
extern const struct workload_profile workload_crowded; /* the same where little room is left */

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
	} commit;		    /* the next step of the one that is being made */
	uint64_t commit_generation; /* that it makes durable */
	/*
	 * Held while a commit is being made, so that they are deleted after it: without threads,
	 * who gives up the last reference deletes, and may need a commit for that.
	 */
	uint64_t kept[WORKLOAD_KEPT_MAX];
	unsigned int kept_count;
	void (*beside)(void *arg); /* what a reclaim with flags calls when it has copied */
	void *beside_arg;
	void (*within)(bool in); /* is told when the filesystem is entered, and left; or NULL */
	bool verbose;
	uint8_t *buf, *expected; /* WORKLOAD_IO_MAX each */
	uint64_t done[OP_KIND_COUNT], failed[OP_KIND_COUNT], nospace;
	char wrong[160]; /* what was read and is not so */
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
 * Whether it is made durable by the intent log, also between the steps of a commit. If it needs a
 * commit after all, that ends the one that is being made.
 */
bool workload_goes_to_log(const struct zf_op *op);
/* Whether it cannot come between the steps of a commit, as it may need one itself. */
bool workload_has_to_wait(const struct workload *workload, const struct zf_op *op);

/* A list, and now and then what is not quite one (draw_acl.c). */
void workload_draw_acl(struct zf_rng *rng, struct oracle_acl *ret_acl);

/*
 * Runs it on the filesystem: sets what the op has for results. What was read is compared with the
 * oracle. Steps of a commit that is being made are taken first if the operation has to wait for it.
 */
void workload_run(struct workload *workload, struct zf_op *op);

/* Takes the steps that are left of a commit. 0 or -errno. */
int workload_finish_commit(struct workload *workload);

/*
 * Tells the oracle and compares the answers. False, and a message to stderr, if they differ. With
 * profile->nospace -ENOSPC is right too, and changes nothing.
 */
bool workload_check(struct workload *workload, const struct zf_op *op);

/* The filesystem was unmounted, or left to itself as in a crash, and mounted again. */
void workload_remounted(struct workload *workload, struct zf_fs *fs);

const char *workload_op_name(enum zf_op_kind kind);
void workload_print(FILE *out, const struct zf_op *op);

/* ---- comparing everything (compare.c) ---- */

/* What of these attributes is wrong, or NULL. */
const char *workload_compare_attr(const struct oracle_inode *inode, const struct zf_attr *attr);

/*
 * The whole tree against the oracle: names, attributes, attributes' values, links' targets, and
 * every byte of every file. False, and messages to stderr, if anything differs. What an oracle with
 * `keep_old` says may have been lost in a crash may be lost.
 */
bool workload_compare(struct zf_fs *fs, struct oracle *oracle);

/*
 * What statfs(2) says of itself and of the number of inodes. `exact`: no inode that has neither
 * name nor holder may be left.
 */
bool workload_compare_statfs(struct zf_fs *fs, struct oracle *oracle, bool exact);

/* The bytes of every file alone. */
bool workload_compare_content(struct zf_fs *fs, struct oracle *oracle);

/* The greatest change or access time that is to be seen in the tree: how far the operations got. */
int workload_newest(struct zf_fs *fs, uint32_t *ret_number);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * A user of a filesystem who remembers what he wrote: the content of a block follows from the file,
 * the block's number and a version, so that any amount of data can be verified later.
 *
 * Without threads the filesystem does nothing by itself, so the user commits: after every
 * `commit_bytes` bytes written, or when `commit_due` returns true. A user must not be shared by
 * threads.
 */
#ifndef ZF_BENCH_AGE_USER_H
#define ZF_BENCH_AGE_USER_H

#include "age/draw.h"
#include "age/histogram.h"
#include "fs/core/fs.h"

#define AGE_BLOCK 4096u
#define AGE_PIECE (128u << 10) /* of a long write: bytes of one call */

struct age_user {
	struct zf_fs *fs;
	struct zf_ctx ctx;
	uint64_t seed;
	struct age_random random;
	uint32_t version;	       /* the last one given to a written block */
	uint64_t commit_bytes;	       /* 0: never, the filesystem has threads */
	uint64_t reclaim_bytes;	       /* reclaim looks for work every so many bytes; 0: never */
	bool (*commit_due)(void *arg); /* asked after each operation; NULL: never */
	void *commit_arg;
	uint64_t bytes, calls;	       /* written so far */
	uint64_t committed, reclaimed; /* `bytes` at the last commit, at the last look */
	uint64_t running;	       /* the transaction that was seen last */
	struct age_histogram latency;  /* of zf_fs_write() */
	uint8_t piece[AGE_PIECE];
};

void age_user_init(struct age_user *user, struct zf_fs *fs, uint64_t seed);

uint32_t age_new_version(struct age_user *user);

/* Fills a whole block; the file may end within it. */
void age_fill_block(const struct age_user *user, uint64_t ino, uint64_t block, uint32_t version,
		    void *buf);

/*
 * Writes [offset, offset + len): the bytes of each block are those of the version
 * versions[block of the file]. Makes one commit at most. Returns 0 or -errno.
 */
int age_write(struct age_user *user, uint64_t ino, uint64_t offset, uint64_t len,
	      const uint32_t *versions);
/* Reads and compares the whole file. -EILSEQ: the content differs; stderr says where. */
int age_verify(struct age_user *user, uint64_t ino, uint64_t size, const uint32_t *versions);
/* The number of the file's extents; extents that adjoin in the file and on the device count as one.
 */
int64_t age_count_extents(struct age_user *user, uint64_t ino);

/* For operations that write nothing: commits if `commit_due` says so. */
int age_operated(struct age_user *user);

#endif

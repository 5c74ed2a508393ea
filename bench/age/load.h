/* SPDX-License-Identifier: MIT */
/* Loads: what a user does to age a filesystem, and how the result is verified. */
#ifndef ZF_BENCH_AGE_LOAD_H
#define ZF_BENCH_AGE_LOAD_H

#include "age/user.h"

struct age_fragments {
	uint64_t files, extents, bytes;
};

struct age_load;

struct age_load_ops {
	int (*fill)(struct age_load *load); /* once */
	int (*step)(struct age_load *load); /* an operation */
	int (*verify)(struct age_load *load, struct age_fragments *ret_fragments);
	void (*free)(struct age_load *load);
};

/* Embedded. All calls return 0 or -errno. */
struct age_load {
	const struct age_load_ops *ops;
	struct age_user *user;
};

/* Writes the blocks of one file of `bytes` once in order, and then at drawn places. theta 0: drawn
 * uniformly; `in_order`: not drawn, but again in order. */
struct age_blocks_options {
	uint64_t bytes;
	double theta;
	bool in_order;
	uint64_t step_bytes; /* of one write; AGE_BLOCK if places are drawn */
};
struct age_load *age_blocks_new(struct age_user *user, const struct age_blocks_options *options);

/*
 * Files like those of a home directory, of `bytes` together (each rounded up to blocks): created,
 * appended to, overwritten in places, replaced as editors do, renamed, deleted.
 */
struct age_tree_options {
	uint64_t bytes;
	uint64_t size_max; /* of one file */
};
struct age_load *age_tree_new(struct age_user *user, const struct age_tree_options *options);
/* How often each operation was done since the load was made: for tests. */
enum age_tree_op {
	AGE_CREATE,
	AGE_APPEND,
	AGE_OVERWRITE,
	AGE_REWRITE,
	AGE_REPLACE,
	AGE_RENAME,
	AGE_DELETE,
	AGE_FSYNC,
	AGE_TREE_OPS,
};
const uint64_t *age_tree_counts(const struct age_load *load);

#endif

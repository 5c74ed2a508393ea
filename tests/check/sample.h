/* SPDX-License-Identifier: MIT */
/* A small filesystem with something of everything, and the messages of the checker about it. */
#ifndef ZF_TESTS_CHECK_SAMPLE_H
#define ZF_TESTS_CHECK_SAMPLE_H

#include "check/check.h"
#include "fs/core/fs.h"
#include "forge.h"

#define SAMPLE_FILE_BLOCKS 40u
#define SAMPLE_LONG_XATTR  30000u
#define SAMPLE_MANY	   300u

/*
 * /file (data, also named /dir/hard; a short and a long attribute), /other (data), /small (inline),
 * /sym, /fifo, /dir/sub/deep, /many/0 ... /many/299 (so that the fs tree has more than one level).
 */
struct sample {
	struct zf_memory *memory;
	struct forge forge;					      /* of the newest superblock */
	uint64_t file, other, small, sym, fifo, dir, sub, deep, many; /* inode numbers */
};

struct sample_options {
	uint32_t node_size; /* 0: the default */
	uint8_t copies;	    /* 0: 1 */
	uint32_t conventional;
};

void sample_make(struct sample *sample, const struct sample_options *options);
void sample_free(struct sample *sample);

/* Makes the files in an empty filesystem. */
void sample_populate(struct sample *sample, struct zf_fs *fs);

/* Opens the device and mounts; the caller unmounts with sample_unmount(). */
struct zf_fs *sample_mount(struct sample *sample);
void sample_unmount(struct sample *sample, struct zf_fs *fs);

/* Checks the newest superblock's state. Messages are kept for sample_said(). */
void sample_check(struct sample *sample, bool data, struct zf_check_counts *ret_counts);
/* Did the last check report a line that contains both? */
bool sample_said(const char *a, const char *b);
void sample_print_messages(void);

/* Checks, and fails the test unless there are errors and one line contains both. */
void sample_expect(struct sample *sample, bool data, const char *a, const char *b);

/* For cmocka: a sample of its own for each test, with default options. */
int sample_setup(void **state);
int sample_teardown(void **state);

/* The key of the first item of this type that the inode has; it must have one. */
struct zf_key sample_key(struct sample *sample, uint64_t ino, uint8_t type);

#endif

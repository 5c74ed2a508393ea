/* SPDX-License-Identifier: MIT */
/*
 * Programs that are run on an image, and what they must not do. Each image is tried in a process of
 * its own; these processes share only programs_shared, where a process leaves its results.
 */
#ifndef ZF_TESTS_PROGRAMS_H
#define ZF_TESTS_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lies/mangling.h"

#define FSCK	 "tools/zfusectl/fsck.zfuse"
#define ZFUSECTL "tools/zfusectl/zfusectl"
#define MKFS	 "mkfs/mkfs.zfuse"

extern struct programs_options {
	const char *bin; /* directory of the build */
	uint64_t seed, manglings, mounts, traces;
} programs_options;

/* Shared by this process and its children, which try the images. */
extern struct programs_shared {
	uint64_t manglings, programs, mounts, traces, clean, repaired, left;
	bool failed;	 /* the current try has failed */
	char text[2048]; /* why */
} *programs_shared;

extern unsigned int programs_failures;
extern char programs_image[300], programs_scratch[300], programs_mountpoint[300];
extern char programs_said[4096]; /* the first bytes that the last program printed */

/* ---- run.c ---- */

void programs_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* args[0]: a path relative to the directory of the build. */
pid_t programs_start(const char *const *args, int *ret_fd);
/* The exit status. -1: the program died, and the test has failed. */
int programs_end(const char *const *args, pid_t pid, int fd);
int programs_run(const char *const *args);
int programs_fsck(const char *mode);

/* False: the try has failed; a message is printed. `option`: the option whose count of 1 repeats
 * the try. */
bool programs_report(const char *option, uint64_t seed, bool ended, const char *how);

/* ---- look.c ---- */

void programs_look(struct zf_rng *rng);
void programs_look_at_something(const struct places *places, struct zf_rng *rng);
void programs_restore(struct zf_rng *rng);

/* Runs a program that changes an unmounted image. An image that was in order (`sound`) must be in
 * order afterwards. */
void programs_change(struct zf_rng *rng, bool sound);
/* Formats the image anew: it must then be in order, whatever was on it before. */
void programs_make_anew(void);

/* ---- mount.c ---- */

/* `sound`: mounting it and writing to it must succeed. */
void programs_mount(bool sound);

/* ---- traces.c ---- */

void programs_try_traces(void);

#endif

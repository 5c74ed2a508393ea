/* SPDX-License-Identifier: MIT */
/*
 * Programs that are run on an image, and what they must not do. In one process for each image, but
 * for the state that is shared: who tries the next image reads of it what became of the last.
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

/* Of this process and of those that try something. */
extern struct programs_shared {
	uint64_t manglings, programs, mounts, traces, clean, repaired, left;
	bool failed;	 /* what is tried now */
	char text[2048]; /* why */
} *programs_shared;

extern unsigned int programs_failures;
extern char programs_image[300], programs_scratch[300], programs_mountpoint[300];
extern char programs_said[4096]; /* the first bytes that the last program printed */

/* ---- run.c ---- */

void programs_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* args[0]: from the directory of the build. */
pid_t programs_start(const char *const *args, int *ret_fd);
/* The exit status, or -1: it died, and the test has failed. */
int programs_end(const char *const *args, pid_t pid, int fd);
int programs_run(const char *const *args);
int programs_fsck(const char *mode);

/* False: it has failed, and is told of. `option`: of which there was one. */
bool programs_report(const char *option, uint64_t seed, bool ended, const char *how);

/* ---- look.c ---- */

void programs_look(struct zf_rng *rng);
void programs_look_at_something(const struct places *places, struct zf_rng *rng);
void programs_restore(struct zf_rng *rng);

/* What writes to an image that is not mounted. What was in order must be so afterwards. */
void programs_change(struct zf_rng *rng, bool sound);
/* What is made anew is in order, whatever was there before. */
void programs_make_anew(void);

/* ---- mount.c ---- */

/* `sound`: it must be mounted, and written to. */
void programs_mount(bool sound);

/* ---- traces.c ---- */

void programs_try_traces(void);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Marks: with a mark a program announces what its next fallocate means (zfuse/ioctl.h).
 *
 * A mark belongs to one open file and one thread. So threads that share a descriptor, and processes
 * that inherited it, do not take each other's marks. Where the kernel does not tell which thread
 * asks (the thread is in another PID namespace) only the ranges tell their marks apart. A mark
 * exists only between two calls of a program, so there are few, in a list under one lock. If there
 * are none, which is the usual case, zf_marks_take() reads a counter only.
 */
#ifndef ZF_FUSE_MARKS_H
#define ZF_FUSE_MARKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct zf_mark {
	uint64_t fh;
	uid_t user;
	pid_t thread; /* 0: unknown */
	uint64_t offset, len;
};

struct zf_marks;

int zf_marks_new(struct zf_marks **ret_marks);
void zf_marks_free(struct zf_marks *marks); /* takes NULL */

/*
 * Adds a mark, which replaces the thread's previous mark of this open file. A user who marks
 * without calling fallocate loses his own oldest marks to the new ones; marks of other users are
 * lost only if many users do that. -ENOMEM.
 */
int zf_marks_add(struct zf_marks *marks, const struct zf_mark *mark);
/* Removes this mark. Returns whether it was there. */
bool zf_marks_take(struct zf_marks *marks, const struct zf_mark *mark);
/* Removes the marks of an open file that is closed. */
void zf_marks_drop(struct zf_marks *marks, uint64_t fh);

#endif

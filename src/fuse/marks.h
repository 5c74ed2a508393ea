/* SPDX-License-Identifier: MIT */
/*
 * Marks: what was said about a fallocate before it comes (zfuse/ioctl.h).
 *
 * A mark belongs to one open file and one thread. So threads that share a descriptor, and processes
 * that inherited it, do not take each other's; where the kernel does not tell which thread asks (it
 * is of another PID namespace) the ranges still tell them apart. There are none but in between two
 * calls of a program, so they are few, in a list under one lock; and who has made none (nearly
 * everybody) looks at a counter only.
 */
#ifndef ZF_FUSE_MARKS_H
#define ZF_FUSE_MARKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct zf_mark {
	uint64_t fh;
	uid_t user;
	pid_t thread; /* 0: not known */
	uint64_t offset, len;
};

struct zf_marks;

int zf_marks_new(struct zf_marks **ret_marks);
void zf_marks_free(struct zf_marks *marks); /* takes NULL */

/*
 * In the place of the thread's last one. A user who marks and does not ask loses his own oldest
 * marks to the new ones; only where many users do so are others' lost. -ENOMEM.
 */
int zf_marks_add(struct zf_marks *marks, const struct zf_mark *mark);
/* Was there this one? It is gone. */
bool zf_marks_take(struct zf_marks *marks, const struct zf_mark *mark);
/* The file is closed. */
void zf_marks_drop(struct zf_marks *marks, uint64_t fh);

#endif

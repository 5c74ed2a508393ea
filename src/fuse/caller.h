/* SPDX-License-Identifier: MIT */
#ifndef ZF_FUSE_CALLER_H
#define ZF_FUSE_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * May the thread `pid`, which waits for our answer, what the owner of a file of user `owner` may?
 * As the kernel decides it: CAP_FOWNER in the thread's own user namespace, into which the file's
 * owner has to be mapped. The kernel does not tell a daemon, so this reads /proc, which is slow.
 * False where /proc does not show the thread. Security modules are not asked.
 */
bool zf_caller_may_as_owner(pid_t pid, uid_t owner);

#endif

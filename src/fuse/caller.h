/* SPDX-License-Identifier: MIT */
#ifndef ZF_FUSE_CALLER_H
#define ZF_FUSE_CALLER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * May the thread `pid`, which waits for our answer, act as the owner of a file of user `owner`? The
 * rule is the kernel's: the thread needs CAP_FOWNER in its own user namespace, and the file's owner
 * has to be mapped into that namespace. The kernel does not tell a daemon, so this function reads
 * /proc, which is slow. False if /proc does not show the thread. Security modules are not asked.
 */
bool zf_caller_may_as_owner(pid_t pid, uid_t owner);

#endif

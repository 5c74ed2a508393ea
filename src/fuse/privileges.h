/* SPDX-License-Identifier: MIT */
/*
 * The privileges that a daemon of root keeps when it has opened its device. docs/security.md says
 * what each kept privilege is for. The daemon of an ordinary user has no privileges to give up.
 */
#ifndef ZF_FUSE_PRIVILEGES_H
#define ZF_FUSE_PRIVILEGES_H

/*
 * Does what needs the privileges that are given up later; to be called before any thread starts.
 * Raises the limits of open files and locked memory as far as is allowed, asks the kernel to kill
 * other processes first when memory runs out, and keeps programs that the daemon starts from
 * gaining privileges. If the system does not allow one of these, that is no error.
 */
void zf_privileges_prepare(void);

/*
 * Gives up all capabilities but CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH, for the calling thread and
 * the threads that it starts from now on. A second call changes nothing. 0 or -errno.
 */
int zf_privileges_drop(void);

#endif

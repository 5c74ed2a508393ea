/* SPDX-License-Identifier: MIT */
/*
 * What a daemon of root keeps when it has opened its device. docs/security.md says what each kept
 * privilege is for. A daemon of an ordinary user has none to give up.
 */
#ifndef ZF_FUSE_PRIVILEGES_H
#define ZF_FUSE_PRIVILEGES_H

/*
 * Before any thread: what needs privileges that are given up later. Raises the limits of open files
 * and locked memory as far as is allowed, asks the kernel to kill others first when memory runs out, and lets no
 * program that it starts gain privileges. What the system does not allow stays as it is.
 */
void zf_privileges_prepare(void);

/*
 * Gives up all capabilities but CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH, for the calling thread and
 * those that it starts from now on. A second call changes nothing. 0 or -errno.
 */
int zf_privileges_drop(void);

#endif

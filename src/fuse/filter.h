/* SPDX-License-Identifier: MIT */
/*
 * The filter of system calls (seccomp): a daemon of root that has mounted may make only the system
 * calls that it needs from then on. docs/security.md says what the filter protects from, and what
 * not.
 */
#ifndef ZF_FUSE_FILTER_H
#define ZF_FUSE_FILTER_H

/*
 * From now on all threads of the process, and programs that it runs, may make only the system calls
 * of the list in filter.c. Any other call fails with ENOSYS, and the kernel logs it for audit. The
 * filter cannot be removed. It also keeps programs that are run from gaining privileges
 * (PR_SET_NO_NEW_PRIVS). 0 or -errno: -EOPNOTSUPP if the build has no filter (sanitizers make
 * system calls of their own), other errors if the kernel has none.
 */
int zf_filter_install(void);

/* The names of the system calls on the list, for a test; ends with NULL. */
extern const char *const zf_filter_allowed[];

#endif

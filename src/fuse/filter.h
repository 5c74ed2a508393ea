/* SPDX-License-Identifier: MIT */
/*
 * The filter of system calls (seccomp): a daemon of root that has mounted may make only those that
 * it needs from then on. docs/security.md says what that is worth, and what it is not.
 */
#ifndef ZF_FUSE_FILTER_H
#define ZF_FUSE_FILTER_H

/*
 * From now on all threads of the process, and what it runs, make only the system calls of the list in
 * filter.c. Any other fails with ENOSYS, and the kernel logs it for audit. There is no way back. Takes
 * privileges away from programs that are run (PR_SET_NO_NEW_PRIVS). 0 or -errno: -EOPNOTSUPP where the
 * build has no filter (sanitizers make system calls of their own), others where the kernel has none.
 */
int zf_filter_install(void);

/* The names of the system calls on the list, for a test; ends with NULL. */
extern const char *const zf_filter_allowed[];

#endif

/* SPDX-License-Identifier: MIT */
#include "fuse/filter.h"

#include <errno.h>
#include <stddef.h>
#ifdef ZF_FILTER
#include <seccomp.h>
#include <sys/socket.h>
#endif

/*
 * Grouped by purpose. The C library, liburing and libfuse choose between similar calls, so whole
 * families are listed: once one of a family is allowed, its relatives give nothing more away.
 */
const char *const zf_filter_allowed[] = {
	/* memory */
	"brk",
	"madvise",
	"mmap",
	"mmap2",
	"mprotect",
	"mremap",
	"msync",
	"munmap",
	"get_mempolicy",
	"mbind",
	"set_mempolicy",
	/* threads; processes that run sync(1); the end of this process */
	"arch_prctl",
	"clone",
	"clone3",
	"vfork",
	"execve",
	"exit",
	"exit_group",
	"wait4",
	"waitid",
	"futex",
	"futex_time64",
	"rseq",
	"set_robust_list",
	"set_tid_address",
	"sched_getaffinity",
	"sched_setaffinity",
	"sched_yield",
	"setsid",
	"getpid",
	"gettid",
	"getppid",
	"getuid",
	"geteuid",
	"getgid",
	"getegid",
	"getcpu",
	"prctl",
	"prlimit64",
	"getrlimit",
	"ugetrlimit",
	"sysinfo",
	"uname",
	"getrandom",
	/* signals; tgkill: abort(3) */
	"kill",
	"restart_syscall",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"rt_sigtimedwait_time64",
	"sigaltstack",
	"sigreturn",
	"tgkill",
	/* time */
	"clock_getres",
	"clock_getres_time64",
	"clock_gettime",
	"clock_gettime64",
	"clock_nanosleep",
	"clock_nanosleep_time64",
	"gettimeofday",
	"nanosleep",
	"time",
	/* the connection to the kernel, and the device */
	"read",
	"readv",
	"pread64",
	"preadv",
	"preadv2",
	"write",
	"writev",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"ioctl",
	"fallocate",
	"fgetxattr",
	"fsetxattr",
	"fsync",
	"fdatasync",
	"ftruncate",
	"ftruncate64",
	"lseek",
	"_llseek",
	"flock",
	/* descriptors; waiting for several of them */
	"close",
	"close_range",
	"dup",
	"dup2",
	"dup3",
	"fcntl",
	"fcntl64",
	"eventfd2",
	"signalfd4",
	"poll",
	"ppoll",
	"ppoll_time64",
	/* files: /proc, /sys, /dev/null, and what sync(1) opens */
	"open",
	"openat",
	"access",
	"faccessat",
	"faccessat2",
	"fstat",
	"fstat64",
	"fstatfs",
	"fstatfs64",
	"lstat",
	"lstat64",
	"newfstatat",
	"fstatat64",
	"stat",
	"stat64",
	"statfs",
	"statfs64",
	"statx",
	"getdents64",
	"getcwd",
	"readlink",
	"readlinkat",
	"fadvise64",
	"fadvise64_64",
	"arm_fadvise64_64",
	/* the control socket and its folder; the system's log */
	"accept4",
	"bind",
	"connect",
	"getsockopt",
	"listen",
	"recvfrom",
	"recvmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"chmod",
	"fchmodat",
	"mkdir",
	"mkdirat",
	"unlink",
	"unlinkat",
	/* the end */
	"syncfs",
	"umount2",
	NULL,
};

#ifdef ZF_FILTER

/*
 * libseccomp knows the names of all architectures. A call that this architecture does not have
 * needs no rule.
 */
static int allow(scmp_filter_ctx filter, const char *name)
{
	int number = seccomp_syscall_resolve_name(name);

	return number < 0 ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

static int allow_all(scmp_filter_ctx filter)
{
	int r = 0;

	for (size_t i = 0; zf_filter_allowed[i] && r == 0; i++)
		r = allow(filter, zf_filter_allowed[i]);
	/* Sockets of AF_UNIX only: no network. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				     SCMP_A0_32(SCMP_CMP_EQ, AF_UNIX));
	return r;
}

static int load(scmp_filter_ctx filter)
{
	int r = allow_all(filter);

	/* Calls with the numbers of another architecture (32 bits) are refused in the same way. */
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	/*
	 * Kernels before 5.11 run the filter for every call; as a binary tree it needs few steps.
	 */
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return r == 0 ? seccomp_load(filter) : r;
}

/*
 * ENOSYS is the error of a kernel that does not have the call; libraries then do without the call.
 */
int zf_filter_install(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = filter ? load(filter) : -ENOMEM;

	seccomp_release(filter);
	return r;
}

#else

int zf_filter_install(void)
{
	return -EOPNOTSUPP;
}

#endif

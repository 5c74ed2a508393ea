/* SPDX-License-Identifier: MIT */
#include "fuse/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"

/*
 * CAP_SYS_ADMIN: to unmount when a signal comes; and without it the kernel would lower the number
 * of background requests (in the answer to INIT). CAP_DAC_READ_SEARCH: the mount point may lie in a
 * folder that only its owner may enter, and the daemon uses its path until the end.
 */
static const unsigned int kept[] = {CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH};

/*
 * Of 1000: the kernel kills other processes that use memory first, and can still kill the daemon as
 * a last choice.
 */
#define OOM_SCORE "-900"

/* More descriptors are of no use. */
#define FILES_MAX 65536

/* ---- before ---- */

/* Raises a limit as far as is allowed. */
static void raise_limit(__rlimit_resource_t resource, rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(resource, &limit);
}

/*
 * From Linux 6.14 on, the rings of io_uring count as locked memory, unless the process has
 * CAP_IPC_LOCK. The memory of all processes of root counts together, and there is one ring for each
 * processor and mount. Without rings, requests come by /dev/fuse.
 */
static void lift_limit_of_locked_memory(void)
{
	const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};

	if (setrlimit(RLIMIT_MEMLOCK, &none) < 0)
		raise_limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
}

/* A score below 0 was chosen on purpose, and stays. Sessions of users have scores above 0. */
static void lower_oom_score(void)
{
	_zf_close_ int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strtol(text, NULL, 10) >= 0)
		(void)!pwrite(fd, OOM_SCORE, strlen(OOM_SCORE), 0);
}

void zf_privileges_prepare(void)
{
	raise_limit(RLIMIT_NOFILE, FILES_MAX);
	if (geteuid() != 0)
		return;
	lift_limit_of_locked_memory();
	lower_oom_score();
	/* An ordinary user's daemon runs fusermount3, which is set-user-id. */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* ---- capabilities ---- */

static uint64_t kept_mask(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(kept); i++)
		mask |= UINT64_C(1) << kept[i];
	return mask;
}

/*
 * A program that root runs gets the capabilities of the bounding set. If the daemon may not reduce
 * the set, PR_SET_NO_NEW_PRIVS keeps programs from getting more than the daemon has.
 */
static void drop_from_bounding_set(uint64_t keep)
{
	/* prctl() fails after the last capability that the kernel has. */
	for (unsigned int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!((keep >> i) & 1))
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
}

/*
 * glibc has no wrapper for capget(2) and capset(2). A capability that the thread does not have is
 * not added.
 */
static int keep_capabilities(uint64_t keep)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(data); i++) {
		data[i].permitted &= (uint32_t)(keep >> (32 * i));
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

int zf_privileges_drop(void)
{
	if (geteuid() != 0)
		return 0;
	drop_from_bounding_set(kept_mask());
	/* This also empties the ambient set, which is never larger than the inheritable set. */
	return keep_capabilities(kept_mask());
}

/* SPDX-License-Identifier: MIT */
/* The clock that gives files their times: the mount's own, or the system's. */
#include <time.h>

#include "fs/core/inode.h"

struct zf_time zf_fs_now(struct zf_fs *fs)
{
	struct timespec ts;
	int64_t ns;

	if (fs->options.now_ns) {
		ns = fs->options.now_ns(fs->options.now_arg);
		/* Before 1970 ns is negative, but tv_nsec must be 0 ... 999999999. */
		ts.tv_sec = ns / 1000000000 - (ns % 1000000000 < 0);
		ts.tv_nsec = ns - ts.tv_sec * 1000000000;
		return (struct zf_time){ts.tv_sec, (uint32_t)ts.tv_nsec};
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	return (struct zf_time){ts.tv_sec, (uint32_t)ts.tv_nsec};
}

/* SPDX-License-Identifier: MIT */
/*
 * How much memory the daemon may use: that of the machine, or less where a control group (cgroup v2)
 * has a limit, as a container or a systemd unit with MemoryMax= or MemoryHigh= has.
 */
#ifndef ZF_FUSE_USABLE_MEMORY_H
#define ZF_FUSE_USABLE_MEMORY_H

#include <stdint.h>

/* In bytes, as of now. Limits of cgroup v1 do not count. */
uint64_t zf_usable_memory(void);

/*
 * The lowest memory.max or memory.high of a process's control group and of all groups above it, in
 * bytes. UINT64_MAX: none of them has a limit that can be read. `membership`: the process's
 * /proc/PID/cgroup; `root`: where the hierarchy is mounted.
 */
uint64_t zf_usable_memory_limit(const char *membership, const char *root);

#endif

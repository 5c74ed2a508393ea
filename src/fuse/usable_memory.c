/* SPDX-License-Identifier: MIT */
#include "fuse/usable_memory.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "io/sysfs.h"

/* In /proc/PID/cgroup the line of cgroup v2 begins with it; the path of the group follows. */
#define V2 "0::"

/* `group` becomes the directory of the process's group. */
static bool find_group(const char *membership, const char *root, char group[PATH_MAX])
{
	FILE *file = fopen(membership, "re");
	char line[PATH_MAX];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, V2, strlen(V2)) == 0 &&
			snprintf(group, PATH_MAX, "%s%s", root, line + strlen(V2)) < PATH_MAX;
	}
	if (file)
		fclose(file);
	return found;
}

/* A file that says "max" has no number, and so no limit. */
static uint64_t limit_of(const char *group)
{
	return zf_min_u64(zf_sysfs_read_number(group, "memory.max", UINT64_MAX),
			  zf_sysfs_read_number(group, "memory.high", UINT64_MAX));
}

uint64_t zf_usable_memory_limit(const char *membership, const char *root)
{
	char group[PATH_MAX];
	uint64_t limit;

	if (!find_group(membership, root, group))
		return UINT64_MAX;
	limit = limit_of(group);
	while (strlen(group) > strlen(root)) {
		*strrchr(group, '/') = '\0';
		limit = zf_min_u64(limit, limit_of(group));
	}
	return limit;
}

uint64_t zf_usable_memory(void)
{
	uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return zf_min_u64(machine, zf_usable_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup"));
}

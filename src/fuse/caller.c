/* SPDX-License-Identifier: MIT */
#include "fuse/caller.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A line of /proc/PID/uid_map has 33 bytes. */
#define UID_MAP_MAX (340 * 33 + 1)

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

static bool has_capability(pid_t pid, unsigned int capability)
{
	FILE *file = open_proc(pid, "status");
	uint64_t effective = 0;
	char line[256];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %" SCNx64, &effective) == 1)
			break;
	fclose(file);
	return (effective >> capability) & 1;
}

/* The kernel allows 340 lines of three numbers. 0: there is no map, or it cannot be read. */
static size_t read_uid_map(pid_t pid, char map[UID_MAP_MAX])
{
	FILE *file = open_proc(pid, "uid_map");
	size_t len;

	if (!file)
		return 0;
	len = fread(map, 1, UID_MAP_MAX - 1, file);
	fclose(file);
	map[len] = '\0';
	return len;
}

static bool is_in_map(const char *map, uid_t uid)
{
	unsigned int first, count;
	int len;

	while (sscanf(map, "%*u %u %u%n", &first, &count, &len) == 2) {
		if (uid >= first && uid - first < count)
			return true;
		map += len;
	}
	return false;
}

/*
 * The second number of each line is the user's number outside the namespace. For another namespace
 * than ours, /proc shows it as our namespace numbers users; for our own namespace, as the parent
 * namespace does. The two cases cannot be confused: a map that equals our own maps all users of our
 * namespace. Comparing the namespaces themselves would take CAP_SYS_PTRACE.
 */
static bool is_mapped(pid_t pid, uid_t uid)
{
	char ours[UID_MAP_MAX], theirs[UID_MAP_MAX];

	if (read_uid_map(getpid(), ours) == 0 || read_uid_map(pid, theirs) == 0)
		return false;
	return strcmp(ours, theirs) == 0 || is_in_map(theirs, uid);
}

bool zf_caller_may_as_owner(pid_t pid, uid_t owner)
{
	return pid > 0 && has_capability(pid, CAP_FOWNER) && is_mapped(pid, owner);
}

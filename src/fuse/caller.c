/* SPDX-License-Identifier: MIT */
#include "fuse/caller.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static bool is_in_our_namespace(pid_t pid)
{
	char path[64], ours[64], theirs[64];
	ssize_t len, their_len;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	len = readlink("/proc/self/ns/user", ours, sizeof(ours));
	their_len = readlink(path, theirs, sizeof(theirs));
	return len > 0 && len == their_len && memcmp(ours, theirs, (size_t)len) == 0;
}

/* Of another namespace /proc names users as they are called in ours. */
static bool is_mapped(pid_t pid, uid_t uid)
{
	unsigned int first, count;
	bool found = false;
	FILE *file;

	if (is_in_our_namespace(pid))
		return true;
	file = open_proc(pid, "uid_map");
	if (!file)
		return false;
	while (!found && fscanf(file, "%*u %u %u", &first, &count) == 2)
		found = uid >= first && uid - first < count;
	fclose(file);
	return found;
}

bool zf_caller_may_as_owner(pid_t pid, uid_t owner)
{
	return pid > 0 && has_capability(pid, CAP_FOWNER) && is_mapped(pid, owner);
}

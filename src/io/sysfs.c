/* SPDX-License-Identifier: MIT */
#include "io/sysfs.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

bool zf_sysfs_read(const char *directory, const char *name, char *buf, size_t size)
{
	char path[PATH_MAX + 64];
	bool found;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	found = fgets(buf, (int)size, file) != NULL;
	fclose(file);
	if (found)
		buf[strcspn(buf, "\n")] = '\0';
	return found;
}

uint64_t zf_sysfs_read_number(const char *directory, const char *name, uint64_t otherwise)
{
	char text[32];
	uint64_t value;

	if (!zf_sysfs_read(directory, name, text, sizeof(text)) ||
	    sscanf(text, "%" SCNu64, &value) != 1)
		return otherwise;
	return value;
}

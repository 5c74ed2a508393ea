/* SPDX-License-Identifier: MIT */
#include "io/nvme_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Moves *text behind its leading digits. False: there are none. */
static bool skip_number(const char **text)
{
	size_t digits = strspn(*text, "0123456789");

	*text += digits;
	return digits > 0;
}

/* "0n1": not one path of a multipath namespace (nvme0c0n1), and no partition (nvme0n1p1). */
static bool is_namespace(const char *numbers)
{
	return skip_number(&numbers) && *numbers++ == 'n' && skip_number(&numbers) &&
	       *numbers == '\0';
}

static int rename_to(const char *path, const char *from, const char *to, char *buf, size_t size)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int n;

	if (strncmp(name, from, strlen(from)) != 0 || !is_namespace(name + strlen(from)))
		return -EINVAL;
	n = snprintf(buf, size, "%.*s%s%s", (int)(name - path), path, to, name + strlen(from));
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int zf_nvme_block_name(const char *ng_path, char *buf, size_t size)
{
	return rename_to(ng_path, "ng", "nvme", buf, size);
}

int zf_nvme_char_name(const char *block_path, char *buf, size_t size)
{
	return rename_to(block_path, "nvme", "ng", buf, size);
}

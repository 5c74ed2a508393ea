/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must(int64_t result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror((int)-result));
	exit(1);
}

uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

uint64_t make(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
	      mode_t mode)
{
	struct zf_attr attr;

	must(zf_fs_make(fs, ctx, parent, name, mode, 0, NULL, &attr), "make");
	zf_fs_forget(fs, attr.ino, 1);
	return attr.ino;
}

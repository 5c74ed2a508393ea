/* SPDX-License-Identifier: MIT */
/* The options that mount(8) and umount(8) give to their helpers. */
#ifndef ZF_TOOLS_MOUNT_ARGS_H
#define ZF_TOOLS_MOUNT_ARGS_H

#include <stdbool.h>

/* An option of one letter sets a flag, or a text to its argument, or has no effect (neither). */
struct zf_helper_option {
	char letter;
	bool *flag;
	const char **text;
};

/*
 * `letters` as for getopt(3). --help and --version stand for 'h' and 'V'. `options` ends with the
 * letter '\0'. Returns the index of the first operand, or -EINVAL, reported by getopt.
 */
int zf_helper_args(int argc, char **argv, const char *letters,
		   const struct zf_helper_option *options);

#endif

/* SPDX-License-Identifier: MIT */
#include "mount/args.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>

static int set(const struct zf_helper_option *options, int letter)
{
	while (options->letter && options->letter != letter)
		options++;
	if (!options->letter)
		return -EINVAL;
	if (options->flag)
		*options->flag = true;
	if (options->text)
		*options->text = optarg;
	return 0;
}

int zf_helper_args(int argc, char **argv, const char *letters,
		   const struct zf_helper_option *options)
{
	static const struct option names[] = {
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {0}};
	int letter;

	while ((letter = getopt_long(argc, argv, letters, names, NULL)) != -1)
		if (set(options, letter) < 0)
			return -EINVAL;
	return optind;
}

/* SPDX-License-Identifier: MIT */
/*
 * fsck.zfuse: what fsck(8) runs: `zfusectl check` with the exit statuses of fsck(8). It only looks:
 * a mount does by itself what a crash has left to do, and there is no repair yet (docs/tools.md).
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "target.h"
#include "text.h"

enum {
	FSCK_OK = 0,
	FSCK_ERRORS_LEFT = 4,
	FSCK_OPERATIONAL = 8,
	FSCK_USAGE = 16,
};

static int check(const char *path, const struct zf_report *report)
{
	struct zf_target target;
	struct zf_text text = {.out = stdout};
	struct json_object *result = NULL;
	int r = zf_target_open(path, false, report, &target);

	if (r < 0)
		return FSCK_OPERATIONAL;
	r = zf_target_run(&target, zf_report_find("check"), NULL, NULL, &result);
	if (r == 0) {
		zf_text_print(&text, zf_text_check, result, true);
		r = zf_text_u64(result, "errors") ? FSCK_ERRORS_LEFT : FSCK_OK;
		if (r != FSCK_OK)
			printf("what can be read is copied out by 'zfusectl restore %s "
			       "DIRECTORY'\n",
			       path);
	} else {
		r = r == -EUCLEAN ? FSCK_ERRORS_LEFT : FSCK_OPERATIONAL;
	}
	json_object_put(result);
	zf_target_close(&target);
	return r;
}

static int usage(FILE *to, int status)
{
	fputs("Usage: fsck.zfuse DEVICE\n"
	      "Checks a zfuse filesystem that is not mounted; never writes. See fsck.zfuse(8).\n\n"
	      "  -h, --help     this\n"
	      "  -V, --version  the version\n\n"
	      "Options of fsck(8), such as -a and -p, are taken and ignored.\n"
	      "Exit status: 0 all is well, 4 errors were found, 8 it could not be checked,\n"
	      "16 wrong usage.\n",
	      to);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {0}};
	static char prefix[] = "fsck.zfuse";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	int c;

	/* What fsck(8) may hand on: how to repair, how much to tell. */
	while ((c = getopt_long(argc, argv, "aAnpyrfvTMPRC::t:hV", options, NULL)) != -1) {
		if (c == '?')
			return usage(stderr, FSCK_USAGE);
		if (c == 'h')
			return usage(stdout, FSCK_OK);
		if (c == 'V') {
			puts("fsck.zfuse " ZF_VERSION);
			return FSCK_OK;
		}
	}
	if (optind + 1 != argc)
		return usage(stderr, FSCK_USAGE);
	return check(argv[optind], &report);
}

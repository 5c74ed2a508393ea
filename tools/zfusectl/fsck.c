/* SPDX-License-Identifier: MIT */
/*
 * fsck.zfuse: what fsck(8) runs: `zfusectl check` with the exit statuses of fsck(8). It only looks:
 * a zoned filesystem that copies on write has nothing that a repair in place could mend.
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
	} else {
		r = r == -EUCLEAN ? FSCK_ERRORS_LEFT : FSCK_OPERATIONAL;
	}
	json_object_put(result);
	zf_target_close(&target);
	return r;
}

int main(int argc, char **argv)
{
	static char prefix[] = "fsck.zfuse";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	int c;

	/* What fsck(8) may hand on: how to repair, how much to tell. */
	while ((c = getopt(argc, argv, "aAnpyrfvTMPRC::t:V")) != -1) {
		if (c == '?') {
			fputs("Usage: fsck.zfuse DEVICE\n", stderr);
			return FSCK_USAGE;
		}
		if (c == 'V') {
			puts("fsck.zfuse " ZF_VERSION);
			return FSCK_OK;
		}
	}
	if (optind + 1 != argc) {
		fputs("Usage: fsck.zfuse DEVICE\n", stderr);
		return FSCK_USAGE;
	}
	return check(argv[optind], &report);
}

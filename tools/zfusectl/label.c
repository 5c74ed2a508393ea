/* SPDX-License-Identifier: MIT */
#include "label.h"

#include <errno.h>
#include <stdio.h>

#include "ctl/json.h"
#include "target.h"
#include "text.h"

static int print(struct zf_target *target)
{
	struct json_object *status;
	int r = zf_target_run(target, zf_report_find("status"), NULL, NULL, &status);

	if (r < 0)
		return r;
	puts(zf_text_string(status, "label"));
	json_object_put(status);
	return 0;
}

static int change(struct zf_target *target, const char *label)
{
	struct json_object *request = json_object_new_object(), *answer = NULL;
	int r;

	zf_json_add_text(request, "label", label);
	r = zf_target_run(target, zf_report_find("set_label"), request, NULL, &answer);
	json_object_put(request);
	json_object_put(answer);
	return r;
}

int zf_label_main(const struct zf_args *args)
{
	static char prefix[] = "zfusectl label";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	const char *path = args->operands[0], *label = args->operands[1];
	struct zf_target target;
	int r;

	r = label ? zf_target_open_writing(path, &report, &target)
		  : zf_target_open(path, false, &report, &target);
	if (r < 0)
		return ZF_EXIT_PROBLEMS;
	r = label ? change(&target, label) : print(&target);
	zf_target_close(&target);
	if (r < 0)
		return r == -EINVAL ? ZF_EXIT_USAGE : ZF_EXIT_PROBLEMS;
	return zf_args_flush(args);
}

/* SPDX-License-Identifier: MIT */
#include "grow.h"

#include <errno.h>
#include <inttypes.h>

#include "ctl/json.h"
#include "json_out.h"
#include "target.h"
#include "text.h"

static int print(const struct zf_args *args, struct json_object *result)
{
	char before[ZF_TEXT_SIZE_MAX], now[ZF_TEXT_SIZE_MAX];
	struct zf_json_out json = {.out = stdout};
	uint64_t zones = zf_text_u64(result, "zones");

	zf_text_size(zf_text_u64(result, "bytes_before"), before);
	zf_text_size(zf_text_u64(result, "bytes"), now);
	if (zf_args_json(args))
		zf_json_out_result(&json, result);
	else if (zones == zf_text_u64(result, "zones_before"))
		printf("it has %s already, %" PRIu64 " zones\n", now, zones);
	else
		printf("grown from %s to %s, %" PRIu64 " to %" PRIu64 " zones\n", before, now,
		       zf_text_u64(result, "zones_before"), zones);
	return zf_args_flush(args);
}

static int grow(struct zf_target *target, const struct zf_args *args,
		struct json_object **ret_result)
{
	struct json_object *request = json_object_new_object();
	int r;

	if (args->options[ZF_OPTION_SIZE].given)
		zf_json_add_u64(request, "size", args->options[ZF_OPTION_SIZE].number);
	r = zf_target_run(target, zf_report_find("grow"), request, NULL, ret_result);
	json_object_put(request);
	return r;
}

int zf_grow_main(const struct zf_args *args)
{
	static char prefix[] = "zfusectl grow";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	struct json_object *result = NULL;
	struct zf_target target;
	int r, status;

	r = zf_target_open_writing(args->operands[0], &report, &target);
	if (r < 0)
		return ZF_EXIT_PROBLEMS;
	r = grow(&target, args, &result);
	if (r == 0)
		status = print(args, result);
	else
		status = r == -EINVAL ? ZF_EXIT_USAGE : ZF_EXIT_PROBLEMS;
	json_object_put(result);
	zf_target_close(&target);
	return status;
}

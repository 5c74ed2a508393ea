/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "check/check.h"
#include "ctl/json.h"
#include "ctl/report.h"

/* A badly damaged device has millions: more than this help nobody, and the counts tell of them. */
#define MESSAGES_MAX 1000u

struct messages {
	struct json_object *array;
	uint64_t dropped;
};

static void add_message(void *arg, enum zf_report_level level, const char *message)
{
	static const char *const levels[] = {
		[ZF_REPORT_ERROR] = "error",
		[ZF_REPORT_WARNING] = "warning",
		[ZF_REPORT_INFO] = "info",
	};
	struct messages *messages = arg;
	struct json_object *object;

	if (json_object_array_length(messages->array) >= MESSAGES_MAX) {
		messages->dropped++;
		return;
	}
	object = json_object_new_object();
	zf_json_add_text(object, "level", levels[level]);
	zf_json_add_bytes(object, "text", message, strlen(message));
	zf_json_push(messages->array, object);
}

static struct json_object *result_object(const struct zf_report_source *source,
					 const struct zf_check_counts *counts,
					 const struct messages *messages)
{
	struct json_object *result = json_object_new_object();

	zf_json_add_u64(result, "errors", counts->errors);
	zf_json_add_u64(result, "generation", source->super->generation);
	zf_json_add_u64(result, "nodes", counts->nodes);
	zf_json_add_u64(result, "inodes", counts->inodes);
	zf_json_add_u64(result, "names", counts->names);
	zf_json_add_u64(result, "extents", counts->extents);
	zf_json_add_u64(result, "data_bytes", counts->data_bytes);
	zf_json_add_u64(result, "verified_bytes", counts->verified_bytes);
	zf_json_add(result, "messages", json_object_get(messages->array));
	zf_json_add_u64(result, "messages_dropped", messages->dropped);
	return result;
}

int zf_report_check(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result)
{
	struct messages messages = {.array = json_object_new_array()};
	const struct zf_report report = {.fn = add_message, .arg = &messages};
	struct zf_check_options options = {0};
	struct zf_check_counts counts;
	int r = zf_json_get_bool(args, "data", &options.data);

	if (r == 0 && !messages.array)
		r = -ENOMEM;
	if (r == 0 && source->stepped_over)
		zf_report(&report, ZF_REPORT_WARNING,
			  "%u damaged superblock records are newer than generation %" PRIu64,
			  source->stepped_over, source->super->generation);
	if (r == 0)
		r = zf_check_run(source->dev, source->super, &options, &report, &counts);
	if (r == 0) {
		*ret_result = result_object(source, &counts, &messages);
		r = *ret_result ? 0 : -ENOMEM;
	}
	json_object_put(messages.array);
	return r;
}

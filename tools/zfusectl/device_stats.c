/* SPDX-License-Identifier: MIT */
#include "device_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "ctl/json.h"
#include "json_out.h"
#include "target.h"
#include "text.h"

static const char *const counters[] = {
	"read_errors",	 "write_errors",   "other_errors", "data_checksum_errors",
	"damaged_nodes", "repaired_nodes", "failed_zones",
};

static bool any_is_set(struct json_object *stats)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(counters); i++)
		if (zf_text_u64(stats, counters[i]) > 0)
			return true;
	return false;
}

static void print_text(struct json_object *stats)
{
	static const struct zf_table_column columns[] = {{NULL, false}, {NULL, false}};
	char time[ZF_TEXT_TIME_MAX];
	struct zf_table table;

	zf_table_init(&table, columns, 2);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(counters); i++) {
		zf_table_add(&table, "%s", counters[i]);
		zf_table_add(&table, "%" PRIu64, zf_text_u64(stats, counters[i]));
	}
	zf_table_add(&table, "since");
	zf_table_add(&table, "%s", zf_text_time(zf_text_u64(stats, "since"), time));
	zf_table_print(&table, stdout);
	zf_table_deinit(&table);
}

static int print(const struct zf_args *args, struct json_object *stats)
{
	struct zf_json_out json = {.out = stdout};
	int status;

	if (zf_args_json(args))
		zf_json_out_result(&json, stats);
	else
		print_text(stats);
	status = zf_args_flush(args);
	return args->options[ZF_OPTION_NONZERO].given && any_is_set(stats) ? ZF_EXIT_PROBLEMS
									   : status;
}

int zf_device_stats_main(const struct zf_args *args)
{
	static char prefix[] = "zfusectl device stats";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	bool reset = args->options[ZF_OPTION_RESET].given;
	struct json_object *stats = NULL;
	struct zf_target target;
	int status, r;

	r = reset ? zf_target_open_writing(args->operands[0], &report, &target)
		  : zf_target_open(args->operands[0], false, &report, &target);
	if (r < 0)
		return ZF_EXIT_PROBLEMS;
	r = zf_target_run(&target, zf_report_find(reset ? "device_stats_reset" : "device_stats"),
			  NULL, NULL, &stats);
	status = r < 0 ? ZF_EXIT_PROBLEMS : print(args, stats);
	json_object_put(stats);
	zf_target_close(&target);
	return status;
}

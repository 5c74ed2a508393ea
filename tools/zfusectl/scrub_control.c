/* SPDX-License-Identifier: MIT */
#include "scrub_control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "ctl/json.h"
#include "json_out.h"
#include "scrub.h"
#include "target.h"
#include "text.h"

static void add_time(struct zf_table *table, const char *name, uint64_t seconds)
{
	char time[ZF_TEXT_TIME_MAX];

	if (seconds == 0)
		return;
	zf_table_add(table, "%s", name);
	zf_table_add(table, "%s", zf_text_time(seconds, time));
}

static bool goes_on(struct json_object *status)
{
	const char *state = zf_text_string(status, "state");

	return strcmp(state, "running") == 0 || strcmp(state, "paused") == 0 ||
	       strcmp(state, "suspended") == 0;
}

static void add_progress(struct zf_table *table, struct json_object *status)
{
	uint64_t done = zf_text_u64(status, "done_bytes"),
		 total = zf_text_u64(status, "total_bytes");
	uint64_t rate = zf_text_u64(status, "bytes_per_second");
	char size[ZF_TEXT_SIZE_MAX], of[ZF_TEXT_SIZE_MAX];

	zf_table_add(table, "verified");
	zf_table_add(table, "%s of %s (%" PRIu64 " %%)", zf_text_size(done, size),
		     zf_text_size(total, of),
		     total ? (uint64_t)((double)done * 100 / (double)total) : 100);
	if (rate == 0)
		return;
	zf_table_add(table, "rate");
	zf_table_add(table, "%s/s", zf_text_size(rate, size));
	if (!goes_on(status))
		return;
	zf_table_add(table, "time left");
	zf_table_add(table, "%" PRIu64 " s", (total - done) / rate);
}

static void print_status(struct json_object *status)
{
	static const struct zf_table_column columns[] = {{NULL, false}, {NULL, false}};
	static const char *const counts[] = {"errors", "repaired", "skipped"};
	struct json_object *damage = zf_text_member(status, "damage");
	const char *state = zf_text_string(status, "state");
	struct zf_table table;

	zf_table_init(&table, columns, 2);
	zf_table_add(&table, "state");
	zf_table_add(&table, "%s", state);
	if (strcmp(state, "none") != 0) {
		add_time(&table, "started", zf_text_u64(status, "started_at"));
		add_time(&table, "ended", zf_text_u64(status, "ended_at"));
		add_progress(&table, status);
		for (size_t i = 0; i < ZF_ARRAY_SIZE(counts); i++) {
			zf_table_add(&table, "%s", counts[i]);
			zf_table_add(&table, "%" PRIu64, zf_text_u64(status, counts[i]));
		}
	}
	add_time(&table, "last completed", zf_text_u64(status, "completed_at"));
	zf_table_print(&table, stdout);
	zf_table_deinit(&table);
	for (size_t i = 0; damage && i < json_object_array_length(damage); i++)
		zf_scrub_print_damage(json_object_array_get_idx(damage, i));
}

static const char *request_of(enum zf_command_id id)
{
	switch (id) {
	case ZF_COMMAND_SCRUB_START:
		return "scrub_start";
	case ZF_COMMAND_SCRUB_PAUSE:
		return "scrub_pause";
	case ZF_COMMAND_SCRUB_RESUME:
		return "scrub_resume";
	case ZF_COMMAND_SCRUB_CANCEL:
		return "scrub_cancel";
	default:
		return "scrub_status";
	}
}

static int print(const struct zf_args *args, struct json_object *status)
{
	struct zf_json_out json = {.out = stdout};

	if (zf_args_json(args))
		zf_json_out_result(&json, status);
	else
		print_status(status);
	return zf_args_flush(args);
}

int zf_scrub_control_main(const struct zf_args *args)
{
	static char prefix[] = "zfusectl scrub";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	const struct zf_arg *rate = &args->options[ZF_OPTION_RATE];
	struct json_object *request, *status = NULL;
	struct zf_target target;
	int r, exit_status;

	if (zf_target_open(args->operands[0], false, &report, &target) < 0)
		return ZF_EXIT_PROBLEMS;
	request = json_object_new_object();
	if (rate->given)
		zf_json_add_u64(request, "rate", rate->number);
	r = zf_target_run(&target, zf_report_find(request_of(args->id)), request, NULL, &status);
	json_object_put(request);
	exit_status = r < 0 ? ZF_EXIT_PROBLEMS : print(args, status);
	json_object_put(status);
	zf_target_close(&target);
	return exit_status;
}

/* SPDX-License-Identifier: MIT */
/* zfusectl: inspects and maintains a zfuse filesystem, mounted or not. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "args.h"
#include "ctl/ctl.h"
#include "ctl/json.h"
#include "device_stats.h"
#include "fallocate.h"
#include "gc.h"
#include "grow.h"
#include "image.h"
#include "json_out.h"
#include "label.h"
#include "metrics.h"
#include "meter.h"
#include "lab/lab.h"
#include "replay.h"
#include "restore.h"
#include "scrub.h"
#include "scrub_control.h"
#include "target.h"
#include "text.h"
#include "trace.h"

/* The commands that request one object and print it, and their functions for text. */
static zf_text_fn *const texts[ZF_COMMAND_COUNT] = {
	[ZF_COMMAND_SUPER] = zf_text_super,	[ZF_COMMAND_ZONES] = zf_text_zones,
	[ZF_COMMAND_TREE] = zf_text_tree,	[ZF_COMMAND_NODE] = zf_text_node,
	[ZF_COMMAND_LOG] = zf_text_log,		[ZF_COMMAND_FILE] = zf_text_file,
	[ZF_COMMAND_DF] = zf_text_df,		[ZF_COMMAND_STATS] = zf_text_values,
	[ZF_COMMAND_STATUS] = zf_text_values,	[ZF_COMMAND_CHECK] = zf_text_check,
	[ZF_COMMAND_SYNC] = zf_text_values,	[ZF_COMMAND_PATH] = zf_text_path,
	[ZF_COMMAND_RESOLVE] = zf_text_resolve,
};

/* The functions for text with --hex. */
static zf_text_fn *const hex_texts[ZF_COMMAND_COUNT] = {
	[ZF_COMMAND_SUPER] = zf_text_super_hex,
	[ZF_COMMAND_NODE] = zf_text_node_hex,
};

static bool parse_number(const char *text, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(text, &end, 0);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

static int add_address(const struct zf_args *args, struct json_object *request)
{
	uint64_t address;

	if (!parse_number(args->operands[1], &address))
		return zf_args_usage(args, "'%s' is no address", args->operands[1]);
	zf_json_add_u64(request, "address", address);
	return ZF_EXIT_OK;
}

static int add_inode(const struct zf_args *args, struct json_object *request)
{
	uint64_t ino;

	if (!parse_number(args->operands[1], &ino) || ino == 0)
		return zf_args_usage(args, "'%s' is no inode number", args->operands[1]);
	zf_json_add_u64(request, "ino", ino);
	return ZF_EXIT_OK;
}

static int add_file(const struct zf_args *args, const struct zf_target *target,
		    struct json_object *request)
{
	if (target->mounted && args->operands[1])
		return zf_args_usage(args, "too many arguments: '%s'", args->operands[1]);
	if (!target->mounted && !args->operands[1])
		return zf_args_usage(args, "missing PATH, of the file in the device");
	if (target->mounted)
		zf_json_add_u64(request, "ino", target->ino);
	else
		zf_json_add_text(request, "path", args->operands[1]);
	return ZF_EXIT_OK;
}

/* If the list of zones has more lines than the terminal, a summary is requested instead. */
static void add_summary(const struct zf_args *args, struct json_object *request)
{
	struct winsize size;

	if (args->options[ZF_OPTION_SUMMARY].given)
		zf_json_add_u64(request, "summary_above", 0);
	else if (!args->options[ZF_OPTION_ROLE].given &&
		 !args->options[ZF_OPTION_CONDITION].given && !args->options[ZF_OPTION_MAP].given &&
		 !zf_args_json(args) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
		 size.ws_row > 0)
		zf_json_add_u64(request, "summary_above", size.ws_row);
}

static int add_zones(const struct zf_args *args, struct json_object *request)
{
	static const enum zf_option_id others[] = {ZF_OPTION_SUMMARY, ZF_OPTION_ROLE,
						   ZF_OPTION_CONDITION};

	for (unsigned int i = 0; i < 3; i++)
		if (args->options[ZF_OPTION_MAP].given && args->options[others[i]].given)
			return zf_args_usage(args, "--map and --%s exclude each other",
					     zf_options[others[i]].name);
	if (args->options[ZF_OPTION_ROLE].given)
		zf_json_add_text(request, "role", args->options[ZF_OPTION_ROLE].text);
	if (args->options[ZF_OPTION_CONDITION].given)
		zf_json_add_text(request, "condition", args->options[ZF_OPTION_CONDITION].text);
	add_summary(args, request);
	return ZF_EXIT_OK;
}

/* A graph does not need the items of its nodes. */
static int add_tree(const struct zf_args *args, struct json_object *request)
{
	bool graph = args->options[ZF_OPTION_FORMAT_OF_TREE].number == ZF_FORMAT_DOT;
	static const enum zf_option_id of_graphs[] = {ZF_OPTION_FOLD, ZF_OPTION_SINCE};

	for (unsigned int i = 0; i < 2; i++)
		if (!graph && args->options[of_graphs[i]].given)
			return zf_args_usage(args, "--%s needs --format dot",
					     zf_options[of_graphs[i]].name);
	if (args->options[ZF_OPTION_TREE].given)
		zf_json_add_text(request, "tree", args->options[ZF_OPTION_TREE].text);
	if (graph)
		zf_json_add_bool(request, "brief", true);
	return ZF_EXIT_OK;
}

static int fill_request(const struct zf_args *args, const struct zf_target *target,
			struct json_object *request)
{
	if (args->id == ZF_COMMAND_TREE)
		return add_tree(args, request);
	if (args->options[ZF_OPTION_DATA].given)
		zf_json_add_bool(request, "data", true);
	if (args->options[ZF_OPTION_HEX].given)
		zf_json_add_bool(request, "hex", true);
	if (args->id == ZF_COMMAND_ZONES)
		return add_zones(args, request);
	if (args->id == ZF_COMMAND_NODE || args->id == ZF_COMMAND_RESOLVE)
		return add_address(args, request);
	if (args->id == ZF_COMMAND_PATH)
		return add_inode(args, request);
	if (args->id == ZF_COMMAND_FILE)
		return add_file(args, target, request);
	return ZF_EXIT_OK;
}

/* Adds an answer that only the daemon has to the filesystem's result. */
static void add_from_daemon(const struct zf_target *target, const char *command, const char *key,
			    struct json_object *result)
{
	struct json_object *answer = NULL;

	if (target->mounted && zf_ctl_call(target->path, command, NULL, &answer, NULL) == 0)
		zf_json_add(result, key, answer);
}

/* An answer on its way out. */
struct printer {
	const struct zf_args *args;
	zf_text_fn *print; /* as text, or as a graph */
	struct zf_text text;
	struct zf_json_out json;
	struct zf_meter meter;
};

/* -EPIPE ends the command if standard output has failed, for example because its reader is gone. */
static int print_part(void *arg, struct json_object *part)
{
	struct json_object *progress = zf_text_member(part, "progress");
	struct printer *printer = arg;

	if (progress)
		zf_meter_update(&printer->meter, zf_text_u64(progress, "done"),
				zf_text_u64(progress, "total"));
	else if (zf_args_json(printer->args))
		zf_json_out_part(&printer->json, part);
	else
		zf_text_print(&printer->text, printer->print, part, false);
	return ferror(stdout) ? -EPIPE : 0;
}

static int print_result(struct printer *printer, struct json_object *result)
{
	int status;

	if (zf_args_json(printer->args))
		zf_json_out_result(&printer->json, result);
	else
		zf_text_print(&printer->text, printer->print, result, true);
	status = zf_args_flush(printer->args);
	/* The results of `check` and `tree` count errors. */
	return zf_text_u64(result, "errors") ? ZF_EXIT_PROBLEMS : status;
}

static zf_text_fn *choose_text(const struct zf_args *args)
{
	if (args->options[ZF_OPTION_FORMAT_OF_TREE].number == ZF_FORMAT_DOT)
		return zf_text_tree_dot;
	if (args->options[ZF_OPTION_HEX].given && hex_texts[args->id])
		return hex_texts[args->id];
	return args->options[ZF_OPTION_MAP].given ? zf_text_zones_map : texts[args->id];
}

static int ask(const struct zf_args *args, struct zf_target *target, struct json_object *request)
{
	struct printer printer = {
		.args = args,
		.print = choose_text(args),
		.text = {.out = stdout,
			 .graph = {.fold = ZF_TEXT_FOLD,
				   .since = args->options[ZF_OPTION_SINCE].number}},
		.json = {.out = stdout},
	};
	const struct zf_control_parts parts = {.take = print_part, .arg = &printer};
	bool has_meter = zf_command_takes(args->command, ZF_OPTION_PROGRESS);
	struct json_object *result = NULL;
	int r;

	if (args->options[ZF_OPTION_FOLD].given)
		printer.text.graph.fold = args->options[ZF_OPTION_FOLD].number;
	zf_meter_init(&printer.meter, args, "bytes");
	if (has_meter && printer.meter.mode != ZF_METER_OFF)
		zf_json_add_bool(request, "progress", true);
	r = zf_target_run(target, zf_report_find(args->command->name), request, &parts, &result);
	if (has_meter)
		zf_meter_end(&printer.meter);
	if (r < 0)
		return r == -EINVAL ? ZF_EXIT_USAGE : ZF_EXIT_PROBLEMS;
	if (args->id == ZF_COMMAND_STATS)
		add_from_daemon(target, "requests", "requests", result);
	if (args->id == ZF_COMMAND_STATUS)
		add_from_daemon(target, "daemon", "daemon", result);
	r = print_result(&printer, result);
	json_object_put(result);
	return r;
}

static int look(const struct zf_args *args)
{
	static char prefix[] = "zfusectl";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	bool any_file = args->id == ZF_COMMAND_FILE && !args->operands[1];
	struct json_object *request;
	struct zf_target target;
	int status;

	if (zf_target_open(args->operands[0], any_file, &report, &target) < 0)
		return ZF_EXIT_PROBLEMS;
	request = json_object_new_object();
	status = fill_request(args, &target, request);
	if (status == ZF_EXIT_OK)
		status = ask(args, &target, request);
	json_object_put(request);
	zf_target_close(&target);
	return status;
}

int main(int argc, char **argv)
{
	struct zf_args args;
	int status = zf_args_parse(argc, argv, &args);

	if (status != ZF_ARGS_RUN)
		return status;
	switch (args.id) {
	case ZF_COMMAND_GC_STATUS:
	case ZF_COMMAND_GC_RUN:
	case ZF_COMMAND_GC_PAUSE:
	case ZF_COMMAND_GC_RESUME:
		return zf_gc_main(&args);
	case ZF_COMMAND_TRACE_START:
	case ZF_COMMAND_TRACE_STOP:
	case ZF_COMMAND_TRACE_PRINT:
		return zf_trace_main(&args);
	case ZF_COMMAND_REPLAY:
		return zf_replay_main(&args);
	case ZF_COMMAND_LAB_CRASH:
		return zf_lab_crash_main(&args);
	case ZF_COMMAND_SCRUB:
		return zf_scrub_main(&args);
	case ZF_COMMAND_SCRUB_START:
	case ZF_COMMAND_SCRUB_STATUS:
	case ZF_COMMAND_SCRUB_PAUSE:
	case ZF_COMMAND_SCRUB_RESUME:
	case ZF_COMMAND_SCRUB_CANCEL:
		return zf_scrub_control_main(&args);
	case ZF_COMMAND_DEVICE_STATS:
		return zf_device_stats_main(&args);
	case ZF_COMMAND_RESTORE:
		return zf_restore_main(&args);
	case ZF_COMMAND_LABEL:
		return zf_label_main(&args);
	case ZF_COMMAND_METRICS:
		return zf_metrics_main(&args);
	case ZF_COMMAND_GROW:
		return zf_grow_main(&args);
	case ZF_COMMAND_IMAGE_EXPORT:
	case ZF_COMMAND_IMAGE_IMPORT:
		return zf_image_main(&args);
	case ZF_COMMAND_FALLOCATE:
		return zf_fallocate_main(&args);
	default:
		return look(&args);
	}
}

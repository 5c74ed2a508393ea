/* SPDX-License-Identifier: MIT */
/* zfusectl: looks into a zfuse filesystem, mounted or not. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "ctl/ctl.h"
#include "ctl/json.h"
#include "fallocate.h"
#include "gc.h"
#include "grow.h"
#include "image.h"
#include "json_out.h"
#include "target.h"
#include "text.h"

enum {
	EXIT_OK = 0,
	EXIT_PROBLEMS = 1, /* found, or met */
	EXIT_USAGE = 2,
};

enum format {
	FORMAT_TEXT,
	FORMAT_JSON,
	FORMAT_DOT,
};

struct request {
	const char *command, *target, *argument;
	const char *tree;
	enum format format;
	bool data;
};

static const struct {
	const char *name;
	zf_text_fn *text;
	const char *argument; /* what it takes behind the target; NULL: nothing */
	bool argument_needed;
	const char *help;
} commands[] = {
	{"super", zf_text_super, NULL, false, "every superblock record, and which one counts"},
	{"zones", zf_text_zones, NULL, false, "the zones: role, condition, write pointer, space"},
	{"tree", zf_text_tree, NULL, false, "all nodes of a tree (--tree, default fs)"},
	{"node", zf_text_node, "ADDRESS", true, "the node at a device address"},
	{"log", zf_text_log, NULL, false, "the intent log: what the next mount would replay"},
	{"file", zf_text_file, "PATH", false,
	 "where a file's data lies (DEVICE: give the PATH in it)"},
	{"df", zf_text_df, NULL, false, "space: live, kept, reserved, reclaimable, free"},
	{"stats", zf_text_values, NULL, false, "counters since the mount"},
	{"check", zf_text_check, NULL, false, "verify everything (--data: the data too)"},
	{"sync", zf_text_values, NULL, false, "make everything durable"},
	{"status", zf_text_values, NULL, false, "mount status and health"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* Commands whose options and targets are their own. */
static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} programs[] = {
	{"gc", zf_gc_main},
	{"grow", zf_grow_main},
	{"image", zf_image_main},
	{"fallocate", zf_fallocate_main},
};

#define PROGRAM_COUNT (sizeof(programs) / sizeof(programs[0]))

static void print_help(void)
{
	puts("Usage: zfusectl COMMAND [OPTIONS] TARGET [ARGUMENT]\n"
	     "Looks into a zfuse filesystem. TARGET: a mounted filesystem's directory, or the\n"
	     "device or image of one that is not mounted.\n\nCommands:");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		printf("  %-6s %-8s %s\n", commands[i].name,
		       commands[i].argument ? commands[i].argument : "", commands[i].help);
	puts("  gc ACTION [OPTIONS] MOUNTPOINT\n"
	     "                  reclaim: status, run, pause, resume (gc --help)\n"
	     "  grow [--size BYTES] TARGET\n"
	     "                  make the filesystem larger, mounted or not (grow --help)\n"
	     "  image export|import [OPTIONS] SOURCE TARGET\n"
	     "                  copy a whole filesystem, from a zoned disk to an image in a file\n"
	     "                  or back (image --help)\n"
	     "  fallocate [OPTIONS] FILE\n"
	     "                  allocate or zero a range of a file (fallocate --help)");
	puts("\nOptions:\n"
	     "  -f, --format text|json|dot  how to print (dot: tree only); default text\n"
	     "  -t, --tree NAME             root, fs, summary, share or zone\n"
	     "  -d, --data                  check: compare all data with its checksums\n"
	     "  -h, --help                  this\n"
	     "  -V, --version               the version\n\n"
	     "Exit status: 0 all is well, 1 problems were found or met, 2 wrong usage.");
}

static int usage(const char *format, const char *what)
{
	fputs("zfusectl: ", stderr);
	fprintf(stderr, format, what);
	fputs("\nTry 'zfusectl --help'.\n", stderr);
	return EXIT_USAGE;
}

static const char *command_name(const void *arg, size_t i)
{
	(void)arg;
	return i < COMMAND_COUNT ? commands[i].name : programs[i - COMMAND_COUNT].name;
}

static int usage_unknown(const char *command)
{
	const char *near = zf_nearest_name(command, COMMAND_COUNT + PROGRAM_COUNT, command_name, NULL);

	fprintf(stderr, "zfusectl: unknown command '%s'%s%s%s\nTry 'zfusectl --help'.\n", command,
		near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	return EXIT_USAGE;
}

/* ---- options ---- */

static size_t find_command(const char *name)
{
	size_t i = 0;

	while (i < COMMAND_COUNT && strcmp(commands[i].name, name) != 0)
		i++;
	return i;
}

static bool set_format(struct request *request, const char *name)
{
	static const char *const names[] = {"text", "json", "dot"};

	for (unsigned int i = 0; i < 3; i++) {
		if (strcmp(name, names[i]) == 0) {
			request->format = (enum format)i;
			return true;
		}
	}
	return false;
}

static int check_request(const struct request *request)
{
	size_t i = find_command(request->command);
	bool is_tree = strcmp(request->command, "tree") == 0;

	if (i == COMMAND_COUNT)
		return usage_unknown(request->command);
	if (!request->target)
		return usage("%s: missing TARGET (a mountpoint, or a device or image)", request->command);
	if (!request->argument && commands[i].argument_needed)
		return usage("node: %s is missing", commands[i].argument);
	if (request->argument && !commands[i].argument)
		return usage("too many arguments: '%s'", request->argument);
	if (request->format == FORMAT_DOT && !is_tree)
		return usage("%s: the format dot is for trees", request->command);
	if (request->tree && !is_tree)
		return usage("%s: --tree is for the command tree", request->command);
	if (request->data && strcmp(request->command, "check") != 0)
		return usage("%s: --data is for the command check", request->command);
	return EXIT_OK;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct request *request)
{
	static const struct option options[] = {
		{"format", required_argument, NULL, 'f'}, {"tree", required_argument, NULL, 't'},
		{"data", no_argument, NULL, 'd'},	  {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	  {0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "f:t:dhV", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			if (!set_format(request, optarg))
				return usage("unknown format '%s'", optarg);
			break;
		case 't':
			request->tree = optarg;
			break;
		case 'd':
			request->data = true;
			break;
		case 'h':
			print_help();
			return EXIT_OK;
		case 'V':
			puts("zfusectl " ZF_VERSION);
			return EXIT_OK;
		default:
			fputs("Try 'zfusectl --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return usage("%s is missing", "a command");
	request->command = argv[optind];
	request->target = optind + 1 < argc ? argv[optind + 1] : NULL;
	request->argument = optind + 2 < argc ? argv[optind + 2] : NULL;
	if (optind + 3 < argc)
		return usage("too many arguments: '%s'", argv[optind + 3]);
	c = check_request(request);
	return c == EXIT_OK ? -1 : c;
}

/* ---- running ---- */

static bool parse_address(const char *text, uint64_t *ret_address)
{
	char *end;

	errno = 0;
	*ret_address = strtoull(text, &end, 0);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

/* NULL: wrong usage, which was said. */
static struct json_object *make_args(const struct request *request, const struct zf_target *target)
{
	struct json_object *args = json_object_new_object();
	uint64_t address;

	if (request->tree)
		zf_json_add_text(args, "tree", request->tree);
	if (request->data)
		zf_json_add_bool(args, "data", true);
	if (strcmp(request->command, "node") == 0) {
		if (!parse_address(request->argument, &address)) {
			usage("node: '%s' is no address", request->argument);
			json_object_put(args);
			return NULL;
		}
		zf_json_add_u64(args, "address", address);
	}
	if (strcmp(request->command, "file") == 0) {
		if (target->mounted)
			zf_json_add_u64(args, "ino", target->ino);
		else
			zf_json_add_text(args, "path", request->argument);
	}
	return args;
}

/* What only the daemon can tell stands beside what the filesystem tells. */
static void add_from_daemon(const struct zf_target *target, const char *command, const char *key,
			    struct json_object *result)
{
	struct json_object *answer = NULL;

	if (target->mounted && zf_control_call(target->path, command, NULL, &answer, NULL) == 0)
		zf_json_add(result, key, answer);
}

/* An answer on its way out. */
struct printer {
	const struct request *request;
	struct zf_text text;
	struct zf_json_out json;
};

static zf_text_fn *text_of(const struct request *request)
{
	return request->format == FORMAT_DOT ? zf_text_tree_dot
					     : commands[find_command(request->command)].text;
}

/* A reader who has gone ends it. */
static int print_part(void *arg, struct json_object *part)
{
	struct printer *printer = arg;

	if (printer->request->format == FORMAT_JSON)
		zf_json_out_part(&printer->json, part);
	else
		zf_text_print(&printer->text, text_of(printer->request), part, false);
	return ferror(stdout) ? -EPIPE : 0;
}

static int print_result(struct printer *printer, struct json_object *result)
{
	if (printer->request->format == FORMAT_JSON)
		zf_json_out_result(&printer->json, result);
	else
		zf_text_print(&printer->text, text_of(printer->request), result, true);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("zfusectl: standard output");
		return EXIT_PROBLEMS;
	}
	/* `check` and `tree` count what they could not make sense of. */
	return zf_text_u64(result, "errors") ? EXIT_PROBLEMS : EXIT_OK;
}

static int run(const struct request *request, struct zf_target *target)
{
	const struct zf_report_command *command = zf_report_find(request->command);
	struct printer printer = {
		.request = request,
		.text = {.out = stdout},
		.json = {.out = stdout},
	};
	const struct zf_control_parts parts = {.take = print_part, .arg = &printer};
	struct json_object *args, *result = NULL;
	int r;

	if (strcmp(request->command, "file") == 0 && target->mounted == !!request->argument)
		return target->mounted ? usage("too many arguments: '%s'", request->argument)
				       : usage("file: %s in the device is missing", "the path");
	args = make_args(request, target);
	if (!args)
		return EXIT_USAGE;
	r = zf_target_run(target, command, args, &parts, &result);
	json_object_put(args);
	if (r == -EINVAL)
		return EXIT_USAGE;
	if (r < 0)
		return EXIT_PROBLEMS;
	if (strcmp(request->command, "stats") == 0)
		add_from_daemon(target, "requests", "requests", result);
	if (strcmp(request->command, "status") == 0)
		add_from_daemon(target, "daemon", "daemon", result);
	r = print_result(&printer, result);
	json_object_put(result);
	return r;
}

int main(int argc, char **argv)
{
	static char prefix[] = "zfusectl";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	struct request request = {0};
	struct zf_target target;
	bool any_file;
	int r;

	for (size_t i = 0; argc > 1 && i < PROGRAM_COUNT; i++)
		if (strcmp(argv[1], programs[i].name) == 0)
			return programs[i].main(argc - 1, argv + 1);
	r = parse(argc, argv, &request);
	if (r >= 0)
		return r;
	any_file = strcmp(request.command, "file") == 0 && !request.argument;
	if (zf_target_open(request.target, any_file, &report, &target) < 0)
		return EXIT_PROBLEMS;
	r = run(&request, &target);
	zf_target_close(&target);
	return r;
}

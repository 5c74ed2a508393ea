/* SPDX-License-Identifier: MIT */
#include "grow.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "ctl/json.h"
#include "target.h"
#include "text.h"

enum {
	EXIT_OK = 0,
	EXIT_PROBLEMS = 1,
	EXIT_USAGE = 2,
};

struct request {
	const char *path;
	uint64_t size; /* bytes; 0: as large as can be */
	bool json, help;
};

static int usage(const char *format, const char *what)
{
	fputs("zfusectl grow: ", stderr);
	fprintf(stderr, format, what);
	fputs("\nTry 'zfusectl grow --help'.\n", stderr);
	return EXIT_USAGE;
}

static void print_help(void)
{
	puts("Usage: zfusectl grow [OPTIONS] TARGET\n"
	     "Makes a filesystem larger: a mounted one, in use, or one on a device or image.\n\n"
	     "  -s, --size BYTES        its zones in all; an image in a file becomes so large.\n"
	     "                          default: all that the device or image has room for\n"
	     "  -f, --format text|json  how to print; default text\n"
	     "  -h, --help              this\n\n"
	     "BYTES: a number, with K, M, G, T (1024, ...) or KB, MB, GB, TB (1000, ...).\n"
	     "Exit status: 0 it has that size, 1 it has not, 2 wrong usage.");
}

static int parse(int argc, char **argv, struct request *request)
{
	static const struct option options[] = {
		{"size", required_argument, NULL, 's'},
		{"format", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "s:f:h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			if (zf_parse_size(optarg, INT64_MAX, &request->size) < 0 || request->size == 0)
				return usage("'%s' is not a size: expected " ZF_SIZE_FORMS, optarg);
			break;
		case 'f':
			request->json = strcmp(optarg, "json") == 0;
			if (!request->json && strcmp(optarg, "text") != 0)
				return usage("unknown format '%s'", optarg);
			break;
		case 'h':
			request->help = true;
			return EXIT_OK;
		default:
			fputs("Try 'zfusectl grow --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	request->path = argv[optind];
	if (!request->path)
		return usage("%s", "missing TARGET: a mountpoint, a device or an image");
	if (argv[optind + 1])
		return usage("too many arguments: '%s'", argv[optind + 1]);
	return EXIT_OK;
}

static int print(const struct request *request, struct json_object *result)
{
	char before[ZF_TEXT_SIZE_MAX], now[ZF_TEXT_SIZE_MAX];
	uint64_t zones = zf_text_u64(result, "zones");

	zf_text_size(zf_text_u64(result, "bytes_before"), before);
	zf_text_size(zf_text_u64(result, "bytes"), now);
	if (request->json)
		puts(json_object_to_json_string_ext(
			result, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	else if (zones == zf_text_u64(result, "zones_before"))
		printf("it has %s already, %" PRIu64 " zones\n", now, zones);
	else
		printf("grown from %s to %s, %" PRIu64 " to %" PRIu64 " zones\n", before, now,
		       zf_text_u64(result, "zones_before"), zones);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_OK;
	perror("zfusectl grow: standard output");
	return EXIT_PROBLEMS;
}

static int grow(struct zf_target *target, const struct request *request,
		struct json_object **ret_result)
{
	struct json_object *args = json_object_new_object();
	int r;

	if (request->size)
		zf_json_add_u64(args, "size", request->size);
	r = zf_target_run(target, zf_report_find("grow"), args, NULL, ret_result);
	json_object_put(args);
	return r;
}

int zf_grow_main(int argc, char **argv)
{
	static char prefix[] = "zfusectl grow";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	struct json_object *result = NULL;
	struct request request = {0};
	struct zf_target target;
	int status = parse(argc, argv, &request), r;

	if (status != EXIT_OK)
		return status;
	if (request.help) {
		print_help();
		return EXIT_OK;
	}
	r = zf_target_open_writing(request.path, &report, &target);
	if (r == -EBUSY)
		zf_report(&report, ZF_REPORT_ERROR,
			  "if it is mounted, give the directory where: then its daemon does it");
	if (r < 0)
		return EXIT_PROBLEMS;
	r = grow(&target, &request, &result);
	if (r == 0)
		status = print(&request, result);
	else
		status = r == -EINVAL ? EXIT_USAGE : EXIT_PROBLEMS;
	json_object_put(result);
	zf_target_close(&target);
	return status;
}

/* SPDX-License-Identifier: MIT */
#include "fallocate.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zfuse/ioctl.h>

#include "base/parse.h"

enum {
	EXIT_OK = 0,
	EXIT_PROBLEMS = 1,
	EXIT_USAGE = 2,
};

struct request {
	int mode;
	int64_t offset, len;
	bool has_len, help;
	const char *path;
};

static int usage(const char *format, const char *what)
{
	fputs("zfusectl fallocate: ", stderr);
	fprintf(stderr, format, what);
	fputs("\nTry 'zfusectl fallocate --help'.\n", stderr);
	return EXIT_USAGE;
}

static void print_help(void)
{
	puts("Usage: zfusectl fallocate [OPTIONS] -l LENGTH FILE\n"
	     "Allocates or zeroes a range of a file.\n\n"
	     "  -o, --offset BYTES   where the range begins; default 0\n"
	     "  -l, --length BYTES   how long it is\n"
	     "  -n, --keep-size      the file does not grow\n"
	     "  -p, --punch-hole     give the range's space back; it reads as zeroes\n"
	     "  -w, --write-zeroes   zero it, and keep space for overwriting it again and again\n"
	     "  -z, --zero-range     zero it, and keep space for it\n"
	     "  -h, --help           this\n\n"
	     "BYTES: a number, with K, M, G, T (1024, ...) or KB, MB, GB, TB (1000, ...).\n"
	     "Exit status: 0 done, 1 not done, 2 wrong usage.");
}

/* ---- options ---- */

static int set_size(const char *text, int64_t *ret_bytes)
{
	uint64_t bytes;

	switch (zf_parse_size(text, INT64_MAX, &bytes)) {
	case 0:
		*ret_bytes = (int64_t)bytes;
		return EXIT_OK;
	case -ERANGE:
		return usage("'%s' is too large", text);
	default:
		return usage("'%s' is not a size: expected " ZF_SIZE_FORMS, text);
	}
}

static int check_request(const struct request *request)
{
	const int what = request->mode & ~FALLOC_FL_KEEP_SIZE;

	if (!request->path)
		return usage("%s is missing", "a file");
	if (!request->has_len)
		return usage("%s is missing", "--length");
	if (request->len == 0)
		return usage("%s must not be 0", "--length");
	if (what & (what - 1))
		return usage("%s exclude each other",
			     "--punch-hole, --write-zeroes and --zero-range");
	if (what == ZFUSE_FALLOC_FL_WRITE_ZEROES && request->mode != what)
		return usage("%s exclude each other", "--write-zeroes and --keep-size");
	return EXIT_OK;
}

static int parse(int argc, char **argv, struct request *request)
{
	static const struct option options[] = {
		{"offset", required_argument, NULL, 'o'}, {"length", required_argument, NULL, 'l'},
		{"keep-size", no_argument, NULL, 'n'},	  {"punch-hole", no_argument, NULL, 'p'},
		{"write-zeroes", no_argument, NULL, 'w'}, {"zero-range", no_argument, NULL, 'z'},
		{"help", no_argument, NULL, 'h'},	  {0},
	};
	int c, r = EXIT_OK;

	while (r == EXIT_OK && (c = getopt_long(argc, argv, "o:l:npwzh", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			r = set_size(optarg, &request->offset);
			break;
		case 'l':
			r = set_size(optarg, &request->len);
			request->has_len = true;
			break;
		case 'n':
			request->mode |= FALLOC_FL_KEEP_SIZE;
			break;
		case 'p':
			request->mode |= FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
			break;
		case 'w':
			request->mode |= ZFUSE_FALLOC_FL_WRITE_ZEROES;
			break;
		case 'z':
			request->mode |= FALLOC_FL_ZERO_RANGE;
			break;
		case 'h':
			request->help = true;
			return EXIT_OK;
		default:
			fputs("Try 'zfusectl fallocate --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (r != EXIT_OK)
		return r;
	request->path = argv[optind];
	if (request->path && argv[optind + 1])
		return usage("too many arguments: '%s'", argv[optind + 1]);
	return check_request(request);
}

/* ---- doing it ---- */

static int complain(const char *path, int error)
{
	const char *why = strerror(error);

	if (error == EOPNOTSUPP)
		why = "not supported: it is not on zfuse, and its own filesystem does not do that";
	fprintf(stderr, "zfusectl fallocate: %s: %s\n", path, why);
	return EXIT_PROBLEMS;
}

static int run(const struct request *request)
{
	int create = request->mode & FALLOC_FL_PUNCH_HOLE ? 0 : O_CREAT;
	int fd = open(request->path, O_RDWR | O_CLOEXEC | create, 0666), r;

	if (fd < 0)
		return complain(request->path, errno);
	if (request->mode == ZFUSE_FALLOC_FL_WRITE_ZEROES)
		r = zfuse_write_zeroes(fd, request->offset, request->len);
	else
		r = fallocate(fd, request->mode, request->offset, request->len);
	if (r < 0)
		r = complain(request->path, errno);
	if (close(fd) < 0 && r == 0)
		r = complain(request->path, errno);
	return r;
}

int zf_fallocate_main(int argc, char **argv)
{
	struct request request = {0};
	int r = parse(argc, argv, &request);

	if (r != EXIT_OK)
		return r;
	if (!request.help)
		return run(&request);
	print_help();
	return EXIT_OK;
}

/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid.h>

#include "mkfs.h"
#include "superblock/super.h"

static const char usage[] =
	"Usage: " MKFS_NAME " [OPTION]... DEVICE\n"
	"Makes a zfuse filesystem on a zoned device, or on an emulated one (--image).\n"
	"\n"
	"  -f, --force               overwrite what is there\n"
	"  -L, --label LABEL         name of the filesystem: UTF-8, at most 63 bytes\n"
	"  -U, --uuid UUID           instead of a random one\n"
	"  -n, --dry-run             say what would be done, change nothing\n"
	"  -q, --quiet               print nothing but errors\n"
	"      --format text|json    how to print the result (text)\n"
	"      --node-size SIZE      of metadata: 4096, 8192, 16384 or 32768 (16384)\n"
	"      --metadata-copies N   1 or 2 (1)\n"
	"      --image GEOMETRY      make an emulated zoned device in DEVICE first, a file or a\n"
	"                            plain block device: size=4G[,zone-size=64M]\n"
	"                            [,zone-capacity=SIZE][,conventional=N][,max-open=N]\n"
	"                            [,max-active=N][,append-limit=SIZE]\n"
	"  -r, --rootdir DIR         fill it with a copy of DIR; a new image may be without size=\n"
	"  -h, --help                show this and exit\n"
	"  -V, --version             show the version and exit\n";

enum {
	OPT_FORMAT = 256,
	OPT_NODE_SIZE,
	OPT_METADATA_COPIES,
	OPT_IMAGE,
};

static const struct option long_options[] = {
	{"force", no_argument, NULL, 'f'},
	{"label", required_argument, NULL, 'L'},
	{"uuid", required_argument, NULL, 'U'},
	{"dry-run", no_argument, NULL, 'n'},
	{"quiet", no_argument, NULL, 'q'},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"node-size", required_argument, NULL, OPT_NODE_SIZE},
	{"metadata-copies", required_argument, NULL, OPT_METADATA_COPIES},
	{"image", required_argument, NULL, OPT_IMAGE},
	{"rootdir", required_argument, NULL, 'r'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

void mkfs_error(const char *format, ...)
{
	va_list ap;

	fputs(MKFS_NAME ": error: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static bool parse_label(const char *text, struct mkfs_args *args)
{
	if (strlen(text) < sizeof(args->label)) {
		memset(args->label, 0, sizeof(args->label));
		memcpy(args->label, text, strlen(text));
		if (zf_super_label_is_valid(args->label))
			return true;
	}
	mkfs_error("the label must be UTF-8 of at most %u bytes without control characters",
		   ZF_SUPER_LABEL_SIZE - 1);
	return false;
}

static bool parse_uuid(const char *text, struct mkfs_args *args)
{
	args->has_fsid = uuid_parse(text, args->fsid) == 0 && !uuid_is_null(args->fsid);
	if (!args->has_fsid)
		mkfs_error("'%s' is not a UUID: write it as uuidgen does, not all zero", text);
	return args->has_fsid;
}

static bool parse_format(const char *text, struct mkfs_args *args)
{
	args->json = strcmp(text, "json") == 0;
	if (!args->json && strcmp(text, "text") != 0) {
		mkfs_error("--format is '%s': choose text or json", text);
		return false;
	}
	return true;
}

static bool parse_node_size(const char *text, struct mkfs_args *args)
{
	static const struct {
		const char *text;
		uint32_t size;
	} sizes[] = {
		{"4096", 4096},	  {"4K", 4096},	  {"8192", 8192},   {"8K", 8192},
		{"16384", 16384}, {"16K", 16384}, {"32768", 32768}, {"32K", 32768},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(sizes); i++) {
		if (strcmp(text, sizes[i].text) != 0)
			continue;
		args->node_size = sizes[i].size;
		return true;
	}
	mkfs_error("--node-size is '%s': choose 4096, 8192, 16384 or 32768", text);
	return false;
}

static bool parse_metadata_copies(const char *text, struct mkfs_args *args)
{
	if (strcmp(text, "1") != 0 && strcmp(text, "2") != 0) {
		mkfs_error("--metadata-copies is '%s': choose 1 or 2", text);
		return false;
	}
	args->metadata_copies = (uint8_t)(text[0] - '0');
	return true;
}

static bool parse_option(int option, const char *value, struct mkfs_args *args)
{
	switch (option) {
	case 'f':
		args->force = true;
		return true;
	case 'n':
		args->dry_run = true;
		return true;
	case 'q':
		args->quiet = true;
		return true;
	case 'L':
		return parse_label(value, args);
	case 'U':
		return parse_uuid(value, args);
	case OPT_FORMAT:
		return parse_format(value, args);
	case OPT_NODE_SIZE:
		return parse_node_size(value, args);
	case OPT_METADATA_COPIES:
		return parse_metadata_copies(value, args);
	case 'r':
		args->rootdir = value;
		return true;
	case OPT_IMAGE:
		args->image = value;
		return true;
	default:
		fputs("Try '" MKFS_NAME " --help'.\n", stderr);
		return false;
	}
}

bool mkfs_parse_args(int argc, char **argv, struct mkfs_args *ret_args, enum mkfs_exit *ret_exit)
{
	struct mkfs_args args = {
		.node_size = ZF_FORMAT_NODE_SIZE_DEFAULT,
		.metadata_copies = 1,
	};
	int option;

	*ret_exit = MKFS_USAGE;
	while ((option = getopt_long(argc, argv, "fL:U:nqr:hV", long_options, NULL)) != -1) {
		if (option == 'h' || option == 'V') {
			*ret_exit = MKFS_OK;
			fputs(option == 'h' ? usage : MKFS_NAME " " ZF_VERSION "\n", stdout);
			return false;
		}
		if (!parse_option(option, optarg, &args))
			return false;
	}
	if (optind + 1 != argc) {
		mkfs_error(optind == argc ? "no device given" : "more than one device given");
		fputs("Try '" MKFS_NAME " --help'.\n", stderr);
		return false;
	}
	args.device = argv[optind];
	*ret_args = args;
	return true;
}

/* SPDX-License-Identifier: MIT */
/* What the files of mkfs.zfuse share: the command line, and what is printed. */
#ifndef ZF_MKFS_MKFS_H
#define ZF_MKFS_MKFS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/mount/format.h"
#include "rootdir.h"

#define MKFS_NAME "mkfs.zfuse"

enum mkfs_exit {
	MKFS_OK = 0,
	MKFS_FAILED = 1,
	MKFS_USAGE = 2,
};

struct mkfs_args {
	const char *device;
	const char *image;   /* the geometry of an emulated device to create, or NULL */
	const char *rootdir; /* the directory to copy into it, or NULL */
	bool force, dry_run, quiet, json;
	bool has_fsid;
	uint8_t fsid[16];
	char label[ZF_SUPER_LABEL_SIZE];
	uint32_t node_size;
	uint8_t metadata_copies;
};

/*
 * False: the program ends at once with *ret_exit, because it has shown the help or the version, or
 * refused the arguments.
 */
bool mkfs_parse_args(int argc, char **argv, struct mkfs_args *ret_args, enum mkfs_exit *ret_exit);

/* Prints "mkfs.zfuse: error: ..." to stderr. */
void mkfs_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct mkfs_result {
	const struct mkfs_args *args;
	const struct zf_geometry *geometry;
	const char *backend, *append; /* how it is written to, as zfusectl status says it */
	const struct zf_format_options *options;
	const struct zf_format_plan *plan;
	const struct mkfs_content *copied; /* what was copied, or would be; NULL: nothing */
	const char *replaced;		   /* content that is, or would be, overwritten; "": none */
};

void mkfs_print_text(const struct mkfs_result *result);
int mkfs_print_json(const struct mkfs_result *result);

#endif

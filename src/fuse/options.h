/* SPDX-License-Identifier: MIT */
/* The command line of the daemon: zfuse DEVICE MOUNTPOINT [-f] [-d] [-o OPTIONS]. */
#ifndef ZF_FUSE_OPTIONS_H
#define ZF_FUSE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <fuse_opt.h>

#include "fs/core/fs.h"
#include "fuse/tunable.h"
#include "io/open.h"

enum zf_transport {
	ZF_TRANSPORT_AUTO, /* io_uring if the kernel offers it */
	ZF_TRANSPORT_URING,
	ZF_TRANSPORT_DEV_FUSE,
};

struct zf_options {
	char *device;	  /* as given */
	char *mountpoint; /* as given */
	char *trace;	  /* a file; NULL: no trace */
	char *trace_data; /* a file for its data; NULL: none */
	int foreground, debug, help, version;
	int read_only, abandon_log;
	int allow_other;
	int sloppy; /* mount -s: options that nobody knows are no error */
	bool writeback;
	char *no_effect;   /* words that change nothing, with commas between; NULL: none */
	bool source_named; /* mountinfo is to show something else than the device (fsname=) */
	enum zf_atime atime;
	int no_dir_atime, lazy_time;
	bool sync_names; /* the mount is dirsync, or sync */
	bool sync;
	enum zf_transport transport;
	enum zf_durability durability;
	enum zf_append_mode append;
	uint64_t cache_bytes, dirty_bytes, generation; /* 0: the default */
	struct zf_tunables tunables;

	/* The options that are libfuse's and the kernel's, which are known to be good. */
	struct fuse_args fuse;

	/* Values as they were given, until they are checked. */
	struct {
		char *cache, *dirty, *generation, *writeback, *io_uring, *durability, *append;
	} text;
};

/* 0, or -EINVAL after it told the user on stderr what is wrong. */
int zf_options_parse(int argc, char **argv, struct zf_options *ret_options);
void zf_options_deinit(struct zf_options *options);

void zf_options_usage(void);

#endif

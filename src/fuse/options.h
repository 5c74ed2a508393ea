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
	int sloppy; /* mount -s: unknown options are ignored */
	bool writeback;
	char *no_effect;   /* options that change nothing, separated by commas; NULL: none */
	bool source_named; /* mountinfo shows another source than the device (fsname=) */
	enum zf_atime atime;
	int no_dir_atime, lazy_time;
	bool sync_names; /* the mount option dirsync or sync */
	bool sync;
	enum zf_transport transport;
	enum zf_durability durability;
	enum zf_append_mode append;
	uint64_t cache_bytes, dirty_bytes, generation; /* 0: the default */
	struct zf_tunables tunables;

	/* The checked options that go to libfuse and the kernel. */
	struct fuse_args fuse;

	/* Values as they were given, before they are checked. */
	struct {
		char *cache, *dirty, *generation, *writeback, *io_uring, *durability, *append;
	} text;
};

/* 0, or -EINVAL after a message to the user on stderr. */
int zf_options_parse(int argc, char **argv, struct zf_options *ret_options);
void zf_options_deinit(struct zf_options *options);

void zf_options_usage(void);

#endif

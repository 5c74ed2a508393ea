/* SPDX-License-Identifier: MIT */
#include "fuse/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/parse.h"

/* The smallest values: CACHE_MIN holds some paths of nodes, DIRTY_MIN one request of the kernel. */
#define CACHE_MIN (UINT64_C(4) << 20)
#define DIRTY_MIN (UINT64_C(1) << 20)

enum {
	KEY_READ_ONLY,
	KEY_SOURCE,
	KEY_ATIME_RELATIVE,
	KEY_ATIME_STRICT,
	KEY_ATIME_NEVER,
	KEY_NO_DIR_ATIME,
	KEY_SYNC,
	KEY_SYNC_NAMES,
	KEY_TUNABLE,
	KEY_NO_EFFECT,
	KEY_DROP, /* an option for mount(8), without a meaning for a daemon */
};

#define FLAG(template, field)	  {template, offsetof(struct zf_options, field), 1}
#define FLAG_OFF(template, field) {template, offsetof(struct zf_options, field), 0}
#define VALUE(template, field)	  {template, offsetof(struct zf_options, text.field), 0}

static const struct fuse_opt templates[] = {
	FLAG("-f", foreground),
	FLAG("-d", debug),
	FLAG("debug", debug),
	FLAG("-h", help),
	FLAG("--help", help),
	FLAG("-V", version),
	FLAG("--version", version),
	FLAG("allow_other", allow_other),
	FLAG("sloppy", sloppy),
	FLAG("abandon_log", abandon_log),
	FLAG("lazytime", lazy_time),
	FLAG_OFF("nolazytime", lazy_time),
	FLAG_OFF("diratime", no_dir_atime),

	VALUE("cache=%s", cache),
	VALUE("dirty=%s", dirty),
	VALUE("generation=%s", generation),
	VALUE("writeback=%s", writeback),
	VALUE("io_uring=%s", io_uring),
	VALUE("durability=%s", durability),
	VALUE("append=%s", append),
	{"trace=%s", offsetof(struct zf_options, trace), 0},
	{"trace-data=%s", offsetof(struct zf_options, trace_data), 0},

	FUSE_OPT_KEY("commit=", KEY_TUNABLE),
	FUSE_OPT_KEY("gc=", KEY_TUNABLE),
	FUSE_OPT_KEY("gc_target=", KEY_TUNABLE),
	FUSE_OPT_KEY("ro", KEY_READ_ONLY),
	FUSE_OPT_KEY("-r", KEY_READ_ONLY),
	FUSE_OPT_KEY("rw", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("suid", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("nosuid", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("dev", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("nodev", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("exec", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("noexec", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("async", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("sync", KEY_SYNC),
	FUSE_OPT_KEY("dirsync", KEY_SYNC_NAMES),
	/* The kernel leaves access times to the daemon. The last of these options counts. */
	FUSE_OPT_KEY("noatime", KEY_ATIME_NEVER),
	FUSE_OPT_KEY("nodiratime", KEY_NO_DIR_ATIME),
	FUSE_OPT_KEY("strictatime", KEY_ATIME_STRICT),
	FUSE_OPT_KEY("norelatime", KEY_ATIME_STRICT),
	FUSE_OPT_KEY("relatime", KEY_ATIME_RELATIVE),
	FUSE_OPT_KEY("nostrictatime", KEY_ATIME_RELATIVE),
	FUSE_OPT_KEY("atime", KEY_ATIME_RELATIVE),
	FUSE_OPT_KEY("symfollow", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("nosymfollow", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("context=", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("fscontext=", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("defcontext=", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("rootcontext=", FUSE_OPT_KEY_KEEP),
	FUSE_OPT_KEY("fsname=", KEY_SOURCE),

	/* Options of other filesystems that ask for what zfuse always does. */
	FUSE_OPT_KEY("discard", KEY_NO_EFFECT),
	FUSE_OPT_KEY("acl", KEY_NO_EFFECT),
	FUSE_OPT_KEY("user_xattr", KEY_NO_EFFECT),
	FUSE_OPT_KEY("barrier", KEY_NO_EFFECT),
	FUSE_OPT_KEY("barrier=1", KEY_NO_EFFECT),
	FUSE_OPT_KEY("noquota", KEY_NO_EFFECT),
	/* These options always hold. */
	FUSE_OPT_KEY("default_permissions", KEY_DROP),
	FUSE_OPT_KEY("subtype=zfuse", KEY_DROP),
	/* Options in fstab for mount(8), which passes some of them on. */
	FUSE_OPT_KEY("defaults", KEY_DROP),
	FUSE_OPT_KEY("auto", KEY_DROP),
	FUSE_OPT_KEY("noauto", KEY_DROP),
	FUSE_OPT_KEY("nofail", KEY_DROP),
	FUSE_OPT_KEY("_netdev", KEY_DROP),
	FUSE_OPT_KEY("user", KEY_DROP),
	FUSE_OPT_KEY("user=", KEY_DROP),
	FUSE_OPT_KEY("nouser", KEY_DROP),
	FUSE_OPT_KEY("users", KEY_DROP),
	FUSE_OPT_KEY("nousers", KEY_DROP),
	FUSE_OPT_KEY("owner", KEY_DROP),
	FUSE_OPT_KEY("group", KEY_DROP),
	FUSE_OPT_KEY("comment=", KEY_DROP),
	FUSE_OPT_END,
};

/* Options of other filesystems that zfuse cannot fulfil, by their first characters. */
static const struct {
	const char *begin, *why;
} refused[] = {
	{"subvol", "zfuse has no subvolumes"},
	{"compress", "zfuse does not compress data"},
	{"data=",
	 "zfuse has one way to write data: it is never overwritten, and fsync(2) makes it durable"},
	{"nobarrier", "fsync(2) always makes data durable"},
	{"barrier=0", "fsync(2) always makes data durable"},
	{"noacl", "access control lists are always there"},
	{"nouser_xattr", "extended attributes are always there"},
	{"nodiscard", "a zone without live data is always reset"},
	{"errors=", "after a failed commit zfuse is always read-only"},
	{"quota", "zfuse has no quotas"},
	{"usrquota", "zfuse has no quotas"},
	{"grpquota", "zfuse has no quotas"},
	{"prjquota", "zfuse has no quotas"},
};

static void complain(const char *what, const char *value, const char *allowed)
{
	fprintf(stderr, "zfuse: %s '%s'%s%s\nTry 'zfuse --help'.\n", what, value,
		allowed ? ": " : "", allowed ? allowed : "");
}

static const char *option_name(const void *arg, size_t i)
{
	(void)arg;
	return templates[i].templ;
}

static const char *why_refused(const char *option)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(refused); i++)
		if (strncmp(option, refused[i].begin, strlen(refused[i].begin)) == 0)
			return refused[i].why;
	return NULL;
}

static void complain_unknown(const char *option)
{
	/* The last entry is FUSE_OPT_END, and no option. */
	const char *near =
		zf_parse_nearest_name(option, ZF_ARRAY_SIZE(templates) - 1, option_name, NULL);

	fprintf(stderr, "zfuse: unknown option '%s'%s%.*s%s\nTry 'zfuse --help'.\n", option,
		near ? "; did you mean " : "", near ? (int)strcspn(near, "=") : 0, near ? near : "",
		near ? "?" : "");
}

static int set_string(char **field, const char *value)
{
	*field = strdup(value);
	return *field ? 0 : -1;
}

static int set_tunable(const char *option, struct zf_tunables *tunables)
{
	const char *allowed;

	if (zf_tunable_set(option, tunables, &allowed) == 0)
		return 0;
	fprintf(stderr, "zfuse: bad value of %.*s: '%s': %s\nTry 'zfuse --help'.\n",
		(int)strcspn(option, "="), option, option + strcspn(option, "=") + 1, allowed);
	return -1;
}

static int process(void *data, const char *arg, int key, struct fuse_args *outargs)
{
	struct zf_options *options = data;

	(void)outargs;
	switch (key) {
	case KEY_READ_ONLY:
		options->read_only = 1;
		return 0;
	case KEY_SOURCE:
		options->source_named = true;
		return 1; /* libfuse gets it, too */
	case KEY_ATIME_RELATIVE:
		options->atime = ZF_ATIME_RELATIVE;
		return 0;
	case KEY_ATIME_STRICT:
		options->atime = ZF_ATIME_STRICT;
		return 0;
	case KEY_ATIME_NEVER:
		options->atime = ZF_ATIME_NEVER;
		return 1; /* so that the list of mounts shows it */
	case KEY_NO_DIR_ATIME:
		options->no_dir_atime = 1;
		return 1;
	case KEY_SYNC:
		options->sync_names = options->sync = true;
		return 1; /* the kernel sends an FSYNC after a write that it caches */
	case KEY_SYNC_NAMES:
		options->sync_names = true;
		return 1;
	case KEY_TUNABLE:
		return set_tunable(arg, &options->tunables);
	case KEY_NO_EFFECT:
		return fuse_opt_add_opt(&options->no_effect, arg);
	case KEY_DROP:
		return 0;
	case FUSE_OPT_KEY_NONOPT:
		if (!options->device)
			return set_string(&options->device, arg);
		if (!options->mountpoint)
			return set_string(&options->mountpoint, arg);
		complain("too many arguments at", arg, NULL);
		return -1;
	case FUSE_OPT_KEY_OPT:
		if (strncmp(arg, "x-", 2) == 0 || options->sloppy)
			return 0;
		if (why_refused(arg))
			complain("option", arg, why_refused(arg));
		else
			complain_unknown(arg);
		return -1;
	}
	return 1;
}

/* 0 is not allowed. */
static int parse_value(const char *name, const char *text, uint64_t max, const char *allowed,
		       uint64_t *number)
{
	uint64_t value;

	if (!text)
		return 0;
	if (zf_parse_number(text, max, &value) < 0 || value == 0) {
		complain(name, text, allowed);
		return -EINVAL;
	}
	*number = value;
	return 0;
}

/* A size below `min` probably lacks its unit, and no filesystem works well with it. */
static int parse_size(const char *name, const char *text, uint64_t min, const char *allowed,
		      uint64_t *number)
{
	uint64_t size;

	if (!text)
		return 0;
	if (zf_parse_size(text, UINT64_C(1) << 50, &size) < 0 || size < min) {
		complain(name, text, allowed);
		return -EINVAL;
	}
	*number = size;
	return 0;
}

static int parse_durability(struct zf_options *options)
{
	const char *durability = options->text.durability ? options->text.durability : "fua";

	if (strcmp(durability, "fua") != 0 && strcmp(durability, "flush") != 0) {
		complain("bad value of durability:", durability, "fua or flush");
		return -EINVAL;
	}
	options->durability =
		strcmp(durability, "flush") == 0 ? ZF_DURABILITY_FLUSH : ZF_DURABILITY_FUA;
	return 0;
}

static int parse_append(struct zf_options *options)
{
	const char *append = options->text.append;

	if (!append || zf_append_mode_parse(append, &options->append) == 0)
		return 0;
	complain("bad value of append:", append, "best, native, emulated or locked");
	return -EINVAL;
}

static int parse_values(struct zf_options *options)
{
	const char *io_uring = options->text.io_uring ? options->text.io_uring : "auto";
	const char *writeback = options->text.writeback ? options->text.writeback : "off";

	if (parse_size("bad value of cache:", options->text.cache, CACHE_MIN,
		       "at least 4M; " ZF_SIZE_FORMS, &options->cache_bytes) < 0 ||
	    parse_size("bad value of dirty:", options->text.dirty, DIRTY_MIN,
		       "at least 1M; " ZF_SIZE_FORMS, &options->dirty_bytes) < 0 ||
	    parse_value("bad value of generation:", options->text.generation, UINT64_MAX,
			"the number of a superblock record", &options->generation) < 0)
		return -EINVAL;

	if (strcmp(io_uring, "auto") == 0) {
		options->transport = ZF_TRANSPORT_AUTO;
	} else if (strcmp(io_uring, "on") == 0) {
		options->transport = ZF_TRANSPORT_URING;
	} else if (strcmp(io_uring, "off") == 0) {
		options->transport = ZF_TRANSPORT_DEV_FUSE;
	} else {
		complain("bad value of io_uring:", io_uring, "on, off, or auto");
		return -EINVAL;
	}

	if (strcmp(writeback, "on") != 0 && strcmp(writeback, "off") != 0) {
		complain("bad value of writeback:", writeback, "on or off");
		return -EINVAL;
	}
	options->writeback = strcmp(writeback, "on") == 0;
	return parse_durability(options) < 0 || parse_append(options) < 0 ? -EINVAL : 0;
}

int zf_options_parse(int argc, char **argv, struct zf_options *ret_options)
{
	struct fuse_args args = FUSE_ARGS_INIT(argc, argv);

	*ret_options = (struct zf_options){.fuse = args};
	/* A mount of root is open to all users, as with any disk: the kernel checks permissions. */
	if (geteuid() == 0)
		ret_options->allow_other = 1;
	if (fuse_opt_parse(&ret_options->fuse, ret_options, templates, process) < 0)
		return -EINVAL;
	if (ret_options->help || ret_options->version)
		return 0;
	if (!ret_options->device || !ret_options->mountpoint) {
		fprintf(stderr, "zfuse: missing DEVICE and MOUNTPOINT\nTry 'zfuse --help'.\n");
		return -EINVAL;
	}
	if (parse_values(ret_options) < 0)
		return -EINVAL;
	if (ret_options->trace_data && !ret_options->trace) {
		fprintf(stderr,
			"zfuse: trace-data= works only with a trace: give trace=FILE, too\n");
		return -EINVAL;
	}
	if (ret_options->no_effect)
		fprintf(stderr,
			"zfuse: options without effect, because zfuse always does this: %s\n",
			ret_options->no_effect);
	if (ret_options->debug)
		ret_options->foreground = 1;
	if (ret_options->generation != 0)
		ret_options->read_only = 1;
	return 0;
}

void zf_options_deinit(struct zf_options *options)
{
	fuse_opt_free_args(&options->fuse);
	free(options->no_effect);
	free(options->device);
	free(options->trace);
	free(options->trace_data);
	free(options->mountpoint);
	free(options->text.cache);
	free(options->text.dirty);
	free(options->text.generation);
	free(options->text.writeback);
	free(options->text.io_uring);
	free(options->text.durability);
	free(options->text.append);
}

void zf_options_usage(void)
{
	printf("usage: zfuse DEVICE MOUNTPOINT [-f] [-d] [-o OPTION[,OPTION...]]\n"
	       "\n"
	       "Mounts the zfuse filesystem on DEVICE: an image, or a zoned block device.\n"
	       "\n"
	       "  -f                    stay in the foreground\n"
	       "  -d                    the same, and show every request\n"
	       "  -o ro                 read-only\n"
	       "  -o generation=N       an older superblock record, read-only\n"
	       "  -o abandon_log        mount although part of the log cannot be read, and lose\n"
	       "                        the changes that only that part of the log holds\n"
	       "  -o commit=SECONDS     between commits (default 5)\n"
	       "  -o cache=SIZE         of metadata that is kept in memory (default: a 32nd\n"
	       "                        of the machine's memory, 64M to 512M)\n"
	       "  -o dirty=SIZE         of data that is not on the device yet (default 64M)\n"
	       "  -o writeback=on|off   let the kernel collect writes (default off)\n"
	       "  -o io_uring=on|off|auto\n"
	       "                        how to talk to the kernel (default auto)\n"
	       "  -o durability=fua|flush\n"
	       "                        a durable write is one command, or a write and a flush\n"
	       "                        (default fua; the other is there to compare)\n"
	       "  -o append=best|native|emulated|locked\n"
	       "                        how data reaches a zoned disk (default best: native\n"
	       "                        appends where the disk has them and root mounts it)\n"
	       "  -o gc_target=N|N%%     empty zones to keep ready, in addition to the minimum\n"
	       "  -o gc=on|off          reclaim in the background (default on)\n"
	       "  -o trace=FILE         record what happens; 'zfusectl trace print FILE' shows it\n"
	       "  -o trace-data=FILE    with it, record what is written, for 'zfusectl lab crash'\n"
	       "  -o allow_other        let other users in (always, if root mounts)\n"
	       "\n"
	       "Exit status: 0 mounted, 1 wrong usage, 2 system error, 32 the mount failed.\n"
	       "See zfuse(8).\n");
}

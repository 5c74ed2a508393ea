/* SPDX-License-Identifier: MIT */
/*
 * mount.fuse.zfuse: what mount(8) runs for `mount -t fuse.zfuse DEVICE DIR` and for a line in
 * fstab:
 *
 *      mount.fuse.zfuse DEVICE DIR [-sfnvr] [-N NAMESPACE] [-t TYPE] [-o OPTIONS]
 *
 * It executes the daemon's program, which it looks for beside itself, then in the directory of the
 * installation, then in PATH, or for root in the system's directories. With the option `remount`
 * the daemon is running, and only the mount is changed (remount.h).
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/programs.h"
#include "fuse/status.h"
#include "mount/args.h"
#include "mount/mountinfo.h"
#include "mount/remount.h"

struct request {
	const char *device, *mountpoint, *options;
	bool sloppy, fake, read_only, verbose, help, version;
};

static int usage(FILE *to, int status)
{
	fprintf(to, "usage: mount.fuse.zfuse DEVICE MOUNTPOINT [-sfnvr] [-o OPTIONS]\n"
		    "mount(8) runs it for 'mount -t fuse.zfuse'. See zfuse(8).\n");
	return status;
}

static int parse(int argc, char **argv, struct request *ret_request)
{
	const struct zf_helper_option options[] = {
		{'h', .flag = &ret_request->help},
		{'V', .flag = &ret_request->version},
		{'s', .flag = &ret_request->sloppy},
		{'f', .flag = &ret_request->fake},
		{'r', .flag = &ret_request->read_only},
		{'v', .flag = &ret_request->verbose},
		{'o', .text = &ret_request->options},
		{'n'}, /* there is no mtab to leave alone */
		{'N'}, /* mount(8) is in the namespace already */
		{'t'}, /* this is the program for the type */
		{0},
	};
	int first = zf_helper_args(argc, argv, "sfnvrN:t:o:hV", options);

	if (first < 0 || ret_request->help || ret_request->version)
		return first < 0 ? first : 0;
	if (argc - first != 2)
		return -EINVAL;
	ret_request->device = argv[first];
	ret_request->mountpoint = argv[first + 1];
	return 0;
}

static void run_daemon(char *const *argv)
{
	char self[PATH_MAX], path[PATH_MAX + 16];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len > 0) {
		self[len] = '\0';
		snprintf(path, sizeof(path), "%s/zfuse", dirname(self));
		execv(path, argv);
	}
	execv(ZF_DAEMON, argv);
	execvp("zfuse", argv);
}

static int complain(const char *mountpoint, int error)
{
	fprintf(stderr, "mount: %s: %s\n", mountpoint,
		error == -ENOENT   ? "no zfuse is mounted there"
		: error == -EROFS  ? "its daemon has it read-only: unmount it, and mount it again"
		: error == -EBUSY  ? "files are open for writing"
		: error == -EINVAL ? "gc_target= is more than half of all zones"
				   : strerror(-error));
	return ZF_EXIT_MOUNT;
}

static int change_mount(const struct request *request)
{
	struct zf_mountinfo mount;
	struct zf_remount remount;
	int r = zf_mountinfo_find(request->mountpoint, &mount);

	if (r < 0)
		return complain(request->mountpoint, r);
	r = zf_remount_parse(&mount, request->options, request->sloppy, &remount);
	if (r == 0 && request->read_only) {
		remount.set |= MS_RDONLY;
		remount.clear &= ~(unsigned long)MS_RDONLY;
	}
	if (r == -EINVAL) {
		zf_mountinfo_deinit(&mount);
		return ZF_EXIT_USAGE;
	}
	if (r == 0 && !request->fake)
		r = zf_remount(&mount, &remount);
	if (r < 0)
		complain(mount.mountpoint, r);
	zf_mountinfo_deinit(&mount);
	return r < 0 ? ZF_EXIT_MOUNT : ZF_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct request request = {.options = NULL};
	const char *args[9] = {"zfuse"};
	unsigned int count = 1;

	zf_programs_from_system();
	if (parse(argc, argv, &request) < 0)
		return usage(stderr, ZF_EXIT_USAGE);
	if (request.help)
		return usage(stdout, ZF_EXIT_OK);
	if (request.version) {
		puts("mount.fuse.zfuse " ZF_VERSION);
		return ZF_EXIT_OK;
	}
	if (request.options && zf_option_is_in(request.options, "remount"))
		return change_mount(&request);
	/* -osloppy comes first, because it affects only the options behind it. */
	if (request.sloppy)
		args[count++] = "-osloppy";
	if (request.options) {
		args[count++] = "-o";
		args[count++] = request.options;
	}
	if (request.read_only)
		args[count++] = "-r";
	args[count++] = "--";
	args[count++] = request.device;
	args[count++] = request.mountpoint;

	if (request.verbose) {
		for (unsigned int i = 0; i < count; i++)
			printf("%s%c", args[i], i + 1 < count ? ' ' : '\n');
		fflush(stdout);
	}
	if (request.fake)
		return ZF_EXIT_OK;
	run_daemon((char *const *)args);
	fprintf(stderr, "mount.fuse.zfuse: cannot run zfuse: %s\n", strerror(errno));
	return ZF_EXIT_SYSTEM;
}

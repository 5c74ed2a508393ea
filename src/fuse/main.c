/* SPDX-License-Identifier: MIT */
/*
 * The daemon from its command line to its end:
 *
 *      options, cheap checks          on the user's terminal
 *      fork                           the parent waits for zf_daemon_ready(), or an exit status
 *      signals are blocked            before any thread starts
 *      device                         opened; then most privileges are given up
 *      filesystem                     replays and commits what a crash left; its root can be read
 *      session, mount                 the kernel begins to send requests
 *      filter                         of system calls; no mount is made any more
 *      loop                           until the kernel ends the connection
 *      zf_daemon_close()              the last commit
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kernel.h"
#include "base/programs.h"
#include "fuse/anchor.h"
#include "fuse/background.h"
#include "fuse/control.h"
#include "fuse/daemon.h"
#include "fuse/drop_pages.h"
#include "fuse/filter.h"
#include "fuse/log.h"
#include "fuse/marks.h"
#include "fuse/mount.h"
#include "fuse/notify.h"
#include "fuse/open_inode.h"
#include "fuse/privileges.h"
#include "fuse/shutdown.h"
#include "fuse/status.h"
#include "fuse/thread.h"
#include "fuse/trace.h"
#include "fuse/workers.h"
#include "io/nvme_name.h"
#include "io/open.h"

#define DEVICE_WAIT_MS 10000 /* for the previous daemon to close the device */

static int fail(const struct zf_daemon *daemon, enum zf_exit status, const char *what, int error)
{
	zf_report(&daemon->report, ZF_REPORT_ERROR, "%s: %s", what, strerror(-error));
	return status;
}

/* ---- before the fork ---- */

static int check_mountpoint(struct zf_daemon *daemon)
{
	struct statx stx;

	daemon->mountpoint = realpath(daemon->options.mountpoint, NULL);
	/*
	 * AT_STATX_FORCE_SYNC asks the daemon of a mount, not the kernel's cache, which still has
	 * the attributes of a dead daemon's mount.
	 */
	if (!daemon->mountpoint ||
	    statx(AT_FDCWD, daemon->mountpoint, AT_STATX_FORCE_SYNC, STATX_TYPE, &stx) < 0) {
		zf_report(&daemon->report, ZF_REPORT_ERROR, "mountpoint %s: %s%s",
			  daemon->options.mountpoint, strerror(errno),
			  errno == ENOTCONN || errno == ECONNABORTED
				  ? " (a daemon died here: umount it first)"
				  : "");
		return ZF_EXIT_MOUNT;
	}
	if (!S_ISDIR(stx.stx_mode)) {
		zf_report(&daemon->report, ZF_REPORT_ERROR, "mountpoint %s: not a directory",
			  daemon->mountpoint);
		return ZF_EXIT_MOUNT;
	}
	return ZF_EXIT_OK;
}

/* For an NVMe disk the source is its block device, even if `path` is another node of the disk. */
static char *mount_source(const char *path)
{
	char *real = realpath(path, NULL), block[PATH_MAX];

	if (real && zf_nvme_block_name(real, block, sizeof(block)) == 0 &&
	    access(block, F_OK) == 0) {
		free(real);
		return strdup(block);
	}
	return real;
}

static int check_device(struct zf_daemon *daemon)
{
	struct stat st;

	daemon->device = mount_source(daemon->options.device);
	if (!daemon->device || stat(daemon->device, &st) < 0)
		return fail(daemon, ZF_EXIT_MOUNT, daemon->options.device, -errno);
	/* Only root may mount fuseblk. */
	daemon->claimed_by_mount = S_ISBLK(st.st_mode) && geteuid() == 0;
	return ZF_EXIT_OK;
}

static int check_fuse(const struct zf_daemon *daemon)
{
	_zf_close_ int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		return ZF_EXIT_OK;
	zf_report(&daemon->report, ZF_REPORT_ERROR, "/dev/fuse: %s%s", strerror(errno),
		  errno == ENOENT || errno == ENODEV ? " (is the kernel module fuse loaded?)" : "");
	return ZF_EXIT_SYSTEM;
}

static int choose_transport(struct zf_daemon *daemon)
{
	static const char parameter[] = "/sys/module/fuse/parameters/enable_uring";
	enum zf_transport transport = daemon->options.transport;
	_zf_close_ int fd = open(parameter, O_RDONLY | O_CLOEXEC);
	bool known = fd >= 0, enabled;
	char value = 'N';
	int processors = get_nprocs_conf();

	enabled = known && read(fd, &value, 1) == 1 && (value == 'Y' || value == '1');
	/*
	 * Each slot has a buffer for a whole request, which takes memory from its first use on.
	 * Unless many requests wait, the kernel uses the same few slots again and again.
	 */
	daemon->uring_depth = processors <= 8 ? 128 : processors <= 32 ? 64 : 32;
	daemon->uring = enabled && transport != ZF_TRANSPORT_DEV_FUSE;
	if (transport == ZF_TRANSPORT_DEV_FUSE || enabled)
		return ZF_EXIT_OK;
	if (known)
		zf_report(&daemon->report,
			  transport == ZF_TRANSPORT_URING ? ZF_REPORT_ERROR : ZF_REPORT_INFO,
			  "FUSE over io_uring, which is faster, is off in this kernel: root "
			  "turns it on with 'echo Y >%s', or for good with 'options fuse "
			  "enable_uring=Y' in /etc/modprobe.d",
			  parameter);
	else if (transport == ZF_TRANSPORT_URING)
		zf_report(&daemon->report, ZF_REPORT_ERROR,
			  "this kernel has no FUSE over io_uring (Linux 6.14 and later do)");
	return transport == ZF_TRANSPORT_URING ? ZF_EXIT_MOUNT : ZF_EXIT_OK;
}

static int check(struct zf_daemon *daemon)
{
	int status = check_mountpoint(daemon);

	if (status == ZF_EXIT_OK)
		status = check_device(daemon);
	if (status == ZF_EXIT_OK)
		status = check_fuse(daemon);
	if (status == ZF_EXIT_OK)
		status = choose_transport(daemon);
	if (status == ZF_EXIT_OK && zf_daemon_trace_open(daemon) < 0)
		status = ZF_EXIT_MOUNT;
	return status;
}

/* ---- device and filesystem ---- */

/*
 * Called before there are threads. It cannot return an error; open_device() drops again, and
 * reports the error.
 */
static void drop_early(void)
{
	(void)zf_privileges_drop();
}

/* The device may belong to another user; only opening it needs privileges. */
static int open_device(struct zf_daemon *daemon)
{
	const struct zf_open_options open_options = {
		.read_only = daemon->options.read_only,
		.unclaimed = daemon->claimed_by_mount,
		.lock_wait_ms = DEVICE_WAIT_MS,
		.append = daemon->options.append,
		.before_threads = drop_early,
	};
	int r = zf_dev_open(daemon->device, &open_options, &daemon->report, &daemon->dev);

	if (r < 0)
		return ZF_EXIT_MOUNT;
	r = zf_privileges_drop();
	return r < 0 ? fail(daemon, ZF_EXIT_SYSTEM, "cannot give up privileges", r) : ZF_EXIT_OK;
}

static int open_filesystem(struct zf_daemon *daemon)
{
	int status = open_device(daemon), r;

	if (status != ZF_EXIT_OK)
		return status;
	if (strcmp(zf_dev_kind(daemon->dev), "image") != 0)
		zf_report(&daemon->report, ZF_REPORT_INFO, "%s: written by %s, appends %s",
			  zf_dev_path(daemon->dev), zf_dev_kind(daemon->dev),
			  zf_append_mode_name(zf_dev_append_mode(daemon->dev)));
	zf_dev_set_durability(daemon->dev, daemon->options.durability);
	r = zf_dev_start_thread(daemon->dev);
	if (r < 0)
		return fail(daemon, ZF_EXIT_SYSTEM, "cannot start a thread", r);
	return zf_daemon_mount(daemon) < 0 ? ZF_EXIT_MOUNT : ZF_EXIT_OK;
}

void zf_daemon_close(struct zf_daemon *daemon)
{
	struct zf_fs *fs = daemon->fs;

	zf_control_stop(daemon->control);
	zf_rwlock_wrlock(&daemon->gate);
	daemon->fs = NULL;
	zf_rwlock_unlock(&daemon->gate);
	if (fs)
		daemon->fs_error = zf_fs_unmount(fs);
	zf_dev_close(daemon->dev);
	daemon->dev = NULL;
	zf_daemon_trace_end(daemon);
	/* This function runs again when libfuse ends the session; `fs` is NULL then. */
	if (fs && daemon->fs_error < 0)
		zf_report(&daemon->report, ZF_REPORT_ERROR,
			  "%s: unmounted, but recent changes may be lost: %s", daemon->device,
			  strerror(-daemon->fs_error));
	zf_log_end(&daemon->report);
	zf_control_finish(daemon->control, daemon->fs_error);
	daemon->control = NULL;
}

/* ---- session ---- */

/* Adds the options for libfuse that the user did not give. */
static int add_session_options(const struct zf_daemon *daemon, struct fuse_args *args)
{
	_zf_free_ char *opts = NULL;
	char fsname[PATH_MAX + 8], depth[32];
	int r;

	snprintf(fsname, sizeof(fsname), "fsname=%s", daemon->device);
	snprintf(depth, sizeof(depth), "io_uring_q_depth=%u", daemon->uring_depth);
	r = fuse_opt_add_opt(&opts, "default_permissions");
	/*
	 * Device nodes and set-user-id programs work as on any disk that root mounts; libfuse would
	 * forbid both. But users who can write an image can put set-user-id programs of root and
	 * device nodes into it, so an image that other users can write gets neither option.
	 */
	if (r == 0 && geteuid() == 0 && !zf_dev_is_foreign(daemon->dev))
		r = fuse_opt_add_opt(&opts, "dev,suid");
	if (r == 0)
		r = fuse_opt_add_opt(&opts, "subtype=zfuse");
	if (r == 0)
		r = fuse_opt_add_opt_escaped(&opts, fsname);
	if (r == 0 && daemon->options.allow_other)
		r = fuse_opt_add_opt(&opts, "allow_other");
	if (r == 0 && (daemon->options.read_only || zf_fs_is_read_only(daemon->fs)))
		r = fuse_opt_add_opt(&opts, "ro");
	if (r == 0 && daemon->fuseblk)
		r = fuse_opt_add_opt(&opts, "blkdev,blksize=4096");
	if (r == 0 && daemon->options.debug)
		r = fuse_opt_add_opt(&opts, "debug");
	if (r == 0 && daemon->uring)
		r = fuse_opt_add_opt(&opts, "io_uring");
	if (r == 0 && daemon->uring)
		r = fuse_opt_add_opt(&opts, depth);
	/* Our options come first, so that the user's options override them. */
	if (r == 0)
		r = fuse_opt_insert_arg(args, 1, opts);
	return r == 0 ? fuse_opt_insert_arg(args, 1, "-o") : r;
}

/* Makes a session, of type fuseblk if daemon->fuseblk is set. */
static int new_session(struct zf_daemon *daemon)
{
	const struct fuse_args *said = &daemon->options.fuse;
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int r = 0;

	for (int i = 0; i < said->argc && r == 0; i++)
		r = fuse_opt_add_arg(&args, said->argv[i]);
	if (r == 0)
		r = add_session_options(daemon, &args);
	/* libfuse reports its errors itself. */
	if (r == 0)
		daemon->session = fuse_session_new(&args, &zf_ops, sizeof(zf_ops), daemon);
	fuse_opt_free_args(&args);
	if (r < 0)
		return fail(daemon, ZF_EXIT_SYSTEM, "options", -ENOMEM);
	return daemon->session ? ZF_EXIT_OK : ZF_EXIT_USAGE;
}

/* Mounts a disk as fuseblk, or anything as fuse. */
static int mount_plainly(struct zf_daemon *daemon)
{
	int status = new_session(daemon);

	if (status != ZF_EXIT_OK)
		return status;
	return fuse_session_mount(daemon->session, daemon->mountpoint) == 0 ? ZF_EXIT_OK
									    : ZF_EXIT_MOUNT;
}

/* Mounts an image as fuseblk. */
static int mount_on_anchor(struct zf_daemon *daemon, const char **ret_why)
{
	int status;

	daemon->fuseblk = true;
	status = new_session(daemon);
	if (status != ZF_EXIT_OK)
		return status;
	if (zf_anchor_mount(daemon->session, daemon->device, daemon->mountpoint, ret_why) == 0)
		return ZF_EXIT_OK;
	fuse_session_destroy(daemon->session);
	daemon->session = NULL;
	daemon->fuseblk = false;
	return ZF_EXIT_MOUNT;
}

#define KERNEL_IS_OLD "the kernel is older than 6.18"

/*
 * Does the kernel send SYNCFS to the daemon of a fuseblk mount? See its fuse_fill_super_common().
 */
static bool sends_syncfs(void)
{
	return zf_kernel_is_at_least(6, 18);
}

static void warn_of_syncfs(struct zf_daemon *daemon, const char *why)
{
	zf_report(&daemon->report, ZF_REPORT_WARNING,
		  "%s: sync(2) and syncfs(2) do not make data durable here (%s); fsync(2), "
		  "'zfusectl sync' and umount(8) do",
		  daemon->mountpoint, why);
}

/*
 * A kernel before 6.18 sends no SYNCFS, so with an anchor only umount(2) would wait. On such
 * kernels, with fuseblk, the last write in flight of a closed file sends RELEASE from the daemon's
 * own thread, which waits for the answer. If the daemon has few threads, it hangs (fixed by Linux's
 * commit 26e5c67deb2e).
 */
static int mount_image(struct zf_daemon *daemon)
{
	const char *why = NULL;
	int status = ZF_EXIT_MOUNT;

	if (geteuid() != 0)
		why = "the kernel sends SYNCFS only to mounts made by root";
	else if (!sends_syncfs())
		why = KERNEL_IS_OLD;
	else if (daemon->options.source_named)
		why = "fsname= names another source than the image";
	else
		status = mount_on_anchor(daemon, &why);
	if (!why)
		return status;
	warn_of_syncfs(daemon, why);
	return mount_plainly(daemon);
}

/*
 * A disk is fuseblk on every kernel, so that umount(2) waits for its last commit on every kernel.
 */
static int mount_disk(struct zf_daemon *daemon)
{
	if (!sends_syncfs())
		warn_of_syncfs(daemon, KERNEL_IS_OLD);
	return mount_plainly(daemon);
}

static int open_session(struct zf_daemon *daemon)
{
	int status;

	daemon->fuseblk = daemon->claimed_by_mount;
	status = daemon->claimed_by_mount ? mount_disk(daemon) : mount_image(daemon);
	if (status == ZF_EXIT_OK)
		atomic_store(&daemon->mounted, true);
	return status;
}

/*
 * Returns how many threads read /dev/fuse. On few processors one thread is fastest: no thread has
 * to be woken on another processor, and no request waits long, because requests that must wait go
 * to a worker. When io_uring is used, few requests come through /dev/fuse.
 */
static unsigned int reader_count(const struct zf_daemon *daemon)
{
	int processors = get_nprocs();

	if (daemon->uring || processors <= 2)
		return 1;
	return processors > 16 ? 8 : (unsigned int)processors / 2;
}

static int loop(struct zf_daemon *daemon)
{
	unsigned int readers = reader_count(daemon);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int r;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_max_threads(config, readers);
	/* Each reader gets a descriptor of its own, to which its answers go. */
	fuse_loop_cfg_set_clone_fd(config, readers > 1);
	r = fuse_session_loop_mt(daemon->session, config);
	fuse_loop_cfg_destroy(config);
	return r;
}

/*
 * The kernel reads 128 KiB ahead on a FUSE mount, which leaves the device idle between requests.
 * Only root may raise that, in this file of sysfs; on a user's mount the value stays. The answer to
 * INIT allows the higher value (ops.c), because otherwise the kernel would lower it again.
 */
static void raise_read_ahead(const struct zf_daemon *daemon, dev_t st_dev)
{
	_zf_close_ int fd = -1;
	char path[64], text[16] = "";

	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u%s/read_ahead_kb", major(st_dev),
		 minor(st_dev), daemon->fuseblk ? "-fuseblk" : "");
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    strtoul(text, NULL, 10) >= ZF_READ_AHEAD_KIB)
		return;
	snprintf(text, sizeof(text), "%u", ZF_READ_AHEAD_KIB);
	(void)!pwrite(fd, text, strlen(text), 0);
}

/* For the foreground only: a daemon in the background tells by the exit of its first process. */
static void tell_manager(const struct zf_daemon *daemon)
{
	int r = zf_notify_ready();

	if (r < 0)
		zf_report(&daemon->report, ZF_REPORT_WARNING,
			  "NOTIFY_SOCKET: systemd could not be told that the mount is ready: %s",
			  strerror(-r));
}

void zf_daemon_ready(struct zf_daemon *daemon, dev_t st_dev)
{
	raise_read_ahead(daemon, st_dev);
	atomic_store(&daemon->st_dev, st_dev);
	zf_shutdown_ready(daemon->shutdown);
	if (daemon->options.foreground) {
		tell_manager(daemon);
		return;
	}
	zf_log_to_syslog();
	if (zf_background_tell(ZF_EXIT_OK) == 0)
		return;
	zf_report(&daemon->report, ZF_REPORT_ERROR,
		  "%s: the mount command was killed before the mount was ready: unmounting",
		  daemon->mountpoint);
	zf_shutdown_request();
}

/*
 * Filters all threads, running and future ones. A user's daemon gets no filter, because it still
 * has to run fusermount3 as root.
 */
static void restrict_calls(struct zf_daemon *daemon)
{
	int r = geteuid() == 0 ? zf_filter_install() : 0;

	if (r < 0 && r != -EOPNOTSUPP)
		zf_report(&daemon->report, ZF_REPORT_WARNING,
			  "%s: the daemon runs without its filter of system calls: %s",
			  daemon->mountpoint, strerror(-r));
}

static int serve(struct zf_daemon *daemon)
{
	int r = zf_marks_new(&daemon->marks);

	if (r == 0)
		r = zf_open_inodes_new(&daemon->open_inodes);
	if (r == 0)
		r = zf_droppers_new(daemon, &daemon->droppers);
	if (r == 0)
		r = zf_workers_new(daemon, &daemon->workers);
	if (r == 0)
		r = zf_control_start(daemon, &daemon->control);
	if (r < 0)
		return fail(daemon, ZF_EXIT_SYSTEM, "cannot start a thread", r);
	restrict_calls(daemon);
	r = loop(daemon);
	atomic_store(&daemon->mounted, false);
	if (r != 0) {
		zf_report(&daemon->report, ZF_REPORT_ERROR, "the connection to the kernel: %s",
			  strerror(r < 0 ? -r : r));
		return ZF_EXIT_MOUNT;
	}
	return ZF_EXIT_OK;
}

/* ---- life ---- */

static int run(struct zf_daemon *daemon)
{
	int status = open_filesystem(daemon);

	if (status == ZF_EXIT_OK)
		status = open_session(daemon);
	if (status == ZF_EXIT_OK)
		status = serve(daemon);

	/* Only the last commit is left to do, and no signal may interrupt it. */
	zf_shutdown_stop(daemon->shutdown);
	/* The workers first: they hand calls to the droppers. */
	zf_workers_free(daemon->workers);
	zf_droppers_free(daemon->droppers);
	if (daemon->session)
		fuse_session_unmount(daemon->session);
	zf_daemon_close(daemon);
	zf_shutdown_free(daemon->shutdown);
	if (daemon->session)
		fuse_session_destroy(daemon->session);
	zf_marks_free(daemon->marks);
	zf_open_inodes_free(daemon->open_inodes);
	return daemon->fs_error < 0 ? ZF_EXIT_MOUNT : status;
}

static int start(struct zf_daemon *daemon)
{
	int status = check(daemon), r;

	if (status != ZF_EXIT_OK)
		return status;
	if (!daemon->options.foreground) {
		r = zf_background_enter(daemon->mountpoint);
		if (r < 0)
			return fail(daemon, ZF_EXIT_SYSTEM, "cannot fork", r);
	}
	/*
	 * An allocation of memory for the daemon's I/O must not wait for writeback of pages of its
	 * own mount. This needs a capability that a user's daemon does not have; an error is
	 * ignored.
	 */
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	zf_privileges_prepare();
	zf_threads_init();
	zf_rwlock_init(&daemon->gate, ZF_RANK_DAEMON);
	r = zf_shutdown_start(daemon, &daemon->shutdown);
	status = r < 0 ? fail(daemon, ZF_EXIT_SYSTEM, "cannot start a thread", r) : run(daemon);
	zf_rwlock_deinit(&daemon->gate);
	zf_threads_deinit();
	zf_background_tell(status);
	return status;
}

int main(int argc, char **argv)
{
	struct zf_daemon daemon = {0};
	int status = ZF_EXIT_OK;

	zf_log_init(&daemon.report);
	zf_programs_from_system();
	if (zf_options_parse(argc, argv, &daemon.options) < 0)
		status = ZF_EXIT_USAGE;
	else if (daemon.options.help)
		zf_options_usage();
	else if (daemon.options.version)
		printf("zfuse %s\n", ZF_VERSION);
	else
		status = start(&daemon);
	zf_options_deinit(&daemon.options);
	free(daemon.device);
	free(daemon.mountpoint);
	return status;
}

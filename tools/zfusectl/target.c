/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "ctl/json.h"
#include "io/open.h"
#include "superblock/super_format.h"

#define LOCK_WAIT_MS 10000u

static int fail(const struct zf_report *report, const char *path, int error, const char *what)
{
	zf_report(report, ZF_REPORT_ERROR, "%s: %s%s%s", path, what ? what : "",
		  what && error ? ": " : "", error ? strerror(-error) : "");
	return error;
}

/* ---- daemon or device ---- */

static bool has_daemon(const char *path)
{
	int fd, r = zf_ctl_connect(path, &fd);

	if (r == 0)
		close(fd);
	/* -EACCES: another user's daemon. The command will fail with a message about that. */
	return r == 0 || r == -EACCES;
}

/*
 * The end of the filesystem's zones, by the first superblock record on the device; 0: there is
 * none. If there are more zones by now, the search that begins there only takes longer.
 */
static uint64_t find_zones_end(const char *path)
{
	struct zf_disk_super disk;
	struct zf_super super;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, &disk, sizeof(disk), 0);

	if (fd >= 0)
		close(fd);
	if (n != sizeof(disk) || zf_super_decode(&disk, 0, NULL, &super) < 0)
		return 0;
	return super.zone_size * super.zone_count;
}

static int open_device(const struct zf_target *target, const struct zf_report *report,
		       struct zf_dev **ret_dev)
{
	const struct zf_open_options options = {
		.read_only = !target->writing,
		.lock_wait_ms = LOCK_WAIT_MS,
		.image_search_from = target->writing ? find_zones_end(target->path) : 0,
	};

	return zf_dev_open(target->path, &options, report, ret_dev);
}

/* A file in a mounted zfuse may itself be an image: then the image is the target. */
static int choose(struct zf_target *target, const struct stat *st, bool any_file)
{
	if (S_ISDIR(st->st_mode) || any_file) {
		target->mounted = has_daemon(target->path);
		if (target->mounted)
			return 0;
	}
	if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode)) {
		bool inside = S_ISREG(st->st_mode) && has_daemon(target->path);
		int r = open_device(target, inside ? NULL : target->report, &target->dev);

		target->mounted = inside && r == -ENODEV;
		return target->mounted ? 0 : r;
	}
	zf_report(target->report, ZF_REPORT_ERROR, "%s: %s", target->path,
		  S_ISDIR(st->st_mode) ? "not a zfuse mount"
				       : "neither a device nor a file in a zfuse mount");
	return -ENOTCONN;
}

/* ---- a device ---- */

static void set_source(struct zf_target *target)
{
	target->source = (struct zf_report_source){
		.dev = target->dev,
		.ring = target->ring,
		.report = target->report,
	};
	/* A ring without a valid record is no error here: the command reports it. */
	if (zf_ring_newest(target->ring, &target->source.super, &target->source.stepped_over) < 0)
		target->source.super = NULL;
}

static int open_ring(struct zf_target *target)
{
	int r = zf_ring_open(target->dev, target->report, &target->ring);

	if (r < 0)
		return fail(target->report, target->path, r,
			    r == -ENODEV ? "there is no zfuse filesystem on it"
					 : "its superblocks cannot be read");
	set_source(target);
	return 0;
}

static int mount(struct zf_target *target)
{
	const struct zf_mount_options options = {.read_only = !target->writing};
	int r = zf_fs_mount(target->dev, &options, target->report, &target->fs);

	if (r < 0)
		return fail(target->report, target->path, r, "it cannot be mounted");
	target->source.fs = target->fs;
	return 0;
}

/* ---- what the commands use ---- */

static int open_target(const char *path, bool any_file, bool writing,
		       const struct zf_report *report, struct zf_target *ret_target)
{
	struct zf_target target = {.path = path, .report = report, .writing = writing};
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return fail(report, path, -errno, NULL);
	target.ino = st.st_ino;
	r = choose(&target, &st, any_file);
	if (r == 0 && !target.mounted)
		r = open_ring(&target);
	if (r < 0) {
		zf_target_close(&target);
		return r;
	}
	*ret_target = target;
	return 0;
}

int zf_target_open(const char *path, bool any_file, const struct zf_report *report,
		   struct zf_target *ret_target)
{
	return open_target(path, any_file, false, report, ret_target);
}

int zf_target_open_writing(const char *path, const struct zf_report *report,
			   struct zf_target *ret_target)
{
	int r = open_target(path, false, true, report, ret_target);

	if (r == -EBUSY)
		zf_report(report, ZF_REPORT_ERROR,
			  "if it is mounted, give the directory where: then its daemon does it");
	return r;
}

void zf_target_reread(struct zf_target *target)
{
	zf_ring_close(target->ring);
	target->ring = NULL;
	target->source = (struct zf_report_source){.dev = target->dev, .report = target->report};
	if (zf_ring_open(target->dev, target->report, &target->ring) == 0)
		set_source(target);
}

int zf_target_open_damaged(const char *path, bool writing, const struct zf_report *report,
			   struct zf_target *ret_target)
{
	struct zf_target target = {.path = path, .report = report, .writing = writing};
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return fail(report, path, -errno, NULL);
	r = choose(&target, &st, false);
	if (r == 0 && target.mounted)
		r = fail(report, path, -EBUSY, "it is mounted: unmount it first");
	if (r < 0) {
		zf_target_close(&target);
		return r;
	}
	zf_target_reread(&target);
	*ret_target = target;
	return 0;
}

void zf_target_close(struct zf_target *target)
{
	zf_fs_abandon(target->fs);
	zf_ring_close(target->ring);
	zf_dev_close(target->dev);
	*target = (struct zf_target){0};
}

/* Returns `error` if that is an error, else that of the unmount. */
static int unmount(struct zf_target *target, int error)
{
	int r = target->fs ? zf_fs_unmount(target->fs) : 0;

	target->fs = target->source.fs = NULL;
	return error < 0 ? error : r;
}

static int run_on_device(struct zf_target *target, const struct zf_report_command *command,
			 struct json_object *args, const struct zf_control_parts *parts,
			 struct json_object **ret_result, char **ret_message)
{
	struct json_object *result = NULL;
	int r = 0;

	target->source.parts = parts;
	if ((command->need == ZF_NEED_FS || command->need == ZF_NEED_WRITING) && !target->fs &&
	    target->source.super)
		r = mount(target);
	if (r < 0)
		return r;
	r = zf_report_run(command, &target->source, args, &result);
	if (command->need == ZF_NEED_WRITING)
		r = unmount(target, r);
	if (r == 0) {
		*ret_result = result;
		return 0;
	}
	*ret_message = strdup(result ? json_object_get_string(result) : strerror(-r));
	json_object_put(result);
	return r;
}

/* ---- a daemon ---- */

/* A temporary file in TMPDIR or /var/tmp, because /tmp is often in memory. */
static int open_spool(void)
{
	const char *directory = getenv("TMPDIR");

	return open(directory ? directory : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int write_all(int fd, const char *buf, ssize_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, buf, (size_t)len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		len -= n;
	}
	return 0;
}

/*
 * The daemon makes no commit while it answers such a command. So the whole answer is first copied
 * to a file, however slowly the reader of our output (a pager) is, and *fd becomes that file. If no
 * such file can be made, *fd stays the socket.
 */
static int spool_answer(int *fd)
{
	_zf_close_ int spool = open_spool();
	char buf[1 << 16];
	ssize_t n;
	int r;

	if (spool < 0)
		return 0;
	while ((n = read(*fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : write_all(spool, buf, n);
		if (r < 0)
			return r;
	}
	if (lseek(spool, 0, SEEK_SET) < 0)
		return -errno;
	close(*fd);
	*fd = zf_steal_fd(&spool);
	return 0;
}

static int run_on_daemon(struct zf_target *target, const struct zf_report_command *command,
			 struct json_object *args, const struct zf_control_parts *parts,
			 struct json_object **ret_result, char **ret_message)
{
	_zf_close_ int fd = -1;
	int r = zf_ctl_connect(target->path, &fd);

	if (r == 0)
		r = zf_ctl_send(fd, command->name, args);
	if (r == 0 && command->durable && command->is_long)
		r = spool_answer(&fd);
	if (r == 0)
		r = zf_ctl_receive(fd, parts, ret_result, ret_message);
	if (r < 0 && !*ret_message)
		*ret_message = strdup(strerror(-r));
	return r;
}

/* ---- either ---- */

int zf_target_run(struct zf_target *target, const struct zf_report_command *command,
		  struct json_object *args, const struct zf_control_parts *parts,
		  struct json_object **ret_result)
{
	char *message = NULL;
	int r = target->mounted ? run_on_daemon(target, command, args, parts, ret_result, &message)
				: run_on_device(target, command, args, parts, ret_result, &message);

	if (r < 0 && message)
		zf_report(target->report, ZF_REPORT_ERROR, "%s: %s", target->path, message);
	free(message);
	return r;
}

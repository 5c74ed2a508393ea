/* SPDX-License-Identifier: MIT */
#include "mount/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

static void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* mountinfo escapes blanks and the like as three octal digits. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		unsigned int value;

		if (sscanf(from, "\\%3o", &value) == 1) {
			*to = (char)value;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/*
 *      36 35 0:98 /mnt1 /mnt2 rw,noatime master:1 - fuse.zfuse /img rw,user_id=0,group_id=0
 *            (1)        (2)   (3)                   (4)        (5)  (6)
 *
 * Returns 1 if the line is a zfuse mount; 0 if it is another mount or cannot be parsed.
 */
static int parse_line(const char *line, struct zf_mountinfo *ret_mount)
{
	_zf_free_ char *mountpoint = NULL, *options = NULL, *type = NULL, *source = NULL,
		       *super_options = NULL;
	const char *rest = strstr(line, " - "), *user;
	unsigned int major_no, minor_no;

	if (!rest ||
	    sscanf(line, "%*d %*d %u:%u %*s %ms %ms", &major_no, &minor_no, &mountpoint,
		   &options) != 4 ||
	    sscanf(rest, " - %ms %ms %ms", &type, &source, &super_options) != 3)
		return 0;
	if (strcmp(type, "fuse.zfuse") != 0 && strcmp(type, "fuseblk.zfuse") != 0)
		return 0;
	user = strstr(super_options, "user_id=");
	if (!user)
		return 0;
	unescape(mountpoint);
	unescape(source);
	ret_mount->user = (uid_t)strtoul(user + strlen("user_id="), NULL, 10);
	ret_mount->st_dev = makedev(major_no, minor_no);
	ret_mount->mountpoint = zf_steal_ptr(&mountpoint);
	ret_mount->source = zf_steal_ptr(&source);
	ret_mount->options = zf_steal_ptr(&options);
	ret_mount->super_options = zf_steal_ptr(&super_options);
	return 1;
}

/* Calls want() for every zfuse mount. Returns the last one for which want() was true. 1: found. */
static int search(bool (*want)(const struct zf_mountinfo *mount, void *arg), void *arg,
		  struct zf_mountinfo *ret_mount)
{
	__attribute__((cleanup(cleanup_fclose))) FILE *file = fopen("/proc/self/mountinfo", "re");
	struct zf_mountinfo mount = {0};
	_zf_free_ char *line = NULL;
	size_t size = 0;
	int found = 0;

	if (!file)
		return -errno;
	while (getline(&line, &size, file) >= 0) {
		if (parse_line(line, &mount) == 0)
			continue;
		if (!want(&mount, arg)) {
			zf_mountinfo_deinit(&mount);
			continue;
		}
		/* Later lines are mounted over earlier ones. */
		if (found)
			zf_mountinfo_deinit(ret_mount);
		*ret_mount = mount;
		found = 1;
	}
	return found;
}

static bool is_at(const struct zf_mountinfo *mount, void *path)
{
	return strcmp(mount->mountpoint, path) == 0;
}

static bool is_of(const struct zf_mountinfo *mount, void *st_dev)
{
	return mount->st_dev == *(const dev_t *)st_dev;
}

int zf_mountinfo_find(const char *path, struct zf_mountinfo *ret_mount)
{
	_zf_free_ char *real = realpath(path, NULL);
	int r = search(is_at, real ? real : (char *)path, ret_mount);

	return r < 0 ? r : r == 1 ? 0 : -ENOENT;
}

void zf_mountinfo_deinit(struct zf_mountinfo *mount)
{
	free(mount->mountpoint);
	free(mount->source);
	free(mount->options);
	free(mount->super_options);
}

bool zf_mountinfo_exists(dev_t st_dev)
{
	struct zf_mountinfo mount = {0};

	if (search(is_of, &st_dev, &mount) != 1)
		return false;
	zf_mountinfo_deinit(&mount);
	return true;
}

struct visit {
	void (*fn)(const struct zf_mountinfo *mount, void *arg);
	void *arg;
};

static bool visit(const struct zf_mountinfo *mount, void *arg)
{
	const struct visit *to = arg;

	to->fn(mount, to->arg);
	return false;
}

int zf_mountinfo_each(void (*fn)(const struct zf_mountinfo *mount, void *arg), void *arg)
{
	struct visit to = {.fn = fn, .arg = arg};
	struct zf_mountinfo none;

	return search(visit, &to, &none);
}

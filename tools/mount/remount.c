/* SPDX-License-Identifier: MIT */
#include "mount/remount.h"

#include <errno.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"

/* From <linux/mount.h>, which cannot be included together with <sys/mount.h>. */
#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif

/* Options that concern the kernel alone. */
static const struct {
	const char *name;
	unsigned long set, clear;
} changes[] = {
	{"ro", MS_RDONLY, 0},
	{"rw", 0, MS_RDONLY},
	{"nosuid", MS_NOSUID, 0},
	{"suid", 0, MS_NOSUID},
	{"nodev", MS_NODEV, 0},
	{"dev", 0, MS_NODEV},
	{"noexec", MS_NOEXEC, 0},
	{"exec", 0, MS_NOEXEC},
	{"nosymfollow", MS_NOSYMFOLLOW, 0},
	{"symfollow", 0, MS_NOSYMFOLLOW},
};

/* Options that the daemon also got at its start, so a remount cannot change them. */
static const struct {
	const char *name;
	unsigned long flag;
} kept[] = {
	{"noatime", MS_NOATIME},  {"nodiratime", MS_NODIRATIME}, {"relatime", MS_RELATIME},
	{"sync", MS_SYNCHRONOUS}, {"dirsync", MS_DIRSYNC},
};

bool zf_option_is_in(const char *list, const char *option)
{
	size_t len = strlen(option);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, option, len) == 0 && (at[len] == ',' || at[len] == '\0'))
			return true;
	}
	return false;
}

static bool has(const struct zf_mountinfo *mount, const char *option)
{
	return zf_option_is_in(mount->options, option) ||
	       zf_option_is_in(mount->super_options, option);
}

static unsigned long present_flags(const struct zf_mountinfo *mount)
{
	unsigned long flags = 0;

	for (unsigned int i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (has(mount, changes[i].name))
			flags |= changes[i].set;
	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (has(mount, kept[i].name))
			flags |= kept[i].flag;
	return flags;
}

/* ---- options ---- */

/* mount(8) adds the mountpoint's options in fstab, if the user has named no device. */
static bool is_in_fstab(const struct zf_mountinfo *mount, const char *option)
{
	FILE *fstab = setmntent("/etc/fstab", "re");
	const struct mntent *line;
	bool found = false;

	if (!fstab)
		return false;
	while (!found && (line = getmntent(fstab)) != NULL)
		found = strcmp(line->mnt_dir, mount->mountpoint) == 0 &&
			zf_option_is_in(line->mnt_opts, option);
	endmntent(fstab);
	return found;
}

static bool take_change(const char *option, struct zf_remount *remount)
{
	for (unsigned int i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		if (strcmp(option, changes[i].name) != 0)
			continue;
		remount->set = (remount->set & ~changes[i].clear) | changes[i].set;
		remount->clear = (remount->clear & ~changes[i].set) | changes[i].clear;
		return true;
	}
	return false;
}

static int take_tunable(const struct zf_mountinfo *mount, const char *option,
			struct zf_tunables *tunables)
{
	const char *allowed;
	int r = zf_tunable_set(option, tunables, &allowed);

	if (r == -EINVAL)
		fprintf(stderr, "mount: %s: bad value in '%s': %s\n", mount->mountpoint, option,
			allowed);
	return r;
}

static bool changes_nothing(const struct zf_mountinfo *mount, const char *option)
{
	return strcmp(option, "remount") == 0 || strncmp(option, "x-", 2) == 0 ||
	       has(mount, option) || is_in_fstab(mount, option);
}

/*
 * If the user names no device, mount(8) starts with the options in mountinfo or fstab, and removes
 * those whose opposite the user has given. For `dev`, the options then only lack `nodev`.
 */
static bool is_taken_out(const struct zf_mountinfo *mount, const char *options, const char *option)
{
	bool was_there = strstr(options, "user_id=") || is_in_fstab(mount, option);

	return was_there && has(mount, option) && !zf_option_is_in(options, option);
}

static int refuse(const struct zf_mountinfo *mount, const char *option, const char *what)
{
	fprintf(stderr,
		"mount: %s: option '%s' cannot be %s while it is mounted: unmount it, and mount it "
		"again\n",
		mount->mountpoint, option, what);
	return -EINVAL;
}

static int take_out(const struct zf_mountinfo *mount, const char *options, bool sloppy,
		    struct zf_remount *remount)
{
	for (unsigned int i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changes[i].set != MS_RDONLY && is_taken_out(mount, options, changes[i].name))
			remount->clear |= changes[i].set;
	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]) && !sloppy; i++)
		if (kept[i].flag != MS_RELATIME && is_taken_out(mount, options, kept[i].name))
			return refuse(mount, kept[i].name, "taken away");
	return 0;
}

int zf_remount_parse(const struct zf_mountinfo *mount, const char *options, bool sloppy,
		     struct zf_remount *ret_remount)
{
	_zf_free_ char *list = strdup(options);
	struct zf_remount remount = {0};
	char *rest = list;
	const char *option;
	int r;

	if (!list)
		return -ENOMEM;
	r = take_out(mount, options, sloppy, &remount);
	while (r == 0 && (option = strsep(&rest, ",")) != NULL) {
		if (zf_tunable_is(option))
			r = take_tunable(mount, option, &remount.tunables);
		else if (*option != '\0' && !take_change(option, &remount) &&
			 !changes_nothing(mount, option) && !sloppy)
			r = refuse(mount, option, "changed");
	}
	if (r == 0)
		*ret_remount = remount;
	return r;
}

/* ---- the change ---- */

enum access { AS_IT_IS, READ_ONLY, WRITABLE };

static struct json_object *describe(const struct zf_tunables *tunables, enum access access)
{
	struct json_object *args = json_object_new_object();

	if (access != AS_IT_IS)
		json_object_object_add(args, "read_only",
				       json_object_new_boolean(access == READ_ONLY));
	if (tunables->gc_given)
		json_object_object_add(args, "gc", json_object_new_boolean(!tunables->gc_off));
	if (tunables->commit_ms)
		json_object_object_add(args, "commit_ms",
				       json_object_new_uint64(tunables->commit_ms));
	if (tunables->gc_zones)
		json_object_object_add(args, "gc_zones",
				       json_object_new_uint64(tunables->gc_zones));
	if (tunables->gc_percent)
		json_object_object_add(args, "gc_percent",
				       json_object_new_uint64(tunables->gc_percent));
	return args;
}

static int tell_daemon(const struct zf_mountinfo *mount, const struct zf_tunables *tunables,
		       enum access access)
{
	struct json_object *args = describe(tunables, access), *result = NULL;
	_zf_close_ int fd = -1;
	int r = 0;

	if (json_object_object_length(args) > 0) {
		r = zf_ctl_connect_dev(mount->st_dev, &fd);
		if (r == 0)
			r = zf_ctl_send(fd, "remount", args);
		if (r == 0)
			r = zf_ctl_receive(fd, NULL, &result, NULL);
	}
	json_object_put(result);
	json_object_put(args);
	return r;
}

/*
 * To writable: first the daemon, then the kernel, which then lets processes write. To read-only:
 * first the kernel, then the daemon, which makes everything durable when no process writes.
 */
int zf_remount(const struct zf_mountinfo *mounted, const struct zf_remount *remount)
{
	static const struct zf_tunables none;
	unsigned long before = present_flags(mounted);
	unsigned long flags = (before & ~remount->clear) | remount->set;
	bool opens = (before & MS_RDONLY) && !(flags & MS_RDONLY);
	bool closes = !(before & MS_RDONLY) && (flags & MS_RDONLY);
	int r = tell_daemon(mounted, &remount->tunables, opens ? WRITABLE : AS_IT_IS);

	if (r < 0)
		return r;
	if (mount(NULL, mounted->mountpoint, NULL, MS_REMOUNT | flags, NULL) < 0) {
		r = -errno;
		if (opens)
			(void)tell_daemon(mounted, &none, READ_ONLY);
		return r;
	}
	return closes ? tell_daemon(mounted, &none, READ_ONLY) : 0;
}

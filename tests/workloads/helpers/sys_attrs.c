// SPDX-License-Identifier: MIT
/* Attributes: modes, owners, times, flags, and what stat and statfs say. */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CALL(name) static long long call_##name(struct sys_arg *a, bool *ret_printed)

CALL(chmod)
{
	return chmod(a[0].bytes, (mode_t)a[1].n);
}
CALL(fchmod)
{
	return fchmod((int)a[0].n, (mode_t)a[1].n);
}
CALL(fchmodat)
{
	return fchmodat((int)a[0].n, a[1].bytes, (mode_t)a[2].n, (int)a[3].n);
}
CALL(chown)
{
	return chown(a[0].bytes, (uid_t)a[1].n, (gid_t)a[2].n);
}
CALL(lchown)
{
	return lchown(a[0].bytes, (uid_t)a[1].n, (gid_t)a[2].n);
}
CALL(fchown)
{
	return fchown((int)a[0].n, (uid_t)a[1].n, (gid_t)a[2].n);
}
CALL(fchownat)
{
	return fchownat((int)a[0].n, a[1].bytes, (uid_t)a[2].n, (gid_t)a[3].n, (int)a[4].n);
}
CALL(access)
{
	return access(a[0].bytes, (int)a[1].n);
}
CALL(faccessat)
{
	return faccessat((int)a[0].n, a[1].bytes, (int)a[2].n, (int)a[3].n);
}
CALL(umask)
{
	return umask((mode_t)a[0].n);
}

/* "now", "omit", or seconds with up to nine digits behind a point. */
static struct timespec time_of(const struct sys_arg *a)
{
	struct timespec t = {.tv_sec = (time_t)a->n};
	const char *point;
	char digits[10] = "000000000";
	size_t len;

	if (strcmp(a->text, "now") == 0) {
		t.tv_nsec = UTIME_NOW;
	} else if (strcmp(a->text, "omit") == 0) {
		t.tv_nsec = UTIME_OMIT;
	} else if ((point = strchr(a->text, '.'))) {
		len = strlen(point + 1);
		memcpy(digits, point + 1, len < 9 ? len : 9);
		t.tv_nsec = strtol(digits, NULL, 10);
	}
	return t;
}

CALL(utimensat)
{
	struct timespec times[2] = {time_of(&a[2]), time_of(&a[3])};

	return utimensat((int)a[0].n, a[1].bytes, times, (int)a[4].n);
}

CALL(utimens)
{
	struct timespec times[2] = {time_of(&a[1]), time_of(&a[2])};

	return utimensat(AT_FDCWD, a[0].bytes, times, 0);
}

CALL(futimens)
{
	struct timespec times[2] = {time_of(&a[1]), time_of(&a[2])};

	return futimens((int)a[0].n, times);
}

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "dir";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return "char";
	case S_IFBLK:
		return "block";
	default:
		return "?";
	}
}

static void print_time(struct statx_timestamp t, uint32_t mask, uint32_t bit)
{
	if (mask & bit)
		printf("%" PRId64 ".%09u", (int64_t)t.tv_sec, t.tv_nsec);
	else
		printf("none");
}

static void print_field(const struct statx *st, const char *name)
{
	if (strcmp(name, "type") == 0)
		printf("%s", type_name(st->stx_mode));
	else if (strcmp(name, "mode") == 0)
		printf("%04o", st->stx_mode & 07777);
	else if (strcmp(name, "uid") == 0)
		printf("%u", st->stx_uid);
	else if (strcmp(name, "gid") == 0)
		printf("%u", st->stx_gid);
	else if (strcmp(name, "nlink") == 0)
		printf("%u", st->stx_nlink);
	else if (strcmp(name, "size") == 0)
		printf("%" PRIu64, (uint64_t)st->stx_size);
	else if (strcmp(name, "blocks") == 0)
		printf("%" PRIu64, (uint64_t)st->stx_blocks);
	else if (strcmp(name, "blksize") == 0)
		printf("%u", st->stx_blksize);
	else if (strcmp(name, "ino") == 0)
		printf("%" PRIu64, (uint64_t)st->stx_ino);
	else if (strcmp(name, "dev") == 0)
		printf("%u:%u", st->stx_dev_major, st->stx_dev_minor);
	else if (strcmp(name, "rdev") == 0)
		printf("%u:%u", st->stx_rdev_major, st->stx_rdev_minor);
	else if (strcmp(name, "atime") == 0)
		print_time(st->stx_atime, st->stx_mask, STATX_ATIME);
	else if (strcmp(name, "mtime") == 0)
		print_time(st->stx_mtime, st->stx_mask, STATX_MTIME);
	else if (strcmp(name, "ctime") == 0)
		print_time(st->stx_ctime, st->stx_mask, STATX_CTIME);
	else if (strcmp(name, "btime") == 0)
		print_time(st->stx_btime, st->stx_mask, STATX_BTIME);
	else if (strcmp(name, "attrs") == 0)
		printf("%#" PRIx64, (uint64_t)(st->stx_attributes & st->stx_attributes_mask));
	else
		sys_die("no such field: '%s'", name);
}

static void each_field(const char *names, void (*print)(const void *, const char *), const void *of)
{
	char *copy = strdup(names), *rest = copy, *name;

	while ((name = strsep(&rest, ","))) {
		print(of, name);
		if (rest)
			putchar(' ');
	}
	free(copy);
}

static void print_statx_field(const void *of, const char *name)
{
	print_field(of, name);
}

static long long stat_any(int dir, const char *path, int flags, const char *fields,
			  bool *ret_printed)
{
	struct statx st;

	if (statx(dir, path, flags, STATX_BASIC_STATS | STATX_BTIME, &st))
		return -1;
	if (fields) {
		each_field(fields, print_statx_field, &st);
		*ret_printed = true;
	}
	return 0;
}

CALL(stat)
{
	return stat_any(AT_FDCWD, a[0].bytes, 0, a[1].text, ret_printed);
}
CALL(lstat)
{
	return stat_any(AT_FDCWD, a[0].bytes, AT_SYMLINK_NOFOLLOW, a[1].text, ret_printed);
}
CALL(fstat)
{
	return stat_any((int)a[0].n, "", AT_EMPTY_PATH, a[1].text, ret_printed);
}
CALL(statx)
{
	return stat_any((int)a[0].n, a[1].bytes, (int)a[2].n, a[3].text, ret_printed);
}

static void print_statfs_field(const void *of, const char *name)
{
	const struct statfs *st = of;

	if (strcmp(name, "type") == 0)
		printf("%#lx", (unsigned long)st->f_type);
	else if (strcmp(name, "bsize") == 0)
		printf("%ld", (long)st->f_bsize);
	else if (strcmp(name, "frsize") == 0)
		printf("%ld", (long)st->f_frsize);
	else if (strcmp(name, "blocks") == 0)
		printf("%llu", (unsigned long long)st->f_blocks);
	else if (strcmp(name, "bfree") == 0)
		printf("%llu", (unsigned long long)st->f_bfree);
	else if (strcmp(name, "bavail") == 0)
		printf("%llu", (unsigned long long)st->f_bavail);
	else if (strcmp(name, "files") == 0)
		printf("%llu", (unsigned long long)st->f_files);
	else if (strcmp(name, "ffree") == 0)
		printf("%llu", (unsigned long long)st->f_ffree);
	else if (strcmp(name, "namelen") == 0)
		printf("%ld", (long)st->f_namelen);
	else if (strcmp(name, "flags") == 0)
		printf("%#lx", (unsigned long)st->f_flags);
	else
		sys_die("no such field: '%s'", name);
}

CALL(statfs)
{
	struct statfs st;

	if (statfs(a[0].bytes, &st))
		return -1;
	if (a[1].text) {
		each_field(a[1].text, print_statfs_field, &st);
		*ret_printed = true;
	}
	return 0;
}

/* The flags of chattr(1), printed in octal as they come: scripts mask what a filesystem sets by
 * itself. */
static long long get_flags(int fd, unsigned long long mask, bool *ret_printed)
{
	int flags = 0;

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags))
		return -1;
	printf("%#llx", (unsigned)flags & mask);
	*ret_printed = true;
	return 0;
}

static unsigned long long mask_of(const struct sys_arg *a)
{
	return a->text ? (unsigned long long)a->n : ~0ULL;
}

static int open_for_flags(const char *path)
{
	return open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
}

static long long close_after(int fd, long long result)
{
	int err = errno;

	if (fd >= 0)
		close(fd);
	errno = err;
	return result;
}

static long long set_flags(int fd, long long n)
{
	int flags = (int)n;

	return fd < 0 ? -1 : ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

CALL(fgetflags)
{
	return get_flags((int)a[0].n, mask_of(&a[1]), ret_printed);
}
CALL(fsetflags)
{
	return set_flags((int)a[0].n, a[1].n);
}

CALL(getflags)
{
	int fd = open_for_flags(a[0].bytes);

	return close_after(fd, get_flags(fd, mask_of(&a[1]), ret_printed));
}

CALL(setflags)
{
	int fd = open_for_flags(a[0].bytes);

	return close_after(fd, set_flags(fd, a[1].n));
}

CALL(fsgetxattr)
{
	int fd = open_for_flags(a[0].bytes);
	struct fsxattr fsx = {0};

	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &fsx))
		return close_after(fd, -1);
	printf("xflags=%#llx projid=%u extsize=%u", fsx.fsx_xflags & mask_of(&a[1]), fsx.fsx_projid,
	       fsx.fsx_extsize);
	*ret_printed = true;
	return close_after(fd, 0);
}

CALL(fssetxattr)
{
	int fd = open_for_flags(a[0].bytes);
	struct fsxattr fsx = {0};

	if (fd < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &fsx))
		return close_after(fd, -1);
	fsx.fsx_xflags = (unsigned)a[1].n;
	if (a[2].text)
		fsx.fsx_projid = (unsigned)a[2].n;
	return close_after(fd, ioctl(fd, FS_IOC_FSSETXATTR, &fsx));
}

const struct sys_call sys_attrs[] = {
	{"chmod", "pn", SYS_OK, call_chmod},
	{"fchmod", "dn", SYS_OK, call_fchmod},
	{"fchmodat", "dpn?n", SYS_OK, call_fchmodat},
	{"chown", "pnn", SYS_OK, call_chown},
	{"lchown", "pnn", SYS_OK, call_lchown},
	{"fchown", "dnn", SYS_OK, call_fchown},
	{"fchownat", "dpnn?n", SYS_OK, call_fchownat},
	{"access", "pn", SYS_OK, call_access},
	{"faccessat", "dpn?n", SYS_OK, call_faccessat},
	{"umask", "n", SYS_OCTAL, call_umask},
	{"utimens", "ptt", SYS_OK, call_utimens},
	{"utimensat", "dptt?n", SYS_OK, call_utimensat},
	{"futimens", "dtt", SYS_OK, call_futimens},
	{"stat", "p?b", SYS_OK, call_stat},
	{"lstat", "p?b", SYS_OK, call_lstat},
	{"fstat", "d?b", SYS_OK, call_fstat},
	{"statx", "dpnb", SYS_OK, call_statx},
	{"statfs", "p?b", SYS_OK, call_statfs},
	{"getflags", "p?n", SYS_OK, call_getflags},
	{"setflags", "pn", SYS_OK, call_setflags},
	{"fgetflags", "d?n", SYS_OK, call_fgetflags},
	{"fsetflags", "dn", SYS_OK, call_fsetflags},
	{"fsgetxattr", "p?n", SYS_OK, call_fsgetxattr},
	{"fssetxattr", "pn?n", SYS_OK, call_fssetxattr},
	{NULL},
};

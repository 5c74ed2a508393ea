// SPDX-License-Identifier: MIT
/* Names: making, linking, renaming and removing them, and listing directories. */
#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#define CALL(name) static long long call_##name(struct sys_arg *a, bool *ret_printed)

static mode_t mode_of(const struct sys_arg *a, mode_t left_out)
{
	return a->text ? (mode_t)a->n : left_out;
}

CALL(mkdir)
{
	return mkdir(a[0].bytes, mode_of(&a[1], 0777));
}
CALL(mkdirat)
{
	return mkdirat((int)a[0].n, a[1].bytes, mode_of(&a[2], 0777));
}
CALL(rmdir)
{
	return rmdir(a[0].bytes);
}
CALL(unlink)
{
	return unlink(a[0].bytes);
}
CALL(unlinkat)
{
	return unlinkat((int)a[0].n, a[1].bytes, (int)a[2].n);
}
CALL(rename)
{
	return rename(a[0].bytes, a[1].bytes);
}
CALL(rename2)
{
	return renameat2(AT_FDCWD, a[0].bytes, AT_FDCWD, a[1].bytes, (unsigned)a[2].n);
}
CALL(renameat2)
{
	return renameat2((int)a[0].n, a[1].bytes, (int)a[2].n, a[3].bytes, (unsigned)a[4].n);
}
CALL(link)
{
	return link(a[0].bytes, a[1].bytes);
}
CALL(linkat)
{
	return linkat((int)a[0].n, a[1].bytes, (int)a[2].n, a[3].bytes, (int)a[4].n);
}
CALL(symlink)
{
	return symlink(a[0].bytes, a[1].bytes);
}
CALL(symlinkat)
{
	return symlinkat(a[0].bytes, (int)a[1].n, a[2].bytes);
}
CALL(mkfifo)
{
	return mkfifo(a[0].bytes, mode_of(&a[1], 0666));
}
CALL(chdir)
{
	return chdir(a[0].bytes);
}
CALL(fchdir)
{
	return fchdir((int)a[0].n);
}

static dev_t device(const struct sys_arg *a)
{
	return makedev((unsigned)(a->n >> 32), (unsigned)a->n);
}

CALL(mknod)
{
	return mknod(a[0].bytes, (mode_t)a[1].n, device(&a[2]));
}
CALL(mknodat)
{
	return mknodat((int)a[0].n, a[1].bytes, (mode_t)a[2].n, device(&a[3]));
}

/* Makes a socket. */
CALL(bind)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, result;

	if (a[0].len >= sizeof(address.sun_path))
		sys_die("too long for a socket: '%s'", a[0].text);
	memcpy(address.sun_path, a[0].bytes, a[0].len);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		return -1;
	result = bind(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	return result;
}

static long long print_target(ssize_t len, const char *target, bool *ret_printed)
{
	if (len >= 0) {
		sys_print_bytes(target, (size_t)len);
		*ret_printed = true;
	}
	return len;
}

CALL(readlink)
{
	char target[8192];
	size_t size = a[1].text ? (size_t)a[1].n : sizeof(target);

	return print_target(readlink(a[0].bytes, target, size), target, ret_printed);
}

CALL(readlinkat)
{
	char target[8192];

	return print_target(readlinkat((int)a[0].n, a[1].bytes, target, sizeof(target)), target,
			    ret_printed);
}

static int not_dots(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static long long print_names(int count, struct dirent **entries, bool *ret_printed)
{
	if (count < 0)
		return -1;
	for (int i = 0; i < count; i++) {
		printf("%s", i ? " " : "");
		sys_print_bytes(entries[i]->d_name, strlen(entries[i]->d_name));
		free(entries[i]);
	}
	if (count == 0)
		printf("nothing");
	free(entries);
	*ret_printed = true;
	return count;
}

/* The names in byte order, without . and .. */
CALL(readdir)
{
	struct dirent **entries;
	int count = scandir(a[0].bytes, &entries, not_dots, alphasort);

	return print_names(count, entries, ret_printed);
}

/* Lists a descriptor's directory, and leaves the descriptor's position as it was. */
CALL(freaddir)
{
	struct dirent **entries;
	int count = scandirat((int)a[0].n, ".", &entries, not_dots, alphasort);

	return print_names(count, entries, ret_printed);
}

/* How many entries the rest of the directory has, . and .. included, by the position of the
 * descriptor itself. */
CALL(getdents)
{
	char buffer[32768];
	long long count = 0;
	ssize_t got;

	while ((got = getdents64((int)a[0].n, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < got; count++)
			at += ((struct dirent64 *)(void *)(buffer + at))->d_reclen;
	}
	return got < 0 ? -1 : count;
}

const struct sys_call sys_names[] = {
	{"mkdir", "p?n", SYS_OK, call_mkdir},
	{"mkdirat", "dp?n", SYS_OK, call_mkdirat},
	{"rmdir", "p", SYS_OK, call_rmdir},
	{"unlink", "p", SYS_OK, call_unlink},
	{"unlinkat", "dp?n", SYS_OK, call_unlinkat},
	{"rename", "pp", SYS_OK, call_rename},
	{"rename2", "ppn", SYS_OK, call_rename2},
	{"renameat2", "dpdp?n", SYS_OK, call_renameat2},
	{"link", "pp", SYS_OK, call_link},
	{"linkat", "dpdp?n", SYS_OK, call_linkat},
	{"symlink", "pp", SYS_OK, call_symlink},
	{"symlinkat", "pdp", SYS_OK, call_symlinkat},
	{"readlink", "p?n", SYS_OK, call_readlink},
	{"readlinkat", "dp", SYS_OK, call_readlinkat},
	{"mknod", "pn?o", SYS_OK, call_mknod},
	{"mknodat", "dpn?o", SYS_OK, call_mknodat},
	{"mkfifo", "p?n", SYS_OK, call_mkfifo},
	{"bind", "p", SYS_OK, call_bind},
	{"chdir", "p", SYS_OK, call_chdir},
	{"fchdir", "d", SYS_OK, call_fchdir},
	{"readdir", "p", SYS_OK, call_readdir},
	{"freaddir", "d", SYS_OK, call_freaddir},
	{"getdents", "d", SYS_NUMBER, call_getdents},
	{NULL},
};

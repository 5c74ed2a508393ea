// SPDX-License-Identifier: MIT
/* Extended attributes: of a path, of a symlink itself (l), of a descriptor (f). */
#include "sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define CALL(name) static long long call_##name(struct sys_arg *a, bool *ret_printed)

#define VALUE_MAX  65536

CALL(setxattr)
{
	return setxattr(a[0].bytes, a[1].bytes, a[2].bytes, a[2].len, (int)a[3].n);
}
CALL(lsetxattr)
{
	return lsetxattr(a[0].bytes, a[1].bytes, a[2].bytes, a[2].len, (int)a[3].n);
}
CALL(fsetxattr)
{
	return fsetxattr((int)a[0].n, a[1].bytes, a[2].bytes, a[2].len, (int)a[3].n);
}
CALL(removexattr)
{
	return removexattr(a[0].bytes, a[1].bytes);
}
CALL(lremovexattr)
{
	return lremovexattr(a[0].bytes, a[1].bytes);
}
CALL(fremovexattr)
{
	return fremovexattr((int)a[0].n, a[1].bytes);
}

static size_t size_of(const struct sys_arg *a)
{
	return a->text ? (size_t)a->n : VALUE_MAX;
}

/* With a size of 0 the call returns the length. */
static long long print_value(ssize_t got, const char *value, size_t size, bool *ret_printed)
{
	if (got < 0)
		return -1;
	if (size == 0)
		printf("%zd", got);
	else
		sys_print_bytes(value, (size_t)got);
	*ret_printed = true;
	return 0;
}

static char value[VALUE_MAX];

CALL(getxattr)
{
	size_t size = size_of(&a[2]);

	return print_value(getxattr(a[0].bytes, a[1].bytes, value, size), value, size, ret_printed);
}

CALL(lgetxattr)
{
	size_t size = size_of(&a[2]);

	return print_value(lgetxattr(a[0].bytes, a[1].bytes, value, size), value, size,
			   ret_printed);
}

CALL(fgetxattr)
{
	size_t size = size_of(&a[2]);

	return print_value(fgetxattr((int)a[0].n, a[1].bytes, value, size), value, size,
			   ret_printed);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the names, because no filesystem promises an order. */
static long long print_list(ssize_t got, char *list, size_t size, bool *ret_printed)
{
	char *names[4096];
	size_t count = 0;

	if (got < 0)
		return -1;
	*ret_printed = true;
	if (size == 0) {
		printf("%zd", got);
		return 0;
	}
	for (char *name = list; name < list + got; name += strlen(name) + 1)
		names[count++] = name;
	qsort(names, count, sizeof(names[0]), by_name);
	for (size_t i = 0; i < count; i++) {
		printf("%s", i ? " " : "");
		sys_print_bytes(names[i], strlen(names[i]));
	}
	if (count == 0)
		printf("nothing");
	return 0;
}

CALL(listxattr)
{
	size_t size = size_of(&a[1]);

	return print_list(listxattr(a[0].bytes, value, size), value, size, ret_printed);
}

CALL(llistxattr)
{
	size_t size = size_of(&a[1]);

	return print_list(llistxattr(a[0].bytes, value, size), value, size, ret_printed);
}

CALL(flistxattr)
{
	size_t size = size_of(&a[1]);

	return print_list(flistxattr((int)a[0].n, value, size), value, size, ret_printed);
}

const struct sys_call sys_xattrs[] = {
	{"setxattr", "ppb?n", SYS_OK, call_setxattr},
	{"lsetxattr", "ppb?n", SYS_OK, call_lsetxattr},
	{"fsetxattr", "dpb?n", SYS_OK, call_fsetxattr},
	{"getxattr", "pp?n", SYS_OK, call_getxattr},
	{"lgetxattr", "pp?n", SYS_OK, call_lgetxattr},
	{"fgetxattr", "dp?n", SYS_OK, call_fgetxattr},
	{"listxattr", "p?n", SYS_OK, call_listxattr},
	{"llistxattr", "p?n", SYS_OK, call_llistxattr},
	{"flistxattr", "d?n", SYS_OK, call_flistxattr},
	{"removexattr", "pp", SYS_OK, call_removexattr},
	{"lremovexattr", "pp", SYS_OK, call_lremovexattr},
	{"fremovexattr", "dp", SYS_OK, call_fremovexattr},
	{NULL},
};

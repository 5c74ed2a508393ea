// SPDX-License-Identifier: MIT
/* Numbers, names of constants, and strings with repetitions. */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef FALLOC_FL_WRITE_ZEROES
#define FALLOC_FL_WRITE_ZEROES 0x80
#endif

bool sys_literal;

/* clang-format off */
#define C(x) {#x, x}
static const struct {
	const char *name;
	long long value;
} constants[] = {
	C(O_RDONLY), C(O_WRONLY), C(O_RDWR), C(O_CREAT), C(O_EXCL), C(O_NOCTTY), C(O_TRUNC), C(O_APPEND),
	C(O_NONBLOCK), C(O_DSYNC), C(O_SYNC), C(O_DIRECT), C(O_LARGEFILE), C(O_DIRECTORY), C(O_NOFOLLOW), C(O_NOATIME),
	C(O_CLOEXEC), C(O_PATH), C(O_TMPFILE),
	C(AT_FDCWD), C(AT_EMPTY_PATH), C(AT_SYMLINK_FOLLOW), C(AT_SYMLINK_NOFOLLOW), C(AT_REMOVEDIR), C(AT_EACCESS),
	C(RENAME_NOREPLACE), C(RENAME_EXCHANGE), C(RENAME_WHITEOUT),
	C(FALLOC_FL_KEEP_SIZE), C(FALLOC_FL_PUNCH_HOLE), C(FALLOC_FL_ZERO_RANGE), C(FALLOC_FL_COLLAPSE_RANGE),
	C(FALLOC_FL_INSERT_RANGE), C(FALLOC_FL_UNSHARE_RANGE), C(FALLOC_FL_WRITE_ZEROES),
	C(SEEK_SET), C(SEEK_CUR), C(SEEK_END), C(SEEK_DATA), C(SEEK_HOLE),
	C(RWF_HIPRI), C(RWF_DSYNC), C(RWF_SYNC), C(RWF_NOWAIT), C(RWF_APPEND),
	C(RLIMIT_FSIZE),
	C(S_IFREG), C(S_IFDIR), C(S_IFLNK), C(S_IFIFO), C(S_IFSOCK), C(S_IFCHR), C(S_IFBLK),
	C(R_OK), C(W_OK), C(X_OK), C(F_OK),
	C(XATTR_CREATE), C(XATTR_REPLACE),
	C(LOCK_SH), C(LOCK_EX), C(LOCK_NB), C(LOCK_UN),
	C(F_GETLK), C(F_SETLK), C(F_OFD_GETLK), C(F_OFD_SETLK), C(F_RDLCK), C(F_WRLCK), C(F_UNLCK), C(F_SETLEASE),
	C(F_GETLEASE), C(F_GETFL), C(F_SETFL), C(F_DUPFD), C(F_SETPIPE_SZ),
	C(PROT_NONE), C(PROT_READ), C(PROT_WRITE), C(PROT_EXEC), C(MAP_SHARED), C(MAP_PRIVATE), C(MS_SYNC), C(MS_ASYNC),
	C(MS_INVALIDATE), C(MADV_DONTNEED), C(MADV_REMOVE), C(MADV_WILLNEED),
	C(POSIX_FADV_NORMAL), C(POSIX_FADV_SEQUENTIAL), C(POSIX_FADV_RANDOM), C(POSIX_FADV_NOREUSE),
	C(POSIX_FADV_WILLNEED), C(POSIX_FADV_DONTNEED),
	C(SYNC_FILE_RANGE_WAIT_BEFORE), C(SYNC_FILE_RANGE_WRITE), C(SYNC_FILE_RANGE_WAIT_AFTER),
	C(FS_SECRM_FL), C(FS_UNRM_FL), C(FS_COMPR_FL), C(FS_SYNC_FL), C(FS_IMMUTABLE_FL), C(FS_APPEND_FL),
	C(FS_NODUMP_FL), C(FS_NOATIME_FL), C(FS_NOCOMP_FL), C(FS_DIRSYNC_FL), C(FS_TOPDIR_FL), C(FS_NOCOW_FL),
	C(FS_PROJINHERIT_FL), C(FS_JOURNAL_DATA_FL), C(FS_EXTENT_FL), C(FS_INLINE_DATA_FL), C(FS_CASEFOLD_FL),
	C(FS_XFLAG_IMMUTABLE), C(FS_XFLAG_APPEND), C(FS_XFLAG_SYNC), C(FS_XFLAG_NOATIME), C(FS_XFLAG_NODUMP),
	C(FS_XFLAG_PROJINHERIT), C(FS_XFLAG_EXTSIZE), C(FS_XFLAG_HASATTR),
};
/* clang-format on */
#undef C

static bool constant(const char *name, size_t len, long long *ret_value)
{
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		if (strlen(constants[i].name) != len || memcmp(constants[i].name, name, len) != 0)
			continue;
		*ret_value = constants[i].value;
		return true;
	}
	return false;
}

/* One constant, %N, or a number in C's notation with k, m, g, t behind it. */
static long long word(const char *text, size_t len)
{
	static const char suffixes[] = "kmgt";
	char buffer[64], *end;
	const char *suffix;
	long long n;

	if (len == 0 || len >= sizeof(buffer))
		sys_die("no number: '%s'", text);
	memcpy(buffer, text, len);
	buffer[len] = '\0';
	if (buffer[0] == '%')
		return sys_fd_of((unsigned)strtoul(buffer + 1, NULL, 10));
	if (constant(buffer, len, &n))
		return n;
	errno = 0;
	n = strtoll(buffer, &end, 0);
	if (end == buffer || errno)
		sys_die("no number: '%s'", buffer);
	if (*end == '\0')
		return n;
	suffix = strchr(suffixes, *end);
	if (!suffix || end[1] != '\0')
		sys_die("no number: '%s'", buffer);
	return n * (1LL << (10 * (suffix - suffixes + 1)));
}

/* Several joined by ',' are or-ed; '+' and '-' between numbers add and subtract. */
long long sys_number(const char *text)
{
	long long n = 0;
	char op = ',';

	while (true) {
		size_t sign = *text == '-' ? 1 : 0, len = sign + strcspn(text + sign, ",+-");
		long long value = word(text, len);

		n = op == '+' ? n + value : op == '-' ? n - value : n | value;
		op = text[len];
		if (op == '\0')
			return n;
		text += len + 1;
	}
}

static void append(char **bytes, size_t *len, const char *unit, size_t unit_len,
		   unsigned long count)
{
	char *p = realloc(*bytes, *len + unit_len * count + 1);

	if (!p)
		sys_die("out of memory");
	*bytes = p;
	p += *len;
	for (unsigned long i = 0; i < count; i++, p += unit_len)
		memcpy(p, unit, unit_len);
	*p = '\0';
	*len += unit_len * count;
}

static size_t unescape(char *unit, size_t len)
{
	static const char from[] = "0nt\\s", to[] = "\0\n\t\\ ";
	size_t out = 0;

	for (size_t i = 0; i < len; i++) {
		const char *known;
		char hex[3] = {0};

		if (unit[i] != '\\' || i + 1 == len) {
			unit[out++] = unit[i];
		} else if (unit[i + 1] == 'x' && i + 3 < len) {
			memcpy(hex, unit + i + 2, 2);
			unit[out++] = (char)strtoul(hex, NULL, 16);
			i += 3;
		} else if ((known = memchr(from, unit[i + 1], sizeof(from) - 1))) {
			unit[out++] = to[known - from];
			i++;
		} else {
			unit[out++] = unit[i];
		}
	}
	return out;
}

/* "/proc/self/fd/%0" names a descriptor too. */
static void expand_fd(char **bytes, size_t *len)
{
	static const char dir[] = "/proc/self/fd/%";
	char text[32];

	if (strncmp(*bytes, dir, strlen(dir)) != 0)
		return;
	*len = (size_t)snprintf(text, sizeof(text), "/proc/self/fd/%d",
				sys_fd_of((unsigned)strtoul(*bytes + strlen(dir), NULL, 10)));
	*bytes = realloc(*bytes, *len + 1);
	memcpy(*bytes, text, *len + 1);
}

/*
 * "n*255" is 255 times n, and so is a part of a string in braces: "{ab*100}c".
 * \n, \t, \0, \xHH, and \s for a blank, stand for bytes.
 */
char *sys_expand(const char *text, size_t *ret_len)
{
	char *bytes = NULL, *unit, *star, *end;
	size_t len = 0;

	if (sys_literal) {
		append(&bytes, &len, text, strlen(text), 1);
		*ret_len = len;
		return bytes;
	}
	append(&bytes, &len, "", 0, 1);
	while (*text) {
		size_t part = *text == '{' ? strcspn(text, "}") : strcspn(text, "{");
		unsigned long count = 1;

		unit = *text == '{' ? strndup(text + 1, part - 1) : strndup(text, part);
		text += part + (text[part] == '}');
		star = strrchr(unit, '*');
		if (star && star[1]) {
			count = strtoul(star + 1, &end, 0);
			if (*end == '\0')
				*star = '\0';
			else
				count = 1;
		}
		append(&bytes, &len, unit, unescape(unit, strlen(unit)), count);
		free(unit);
	}
	expand_fd(&bytes, &len);
	*ret_len = len;
	return bytes;
}

const char *sys_errno_name(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "errno unknown";
}

// SPDX-License-Identifier: MIT
/* Opening, reading, writing, and the space that a file takes. */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL(name) static long long call_##name(struct sys_arg *a, bool *ret_printed)

/* O_DIRECT wants its buffers aligned. */
static void *buffer(size_t len)
{
	void *p;

	if (posix_memalign(&p, 4096, len ? len : 1))
		sys_die("out of memory");
	return p;
}

static void *copy_of(struct sys_arg *data)
{
	return memcpy(buffer(data->len), data->bytes, data->len);
}

CALL(open)
{
	return open(a[0].bytes, (int)a[1].n, (mode_t)a[2].n);
}
CALL(openat)
{
	return openat((int)a[0].n, a[1].bytes, (int)a[2].n, (mode_t)a[3].n);
}
CALL(creat)
{
	return creat(a[0].bytes, (mode_t)a[1].n);
}
CALL(close)
{
	return close((int)a[0].n);
}
CALL(dup)
{
	return dup((int)a[0].n);
}

static long long print_read(ssize_t got, char *bytes, bool *ret_printed)
{
	if (got >= 0) {
		sys_print_bytes(bytes, (size_t)got);
		*ret_printed = true;
	}
	free(bytes);
	return got;
}

CALL(read)
{
	char *p = buffer((size_t)a[1].n);

	return print_read(read((int)a[0].n, p, (size_t)a[1].n), p, ret_printed);
}

CALL(pread)
{
	char *p = buffer((size_t)a[1].n);

	return print_read(pread((int)a[0].n, p, (size_t)a[1].n, a[2].n), p, ret_printed);
}

CALL(preadv2)
{
	char *p = buffer((size_t)a[1].n);
	struct iovec iov = {p, (size_t)a[1].n};

	return print_read(preadv2((int)a[0].n, &iov, 1, a[2].n, (int)a[3].n), p, ret_printed);
}

CALL(write)
{
	void *p = copy_of(&a[1]);
	ssize_t done = write((int)a[0].n, p, a[1].len);

	free(p);
	return done;
}

CALL(pwrite)
{
	void *p = copy_of(&a[1]);
	ssize_t done = pwrite((int)a[0].n, p, a[1].len, a[2].n);

	free(p);
	return done;
}

CALL(pwritev2)
{
	void *p = copy_of(&a[1]);
	struct iovec iov = {p, a[1].len};
	ssize_t done = pwritev2((int)a[0].n, &iov, 1, a[2].n, (int)a[3].n);

	free(p);
	return done;
}

CALL(truncate)
{
	return truncate(a[0].bytes, a[1].n);
}
CALL(ftruncate)
{
	return ftruncate((int)a[0].n, a[1].n);
}
CALL(fallocate)
{
	return fallocate((int)a[0].n, (int)a[1].n, a[2].n, a[3].n);
}
CALL(lseek)
{
	return lseek((int)a[0].n, a[1].n, (int)a[2].n);
}
CALL(fsync)
{
	return fsync((int)a[0].n);
}
CALL(fdatasync)
{
	return fdatasync((int)a[0].n);
}
CALL(syncfs)
{
	return syncfs((int)a[0].n);
}
CALL(sync_file_range)
{
	return sync_file_range((int)a[0].n, a[1].n, a[2].n, (unsigned)a[3].n);
}
CALL(readahead)
{
	return readahead((int)a[0].n, a[1].n, (size_t)a[2].n);
}

CALL(sync)
{
	sync();
	return 0;
}

/* With an offset of -1 the call uses the descriptor's own offset. */
CALL(copy_file_range)
{
	off_t from = a[1].n, to = a[3].n;

	return copy_file_range((int)a[0].n, from == -1 ? NULL : &from, (int)a[2].n,
			       to == -1 ? NULL : &to, (size_t)a[4].n, (unsigned)a[5].n);
}

CALL(fadvise)
{
	int err = posix_fadvise((int)a[0].n, a[1].n, a[2].n, (int)a[3].n);

	if (err)
		errno = err;
	return err ? -1 : 0;
}

const struct sys_call sys_files[] = {
	{"open", "pn?n", SYS_FD, call_open},
	{"openat", "dpn?n", SYS_FD, call_openat},
	{"creat", "pn", SYS_FD, call_creat},
	{"close", "d", SYS_OK, call_close},
	{"dup", "d", SYS_FD, call_dup},
	{"read", "dn", SYS_NUMBER, call_read},
	{"pread", "dnn", SYS_NUMBER, call_pread},
	{"preadv2", "dnnn", SYS_NUMBER, call_preadv2},
	{"write", "db", SYS_NUMBER, call_write},
	{"pwrite", "dbn", SYS_NUMBER, call_pwrite},
	{"pwritev2", "dbnn", SYS_NUMBER, call_pwritev2},
	{"truncate", "pn", SYS_OK, call_truncate},
	{"ftruncate", "dn", SYS_OK, call_ftruncate},
	{"fallocate", "dnnn", SYS_OK, call_fallocate},
	{"lseek", "dnn", SYS_NUMBER, call_lseek},
	{"copy_file_range", "dndnn?n", SYS_NUMBER, call_copy_file_range},
	{"fsync", "d", SYS_OK, call_fsync},
	{"fdatasync", "d", SYS_OK, call_fdatasync},
	{"syncfs", "d", SYS_OK, call_syncfs},
	{"sync", "", SYS_OK, call_sync},
	{"sync_file_range", "dnnn", SYS_OK, call_sync_file_range},
	{"readahead", "dnn", SYS_OK, call_readahead},
	{"fadvise", "dnnn", SYS_OK, call_fadvise},
	{NULL},
};

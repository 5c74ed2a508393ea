// SPDX-License-Identifier: MIT
/* Vectors, pipes, and calls that move bytes between descriptors within the kernel. */
#include "sys.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL(name)  static long long call_##name(struct sys_arg *a, bool *ret_printed)
#define VECTORS_MAX 2048

/* Makes a vector of each argument from `first` on that was given. */
static int vectors_of(struct sys_arg *a, int first, struct iovec *iov)
{
	int count = 0;

	for (int i = first; i < SYS_ARGS_MAX && a[i].text; i++, count++) {
		iov[count].iov_len = a[i].bytes ? a[i].len : (size_t)a[i].n;
		iov[count].iov_base = a[i].bytes ? a[i].bytes : malloc(iov[count].iov_len + 1);
	}
	return count;
}

static long long print_vectors(ssize_t got, struct iovec *iov, int count, bool *ret_printed)
{
	size_t left = got < 0 ? 0 : (size_t)got;

	for (int i = 0; i < count; i++) {
		size_t len = iov[i].iov_len < left ? iov[i].iov_len : left;

		if (got >= 0) {
			printf("%s", i > 0 ? " " : "");
			sys_print_bytes(iov[i].iov_base, len);
			*ret_printed = true;
		}
		left -= len;
		free(iov[i].iov_base);
	}
	return got;
}

CALL(readv)
{
	struct iovec iov[SYS_ARGS_MAX];
	int count = vectors_of(a, 1, iov);

	return print_vectors(readv((int)a[0].n, iov, count), iov, count, ret_printed);
}

CALL(preadv)
{
	struct iovec iov[SYS_ARGS_MAX];
	int count = vectors_of(a, 2, iov);

	return print_vectors(preadv((int)a[0].n, iov, count, a[1].n), iov, count, ret_printed);
}

CALL(writev)
{
	struct iovec iov[SYS_ARGS_MAX];

	return writev((int)a[0].n, iov, vectors_of(a, 1, iov));
}

CALL(pwritev)
{
	struct iovec iov[SYS_ARGS_MAX];

	return pwritev((int)a[0].n, iov, vectors_of(a, 2, iov), a[1].n);
}

/* The same bytes COUNT times, each time in a vector of its own. */
CALL(pwritev_many)
{
	static struct iovec iov[VECTORS_MAX];

	if (a[3].n < 0 || a[3].n > VECTORS_MAX)
		sys_die("too many vectors");
	for (long long i = 0; i < a[3].n; i++)
		iov[i] = (struct iovec){a[2].bytes, a[2].len};
	return pwritev((int)a[0].n, iov, (int)a[3].n, a[1].n);
}

/* Two descriptors: to read from, and to write to. */
CALL(pipe)
{
	int ends[2];

	if (pipe(ends))
		return -1;
	sys_fd_add(ends[0]);
	sys_fd_add(ends[1]);
	return 0;
}

/* With an offset of -1 the call uses the descriptor's own offset. */
CALL(splice)
{
	off_t from = a[1].n, to = a[3].n;

	return splice((int)a[0].n, from == -1 ? NULL : &from, (int)a[2].n, to == -1 ? NULL : &to,
		      (size_t)a[4].n, 0);
}

CALL(sendfile)
{
	off_t from = a[2].n;

	return sendfile((int)a[0].n, (int)a[1].n, from == -1 ? NULL : &from, (size_t)a[3].n);
}

/* Prints where there is data, as FROM-END (END is the first byte after it), and the size. */
CALL(segments)
{
	int fd = (int)a[0].n;
	off_t from = 0, end;

	*ret_printed = true;
	while ((from = lseek(fd, from, SEEK_DATA)) >= 0) {
		end = lseek(fd, from, SEEK_HOLE);
		printf("%lld-%lld ", (long long)from, (long long)end);
		from = end;
	}
	printf("of %lld", (long long)lseek(fd, 0, SEEK_END));
	return 0;
}

CALL(setrlimit)
{
	struct rlimit limit = {(rlim_t)a[1].n, (rlim_t)a[1].n};

	return setrlimit((__rlimit_resource_t)a[0].n, &limit);
}

const struct sys_call sys_streams[] = {
	{"readv", "dn?nnnnnn", SYS_NUMBER, call_readv},
	{"preadv", "dnn?nnnnn", SYS_NUMBER, call_preadv},
	{"writev", "db?bbbbbb", SYS_NUMBER, call_writev},
	{"pwritev", "dnb?bbbbb", SYS_NUMBER, call_pwritev},
	{"pwritev_many", "dnbn", SYS_NUMBER, call_pwritev_many},
	{"pipe", "", SYS_OK, call_pipe},
	{"splice", "dndnn", SYS_NUMBER, call_splice},
	{"sendfile", "ddnn", SYS_NUMBER, call_sendfile},
	{"segments", "d", SYS_OK, call_segments},
	{"setrlimit", "nn", SYS_OK, call_setrlimit},
	{NULL},
};

// SPDX-License-Identifier: MIT
/* Mappings: the first mmap of a command line is 0, the second 1, ... A touch that the kernel
 * refuses prints the signal. */
#include "sys.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CALL(name) static long long call_##name(struct sys_arg *a, bool *ret_printed)

#define MAPS_MAX   16

static struct {
	char *at;
	size_t len;
} maps[MAPS_MAX];
static unsigned map_count;
static sigjmp_buf back;

static char *map_at(long long no, long long offset, size_t len)
{
	if (no < 0 || (unsigned long long)no >= map_count)
		sys_die("there is no map %lld", no);
	if (offset < 0 || (size_t)offset + len > maps[no].len)
		sys_die("%lld is not in map %lld", offset, no);
	return maps[no].at + offset;
}

/* mmap FD LENGTH PROT FLAGS [OFFSET] */
CALL(mmap)
{
	char *at = mmap(NULL, (size_t)a[1].n, (int)a[2].n, (int)a[3].n, (int)a[0].n, a[4].n);

	if (map_count == MAPS_MAX)
		sys_die("too many maps");
	maps[map_count].at = at;
	maps[map_count++].len = (size_t)a[1].n;
	return at == MAP_FAILED ? -1 : 0;
}

static void jump(int signal_no)
{
	siglongjmp(back, signal_no);
}

/* The copy goes through memory of our own, so that only the access to the mapping can fail. */
static bool touch(char *to, const char *from, size_t len)
{
	static const int signals[] = {SIGBUS, SIGSEGV};
	int caught;

	for (size_t i = 0; i < 2; i++)
		signal(signals[i], jump);
	caught = sigsetjmp(back, 1);
	if (!caught)
		memcpy(to, from, len);
	for (size_t i = 0; i < 2; i++)
		signal(signals[i], SIG_DFL);
	if (caught)
		printf("SIG%s", sigabbrev_np(caught));
	return !caught;
}

/* load MAP LENGTH OFFSET */
CALL(load)
{
	char *copy = malloc((size_t)a[1].n);

	if (touch(copy, map_at(a[0].n, a[2].n, (size_t)a[1].n), (size_t)a[1].n))
		sys_print_bytes(copy, (size_t)a[1].n);
	free(copy);
	*ret_printed = true;
	return 0;
}

/* store MAP BYTES OFFSET */
CALL(store)
{
	*ret_printed = !touch(map_at(a[0].n, a[2].n, a[1].len), a[1].bytes, a[1].len);
	return 0;
}

CALL(msync)
{
	return msync(map_at(a[0].n, 0, 0), maps[a[0].n].len, (int)a[1].n);
}
CALL(munmap)
{
	return munmap(map_at(a[0].n, 0, 0), maps[a[0].n].len);
}
CALL(mprotect)
{
	return mprotect(map_at(a[0].n, 0, 0), maps[a[0].n].len, (int)a[1].n);
}
/* madvise MAP LENGTH OFFSET ADVICE */
CALL(madvise)
{
	return madvise(map_at(a[0].n, a[2].n, (size_t)a[1].n), (size_t)a[1].n, (int)a[3].n);
}

const struct sys_call sys_maps[] = {
	{"mmap", "dnnn?n", SYS_MAP, call_mmap},	   {"load", "nnn", SYS_OK, call_load},
	{"store", "nbn", SYS_OK, call_store},	   {"msync", "nn", SYS_OK, call_msync},
	{"munmap", "n", SYS_OK, call_munmap},	   {"mprotect", "nn", SYS_OK, call_mprotect},
	{"madvise", "nnnn", SYS_OK, call_madvise}, {NULL},
};

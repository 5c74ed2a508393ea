/* SPDX-License-Identifier: MIT */
/* What the larger helpers share: random numbers that repeat from a seed, and giving up with a
 * message. */
#ifndef COMMON_H
#define COMMON_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rnd {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t rnd_next(struct rnd *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline uint64_t rnd_below(struct rnd *r, uint64_t limit)
{
	return rnd_next(r) % limit;
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(1);
}

static inline void *xalloc(size_t len)
{
	void *p;

	if (posix_memalign(&p, 4096, len ? len : 1))
		die("out of memory");
	memset(p, 0, len);
	return p;
}

static inline unsigned long arg_number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end == 'k')
		n <<= 10;
	else if (*end == 'm')
		n <<= 20;
	else if (*end)
		die("no number: %s", text);
	return n;
}

#endif

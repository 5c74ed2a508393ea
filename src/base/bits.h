/* SPDX-License-Identifier: MIT */
/* Small arithmetic that every module needs, and the two sizes that everything is counted in. */
#ifndef ZF_BASE_BITS_H
#define ZF_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The unit of all I/O and of every address: device and file offsets are multiples of it. */
#define ZF_BLOCK_SIZE  4096u
#define ZF_BLOCK_SHIFT 12

#define ZF_CONTAINER_OF(ptr, type, member)                                                         \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))
#define ZF_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static inline uint64_t zf_align_down(uint64_t v, uint64_t align)
{
	return v - v % align;
}

/* The caller makes sure that v + align - 1 does not overflow. */
static inline uint64_t zf_align_up(uint64_t v, uint64_t align)
{
	return zf_align_down(v + align - 1, align);
}

static inline bool zf_is_aligned(uint64_t v, uint64_t align)
{
	return v % align == 0;
}

/* Whether all bytes are zero: the first is, and each equals the one before. */
static inline bool zf_is_zero(const void *bytes, size_t len)
{
	const char *p = bytes;

	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

static inline uint64_t zf_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t zf_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* For qsort(3): below 0, 0 or above 0. */
static inline int zf_cmp_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* The same for arrays of `count` numbers: the first pair that differs decides. */
static inline int zf_cmp_u64s(const uint64_t *a, const uint64_t *b, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		r = zf_cmp_u64(a[i], b[i]);
	return r;
}

#endif

/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "btree/cache.h"
#include "btree/node_pool.h"
#include "fs/data/block.h"

static uint64_t left; /* allocations up to and with the one that fails; 0: none fails */
static bool lasts, is_within, struck, is_over;
static int64_t held;

void memory_begin(uint64_t nth, bool lasting)
{
	left = nth;
	lasts = lasting;
	is_within = struck = is_over = false;
}

void memory_within(bool in)
{
	is_within = in;
	is_over |= struck && !in;
}

bool memory_end(void)
{
	left = 0;
	is_within = false;
	return struck;
}

int64_t memory_held(void)
{
	return held;
}

static bool fails(void)
{
	if (!is_within || left == 0 || is_over)
		return false;
	if (left > 1) {
		left--;
		return false;
	}
	if (struck && !lasts)
		return false;
	struck = true;
	errno = ENOMEM;
	return true;
}

static void *counted(void *p)
{
	held += p != NULL;
	return p;
}

/* ---- functions that the linker calls in place of the C library's ---- */

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : counted(malloc(size));
}

void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : counted(calloc(count, size));
}

void *__wrap_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size)
{
	if (fails())
		return NULL;
	return p ? realloc(p, size) : counted(malloc(size));
}

void *__wrap_reallocarray(void *p, size_t count, size_t size);
void *__wrap_reallocarray(void *p, size_t count, size_t size)
{
	if (fails())
		return NULL;
	return p ? reallocarray(p, count, size) : counted(reallocarray(NULL, count, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : counted(aligned_alloc(alignment, size));
}

char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : counted(strdup(text));
}

void __wrap_free(void *p);
void __wrap_free(void *p)
{
	held -= p != NULL;
	free(p);
}

void *__real_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *p = fails() ? MAP_FAILED : __real_mmap64(at, len, prot, flags, fd, offset);

	held += p != MAP_FAILED;
	return p;
}

int __real_munmap(void *at, size_t len);
int __wrap_munmap(void *at, size_t len);
int __wrap_munmap(void *at, size_t len)
{
	held--;
	return __real_munmap(at, len);
}

/* ---- pools, which seldom call the C library: a failure stands for an empty pool ---- */

struct zf_block *__real_zf_block_pool_take(struct zf_flush *flush, unsigned int count);
struct zf_block *__wrap_zf_block_pool_take(struct zf_flush *flush, unsigned int count);
struct zf_block *__wrap_zf_block_pool_take(struct zf_flush *flush, unsigned int count)
{
	return fails() ? NULL : __real_zf_block_pool_take(flush, count);
}

struct zf_cnode *__real_zf_node_pool_take(struct zf_node_pool *pool);
struct zf_cnode *__wrap_zf_node_pool_take(struct zf_node_pool *pool);
struct zf_cnode *__wrap_zf_node_pool_take(struct zf_node_pool *pool)
{
	return fails() ? NULL : __real_zf_node_pool_take(pool);
}

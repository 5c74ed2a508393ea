/* SPDX-License-Identifier: MIT */
/*
 * Scope-bound ownership of memory and descriptors. A function hands over what it owns by
 * returning zf_steal_ptr()/zf_steal_fd(). Locks are never tied to a scope: see base/lock.h.
 */
#ifndef ZF_BASE_CLEANUP_H
#define ZF_BASE_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void zf_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void zf_cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define _zf_free_  __attribute__((cleanup(zf_cleanup_free)))
#define _zf_close_ __attribute__((cleanup(zf_cleanup_close)))

static inline void *zf_steal_ptr_raw(void *pp)
{
	void *p = *(void **)pp;

	*(void **)pp = NULL;
	return p;
}

static inline int zf_steal_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

#define zf_steal_ptr(pp) ((__typeof__(*(pp)))zf_steal_ptr_raw(pp))

#endif

/* SPDX-License-Identifier: MIT */
/* Threads of the library. */
#ifndef ZF_BASE_SPAWN_H
#define ZF_BASE_SPAWN_H

#include <pthread.h>

/*
 * Starts a thread. Signals belong to whoever runs the library, not to a thread that he does not
 * know: they are blocked there, but for those that the thread's own accesses raise, which would end
 * the process if they were blocked (base/mapped.h). `name`: at most 15 bytes. 0 or -errno.
 */
int zf_spawn(pthread_t *thread, const char *name, void *(*main)(void *arg), void *arg);

#endif

/* SPDX-License-Identifier: MIT */
/* Threads of the library. */
#ifndef ZF_BASE_SPAWN_H
#define ZF_BASE_SPAWN_H

#include <pthread.h>

/*
 * Starts a thread. Signals are for the program that runs the library, not for a thread that the
 * program does not know. So signals are blocked in the thread, except those that the thread's own
 * accesses raise, which would end the process if they were blocked (base/mapped.h). `name`: at most
 * 15 bytes. 0 or -errno.
 */
int zf_spawn(pthread_t *thread, const char *name, void *(*main)(void *arg), void *arg);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Touching a shared mapping of a file: where the host cannot provide the page (its disk is full,
 * the file was truncated, the medium failed), the kernel sends SIGBUS. Here that is an error.
 *
 * That takes a handler of the process. A SIGBUS of anything else goes on to whoever handled it
 * before: by default it ends the process.
 */
#ifndef ZF_BASE_MAPPED_H
#define ZF_BASE_MAPPED_H

/* Sets the handler, unless it is set: when a file is mapped. */
void zf_mapped_prepare(void);

/*
 * Calls fn(arg), which does nothing but read and write memory, and does not call this again. -EIO:
 * a page could not be had, and fn was left where it touched that. Any thread that does not block
 * SIGBUS (base/spawn.h), with any locks held.
 */
int zf_mapped_touch(void (*fn)(void *arg), void *arg);

#endif

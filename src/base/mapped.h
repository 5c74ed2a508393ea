/* SPDX-License-Identifier: MIT */
/*
 * Access to a shared mapping of a file. If the host cannot provide a page (its disk is full, the
 * file was truncated, the medium failed), the kernel sends SIGBUS. zf_mapped_touch() makes that an
 * error.
 *
 * This needs a signal handler of the process. A SIGBUS with another cause goes on to the former
 * handler; by default it ends the process.
 */
#ifndef ZF_BASE_MAPPED_H
#define ZF_BASE_MAPPED_H

/* Sets the handler, unless it is set. Called when a file is mapped. */
void zf_mapped_prepare(void);

/*
 * Calls fn(arg), which does nothing but read and write memory, and does not call this again. -EIO:
 * a page could not be provided, and fn was left at its access to the page. Any thread may call this
 * that does not block SIGBUS (base/spawn.h), with any locks held.
 */
int zf_mapped_touch(void (*fn)(void *arg), void *arg);

#endif

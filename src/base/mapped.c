/* SPDX-License-Identifier: MIT */
#include "base/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

/* Where the thread goes on if the page that it touches cannot be provided. */
static _Thread_local sigjmp_buf *volatile way_out;	 /* the handler reads it, too */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the handler */
static struct sigaction before;

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	const ucontext_t *interrupted = context;

	(void)info;
	if (way_out) {
		/* Restores the signal mask, as a return would: SIGBUS is blocked in the handler. */
		pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
		siglongjmp(*way_out, 1);
	}
	/*
	 * Not an access of zf_mapped_touch(): it happens again, and the former handler gets SIGBUS.
	 */
	sigaction(number, &before, NULL);
}

void zf_mapped_prepare(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
	struct sigaction now;

	pthread_mutex_lock(&lock);
	sigaction(SIGBUS, NULL, &now);
	if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_sigbus) {
		before = now;
		sigemptyset(&action.sa_mask);
		sigaction(SIGBUS, &action, NULL);
	}
	pthread_mutex_unlock(&lock);
}

int zf_mapped_touch(void (*fn)(void *arg), void *arg)
{
	sigjmp_buf here; /* without the signal mask, which would take a system call */

	if (sigsetjmp(here, 0) != 0) {
		way_out = NULL;
		return -EIO;
	}
	way_out = &here;
	fn(arg);
	way_out = NULL;
	return 0;
}

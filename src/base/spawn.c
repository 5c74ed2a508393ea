/* SPDX-License-Identifier: MIT */
#include "base/spawn.h"

#include <signal.h>
#include <stddef.h>

static void block_signals(sigset_t *ret_old)
{
	static const int own[] = {SIGBUS, SIGSEGV, SIGILL, SIGFPE};
	sigset_t others;

	sigfillset(&others);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&others, own[i]);
	pthread_sigmask(SIG_SETMASK, &others, ret_old);
}

int zf_spawn(pthread_t *thread, const char *name, void *(*main)(void *arg), void *arg)
{
	sigset_t old;
	int r;

	block_signals(&old);
	r = pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		pthread_setname_np(*thread, name);
	return -r;
}

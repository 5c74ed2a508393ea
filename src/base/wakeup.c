/* SPDX-License-Identifier: MIT */
#include "base/wakeup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A call on a semaphore fails only if the program is wrong. */
static void must(int r)
{
	if (r < 0) {
		perror("zfuse: semaphore misused");
		abort();
	}
}

void zf_wakeup_init(struct zf_wakeup *wakeup)
{
	must(sem_init(&wakeup->sent, 0, 0));
}

void zf_wakeup_deinit(struct zf_wakeup *wakeup)
{
	must(sem_destroy(&wakeup->sent));
}

void zf_wakeup_wait(struct zf_wakeup *wakeup)
{
	int r;

	do {
		r = sem_wait(&wakeup->sent);
	} while (r < 0 && errno == EINTR);
	must(r);
}

void zf_wakeup_send(struct zf_wakeup *wakeup)
{
	must(sem_post(&wakeup->sent));
}

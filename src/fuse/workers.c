/* SPDX-License-Identifier: MIT */
#include "fuse/workers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "fuse/call.h"

#define WORKERS_MAX 32

struct zf_workers {
	struct zf_daemon *daemon;
	struct zf_mutex lock;
	struct zf_cond work;

	/* Under lock. */
	struct zf_call_list calls;
	unsigned int waiting; /* calls in the list */
	unsigned int idle;    /* threads that wait for work */
	unsigned int count;
	bool ending;
	pthread_t threads[WORKERS_MAX];
};

static void *work(void *arg)
{
	struct zf_workers *workers = arg;
	struct zf_call *call;

	/* Without this the thread would have the name of the thread that started it. */
	pthread_setname_np(pthread_self(), "zfuse-worker");
	zf_mutex_lock(&workers->lock);
	for (;;) {
		while (workers->waiting == 0 && !workers->ending) {
			workers->idle++;
			zf_cond_wait(&workers->work, &workers->lock);
			workers->idle--;
		}
		if (workers->waiting == 0)
			break;
		call = STAILQ_FIRST(&workers->calls);
		STAILQ_REMOVE_HEAD(&workers->calls, link);
		workers->waiting--;
		zf_mutex_unlock(&workers->lock);
		zf_call_finish(workers->daemon, call);
		zf_mutex_lock(&workers->lock);
	}
	zf_mutex_unlock(&workers->lock);
	return NULL;
}

static int start_locked(struct zf_workers *workers)
{
	int r = pthread_create(&workers->threads[workers->count], NULL, work, workers);

	if (r != 0)
		return -r;
	workers->count++;
	return 0;
}

int zf_workers_new(struct zf_daemon *daemon, struct zf_workers **ret_workers)
{
	struct zf_workers *workers = calloc(1, sizeof(*workers));
	int r;

	if (!workers)
		return -ENOMEM;
	workers->daemon = daemon;
	STAILQ_INIT(&workers->calls);
	zf_mutex_init(&workers->lock, ZF_RANK_DAEMON);
	zf_cond_init(&workers->work);
	/*
	 * One thread starts at once, because later ones may fail to start, and parked calls need at
	 * least one.
	 */
	zf_mutex_lock(&workers->lock);
	r = start_locked(workers);
	zf_mutex_unlock(&workers->lock);
	if (r < 0) {
		zf_workers_free(workers);
		return r;
	}
	*ret_workers = workers;
	return 0;
}

void zf_workers_free(struct zf_workers *workers)
{
	if (!workers)
		return;
	zf_mutex_lock(&workers->lock);
	workers->ending = true;
	zf_cond_broadcast(&workers->work);
	zf_mutex_unlock(&workers->lock);
	for (unsigned int i = 0; i < workers->count; i++)
		pthread_join(workers->threads[i], NULL);
	zf_cond_deinit(&workers->work);
	zf_mutex_deinit(&workers->lock);
	free(workers);
}

void zf_workers_run(struct zf_workers *workers, struct zf_call *call)
{
	zf_mutex_lock(&workers->lock);
	STAILQ_INSERT_TAIL(&workers->calls, call, link);
	workers->waiting++;
	/*
	 * The comparison is needed because a woken thread that does not run yet still counts as
	 * idle. In the end only workers bring calls (sync_later.h), and take them afterwards.
	 */
	if (!workers->ending && workers->waiting > workers->idle && workers->count < WORKERS_MAX)
		start_locked(workers);
	zf_mutex_unlock(&workers->lock);
	/* With the lock held, a worker that runs at once would only wait for the lock. */
	zf_cond_signal(&workers->work);
}

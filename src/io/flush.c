/* SPDX-License-Identifier: MIT */
/*
 * One flush for many callers. Flushes are numbered in the order in which they begin, and a mark is
 * the number of the newest flush that has begun. The first flush that surely covers the writes
 * completed before the mark was taken is the flush after it.
 *
 *     write completed, mark 4      4 ends            5 ends: callers with mark 4 are served
 *     -----------x-----------------|-----------------|---
 *     flush 4: began before        flush 5: began after
 *
 * One flush runs at a time, and at most one more is wanted. The running flush serves the callers in
 * `served`; callers that come too late for it wait in `wanted`, and the next flush begins when it
 * ends.
 *
 * After a failed flush every later one counts as failed, whatever the device says: the device may
 * have dropped data that it could not make durable. A host's kernel drops pages of an image this
 * way, and reports it only once.
 */
#include <assert.h>

#include "base/bits.h"
#include "base/plant.h"
#include "io/dev_ops.h"

enum join {
	JOIN_DURABLE, /* nothing to do */
	JOIN_BEGIN,   /* none was running: the flush counts as begun, and the caller issues it */
	JOIN_WAIT,
};

static void push(struct zf_flush_wait **list, struct zf_flush_wait *wait)
{
	wait->next = *list;
	*list = wait;
}

static void begin_locked(struct zf_dev_flushing *flushing)
{
	flushing->running = true;
	/* Before the flush is issued: a mark taken in between needlessly asks for the next one. */
	atomic_fetch_add(&flushing->begun, 1);
}

static enum join join_locked(struct zf_dev_flushing *flushing, struct zf_flush_wait *wait)
{
	assert(wait->mark <= atomic_load(&flushing->begun));
	if (wait->mark < flushing->durable)
		return JOIN_DURABLE;
	if (!flushing->running) {
		begin_locked(flushing);
		push(&flushing->served, wait);
		return JOIN_BEGIN;
	}
	if (wait->mark < atomic_load(&flushing->begun) || ZF_PLANTED(ZF_BUG_FLUSH_SERVES_LATE))
		push(&flushing->served, wait);
	else
		push(&flushing->wanted, wait);
	return JOIN_WAIT;
}

static enum join join(struct zf_dev *dev, struct zf_flush_wait *wait)
{
	enum join joined;

	if (!dev->geometry.volatile_cache)
		return JOIN_DURABLE;
	zf_mutex_lock(&dev->lock);
	joined = join_locked(&dev->flushing, wait);
	zf_mutex_unlock(&dev->lock);
	return joined;
}

static void settle(struct zf_dev *dev, struct zf_flush_wait *wait, int result)
{
	wait->result = result;
	if (wait->done) {
		wait->done(wait);
		return;
	}
	zf_mutex_lock(&dev->lock);
	atomic_store(&wait->settled, true);
	zf_cond_broadcast(&dev->progress);
	zf_mutex_unlock(&dev->lock);
}

static void end(struct zf_dev *dev, int result);

static void flush_done(struct zf_io *io)
{
	end(ZF_CONTAINER_OF(io, struct zf_dev, flushing.io), io->result);
}

static void note_failure(struct zf_dev_flushing *flushing, int error)
{
	int none = 0;

	atomic_compare_exchange_strong(&flushing->error, &none, error);
}

/* Returns the callers that the ended flush served. If others want the next flush, it begins. */
static struct zf_flush_wait *end_locked(struct zf_dev_flushing *flushing, int *result)
{
	struct zf_flush_wait *served = flushing->served;

	if (*result < 0)
		note_failure(flushing, *result);
	*result = atomic_load(&flushing->error);
	if (*result == 0)
		flushing->durable = atomic_load(&flushing->begun);
	flushing->served = flushing->wanted;
	flushing->wanted = NULL;
	flushing->running = false;
	if (flushing->served)
		begin_locked(flushing);
	return served;
}

static void issue(struct zf_dev *dev)
{
	dev->flushing.io = (struct zf_io){.op = ZF_IO_FLUSH, .done = flush_done};
	zf_dev_submit(dev, &dev->flushing.io);
}

static void end(struct zf_dev *dev, int result)
{
	struct zf_flush_wait *served, *next;
	bool another;

	zf_mutex_lock(&dev->lock);
	served = end_locked(&dev->flushing, &result);
	another = dev->flushing.running;
	zf_mutex_unlock(&dev->lock);
	if (another)
		issue(dev);
	for (; served; served = next) {
		next = served->next;
		settle(dev, served, result);
	}
}

/* ---- for backends ---- */

void zf_dev_flush_failed(struct zf_dev *dev, int error)
{
	note_failure(&dev->flushing, error);
}

int zf_dev_flush_error(struct zf_dev *dev)
{
	return atomic_load(&dev->flushing.error);
}

/* ---- for callers ---- */

uint64_t zf_dev_write_mark(struct zf_dev *dev)
{
	return atomic_load(&dev->flushing.begun);
}

bool zf_dev_flush_start(struct zf_dev *dev, struct zf_flush_wait *wait)
{
	assert(wait->done);
	switch (join(dev, wait)) {
	case JOIN_DURABLE:
		return false;
	case JOIN_BEGIN:
		issue(dev);
		return true;
	case JOIN_WAIT:
		return true;
	}
	return true;
}

int zf_dev_flush_upto(struct zf_dev *dev, uint64_t mark)
{
	struct zf_flush_wait wait = {.mark = mark};
	struct zf_io io = {.op = ZF_IO_FLUSH};

	if (ZF_PLANTED(ZF_BUG_LOG_BEFORE_DATA))
		return 0;
	switch (join(dev, &wait)) {
	case JOIN_DURABLE:
		return 0;
	case JOIN_BEGIN:
		end(dev, zf_dev_run(dev, &io));
		return wait.result;
	case JOIN_WAIT:
		zf_dev_wait_until(dev, &wait.settled);
		return wait.result;
	}
	return 0;
}

int zf_dev_flush(struct zf_dev *dev)
{
	return zf_dev_flush_upto(dev, zf_dev_write_mark(dev));
}

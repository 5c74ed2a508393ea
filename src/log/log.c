/* SPDX-License-Identifier: MIT */
/* The log's life, its gate, and its part in commits. Records are written in write.c. */
#include "log/log.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/log_zone.h"
#include "base/bits.h"
#include "base/plant.h"
#include "log/log_internal.h"
#include "txn/txn.h"

/* ---- life ---- */

int zf_log_new(struct zf_dev *dev, struct zf_alloc *alloc, const struct zf_super *super,
	       const struct zf_report *report, void (*want_commit)(void *arg), void *arg,
	       struct zf_log **ret_log)
{
	struct zf_log *log = calloc(1, sizeof(*log));
	uint64_t limit = zf_dev_geometry(dev)->append_limit;

	if (!log)
		return -ENOMEM;
	log->dev = dev;
	log->alloc = alloc;
	log->report = report;
	log->want_commit = want_commit;
	log->want_commit_arg = arg;
	zf_hash_key_init(&log->key, super->log_secret);
	memcpy(log->fsid, super->fsid, sizeof(log->fsid));
	log->blocks_max = (uint32_t)(zf_min_u64(limit, ZF_LOG_RECORD_MAX) >> ZF_BLOCK_SHIFT);
	zf_mutex_init(&log->lock, ZF_RANK_LOG);
	zf_cond_init(&log->changed);
	zf_cond_init(&log->taken);
	log->state = LOG_RECOVERING;
	log->epoch = super->log_epoch;
	log->number = super->op_number;
	log->sequence = log->durable = super->log_sequence;
	log->zones.zone[0] = super->log_zone[0];
	operations_init(&log->running);
	operations_init(&log->frozen);
	TAILQ_INIT(&log->records);
	log->batch.last = &log->batch.first;
	*ret_log = log;
	return 0;
}

void zf_log_free(struct zf_log *log)
{
	struct record *record;

	if (!log)
		return;
	assert(log->entered == 0 && log->in_flight == 0);
	operations_clear(&log->running);
	operations_clear(&log->frozen);
	while ((record = TAILQ_FIRST(&log->records))) {
		TAILQ_REMOVE(&log->records, record, link);
		free(record);
	}
	zf_cond_deinit(&log->taken);
	zf_cond_deinit(&log->changed);
	zf_mutex_deinit(&log->lock);
	free(log);
}

void zf_log_replayed(struct zf_log *log, uint64_t number)
{
	zf_mutex_lock(&log->lock);
	assert(log->state == LOG_RECOVERING);
	assert(number >= log->number || ZF_PLANTED(ZF_BUG_REPLAY_OUT_OF_ORDER) ||
	       ZF_PLANTED(ZF_BUG_REPLAY_COMMITTED));
	log->number = number;
	zf_mutex_unlock(&log->lock);
}

void zf_log_start(struct zf_log *log, uint64_t sequence, uint64_t number, bool new_epoch)
{
	zf_mutex_lock(&log->lock);
	assert(log->state == LOG_RECOVERING);
	assert(sequence >= log->sequence && number >= log->number);
	log->state = LOG_STARTED;
	log->sequence = log->durable = sequence;
	log->number = number;
	log->new_epoch = new_epoch;
	log->enabled = !new_epoch && log->zones.zone[0] != ZF_SUPER_NO_ZONE;
	atomic_store_explicit(&log->wants, true, memory_order_relaxed);
	zf_mutex_unlock(&log->lock);
}

bool zf_log_is_usable_locked(const struct zf_log *log)
{
	return log->enabled && !log->failed && !log->running.lost && !log->frozen.lost;
}

/* ---- the gate ---- */

bool zf_log_enter(struct zf_log *log)
{
	bool usable;

	zf_mutex_lock(&log->lock);
	while (log->holding)
		zf_cond_wait(&log->changed, &log->lock);
	usable = zf_log_is_usable_locked(log);
	log->entered += usable;
	log->stats.commits_instead += !usable;
	zf_mutex_unlock(&log->lock);
	return usable;
}

void zf_log_leave(struct zf_log *log)
{
	zf_mutex_lock(&log->lock);
	assert(log->entered > 0);
	log->entered--;
	if (log->holding && log->entered == 0)
		zf_cond_broadcast(&log->changed);
	zf_mutex_unlock(&log->lock);
}

/* ---- with the commit ---- */

static void hold(void *arg)
{
	struct zf_log *log = arg;

	zf_mutex_lock(&log->lock);
	assert(!log->holding);
	log->holding = true;
	while (log->entered > 0 && !ZF_PLANTED(ZF_BUG_FREEZE_IN_FLIGHT))
		zf_cond_wait(&log->changed, &log->lock);
	zf_mutex_unlock(&log->lock);
}

static void freeze_locked(struct zf_log *log, struct zf_super *super)
{
	super->op_number = log->number;
	/*
	 * During recovery the superblock keeps the log as it was: after a power cut the next
	 * recovery must find the log again.
	 */
	if (log->state == LOG_RECOVERING)
		return;
	if (log->new_epoch)
		log->epoch++;
	log->new_epoch = false;
	assert(STAILQ_EMPTY(&log->frozen.list) && log->in_flight == 0);
	STAILQ_CONCAT(&log->frozen.list, &log->running.list);
	log->frozen.bytes = log->running.bytes;
	log->frozen.mark = log->running.mark;
	log->frozen.lost = log->running.lost;
	operations_init(&log->running);
	atomic_store_explicit(&log->wants, true, memory_order_relaxed);
	log->frozen_sequence = log->sequence;
	zf_alloc_log_choose(log->alloc, &log->zones);
	super->log_sequence = log->sequence;
	super->log_epoch = log->epoch;
	memcpy(super->log_zone, log->zones.zone, sizeof(super->log_zone));
	memcpy(super->log_zone_resets, log->zones.resets, sizeof(super->log_zone_resets));
	memcpy(super->log_pointer, log->zones.pointer, sizeof(super->log_pointer));
}

static void freeze(void *arg, struct zf_super *super)
{
	struct zf_log *log = arg;

	zf_mutex_lock(&log->lock);
	freeze_locked(log, super);
	zf_mutex_unlock(&log->lock);
}

static void release(void *arg)
{
	struct zf_log *log = arg;

	zf_mutex_lock(&log->lock);
	log->holding = false;
	zf_cond_broadcast(&log->changed);
	zf_mutex_unlock(&log->lock);
}

/*
 * Forgets records that failed before the freeze: the frozen transaction contains what they
 * described.
 */
static void forget_failed_locked(struct zf_log *log)
{
	struct record *record;

	while ((record = TAILQ_FIRST(&log->records)) && record->sequence <= log->frozen_sequence) {
		TAILQ_REMOVE(&log->records, record, link);
		free(record);
	}
	if (log->failed <= log->frozen_sequence)
		log->failed = 0;
	log->durable = zf_max_u64(log->durable, log->frozen_sequence);
}

static void durable(void *arg)
{
	struct zf_log *log = arg;
	uint32_t next = ZF_SUPER_NO_ZONE;

	zf_mutex_lock(&log->lock);
	if (log->state == LOG_STARTED) {
		operations_clear(&log->frozen);
		forget_failed_locked(log);
		zf_alloc_log_named(log->alloc, &log->zones);
		log->enabled = log->zones.zone[0] != ZF_SUPER_NO_ZONE;
		zf_cond_broadcast(&log->changed);
		next = log->zones.zone[1];
	}
	zf_mutex_unlock(&log->lock);
	/*
	 * Prepares the next zone, so that the first records in it are as fast as others (see `warm`
	 * in io/dev.h).
	 */
	if (next != ZF_SUPER_NO_ZONE)
		zf_dev_warm(log->dev, next);
}

void zf_log_hooks(struct zf_log *log, struct zf_txn_log *ret_hooks)
{
	*ret_hooks = (struct zf_txn_log){
		.arg = log,
		.hold = hold,
		.freeze = freeze,
		.release = release,
		.durable = durable,
	};
}

void zf_log_get_stats(struct zf_log *log, struct zf_log_stats *ret_stats)
{
	zf_mutex_lock(&log->lock);
	*ret_stats = log->stats;
	zf_mutex_unlock(&log->lock);
}

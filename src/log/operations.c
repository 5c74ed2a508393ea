/* SPDX-License-Identifier: MIT */
/* Operations that wait for a record, or for their transaction's superblock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "log/log_internal.h"

void operations_init(struct operations *operations)
{
	STAILQ_INIT(&operations->list);
	operations->bytes = operations->mark = 0;
	operations->lost = false;
}

static void drop(struct operations *operations)
{
	struct operation *operation;

	while ((operation = STAILQ_FIRST(&operations->list))) {
		STAILQ_REMOVE_HEAD(&operations->list, link);
		free(operation);
	}
	operations->bytes = operations->mark = 0;
}

void operations_clear(struct operations *operations)
{
	drop(operations);
	operations->lost = false;
}

bool zf_log_wants_operations(struct zf_log *log)
{
	return atomic_load_explicit(&log->wants, memory_order_relaxed);
}

static struct operation *copy(const struct zf_log_body *body, uint64_t mark)
{
	struct operation *operation = malloc(sizeof(*operation) + body->len);

	if (!operation)
		return NULL;
	operation->mark = mark;
	operation->len = body->len;
	memcpy(operation->bytes, body->bytes, body->len);
	return operation;
}

static void push_locked(struct zf_log *log, struct operation *operation)
{
	struct operations *running = &log->running;
	struct zf_disk_log_body *disk;

	log->number++;
	if (running->lost || !operation || running->bytes + operation->len > ZF_LOG_KEEP_BYTES ||
	    log_header_blocks(operation->len) > log->blocks_max) {
		free(operation);
		/*
		 * Without this operation the ones before it cannot be written either: the log must
		 * not have a gap.
		 */
		drop(running);
		running->lost = true;
		atomic_store_explicit(&log->wants, false, memory_order_relaxed);
		return;
	}
	disk = (struct zf_disk_log_body *)(void *)operation->bytes;
	disk->number = zf_le64_from(log->number);
	STAILQ_INSERT_TAIL(&running->list, operation, link);
	running->bytes += operation->len;
	running->mark = zf_max_u64(running->mark, operation->mark);
}

void zf_log_add(struct zf_log *log, struct zf_log_body *body, uint64_t mark)
{
	struct operation *operation = NULL;

	/* The operations that a recovery replays are in the log already. */
	if (log->state == LOG_RECOVERING)
		return;
	if (body && body->error == 0 && zf_log_wants_operations(log))
		operation = copy(body, mark);
	zf_mutex_lock(&log->lock);
	push_locked(log, operation);
	zf_mutex_unlock(&log->lock);
}

bool zf_log_is_behind(struct zf_log *log)
{
	bool r;

	zf_mutex_lock(&log->lock);
	r = log_pending_bytes(log) > 0 || log->running.lost || log->frozen.lost ||
	    log->durable < log->sequence;
	zf_mutex_unlock(&log->lock);
	return r;
}

uint64_t zf_log_pending_mark(struct zf_log *log)
{
	uint64_t mark;

	zf_mutex_lock(&log->lock);
	mark = zf_max_u64(log->frozen.mark, log->running.mark);
	zf_mutex_unlock(&log->lock);
	return mark;
}

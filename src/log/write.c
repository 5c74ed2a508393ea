/* SPDX-License-Identifier: MIT */
/*
 * Writing records. Threads that have a part for a record put it into the batch. One of them leads
 * the batch: it takes all parts that are there when it is ready to write, and writes them in one
 * record.
 *
 *      a part joins --fewer than ZF_LOG_IN_FLIGHT records in flight--> its thread leads
 *                   --the batch is offered to a thread that still sleeps--> its thread leads
 *                   --otherwise--> its thread waits for its turn, or for the end of its part
 *
 * A leader whose record has completed offers the next batch to the first thread that waits, and
 * wakes this thread and those whose parts were in its own record. So a lone fsync wakes no other
 * thread. A batch that is led or offered counts among the records in flight. At any time, if the
 * batch has parts, and is neither led nor offered, then ZF_LOG_IN_FLIGHT records are in flight.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/log_zone.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "base/plant.h"
#include "log/carry.h"
#include "log/log_internal.h"
#include "log/record.h"

/* ---- gathering ---- */

static bool fits(const struct zf_log *log, uint64_t bytes, uint32_t data_blocks, uint32_t iovs)
{
	return log_header_blocks(bytes) + data_blocks <= log->blocks_max &&
	       1 + iovs <= ZF_IO_IOV_MAX;
}

static size_t part_bytes(const struct zf_log_part *part)
{
	return part->body ? part->body->len : 0;
}

static bool part_fits_locked(const struct zf_log *log, const struct zf_log_part *part)
{
	const struct batch *batch = &log->batch;

	return fits(log, batch->bytes + part_bytes(part), batch->data_blocks + part->data_blocks,
		    batch->iovs + part->iovcnt);
}

static void join_batch_locked(struct zf_log *log, struct zf_log_part *part)
{
	struct batch *batch = &log->batch;

	if (part->body) {
		struct zf_disk_log_body *disk =
			(struct zf_disk_log_body *)(void *)part->body->bytes;

		disk->number = zf_le64_from(++log->number);
		disk->data_first = zf_le32_from(batch->data_blocks);
		disk->data_count = zf_le32_from(part->data_blocks);
		batch->body_count++;
	}
	part->next = NULL;
	*batch->last = part;
	batch->last = &part->next;
	batch->bytes += part_bytes(part);
	batch->data_blocks += part->data_blocks;
	batch->iovs += part->iovcnt;
}

static struct batch take_batch_locked(struct zf_log *log)
{
	struct batch batch = log->batch;

	log->batch = (struct batch){.last = &log->batch.first};
	zf_cond_broadcast(&log->taken);
	return batch;
}

/* The threads of the parts are not woken yet (wake_parts()). */
static void end_parts_locked(struct zf_log *log, const struct batch *batch, int result)
{
	for (struct zf_log_part *part = batch->first; part; part = part->next) {
		part->result = result;
		if (!part->leads)
			zf_turn_end(&part->turn);
		log->stats.commits_instead += result < 0;
	}
}

/* Without the log's mutex: the woken threads need not take it. */
static void wake_parts(const struct batch *batch)
{
	struct zf_log_part *part, *next;

	for (part = batch->first; part; part = next) {
		/* A woken thread may return, and its part is on its stack. */
		next = part->next;
		if (!part->leads)
			zf_turn_wake(&part->turn);
	}
}

/* ---- one record ---- */

/* A record that is being written. */
struct writing {
	struct zf_log *log;
	struct batch batch; /* empty: operations only */
	uint64_t bytes;	    /* of bodies: the operations', and the parts' */
	uint32_t operation_count;
	uint32_t header_blocks;
	const struct zf_log_part *carried; /* whose first block is in the header; NULL: none */
	uint8_t *header;
	struct iovec *iov;
	unsigned int iovcnt;
	struct zf_io io;
	struct zf_append_grant grant;
	uint64_t resets;
	struct zf_log_record fields; /* of the header */
	struct record *record;
};

/*
 * If all operations fit in front of the parts, counts all (*ret_all). Otherwise counts the oldest
 * that fit one record without the parts.
 */
static void count_operations_locked(struct writing *writing, bool *ret_all)
{
	struct zf_log *log = writing->log;
	struct operations *lists[] = {&log->frozen, &log->running};
	const struct batch *batch = &log->batch;
	uint64_t with_parts = batch->bytes, alone = 0;
	const struct operation *operation;
	uint32_t count = 0;

	writing->bytes = with_parts + log_pending_bytes(log);
	*ret_all = fits(log, writing->bytes, batch->data_blocks, batch->iovs);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(lists); i++) {
		STAILQ_FOREACH (operation, &lists[i]->list, link) {
			if (!*ret_all && !fits(log, alone + operation->len, 0, 0))
				goto out;
			alone += operation->len;
			count++;
		}
	}
out:
	writing->operation_count = count;
	if (!*ret_all)
		writing->bytes = alone;
}

/*
 * Chooses the part whose data comes first in the record. Its first block is carried if the header
 * has room.
 */
static const struct zf_log_part *choose_carried(const struct writing *writing)
{
	const struct zf_log_part *part = writing->log->batch.first;
	uint64_t bytes = sizeof(struct zf_disk_log_header) + writing->bytes;

	while (part && part->data_blocks == 0)
		part = part->next;
	if (!part || part->packed_len == 0 || bytes + part->packed_len > ZF_BLOCK_SIZE)
		return NULL;
	return part;
}

static void put_operations_locked(struct writing *writing, uint8_t *at)
{
	struct zf_log *log = writing->log;
	struct operations *lists[] = {&log->frozen, &log->running};
	uint32_t left = writing->operation_count;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(lists); i++) {
		struct operations *operations = lists[i];
		struct operation *operation;

		while (left > 0 && (operation = STAILQ_FIRST(&operations->list))) {
			memcpy(at, operation->bytes, operation->len);
			at += operation->len;
			left--;
			STAILQ_REMOVE_HEAD(&operations->list, link);
			operations->bytes -= operation->len;
			free(operation);
		}
		if (STAILQ_EMPTY(&operations->list))
			operations->mark = 0;
	}
	for (const struct zf_log_part *part = writing->batch.first; part; part = part->next) {
		if (part->body)
			memcpy(at, part->body->bytes, part->body->len);
		at += part_bytes(part);
	}
	if (writing->carried)
		memcpy(at, writing->carried->packed, writing->carried->packed_len);
}

/* The part's data, without the block that is carried. */
static struct iovec *add_data(const struct writing *writing, const struct zf_log_part *part,
			      struct iovec *iov)
{
	for (unsigned int i = 0; i < part->iovcnt; i++) {
		*iov = part->iov[i];
		if (i == 0 && part == writing->carried) {
			iov->iov_base = (uint8_t *)iov->iov_base + ZF_BLOCK_SIZE;
			iov->iov_len -= ZF_BLOCK_SIZE;
		}
		iov += iov->iov_len > 0;
	}
	return iov;
}

static void fill_iov(struct writing *writing)
{
	struct iovec *iov = writing->iov;

	*iov++ = (struct iovec){writing->header, (size_t)writing->header_blocks << ZF_BLOCK_SHIFT};
	for (const struct zf_log_part *part = writing->batch.first; part; part = part->next)
		iov = add_data(writing, part, iov);
	writing->iovcnt = (unsigned int)(iov - writing->iov);
}

static int get_memory(struct writing *writing, uint32_t iovs)
{
	size_t len = (size_t)writing->header_blocks << ZF_BLOCK_SHIFT;

	writing->header = aligned_alloc(ZF_BLOCK_SIZE, len);
	writing->iov = malloc((1 + iovs) * sizeof(*writing->iov));
	writing->record = calloc(1, sizeof(*writing->record));
	if (!writing->header || !writing->iov || !writing->record)
		return -ENOMEM;
	memset(writing->header, 0, len);
	return 0;
}

static int get_room_locked(struct writing *writing)
{
	struct zf_log *log = writing->log;
	bool switched;
	int r = zf_alloc_log_begin(log->alloc, zf_log_record_len(&writing->fields),
				   writing->fields.data_blocks, &writing->grant, &writing->resets,
				   &switched);

	log->stats.switches += r == 0 && switched;
	if ((r < 0 || switched) && log->want_commit)
		log->want_commit(log->want_commit_arg);
	return r;
}

/*
 * Takes into a record all kept operations and the parts; or, if they do not fit together, only the
 * oldest operations. *ret_all: the parts are in the record. After an error nothing was taken.
 */
static int prepare_locked(struct writing *writing, bool *ret_all)
{
	struct zf_log *log = writing->log;
	struct batch batch = {0};
	int r;

	count_operations_locked(writing, ret_all);
	if (*ret_all) {
		batch = log->batch;
		writing->carried = choose_carried(writing);
	}
	writing->header_blocks = log_header_blocks(writing->bytes);
	writing->fields = (struct zf_log_record){
		.bytes = (uint32_t)(sizeof(struct zf_disk_log_header) + writing->bytes),
		.data_blocks = batch.data_blocks,
		.body_count = writing->operation_count + batch.body_count,
		.carried = writing->carried ? writing->carried->packed_len : 0,
	};
	r = get_memory(writing, batch.iovs);
	if (r == 0)
		r = get_room_locked(writing);
	if (r < 0)
		return r;
	writing->batch = *ret_all ? take_batch_locked(log) : batch;
	put_operations_locked(writing, writing->header + sizeof(struct zf_disk_log_header));
	fill_iov(writing);
	writing->record->sequence = ++log->sequence;
	TAILQ_INSERT_TAIL(&log->records, writing->record, link);
	writing->fields.zone_address = writing->grant.zone_start;
	writing->fields.epoch = log->epoch;
	writing->fields.sequence = log->sequence;
	writing->fields.zone_resets = writing->resets;
	writing->fields.generation = zf_alloc_running(log->alloc);
	log->stats.records++;
	log->stats.bodies += writing->fields.body_count;
	log->stats.bytes += writing->grant.len;
	return 0;
}

/*
 * Runs without the lock: the call hashes, and waits for the device, and each operation on names
 * needs the lock.
 */
static int submit(struct writing *writing)
{
	struct zf_log *log = writing->log;
	bool at = writing->grant.address != 0;

	zf_log_record_seal(&log->key, &writing->fields, log->fsid, writing->header);
	writing->io = (struct zf_io){
		.op = at ? ZF_IO_WRITE : ZF_IO_APPEND,
		.fua = !ZF_PLANTED(ZF_BUG_LOG_WITHOUT_FUA),
		.purpose = ZF_FOR_LOG,
		.addr = at ? writing->grant.address : writing->grant.zone_start,
		.len = writing->grant.len,
		.iov = writing->iov,
		.iovcnt = writing->iovcnt,
	};
	return zf_dev_run(log->dev, &writing->io);
}

/* Gives each part its piece of the grant, and ends the header's piece. */
static void give_places_locked(struct writing *writing)
{
	uint64_t header = zf_log_record_data(&writing->fields);
	uint64_t address = writing->io.addr + header;
	struct zf_append_grant grant = writing->grant;

	grant.len = header;
	zf_alloc_append_end(writing->log->alloc, &grant, writing->io.result);
	for (struct zf_log_part *part = writing->batch.first; part; part = part->next) {
		part->sequence = writing->record->sequence;
		part->traced = writing->io.traced;
		part->grant = grant;
		part->grant.len = (uint64_t)part->data_blocks << ZF_BLOCK_SHIFT;
		part->address = address;
		address += part->grant.len;
	}
}

/*
 * A record counts as durable when it and all records before it have completed. A failed record
 * never completes: it is the gap.
 */
static void advance_locked(struct zf_log *log)
{
	struct record *record;

	while ((record = TAILQ_FIRST(&log->records)) && record->completed) {
		log->durable = record->sequence;
		TAILQ_REMOVE(&log->records, record, link);
		free(record);
	}
}

static void complete_locked(struct writing *writing)
{
	struct zf_log *log = writing->log;
	struct record *record = writing->record;
	int r = writing->io.result;

	give_places_locked(writing);
	if (r < 0) {
		zf_report(log->report, ZF_REPORT_WARNING,
			  "a record of the intent log could not be written (%s): until the next "
			  "commit, each fsync makes a full commit",
			  strerror(-r));
		log->stats.failures++;
		if (!log->failed || record->sequence < log->failed)
			log->failed = record->sequence;
		if (log->want_commit)
			log->want_commit(log->want_commit_arg);
	} else {
		ZF_TRACE(log_appended, .log_sequence = record->sequence,
			 .address = writing->io.addr, .bytes = writing->io.len,
			 .bodies = writing->fields.body_count,
			 .data_blocks = writing->fields.data_blocks,
			 .submitted = writing->io.traced);
		record->completed = true;
		advance_locked(log);
	}
	end_parts_locked(log, &writing->batch, r);
	zf_cond_broadcast(&log->changed);
}

/*
 * Writes one record. *ret_batch: its parts, which have a result now; empty if they did not fit into
 * one record with the operations before them, or after an error before the record was sent.
 */
static int write_one_locked(struct zf_log *log, struct batch *ret_batch)
{
	struct writing writing = {.log = log};
	bool all;
	int r = prepare_locked(&writing, &all);

	if (r == 0) {
		zf_mutex_unlock(&log->lock);
		r = submit(&writing);
		zf_mutex_lock(&log->lock);
		complete_locked(&writing);
	} else {
		free(writing.record);
	}
	free(writing.header);
	free(writing.iov);
	*ret_batch = writing.batch;
	return r;
}

/* Flushes the data that operations name, because it must be durable before the record. */
static int flush_marks_locked(struct zf_log *log)
{
	uint64_t mark;
	int r = 0;

	while (r == 0 && (mark = zf_max_u64(log->frozen.mark, log->running.mark)) > 0) {
		zf_mutex_unlock(&log->lock);
		r = zf_dev_flush_upto(log->dev, mark);
		zf_mutex_lock(&log->lock);
		if (r == 0 && log->frozen.mark <= mark)
			log->frozen.mark = 0;
		if (r == 0 && log->running.mark <= mark)
			log->running.mark = 0;
	}
	return r;
}

/*
 * Writes the batch that the caller leads: first the operations, if they do not fit into one record
 * with the parts. If that fails, the threads of the parts have to commit.
 */
static struct batch write_batch_locked(struct zf_log *log)
{
	struct batch batch = {0};
	int r;

	do {
		r = flush_marks_locked(log);
		if (r == 0 && !zf_log_is_usable_locked(log))
			r = -EAGAIN;
		if (r == 0)
			r = write_one_locked(log, &batch);
	} while (r == 0 && !batch.first);
	if (!batch.first) {
		batch = take_batch_locked(log);
		end_parts_locked(log, &batch, -EAGAIN);
	}
	return batch;
}

/* ---- leading ---- */

static void lead_locked(struct zf_log *log, struct zf_log_part *part)
{
	part->leads = true;
	log->batch.led = true;
	log->batch.offered = NULL;
}

/*
 * For a part that has joined: its thread leads, unless another thread is about to, or as many
 * records are in flight as may be.
 */
static bool try_to_lead_locked(struct zf_log *log, struct zf_log_part *part)
{
	if (log->batch.led || (!log->batch.offered && log->in_flight == ZF_LOG_IN_FLIGHT))
		return false;
	if (!log->batch.offered)
		log->in_flight++;
	lead_locked(log, part);
	return true;
}

/* Returns the part to whose thread the batch is offered now. NULL: none. */
static struct zf_log_part *offer_locked(struct zf_log *log)
{
	struct zf_log_part *part = log->batch.first;

	if (!part || log->batch.led || log->batch.offered)
		return NULL;
	zf_turn_offer(&part->turn);
	log->batch.offered = part;
	log->in_flight++;
	return part;
}

/*
 * If other threads have entered the log, lets the threads go first that are ready to run, because
 * some of them will bring a part for this record. If no thread is ready to run, that takes less
 * than a microsecond. Decision 0043 has measurements.
 */
static void let_others_join_locked(struct zf_log *log)
{
	if (log->entered == 1)
		return;
	zf_mutex_unlock(&log->lock);
	sched_yield();
	zf_mutex_lock(&log->lock);
}

/* Gives up the log's mutex. */
static void lead_and_unlock(struct zf_log *log)
{
	struct zf_log_part *next;
	struct batch batch;

	let_others_join_locked(log);
	batch = write_batch_locked(log);
	log->in_flight--;
	next = offer_locked(log);
	zf_mutex_unlock(&log->lock);
	if (next)
		zf_turn_wake(&next->turn);
	wake_parts(&batch);
}

/* ---- one part ---- */

static bool nothing_to_write_locked(const struct zf_log *log, const struct zf_log_part *part)
{
	return !part->body && log_pending_bytes(log) == 0;
}

/*
 * Packs the part's first block, before the log's mutex is taken. The result is used only if the
 * part becomes the first with data in its record, and the header has room (choose_carried()).
 */
static void pack(struct zf_log_part *part, uint8_t packed[ZF_LOG_CARRY_MAX])
{
	size_t bytes = part_bytes(part);

	part->packed = packed;
	part->packed_len = 0;
	if (part->data_blocks > 0 && bytes < ZF_LOG_CARRY_MAX)
		part->packed_len =
			zf_log_carry_pack(part->iov[0].iov_base, packed, ZF_LOG_CARRY_MAX - bytes);
}

/* True: the turn was taken. False: the part ended, and the log's mutex was given up. */
static bool wait_for_turn_locked(struct zf_log *log, struct zf_log_part *part)
{
	do {
		zf_mutex_unlock(&log->lock);
		if (zf_turn_wait(&part->turn))
			return false;
		zf_mutex_lock(&log->lock);
	} while (log->batch.offered != part);
	lead_locked(log, part);
	return true;
}

int zf_log_append(struct zf_log *log, struct zf_log_part *part)
{
	uint8_t packed[ZF_LOG_CARRY_MAX];

	part->grant.len = 0;
	part->leads = false;
	pack(part, packed);
	zf_mutex_lock(&log->lock);
	assert(log->entered > 0);
	log->stats.parts++;
	/*
	 * Since the caller entered, the log may have given up an operation (there were too many, or
	 * it could not be described: log.h). Only a commit makes that operation durable, even if
	 * the list is empty.
	 */
	if (!zf_log_is_usable_locked(log)) {
		log->stats.commits_instead++;
		zf_mutex_unlock(&log->lock);
		return -EAGAIN;
	}
	if (nothing_to_write_locked(log, part)) {
		part->sequence = log->sequence;
		zf_mutex_unlock(&log->lock);
		return 0;
	}
	if (!fits(log, part_bytes(part), part->data_blocks, part->iovcnt)) {
		zf_mutex_unlock(&log->lock);
		return -EAGAIN;
	}
	while (!part_fits_locked(log, part))
		zf_cond_wait(&log->taken, &log->lock);
	zf_turn_init(&part->turn);
	join_batch_locked(log, part);
	if (try_to_lead_locked(log, part) || wait_for_turn_locked(log, part))
		lead_and_unlock(log);
	zf_turn_deinit(&part->turn);
	return part->result;
}

int zf_log_wait(struct zf_log *log, uint64_t sequence)
{
	int r = 0;

	if (ZF_PLANTED(ZF_BUG_RECORD_COUNTS_EARLY))
		return 0;
	zf_mutex_lock(&log->lock);
	while (log->durable < sequence && (!log->failed || sequence < log->failed))
		zf_cond_wait(&log->changed, &log->lock);
	if (log->durable < sequence) {
		log->stats.commits_instead++;
		r = -EAGAIN;
	}
	zf_mutex_unlock(&log->lock);
	return r;
}

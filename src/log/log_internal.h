/* SPDX-License-Identifier: MIT */
/* Shared by the files of src/log/ that write the log. */
#ifndef ZF_LOG_LOG_INTERNAL_H
#define ZF_LOG_LOG_INTERNAL_H

#include <bsd/sys/queue.h>

#include "alloc/log_zone.h"
#include "base/hash.h"
#include "base/lock.h"
#include "log/log.h"
#include "log/record.h"

/* ---- operations.c ---- */

/* An operation that is not in a record yet. */
struct operation {
	STAILQ_ENTRY(operation) link;
	uint64_t mark;
	size_t len;
	uint8_t bytes[]; /* its body */
};
STAILQ_HEAD(operation_list, operation);

/* The kept operations of one transaction. */
struct operations {
	struct operation_list list; /* by number */
	uint64_t bytes;
	uint64_t mark; /* writes up to this mark are flushed before any of them is written */
	bool lost; /* some are not listed: the log is unusable until their transaction is durable */
};

/* ---- a record under way ---- */

struct record {
	TAILQ_ENTRY(record) link;
	uint64_t sequence;
	bool completed;
};
TAILQ_HEAD(record_list, record);

/* The parts that will share the next record. */
struct batch {
	struct zf_log_part *first, **last;
	size_t bytes; /* of their bodies */
	uint32_t body_count, data_blocks, iovs;
	bool led;		     /* a thread is about to take it */
	struct zf_log_part *offered; /* to whose thread it is offered; NULL: to none */
};

enum log_state {
	LOG_RECOVERING, /* a replay is under way: its operations are not kept */
	LOG_STARTED,	/* operations are kept */
};

struct zf_log {
	struct zf_dev *dev;
	struct zf_alloc *alloc;
	const struct zf_report *report;
	void (*want_commit)(void *arg);
	void *want_commit_arg;
	struct zf_hash_key key;
	uint8_t fsid[16];
	uint32_t blocks_max; /* of one record */

	struct zf_mutex lock;	/* ZF_RANK_LOG; everything below */
	struct zf_cond changed; /* a record or a commit ended; the gate opened, or is empty */
	struct zf_cond taken;	/* the batch was taken: a part that did not fit may fit the next */
	enum log_state state;
	bool enabled; /* the durable superblock names a zone, in this epoch */
	bool new_epoch;
	uint64_t epoch;
	uint64_t number;   /* the last one given */
	uint64_t sequence; /* the last one given */

	/* The gate. */
	bool holding;
	unsigned int entered;

	struct operations running, frozen;
	struct batch batch;
	struct record_list records; /* under way, or failed; by sequence */
	unsigned int in_flight;	    /* records, and a batch that is led or offered counts as one */
	uint64_t durable;	    /* all records up to this sequence are durable */
	uint64_t failed;	    /* the first that failed, since the last commit; 0: none */
	uint64_t frozen_sequence;   /* S of the frozen transaction */
	struct zf_log_zones zones;  /* that the superblock of this transaction names */
	atomic_bool wants;	    /* operations are worth describing */

	struct zf_log_stats stats;
};

void operations_init(struct operations *operations);
void operations_clear(struct operations *operations);

bool zf_log_is_usable_locked(const struct zf_log *log);

/* Header blocks for `bytes` bytes of bodies. */
static inline uint32_t log_header_blocks(uint64_t bytes)
{
	return zf_log_header_blocks((uint32_t)(sizeof(struct zf_disk_log_header) + bytes));
}

/* Bytes of the operations that are in no record yet. */
static inline uint64_t log_pending_bytes(const struct zf_log *log)
{
	return log->frozen.bytes + log->running.bytes;
}

#endif

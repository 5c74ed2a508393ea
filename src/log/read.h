/* SPDX-License-Identifier: MIT */
/*
 * Reading the log at mount: what was made durable after the superblock's transaction.
 *
 * Every block of the named log zones is looked at, from where the superblock says that reading can
 * begin up to their pointers: the order of addresses is not that of sequence numbers, and a block
 * below a durable one may be garbage. A record counts if its header verifies, all of its fields are
 * those of this place and life, and its own data blocks match the checksums in it; anything else is
 * a gap. Of those that count, the ones from S+1 on without a gap are the log; their bodies, in the
 * order of their numbers, are what is to be replayed, as far as they lie above O.
 *
 * A sequence number is given once. Where two records have the same one, and are not the same
 * record (file content may hold a copy, which lies behind the original), neither counts.
 *
 * Nothing is written.
 */
#ifndef ZF_LOG_READ_H
#define ZF_LOG_READ_H

#include "base/report.h"
#include "io/dev.h"
#include "log/body.h"
#include "log/record.h"
#include "superblock/super.h"

enum zf_log_fate {
	ZF_LOG_COMMITTED,  /* its sequence is up to S: it is in the trees */
	ZF_LOG_TO_REPLAY,  /* one of the log */
	ZF_LOG_COPY,	   /* the same record was found before */
	ZF_LOG_BEHIND_GAP, /* valid, but one before it is missing */
};

/* A valid record. */
struct zf_log_found_record {
	uint64_t address;
	unsigned int which; /* of the two named zones */
	enum zf_log_fate fate;
	struct zf_log_record record;
	uint8_t *blocks; /* its header blocks: zf_log_record_next_body() */
};

struct zf_log_found {
	struct zf_log_body_view *bodies; /* above O, by number */
	size_t body_count;
	uint64_t records; /* that the bodies were taken from */
	uint64_t ignored; /* valid ones behind a gap */
	/* Blocks that could not be read or understood, or are in a zone that is not the one that was
	 * named: not 0, and what was made durable since the last commit may be missing. */
	uint64_t unreadable;
	uint64_t highest_sequence; /* of any valid record of this epoch; at least S */
	uint64_t highest_number;   /* of any body in one; at least O */
	/* Where the last valid record of each named zone ends, bytes in the zone: after an unclean
	 * stop of the host the pointer is at least there. 0: there is none. */
	uint64_t end[2];

	/* All of them, by sequence. The bodies lie in their blocks. */
	struct zf_log_found_record *list;
	size_t list_count;
};

/*
 * -ENOMEM; -EPROTONOSUPPORT: a valid record with a body of an unknown kind. A zone that is offline,
 * or whose reset count is not what the superblock says, is reported as an error and unreadable as a
 * whole: no power cut makes one, for no zone is reset while the durable superblock names it. A zone
 * that the device has lost is read to its end: each record tells its zone's reset count. With
 * geometry.pointers_are_lower_bounds the zones are read to their ends. Memory: the header blocks of
 * all valid records.
 */
int zf_log_read(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		struct zf_log_found *ret_found);
void zf_log_found_free(struct zf_log_found *found);

/* Lies anything behind S: valid records, whatever their fate, or blocks that may be some? */
bool zf_log_found_more(const struct zf_log_found *found, const struct zf_super *super);

/*
 * Calls fn for each range of device addresses that the bodies' DATA ranges name: those bytes are in
 * use, whatever the committed state says.
 */
int zf_log_found_ranges(const struct zf_log_found *found,
			int (*fn)(void *arg, const struct zf_log_range *range), void *arg);

#endif

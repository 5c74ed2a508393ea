/* SPDX-License-Identifier: MIT */
/*
 * Reading the log at mount: finding the records that became durable after the superblock's
 * transaction.
 *
 * The reader looks at every block of the two log zones that the superblock names, from the
 * superblock's log_pointer to the zone's write pointer. That is necessary, because records do not
 * lie in the order of their sequence numbers, and a block below a durable one may be garbage. A
 * record is *valid* if its header verifies, its fields are those of this place and of this life of
 * the zone, and its data blocks match the checksums in it. The valid records from S+1 on, up to the
 * first missing number (a gap), are the log. A mount replays those of their bodies whose number is
 * above O, in the order of numbers.
 *
 * Each sequence number is given once. If two different records have the same one, neither counts.
 * (Two equal records are no error: the content of a file may be a copy of a record, which lies
 * behind the original.)
 *
 * The reader writes nothing.
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
	ZF_LOG_TO_REPLAY,  /* a record of the log */
	ZF_LOG_COPY,	   /* the same record was found before */
	ZF_LOG_BEHIND_GAP, /* valid, but a record before it is missing */
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
	uint64_t records; /* records that the bodies were taken from */
	uint64_t ignored; /* valid records behind a gap */
	/*
	 * Blocks that could not be read or understood, or whose zone was reset since it was named.
	 * If this is not 0, changes that were acknowledged as durable since the last commit may be
	 * missing.
	 */
	uint64_t unreadable;
	uint64_t highest_sequence; /* of any valid record of this epoch; at least S */
	uint64_t highest_number;   /* of any body in such a record; at least O */
	/*
	 * Where the last valid record of each named zone ends, bytes in the zone; 0: there is none.
	 * After an unclean stop of the host the zone's write pointer is at least there.
	 */
	uint64_t end[2];

	/* All valid records, by sequence number. `bodies` point into their blocks. */
	struct zf_log_found_record *list;
	size_t list_count;
};

/*
 * -ENOMEM; -EPROTONOSUPPORT: a valid record has a body of an unknown kind. A zone that is offline,
 * or whose reset count differs from the superblock's, is reported as an error and counts as
 * unreadable as a whole. (No power cut causes that, because no zone is reset while the durable
 * superblock names it.) A zone whose table entry the device has lost is read to its end, because
 * each record tells its zone's reset count. With geometry.pointers_are_lower_bounds the zones are
 * read to their ends. The call keeps the header blocks of all valid records in memory.
 */
int zf_log_read(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		struct zf_log_found *ret_found);
void zf_log_found_free(struct zf_log_found *found);

/*
 * Returns whether anything lies behind S: valid records of any fate, or blocks that may be records.
 */
bool zf_log_found_more(const struct zf_log_found *found, const struct zf_super *super);

/*
 * Calls fn for each range of device addresses that a DATA range of a body names. These bytes are in
 * use, even if the committed state does not name them.
 */
int zf_log_found_ranges(const struct zf_log_found *found,
			int (*fn)(void *arg, const struct zf_log_range *range), void *arg);

#endif

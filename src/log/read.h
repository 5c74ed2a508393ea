/* SPDX-License-Identifier: MIT */
/*
 * Reading the log at mount: what was made durable after the superblock's transaction.
 *
 * Every block of the named log zones below their pointers is looked at, for the order of addresses
 * is not that of sequence numbers, and a block below a durable one may be garbage. A record counts
 * if its header verifies, all of its fields are those of this place and life, and its own data
 * blocks match the checksums in it; anything else is a gap. Of those that count, the ones from S+1
 * on without a gap are the log; their bodies, in the order of their numbers, are what is to be
 * replayed, as far as they lie above O.
 *
 * Nothing is written.
 */
#ifndef ZF_LOG_READ_H
#define ZF_LOG_READ_H

#include "base/report.h"
#include "io/dev.h"
#include "log/body.h"
#include "superblock/super.h"

struct zf_log_found {
	struct zf_log_body_view *bodies; /* above O, by number */
	size_t body_count;
	uint64_t records;	   /* that the bodies were taken from */
	uint64_t ignored;	   /* valid ones behind a gap */
	uint64_t highest_sequence; /* of any valid record of this epoch; at least S */
	uint64_t highest_number;   /* of any body in one; at least O */
	/* Where the last valid record of each named zone ends, bytes in the zone: after an unclean
	 * stop of the host the pointer is at least there. */
	uint64_t end[2];
	struct zf_log_buffer *buffers; /* what the views point into */
};

/*
 * -EIO: the device; -ENOMEM; -EPROTONOSUPPORT: a valid record with a body of an unknown kind. Zones
 * whose reset count is no longer what the superblock says hold nothing. With
 * geometry.pointers_are_lower_bounds the zones are read to their ends.
 */
int zf_log_read(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		struct zf_log_found *ret_found);
void zf_log_found_free(struct zf_log_found *found);

/*
 * Calls fn for each range of device addresses that the bodies' DATA ranges name: those bytes are in
 * use, whatever the committed state says.
 */
int zf_log_found_ranges(const struct zf_log_found *found,
			int (*fn)(void *arg, uint64_t address, uint64_t len), void *arg);

#endif

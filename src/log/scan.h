/* SPDX-License-Identifier: MIT */
/*
 * Looking through one log zone for records. Private to the reader.
 *
 * Records are found block by block, for what lies between them may be anything: torn records, data
 * of records that do not count. Only behind a valid record the search goes on after its last block:
 * its data is a file's content, and may well be a copy of another record.
 */
#ifndef ZF_LOG_SCAN_H
#define ZF_LOG_SCAN_H

#include "base/report.h"
#include "io/dev.h"
#include "log/record.h"

struct zf_log_scan {
	struct zf_dev *dev;
	const struct zf_report *report; /* may be NULL */
	const struct zf_hash_key *key;
	struct zf_log_place place;
	uint64_t sequence; /* an unknown kind of body in a record above it is an error */
	/* Bytes in the zone, block multiples: where to begin, and where nothing can be any more. */
	uint64_t from, limit;

	/*
	 * Called with each valid record, in the order of addresses. Its header blocks are there
	 * until it returns; -errno ends the search.
	 */
	int (*found)(void *arg, uint64_t address, const struct zf_log_record *record,
		     const void *blocks);
	void *arg;
	uint64_t *unreadable; /* counts blocks; one that is read again counts again */
};

/*
 * A block that cannot be read counts as garbage. So does a record whose hash is right and whose
 * values are not, which is reported. Both count as unreadable. If nothing can be read of a megabyte,
 * or of all there is, that is not one bad block: the rest of the zone is not tried. *ret_end: where
 * the last valid record ends, bytes in the zone; 0: there is none.
 */
int zf_log_scan(const struct zf_log_scan *scan, uint64_t *ret_end);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * Finding the records in one log zone. Private to the reader (read.c).
 *
 * The scan looks at every block, because anything may lie between two records: torn records, and
 * data of records that do not count. But after a valid record the scan goes on behind the record's
 * last block: the record's data is content of a file, and may be a copy of another record.
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
	uint64_t sequence; /* in a record above this, an unknown kind of body is an error */
	/*
	 * Bytes in the zone, block multiples: where the scan begins, and behind which there can be
	 * no record.
	 */
	uint64_t from, limit;

	/*
	 * Called with each valid record, in the order of addresses. The header blocks are valid
	 * until it returns. -errno ends the scan.
	 */
	int (*found)(void *arg, uint64_t address, const struct zf_log_record *record,
		     const void *blocks);
	void *arg;
	uint64_t *unreadable; /* counts blocks; a block that is read again counts again */
};

/*
 * A block that cannot be read counts as garbage, and as unreadable. So does a record whose hash is
 * right but whose values are impossible; that is reported. If a whole megabyte, or the whole range,
 * cannot be read, the rest of the zone is not tried. *ret_end: where the last valid record ends,
 * bytes in the zone; 0: there is none.
 */
int zf_log_scan(const struct zf_log_scan *scan, uint64_t *ret_end);

#endif

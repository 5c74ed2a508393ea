/* SPDX-License-Identifier: MIT */
/*
 * Log records made by hand, for tests of the code that reads and replays them. The superblock that
 * names the log zones gives every field of a record that depends on its place; the test gives the
 * sequence and the numbers of the bodies.
 */
#ifndef ZF_TESTS_LOG_RECORD_H
#define ZF_TESTS_LOG_RECORD_H

#include "io/dev.h"
#include "log/record.h"

struct log_record_body {
	const struct zf_log_body *body; /* made, without an error */
	uint64_t number;
	const void *data; /* the body's data blocks */
	uint32_t data_blocks;
};

/* All blocks of a record for the `which`th named zone; block-aligned, to be freed. */
uint8_t *log_record_make(const struct zf_super *super, unsigned int which, uint64_t sequence,
			 const struct log_record_body *bodies, unsigned int count, size_t *ret_len);
/* Packs the first data block into the header block, where it must fit (log/carry.h). */
void log_record_carry(const struct zf_super *super, uint8_t *record, size_t *len);
/* Makes the hash right again after a change of the header blocks. */
void log_record_seal_again(const struct zf_super *super, uint8_t *record);

/* Appends blocks to the zone with FUA. Returns their address. */
uint64_t log_record_append_blocks(struct zf_dev *dev, const struct zf_super *super,
				  unsigned int which, const uint8_t *blocks, size_t len);
/* Makes a record and appends it. */
uint64_t log_record_append(struct zf_dev *dev, const struct zf_super *super, unsigned int which,
			   uint64_t sequence, const struct log_record_body *bodies,
			   unsigned int count);

#endif

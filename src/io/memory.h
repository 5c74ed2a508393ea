/* SPDX-License-Identifier: MIT */
/*
 * The memory backend: a zoned device in RAM, for tests and for measuring the filesystem's own cost.
 *
 * With a seed, every poll delivers one request picked at random among those in flight, and an
 * append gets its address when it is picked: so appends land, and complete, in any order, and the
 * same seed gives the same order. Without a seed requests complete in the order of submission. A
 * struct zf_memory keeps the contents after the device is closed, so that tests can reopen them.
 */
#ifndef ZF_IO_MEMORY_H
#define ZF_IO_MEMORY_H

#include "io/dev.h"

struct zf_memory;

int zf_memory_new(const struct zf_geometry *geometry, struct zf_memory **ret_memory);
void zf_memory_free(struct zf_memory *memory); /* no device may be open on it; takes NULL */

struct zf_memory_options {
	uint64_t seed; /* 0: complete in order */
};

int zf_memory_open(struct zf_memory *memory, const struct zf_memory_options *options,
		   const struct zf_report *report, struct zf_dev **ret_dev);

/* The zone's bytes, zone_size long, for tests that damage them. */
void *zf_memory_zone(struct zf_memory *memory, uint32_t zone_no);

#endif

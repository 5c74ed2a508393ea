/* SPDX-License-Identifier: MIT */
/*
 * The rules of a zoned device as a state machine without I/O: the image, the memory device and the
 * simulator all enforce the same rules because they all ask this module (P6).
 *
 *                 write, append                 pointer reaches capacity, finish
 *      EMPTY ---------------------> IMP_OPEN -----------------------------------> FULL
 *        ^                          |     ^                                         |
 *        |          another zone is |     | write, append                           |
 *        |       opened at max_open v     |                                         |
 *        |                          CLOSED                                          |
 *        +--------------------------------- reset <---------------------------------+
 *
 * Open: IMP_OPEN. Active: IMP_OPEN or CLOSED. At max_open, opening a zone closes another implicitly
 * open zone, as devices do; at max_active it fails with -EOVERFLOW. Only test hooks make a zone
 * READONLY or OFFLINE. Not thread-safe: the device calls these functions under its own lock.
 */
#ifndef ZF_IO_ZONE_RULES_H
#define ZF_IO_ZONE_RULES_H

#include "io/dev.h"

/*
 * Fifty times the zones of today's largest disk. The bound keeps the program from allocating too
 * much memory for a forged header.
 */
#define ZF_ZONE_COUNT_MAX (1u << 22)

struct zf_zone_state {
	uint64_t wp; /* bytes from the zone's start */
	uint64_t reset_count;
	enum zf_zone_cond cond;
	bool lost;    /* see struct zf_zone_info; until the zone's state is set or changed */
	bool guessed; /* see struct zf_zone_info */
};

struct zf_zone_rules {
	struct zf_geometry geometry;
	struct zf_zone_state *zones;
	uint32_t open_count, active_count;
	uint32_t close_next; /* the next search for a zone to close implicitly begins here */
};

int zf_zone_rules_init(struct zf_zone_rules *rules, const struct zf_geometry *geometry);
void zf_zone_rules_deinit(struct zf_zone_rules *rules);

/*
 * Appends empty sequential zones. `zones` has room for all zones, and the rules own it from now on.
 * Returns the former table, which the caller frees.
 */
struct zf_zone_state *zf_zone_rules_grow(struct zf_zone_rules *rules, struct zf_zone_state *zones,
					 uint32_t zone_count);

/* Counts open and active zones, after the caller has filled in the zones' states. */
void zf_zone_rules_recount(struct zf_zone_rules *rules);

/* Closes open zones, as closing the device and opening it again does. Recounts. */
void zf_zone_rules_power_cycle(struct zf_zone_rules *rules);

/*
 * Checks a WRITE, ZEROES, APPEND, RESET or FINISH against every rule and, if it is allowed,
 * applies it to the state: the pointer moves past the request's bytes. For an append *ret_addr is
 * where it lands; for the others it is the request's address. Returns 0 or the errors that dev.h
 * lists.
 */
int zf_zone_rules_apply(struct zf_zone_rules *rules, const struct zf_io *io, uint64_t *ret_addr);

/* Checks the segments: block-aligned, not too many, `len` bytes in all. 0 or -EINVAL. */
int zf_zone_rules_check_iov(const struct iovec *iov, unsigned int iovcnt, uint64_t len);

/* Checks bounds and alignment of a read. Uses only the geometry, so it needs no lock. */
int zf_zone_rules_check_read(const struct zf_zone_rules *rules, uint64_t addr, uint64_t len);

void zf_zone_rules_report(const struct zf_zone_rules *rules, uint32_t zone_no,
			  struct zf_zone_info *ret_info);

/* See zf_dev_raise_pointer(). */
int zf_zone_rules_raise(struct zf_zone_rules *rules, uint32_t zone_no, uint64_t wp);

/* See zf_dev_set_reset_count(). */
int zf_zone_rules_set_reset_count(struct zf_zone_rules *rules, uint32_t zone_no,
				  uint64_t reset_count);

#endif

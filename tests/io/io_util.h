/* SPDX-License-Identifier: MIT */
/* What the tests of devices share: block buffers with a recognisable content, single requests. */
#ifndef ZF_TESTS_IO_UTIL_H
#define ZF_TESTS_IO_UTIL_H

#include <stdint.h>

#include "io/dev.h"

/* Block-aligned memory; the caller frees it. Every 8 bytes differ, also from those of another tag.
 */
void *blocks_new(uint64_t len, uint64_t tag);
void blocks_fill(void *buf, uint64_t len, uint64_t tag);
bool blocks_are(const void *buf, uint64_t len, uint64_t tag);
bool blocks_are_zero(const void *buf, uint64_t len);

/* Writes `len` bytes of blocks_fill(tag) in one request, waits for it, and returns its result. */
int run_write(struct zf_dev *dev, uint64_t addr, uint64_t len, uint64_t tag, bool fua);
int run_append(struct zf_dev *dev, uint64_t zone_addr, uint64_t len, uint64_t tag,
	       uint64_t *ret_addr);
int run_zeroes(struct zf_dev *dev, uint64_t addr, uint64_t len);

bool device_holds(struct zf_dev *dev, uint64_t addr, uint64_t len, uint64_t tag);
bool device_holds_zeroes(struct zf_dev *dev, uint64_t addr, uint64_t len);
struct zf_zone_info zone_of(struct zf_dev *dev, uint32_t zone_no);

#endif

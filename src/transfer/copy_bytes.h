/* SPDX-License-Identifier: MIT */
/* Copies bytes from device to device: it reads on while several writes are in flight. */
#ifndef ZF_TRANSFER_COPY_BYTES_H
#define ZF_TRANSFER_COPY_BYTES_H

#include "io/dev.h"

struct zf_copy_bytes;

/* The devices must outlive the struct. */
int zf_copy_bytes_new(struct zf_dev *from, struct zf_dev *to, struct zf_copy_bytes **ret_bytes);
void zf_copy_bytes_free(struct zf_copy_bytes *bytes); /* nothing is in flight; takes NULL */

/*
 * Copies to the same address, which is the pointer if the zone is sequential. The range lies within
 * one zone. Nothing is in flight when this returns. Errors are reported.
 */
int zf_copy_bytes_run(struct zf_copy_bytes *bytes, uint64_t address, uint64_t len,
		      const struct zf_report *report);

/*
 * Makes a range of a conventional zone of the target read as zeroes. Writes only blocks that do not
 * read as zeroes already, so an image keeps its holes. 0 or -errno.
 */
int zf_copy_bytes_clear(struct zf_copy_bytes *bytes, uint64_t address, uint64_t len);

#endif

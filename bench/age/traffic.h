/* SPDX-License-Identifier: MIT */
/* Bytes that reach the device, by purpose: a recorder (io/dev.h) counts them as they complete. */
#ifndef ZF_BENCH_AGE_TRAFFIC_H
#define ZF_BENCH_AGE_TRAFFIC_H

#include <stdatomic.h>

#include "fs/core/fs.h"

enum age_kind {
	AGE_DATA, /* written by the user */
	AGE_COLD, /* moved by reclaim */
	AGE_META, /* nodes, and the zeroes that fill their stream's gaps */
	AGE_SUPER,
	AGE_LOG, /* records, with the data that rides in them */
	AGE_KINDS,
};

extern const char *const age_kind_names[AGE_KINDS];

/* Bytes. */
struct age_traffic {
	struct zf_fs *fs;
	_Atomic uint64_t bytes[AGE_KINDS];
};

/* Counts from now on, until the device gets another recorder. Nothing may be in flight. */
void age_traffic_start(struct age_traffic *traffic, struct zf_fs *fs);
void age_traffic_stop(struct age_traffic *traffic);

#endif

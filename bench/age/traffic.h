/* SPDX-License-Identifier: MIT */
/* What reaches the device, by what it is for: counted by a recorder (io/dev.h), as it completes. */
#ifndef ZF_BENCH_AGE_TRAFFIC_H
#define ZF_BENCH_AGE_TRAFFIC_H

#include <stdatomic.h>

#include "fs/core/fs.h"

enum age_kind {
	AGE_DATA, /* as it comes */
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

/* From now on, until the device is told otherwise; nothing is in flight. */
void age_traffic_start(struct age_traffic *traffic, struct zf_fs *fs);
void age_traffic_stop(struct age_traffic *traffic);

#endif

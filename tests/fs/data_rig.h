/* SPDX-License-Identifier: MIT */
/*
 * A filesystem on a device of the tests, for file data: mounted, unmounted, cut off and checked.
 *
 * The device is the simulator (one thread, faults, crashes) or, with threads, the memory device. A
 * message of level ERROR fails the test unless `errors_expected` is set.
 */
#ifndef ZF_TESTS_FS_DATA_RIG_H
#define ZF_TESTS_FS_DATA_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fs/core/fs.h"
#include "io/memory.h"
#include "sim/rng.h"
#include "sim/sim.h"

struct data_rig_options {
	bool threads;
	bool memory; /* the memory device without threads, too: it is quicker than the simulator */
	uint64_t seed;
	uint32_t zone_count;	/* 0: 64 */
	uint64_t zone_size;	/* bytes, 0: 1 MiB */
	uint64_t zone_capacity; /* 0: all of it */
	uint32_t append_limit;	/* bytes, 0: 256 KiB */
	uint32_t node_size;
	uint8_t copies; /* of metadata, 0: 1 */
	uint64_t dirty_bytes;
	uint64_t cache_bytes;
	uint64_t commit_ms;
	uint32_t max_active;
	uint32_t conventional;
	bool rotational;
	bool abandon_log;
	bool lazy_time;
};

struct data_rig {
	struct data_rig_options options;
	struct zf_sim *sim;	  /* or ... */
	struct zf_memory *memory; /* ... this one */
	struct zf_dev *dev;
	struct zf_fs *fs;
	struct zf_ctx ctx; /* may_wait is set */
	struct zf_report report;
	int64_t now_ns;
	bool errors_expected;
	unsigned int errors;
	char message[512]; /* the last error */
};

void data_rig_init(struct data_rig *rig, const struct data_rig_options *options);
/* Unmounts, checks, frees. */
void data_rig_deinit(struct data_rig *rig);
/* Unmounts, checks the whole device with its data, and mounts again. */
void data_rig_remount(struct data_rig *rig);
/* Opens the device and mounts: for after an unmount or a zf_fs_abandon() and a close of the device.
 */
void data_rig_mount(struct data_rig *rig);
/* The same, but the mount may fail: it then closes the device again. */
int data_rig_try_mount(struct data_rig *rig);
/* Mounts on the device, which is still open. */
int data_rig_mount_opened(struct data_rig *rig);
/* Cuts the power without an unmount, checks the durable state, and mounts again. */
void data_rig_crash(struct data_rig *rig);
/* Frees everything without a check, for use after a fault. */
void data_rig_drop(struct data_rig *rig);
/* Runs the checker on the durable state, which must have no error. */
void data_rig_check(struct data_rig *rig);

/* A new empty file in the root directory. */
uint64_t data_rig_make(struct data_rig *rig, const char *name);
void data_rig_unlink(struct data_rig *rig, const char *name, uint64_t ino);

/* Writes all of it, or fails the test. */
void data_rig_write(struct data_rig *rig, uint64_t ino, uint64_t offset, const void *buf,
		    size_t len);
/* If a seed has this bit, the bytes of data_rig_fill() can be packed (log/carry.h). */
#define DATA_RIG_PACKS (UINT64_C(1) << 40)

void data_rig_write_pattern(struct data_rig *rig, uint64_t ino, uint64_t seed, uint64_t offset,
			    size_t len);
void data_rig_allocate(struct data_rig *rig, uint64_t ino, int mode, uint64_t offset, uint64_t len);
void data_rig_truncate(struct data_rig *rig, uint64_t ino, uint64_t size);
uint64_t data_rig_size(struct data_rig *rig, uint64_t ino);
/* Blocks that the file has, and blocks that are kept for all files. */
uint64_t data_rig_blocks(struct data_rig *rig, uint64_t ino);
uint64_t data_rig_kept(struct data_rig *rig);
uint64_t data_rig_guaranteed(struct data_rig *rig); /* blocks */
/* Live blocks in the HOT and COLD zones. */
uint64_t data_rig_live_blocks(struct data_rig *rig);
void data_rig_sync(struct data_rig *rig);
/* fsync of an open file, whose error cursor zf_fs_begin_errors() has filled in. */
int data_rig_fsync(struct data_rig *rig, uint64_t ino, struct zf_error_cursor *errors);

/* Bytes that depend on seed and file offset. */
void data_rig_fill(uint64_t seed, uint64_t offset, void *buf, size_t len);
/* [offset, offset + len) holds data_rig_fill(seed, ...). */
void data_rig_expect(struct data_rig *rig, uint64_t ino, uint64_t seed, uint64_t offset,
		     size_t len);
void data_rig_expect_zeroes(struct data_rig *rig, uint64_t ino, uint64_t offset, size_t len);

/* Extents of the file, after a flush; at most 256. */
struct data_rig_extents {
	struct zf_extent_info at[256];
	int count;
};
void data_rig_extents(struct data_rig *rig, uint64_t ino, struct data_rig_extents *ret_extents);

#endif

/* SPDX-License-Identifier: MIT */
#include "fs/data_rig.h"

#include "alloc/alloc_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "check/check.h"
#include "fs/mount/format.h"
#include "superblock/ring.h"

/* Any thread reports. */
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;

static void note(void *arg, enum zf_report_level level, const char *message)
{
	struct data_rig *rig = arg;

	if (level != ZF_REPORT_ERROR)
		return;
	pthread_mutex_lock(&noting);
	rig->errors++;
	snprintf(rig->message, sizeof(rig->message), "%s", message);
	pthread_mutex_unlock(&noting);
	if (!rig->errors_expected)
		print_error("reported: %s\n", message);
}

static int64_t now(void *arg)
{
	struct data_rig *rig = arg;

	return rig->now_ns++;
}

/* ---- the device ---- */

static void open_device(struct data_rig *rig)
{
	const struct zf_memory_options options = {.seed = rig->options.seed};

	if (rig->sim)
		assert_int_equal(zf_sim_open(rig->sim, &rig->report, &rig->dev), 0);
	else
		assert_int_equal(zf_memory_open(rig->memory, &options, &rig->report, &rig->dev), 0);
}

static void close_device(struct data_rig *rig)
{
	zf_dev_close(rig->dev);
	rig->dev = NULL;
}

int data_rig_mount_opened(struct data_rig *rig)
{
	const struct zf_mount_options options = {
		.threads = rig->options.threads,
		.dirty_bytes = rig->options.dirty_bytes,
		.cache_bytes = rig->options.cache_bytes,
		.commit_ms = rig->options.commit_ms,
		.abandon_log = rig->options.abandon_log,
		.lazy_time = rig->options.lazy_time,
		.now_ns = rig->options.threads ? NULL : now,
		.now_arg = rig,
	};

	rig->fs = NULL;
	return zf_fs_mount(rig->dev, &options, &rig->report, &rig->fs);
}

int data_rig_try_mount(struct data_rig *rig)
{
	int r;

	open_device(rig);
	if (rig->options.threads)
		assert_int_equal(zf_dev_start_thread(rig->dev), 0);
	r = data_rig_mount_opened(rig);
	if (r < 0)
		close_device(rig);
	return r;
}

void data_rig_mount(struct data_rig *rig)
{
	assert_int_equal(data_rig_try_mount(rig), 0);
}

static void no_errors(struct data_rig *rig)
{
	if (rig->errors > 0 && !rig->errors_expected)
		fail_msg("reported: %s", rig->message);
}

void data_rig_check(struct data_rig *rig)
{
	const struct zf_check_options options = {.data = true};
	struct zf_check_counts counts;
	const struct zf_super *super;
	struct zf_ring *ring;
	unsigned int stepped_over;

	assert_int_equal(zf_ring_open(rig->dev, &rig->report, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	assert_int_equal(zf_check_run(rig->dev, super, &options, &rig->report, &counts), 0);
	if (counts.errors > 0)
		fail_msg("the checker found %lu errors: %s", (unsigned long)counts.errors,
			 rig->message);
	zf_ring_close(ring);
	no_errors(rig);
}

/* ---- life ---- */

void data_rig_init(struct data_rig *rig, const struct data_rig_options *options)
{
	uint64_t zone_size = options->zone_size ? options->zone_size : 1 << 20;
	const struct zf_geometry geometry = {
		.zone_size = zone_size,
		.zone_capacity = options->zone_capacity ? options->zone_capacity : zone_size,
		.zone_count = options->zone_count ? options->zone_count : 64,
		.append_limit = options->append_limit ? options->append_limit : 256 << 10,
		.max_active = options->max_active,
		.conventional = options->conventional,
		.rotational = options->rotational,
		.volatile_cache = !options->threads,
	};
	const struct zf_format_options format = {
		.node_size = options->node_size,
		.metadata_copies = options->copies,
		.fsid = {7},
		.dir_hash_seed = 42,
		.now_ns = 1000000000,
	};

	*rig = (struct data_rig){
		.options = *options,
		.ctx = {.may_wait = true},
		.report = {.fn = note, .arg = rig},
		.now_ns = 2000000000,
	};
	if (options->threads || options->memory)
		assert_int_equal(zf_memory_new(&geometry, &rig->memory), 0);
	else
		rig->sim = zf_sim_new(&geometry, options->seed);
	open_device(rig);
	assert_int_equal(zf_fs_format(rig->dev, &format, &rig->report), 0);
	close_device(rig);
	data_rig_mount(rig);
}

static void unmount_rig(struct data_rig *rig)
{
	assert_int_equal(zf_fs_unmount(rig->fs), 0);
	rig->fs = NULL;
	close_device(rig);
	open_device(rig);
	data_rig_check(rig);
	close_device(rig);
}

void data_rig_deinit(struct data_rig *rig)
{
	unmount_rig(rig);
	zf_sim_free(rig->sim);
	zf_memory_free(rig->memory);
}

void data_rig_remount(struct data_rig *rig)
{
	unmount_rig(rig);
	data_rig_mount(rig);
}

void data_rig_crash(struct data_rig *rig)
{
	zf_fs_abandon(rig->fs);
	close_device(rig);
	if (rig->sim)
		zf_sim_crash(rig->sim, rig->options.seed + (uint64_t)rig->now_ns,
			     ZF_SIM_CUT_DEVICE);
	open_device(rig);
	data_rig_check(rig);
	close_device(rig);
	data_rig_mount(rig);
}

void data_rig_drop(struct data_rig *rig)
{
	zf_fs_abandon(rig->fs);
	close_device(rig);
	zf_sim_free(rig->sim);
	zf_memory_free(rig->memory);
}

/* ---- files ---- */

uint64_t data_rig_make(struct data_rig *rig, const char *name)
{
	struct zf_attr attr;

	assert_int_equal(
		zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, S_IFREG | 0644, 0, NULL, &attr),
		0);
	zf_fs_forget(rig->fs, attr.ino, 1);
	return attr.ino;
}

void data_rig_unlink(struct data_rig *rig, const char *name, uint64_t ino)
{
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, name), 0);
	(void)ino;
}

void data_rig_write(struct data_rig *rig, uint64_t ino, uint64_t offset, const void *buf,
		    size_t len)
{
	ssize_t r = zf_fs_write(rig->fs, &rig->ctx, ino, offset, buf, len, 0);

	assert_int_equal(r, len);
}

void data_rig_write_pattern(struct data_rig *rig, uint64_t ino, uint64_t seed, uint64_t offset,
			    size_t len)
{
	uint8_t *bytes = malloc(len);

	assert_non_null(bytes);
	data_rig_fill(seed, offset, bytes, len);
	data_rig_write(rig, ino, offset, bytes, len);
	free(bytes);
}

void data_rig_allocate(struct data_rig *rig, uint64_t ino, int mode, uint64_t offset, uint64_t len)
{
	assert_int_equal(zf_fs_fallocate(rig->fs, &rig->ctx, ino, mode, offset, len), 0);
}

uint64_t data_rig_blocks(struct data_rig *rig, uint64_t ino)
{
	struct zf_attr attr;

	assert_int_equal(zf_fs_getattr(rig->fs, &rig->ctx, ino, &attr), 0);
	return attr.blocks / (ZF_BLOCK_SIZE / 512);
}

uint64_t data_rig_guaranteed(struct data_rig *rig)
{
	return zf_fs_alloc(rig->fs)->guaranteed_blocks;
}

uint64_t data_rig_kept(struct data_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	return space.kept / ZF_BLOCK_SIZE;
}

void data_rig_truncate(struct data_rig *rig, uint64_t ino, uint64_t size)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = size};
	struct zf_attr attr;

	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, ino, &set, &attr), 0);
	assert_int_equal(attr.size, size);
}

uint64_t data_rig_size(struct data_rig *rig, uint64_t ino)
{
	struct zf_attr attr;

	assert_int_equal(zf_fs_getattr(rig->fs, &rig->ctx, ino, &attr), 0);
	return attr.size;
}

uint64_t data_rig_live_blocks(struct data_rig *rig)
{
	struct zf_alloc *alloc = zf_fs_alloc(rig->fs);
	uint64_t live = 0;

	for (uint32_t z = 0; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		if (zone.role == ZF_ROLE_HOT || zone.role == ZF_ROLE_COLD)
			live += zone.live;
	}
	return live;
}

int data_rig_fsync(struct data_rig *rig, uint64_t ino, struct zf_error_cursor *errors)
{
	struct zf_ctx ctx = rig->ctx;

	ctx.told = zf_fs_told(errors);
	return zf_fs_fsync(rig->fs, &ctx, ino, false);
}

void data_rig_sync(struct data_rig *rig)
{
	assert_int_equal(zf_fs_syncfs(rig->fs, &rig->ctx), 0);
}

void data_rig_fill(uint64_t seed, uint64_t offset, void *buf, size_t len)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++) {
		uint64_t at = seed & DATA_RIG_PACKS ? (offset + i) & ~UINT64_C(63) : offset + i;
		uint64_t word = (at / 8 + 1) * 0x9e3779b97f4a7c15u ^ seed << 17;

		word = (word ^ (word >> 31)) * 0xbf58476d1ce4e5b9u;
		p[i] = (uint8_t)((word >> (at % 8 * 8)) | 1); /* never zero */
	}
}

static void expect(struct data_rig *rig, uint64_t ino, uint64_t offset, const uint8_t *wanted,
		   size_t len)
{
	uint8_t *got = malloc(len);

	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, ino, offset, got, len), len);
	for (size_t i = 0; i < len; i++)
		if (got[i] != wanted[i])
			fail_msg("inode %lu at offset %lu: read %02x, expected %02x",
				 (unsigned long)ino, (unsigned long)(offset + i), got[i],
				 wanted[i]);
	free(got);
}

void data_rig_expect(struct data_rig *rig, uint64_t ino, uint64_t seed, uint64_t offset, size_t len)
{
	uint8_t *wanted = malloc(len);

	data_rig_fill(seed, offset, wanted, len);
	expect(rig, ino, offset, wanted, len);
	free(wanted);
}

void data_rig_expect_zeroes(struct data_rig *rig, uint64_t ino, uint64_t offset, size_t len)
{
	uint8_t *wanted = calloc(1, len);

	expect(rig, ino, offset, wanted, len);
	free(wanted);
}

void data_rig_extents(struct data_rig *rig, uint64_t ino, struct data_rig_extents *ret_extents)
{
	ret_extents->count = zf_fs_extents(rig->fs, &rig->ctx, ino, 0, ret_extents->at, 256);
	assert_true(ret_extents->count >= 0);
}

/* SPDX-License-Identifier: MIT */
/*
 * A filesystem on an image whose zone table is damaged (P1, P7). Whichever byte of an entry is
 * damaged, either all that fsync acknowledged is there, or the mount reports an error. The same
 * holds again after more files and another kill.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/log_zone.h"
#include "base/bits.h"
#include "check/check.h"
#include "fs/data_rig.h"
#include "fs/mount/format.h"
#include "io/dev_ops.h"
#include "io/image.h"
#include "io/image_trailer.h"
#include "superblock/ring.h"

#define ZONES	16u
#define TABLE	((uint64_t)ZONES << 20)
#define FILES	400u /* more than one log zone has room for */
#define MORE	300u
#define CONTENT 100u

static const struct zf_geometry geometry = {
	.zone_size = 1 << 20,
	.zone_capacity = 1 << 20,
	.zone_count = ZONES,
	.append_limit = 256 << 10,
	.volatile_cache = true,
};

static struct data_rig rig;
static char path[64];
static char messages[16384];
static uint8_t *saved; /* the image, as it was when the daemon was killed */
static uint64_t saved_size;

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	size_t used = strlen(messages);

	(void)arg;
	snprintf(messages + used, sizeof(messages) - used, "%s\n", message);
	if (level == ZF_REPORT_ERROR) {
		rig.errors++;
		snprintf(rig.message, sizeof(rig.message), "%s", message);
	}
}

static int open_image(bool read_only)
{
	const struct zf_open_options options = {.read_only = read_only};

	messages[0] = '\0';
	rig.errors = 0;
	return zf_image_open(path, &options, &rig.report, &rig.dev);
}

static int mount(void)
{
	int r = open_image(false);

	if (r < 0)
		return r;
	r = data_rig_mount_opened(&rig);
	if (r < 0)
		zf_dev_close(rig.dev);
	return r;
}

/* A killed daemon leaves the file as it is. */
static void kill_it(void)
{
	zf_fs_abandon(rig.fs);
	zf_dev_close(rig.dev);
}

/* ---- files ---- */

static void make_files(unsigned int first, unsigned int count)
{
	char name[16];

	for (unsigned int i = first; i < first + count; i++) {
		uint64_t ino;

		snprintf(name, sizeof(name), "%u", i);
		ino = data_rig_make(&rig, name);
		data_rig_write_pattern(&rig, ino, i, 0, CONTENT);
		assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	}
}

static void expect_files(unsigned int count)
{
	uint8_t has[CONTENT], wanted[CONTENT];
	struct zf_attr attr;
	char name[16];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%u", i);
		if (zf_fs_lookup(rig.fs, &rig.ctx, ZF_INO_ROOT, name, &attr) < 0)
			fail_msg("file %u is gone:\n%s", i, messages);
		data_rig_fill(i, 0, wanted, CONTENT);
		assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, attr.ino, 0, has, CONTENT), CONTENT);
		assert_memory_equal(has, wanted, CONTENT);
		zf_fs_forget(rig.fs, attr.ino, 1);
	}
}

/* ---- the image ---- */

static void save(void)
{
	int fd = open(path, O_RDONLY);

	saved_size = (uint64_t)lseek(fd, 0, SEEK_END);
	free(saved);
	saved = malloc(saved_size);
	assert_non_null(saved);
	assert_int_equal(pread(fd, saved, saved_size, 0), saved_size);
	close(fd);
}

/* Holes stay holes, which is quicker. */
static void put_back(void)
{
	int fd = open(path, O_RDWR);

	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(ftruncate(fd, (off_t)saved_size), 0);
	for (uint64_t at = 0; at < saved_size; at += ZF_BLOCK_SIZE)
		if (!zf_is_zero(saved + at, ZF_BLOCK_SIZE))
			assert_int_equal(pwrite(fd, saved + at, ZF_BLOCK_SIZE, (off_t)at),
					 ZF_BLOCK_SIZE);
	close(fd);
}

static void flip(uint64_t offset)
{
	uint8_t byte = (uint8_t)(saved[offset] ^ 0x5a);
	int fd = open(path, O_RDWR);

	assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
	close(fd);
}

/* For each slot: the first and the last byte of the count, the pointer, the condition, the check.
 */
static const uint64_t bytes_of_an_entry[] = {0, 7, 8, 12, 15, 16, 23, 24, 28, 31};

static uint64_t offset_of(uint32_t zone_no, size_t i)
{
	return TABLE + zone_no * sizeof(struct zf_image_zone) + bytes_of_an_entry[i];
}

/* A new filesystem on a new image, mounted. */
static int begin(void)
{
	const struct zf_format_options format = {
		.fsid = {0xfe}, .log_secret = {7}, .dir_hash_seed = 3};
	const struct zf_open_options options = {0};

	unlink(path);
	if (zf_image_create(path, &geometry, false, &options, &rig.report) < 0 ||
	    open_image(false) < 0 || zf_fs_format(rig.dev, &format, &rig.report) < 0)
		return -1;
	zf_dev_close(rig.dev);
	return mount();
}

static int setup(void **state)
{
	(void)state;
	rig = (struct data_rig){.report = {.fn = keep_message}, .ctx = {.may_wait = true}};
	snprintf(path, sizeof(path), "/dev/shm/zfuse-table-%d.img", getpid());
	if (begin() < 0)
		return -1;
	make_files(0, FILES);
	save();
	kill_it();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(saved);
	return unlink(path);
}

/* ---- what is claimed ---- */

static void survives(uint32_t zone_no, size_t i)
{
	if (mount() < 0)
		fail_msg("zone %u, byte %lu: the mount failed:\n%s", zone_no,
			 (unsigned long)bytes_of_an_entry[i], messages);
	expect_files(FILES);
	make_files(FILES, MORE);
	kill_it();
	assert_int_equal(mount(), 0);
	assert_null(strstr(messages, "does not verify"));
	expect_files(FILES + MORE);
	assert_int_equal(rig.errors, 0);
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	data_rig_check(&rig);
	zf_dev_close(rig.dev);
}

static void a_damaged_entry_of_the_table_loses_no_file(void **state)
{
	(void)state;
	for (uint32_t z = 0; z < ZONES; z++)
		for (size_t i = z % 3; i < ZF_ARRAY_SIZE(bytes_of_an_entry); i += 3) {
			put_back();
			flip(offset_of(z, i));
			survives(z, i);
		}
}

/* The filesystem knows all important content of the table from other places. */
static void without_any_entry_of_the_table_no_file_is_lost(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(bytes_of_an_entry); i++) {
		put_back();
		for (uint32_t z = 0; z < ZONES; z++)
			flip(offset_of(z, i));
		/* The image is opened, and cut before anything was written: the entries are still
		 * lost. */
		if (i % 2) {
			assert_int_equal(open_image(false), 0);
			zf_dev_close(rig.dev);
		}
		survives(ZONES, i);
	}
}

/* How many errors the checker finds; rig.message is the last of them. */
static uint64_t check_errors(void)
{
	const struct zf_check_options options = {.data = true};
	struct zf_check_counts counts;
	const struct zf_super *super;
	struct zf_ring *ring;
	unsigned int stepped_over;

	assert_int_equal(zf_ring_open(rig.dev, &rig.report, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	assert_int_equal(zf_check_run(rig.dev, super, &options, &rig.report, &counts), 0);
	zf_ring_close(ring);
	return counts.errors;
}

/* The check changes nothing, so a second check finds the damage again. */
static void the_checker_names_a_damaged_entry(void **state)
{
	char wanted[64];

	(void)state;
	for (uint32_t z = 0; z < ZONES; z++) {
		put_back();
		flip(offset_of(z, z % 2 ? 2 : 7));
		snprintf(wanted, sizeof(wanted), "corrupt zone at %u: the device's entry", z);
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(open_image(true), 0);
			assert_int_equal(check_errors(), 1);
			assert_non_null(strstr(rig.message, wanted));
			zf_dev_close(rig.dev);
		}
	}
}

/* A log zone has a valid entry with another reset count. No power cut leaves such an entry. */
static void a_log_zone_of_another_life_is_an_error(void **state)
{
	const struct zf_mount_options options = {.read_only = true};
	struct zf_log_zones zones;

	(void)state;
	put_back();
	assert_int_equal(open_image(true), 0);
	assert_int_equal(zf_fs_mount(rig.dev, &options, &rig.report, &rig.fs), 0);
	zf_alloc_log_get(zf_fs_alloc(rig.fs), &zones);
	kill_it();
	for (unsigned int i = 0; i < 2; i++) {
		put_back();
		assert_int_equal(open_image(false), 0);
		assert_int_equal(zf_dev_reset(rig.dev, zones.zone[i]), 0);
		zf_dev_close(rig.dev);
		assert_int_equal(mount(), -EUCLEAN);
		assert_non_null(strstr(rig.message, "was reset after this commit"));
		assert_int_equal(open_image(true), 0);
		assert_true(check_errors() > 0);
		zf_dev_close(rig.dev);
	}
}

static void end(void)
{
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	zf_dev_close(rig.dev);
}

static void make_large(const char *name, uint64_t pattern, uint64_t len)
{
	uint64_t ino = data_rig_make(&rig, name);

	for (uint64_t at = 0; at < len; at += 64 << 10)
		data_rig_write_pattern(&rig, ino, pattern, at, 64 << 10);
	data_rig_sync(&rig);
}

/* Writes as much as there is room for. */
static void fill_up(void)
{
	static uint8_t bytes[64 << 10];
	uint64_t ino = data_rig_make(&rig, "all there is room for"), at = 0;
	ssize_t written;

	do {
		written = zf_fs_write(rig.fs, &rig.ctx, ino, at, bytes, sizeof(bytes), 0);
		at += written > 0 ? (uint64_t)written : 0;
		assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	} while (written > 0);
	assert_int_equal(written, -ENOSPC);
	assert_true(at >= 5 << 20);
}

/* The summary tree still has entries of the zone, and must drop them before new data comes. */
static void a_lost_zone_that_was_emptied_can_be_written_again(void **state)
{
	struct zf_attr attr;

	(void)state;
	for (uint32_t z = ZF_SUPER_ZONES; z < ZONES; z++) {
		if (z == ZF_SUPER_ZONES) {
			assert_int_equal(begin(), 0);
			make_large("gone", 1, 1536 << 10);
			assert_int_equal(zf_fs_lookup(rig.fs, &rig.ctx, ZF_INO_ROOT, "gone", &attr),
					 0);
			zf_fs_forget(rig.fs, attr.ino, 1);
			data_rig_unlink(&rig, "gone", attr.ino);
			end();
			save();
		}
		put_back();
		flip(offset_of(z, 0));
		flip(offset_of(z, 4));
		assert_int_equal(mount(), 0);
		fill_up();
		end();
		assert_int_equal(rig.errors, 0);
	}
}

/* An older state may know less about a lost zone than the newest state. */
static void a_look_at_an_older_state_tells_the_device_nothing(void **state)
{
	struct zf_mount_options options = {.read_only = true};
	const struct zf_super *newest;
	unsigned int stepped_over;
	struct zf_super super;
	struct zf_ring *ring;

	(void)state;
	assert_int_equal(begin(), 0);
	for (unsigned int i = 0; i < 5; i++)
		make_large((char[]){(char)('a' + i), 0}, i, 768 << 10);
	end();
	save();
	for (uint32_t z = ZF_SUPER_ZONES; z < ZONES; z++) {
		put_back();
		flip(offset_of(z, 0));
		flip(offset_of(z, 4));
		assert_int_equal(open_image(false), 0);
		assert_int_equal(zf_ring_open(rig.dev, NULL, &ring), 0);
		assert_int_equal(zf_ring_newest(ring, &newest, &stepped_over), 0);
		options.generation = newest->generation;
		for (unsigned int i = 0; i < 3; i++) {
			assert_int_equal(zf_ring_older(ring, options.generation, &super), 0);
			options.generation = super.generation;
		}
		zf_ring_close(ring);
		if (zf_fs_mount(rig.dev, &options, NULL, &rig.fs) == 0)
			zf_fs_abandon(rig.fs);
		zf_dev_close(rig.dev);
		if (mount() < 0)
			fail_msg("zone %u: the newest state cannot be mounted:\n%s", z, messages);
		data_rig_check(&rig);
		end();
	}
}

/* The host reports only once that it has lost data, which may belong to the table. */
static void after_a_flush_that_failed_pointers_are_lower_bounds(void **state)
{
	(void)state;
	put_back();
	assert_int_equal(mount(), 0);
	zf_dev_flush_failed(rig.dev, -EIO);
	assert_int_not_equal(zf_fs_unmount(rig.fs), 0);
	zf_dev_close(rig.dev);
	assert_int_equal(open_image(false), 0);
	assert_true(zf_dev_geometry(rig.dev)->pointers_are_lower_bounds);
	zf_dev_close(rig.dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_damaged_entry_of_the_table_loses_no_file),
		cmocka_unit_test(without_any_entry_of_the_table_no_file_is_lost),
		cmocka_unit_test(the_checker_names_a_damaged_entry),
		cmocka_unit_test(a_log_zone_of_another_life_is_an_error),
		cmocka_unit_test(after_a_flush_that_failed_pointers_are_lower_bounds),
		cmocka_unit_test(a_lost_zone_that_was_emptied_can_be_written_again),
		cmocka_unit_test(a_look_at_an_older_state_tells_the_device_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

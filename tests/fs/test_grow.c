/* SPDX-License-Identifier: MIT */
/*
 * A full filesystem, or one in use, is grown. Its device grows at once here;
 * tests/io/test_image_grow.c tests how an image grows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "fs/data_rig.h"

#define BLOCK 4096u

static _Alignas(4096) uint8_t buf[1 << 20];

static uint32_t zone_count(struct data_rig *rig)
{
	return zf_alloc_zone_count(zf_fs_alloc(rig->fs));
}

static uint64_t total(struct data_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	return space.total;
}

static uint64_t available(struct data_rig *rig)
{
	struct zf_statfs statfs;

	assert_int_equal(zf_fs_statfs(rig->fs, &statfs), 0);
	return statfs.blocks_free * statfs.block_size;
}

/* Writes until the filesystem is full. Returns the file's size. */
static uint64_t fill(struct data_rig *rig, uint64_t ino, uint64_t from)
{
	uint64_t at = from;
	ssize_t r;

	do {
		data_rig_fill(1, at, buf, 16 * BLOCK);
		r = zf_fs_write(rig->fs, &rig->ctx, ino, at, buf, 16 * BLOCK, 0);
		if (r == -ENOSPC && zf_fs_syncfs(rig->fs, &rig->ctx) == 0)
			r = zf_fs_write(rig->fs, &rig->ctx, ino, at, buf, BLOCK, 0);
		if (r > 0)
			at += (uint64_t)r;
	} while (r > 0);
	return data_rig_size(rig, ino);
}

/* ---- sizes ---- */

static void a_full_filesystem_grows(void **state)
{
	const struct data_rig_options options = {.seed = 3, .zone_count = 24};
	struct data_rig rig;
	uint64_t ino, size, more, before;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	size = fill(&rig, ino, 0);
	before = total(&rig);
	assert_int_equal(zf_fs_grow(rig.fs, 48), 0);
	assert_int_equal(zone_count(&rig), 48);
	assert_int_equal(total(&rig), before + 24 * (UINT64_C(1) << 20));
	more = fill(&rig, ino, size);
	assert_true(more >= size + 22 * (UINT64_C(1) << 20));
	data_rig_remount(&rig);
	assert_int_equal(zone_count(&rig), 48);
	data_rig_expect(&rig, ino, 1, 0, more);
	data_rig_unlink(&rig, "file", ino);
	data_rig_deinit(&rig);
}

static void a_device_that_is_larger_is_mounted_as_it_was_and_then_grows(void **state)
{
	const struct data_rig_options options = {.seed = 4, .zone_count = 24};
	struct data_rig rig;
	uint64_t ino, before;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 300000);
	assert_int_equal(zf_fs_grow(rig.fs, 0), 0);
	assert_int_equal(zone_count(&rig), 24);
	data_rig_remount(&rig);
	before = available(&rig);
	zf_sim_grow(rig.sim, 60);
	data_rig_remount(&rig);
	assert_int_equal(zone_count(&rig), 24);
	assert_int_equal(available(&rig), before);
	assert_int_equal(zf_fs_grow(rig.fs, 40), 0);
	assert_int_equal(zone_count(&rig), 40);
	assert_int_equal(zf_fs_grow(rig.fs, 0), 0);
	assert_int_equal(zone_count(&rig), 60);
	assert_true(available(&rig) >= before + 35 * (UINT64_C(1) << 20));
	data_rig_crash(&rig);
	assert_int_equal(zone_count(&rig), 60);
	data_rig_deinit(&rig);
}

static void what_cannot_be_is_refused(void **state)
{
	const struct data_rig_options options = {.seed = 5, .zone_count = 24};
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	assert_int_equal(zf_fs_grow(rig.fs, 23), -EINVAL);
	assert_int_equal(zf_fs_grow(rig.fs, 24), 0);
	rig.errors_expected = true;
	zf_sim_add_fault(rig.sim,
			 &(struct zf_sim_fault){.op = ZF_SIM_ANY_OP, .nth = 1, .error = -EIO});
	assert_true(zf_fs_grow(rig.fs, 32) < 0);
	assert_int_equal(zf_fs_grow(rig.fs, 40), -EROFS);
	data_rig_crash(&rig);
	assert_int_equal(zone_count(&rig), 24);
	assert_int_equal(zf_fs_grow(rig.fs, 32), 0);
	data_rig_deinit(&rig);
}

/*
 * The trees of zones and roots go from one node to many, of more than one level, and nearly all of
 * the room that a full filesystem has for nodes is gone.
 */
static void a_tiny_full_filesystem_becomes_huge(void **state)
{
	const struct data_rig_options options = {
		.seed = 6,
		.zone_count = 20,
		.zone_size = 16 * BLOCK,
		.node_size = 4096,
		.append_limit = 4 * BLOCK,
	};
	struct data_rig rig;
	uint64_t ino, size;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	size = fill(&rig, ino, 0);
	assert_int_equal(zf_fs_grow(rig.fs, 5000), 0);
	assert_int_equal(zone_count(&rig), 5000);
	data_rig_remount(&rig);
	data_rig_write_pattern(&rig, ino, 1, size, 20 << 20);
	data_rig_crash(&rig);
	assert_int_equal(zone_count(&rig), 5000);
	size = data_rig_size(&rig, ino);
	data_rig_expect(&rig, ino, 1, 0, size);
	/* The file's zones become garbage all at once, which makes a commit with a long tail. */
	data_rig_unlink(&rig, "file", ino);
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_grow(rig.fs, 5100), 0);
	data_rig_deinit(&rig);
}

/* Before the new superblock is durable, no durable state may name bytes in a new zone. */
static struct watch {
	struct data_rig *rig;
	uint64_t total;
	unsigned int commands;
} watch;

static void has_its_old_size(void *arg, const struct zf_sim *sim)
{
	(void)arg;
	(void)sim;
	watch.commands++;
	assert_int_equal(total(watch.rig), watch.total);
	assert_int_equal(zone_count(watch.rig), 24);
}

static void new_zones_are_used_when_they_are_durable(void **state)
{
	const struct data_rig_options options = {.seed = 8, .zone_count = 24};
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	data_rig_make(&rig, "file");
	watch = (struct watch){.rig = &rig, .total = total(&rig)};
	zf_sim_observe(rig.sim, has_its_old_size, NULL);
	assert_int_equal(zf_fs_grow(rig.fs, 48), 0);
	zf_sim_observe(rig.sim, NULL, NULL);
	assert_true(watch.commands >= 3);
	assert_int_equal(zone_count(&rig), 48);
	data_rig_deinit(&rig);
}

/* The space that each step reserves for its own commit is released later. */
static void many_small_steps_leave_as_much_room_as_one(void **state)
{
	const struct data_rig_options options = {
		.seed = 10,
		.zone_count = 24,
		.zone_size = 16 * BLOCK,
		.node_size = 4096,
		.append_limit = 4 * BLOCK,
	};
	struct data_rig rig;
	uint64_t ino, size;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	for (uint32_t count = 25; count <= 200; count++)
		assert_int_equal(zf_fs_grow(rig.fs, count), 0);
	size = fill(&rig, ino, 0);
	data_rig_remount(&rig);
	assert_true(fill(&rig, ino, size) <= size + 10 * options.zone_size);
	data_rig_deinit(&rig);
}

/* If the device was used before, the new zones may already be written. */
static void what_is_written_in_new_zones_is_garbage(void **state)
{
	const struct data_rig_options options = {.seed = 7, .zone_count = 24};
	struct data_rig rig;
	struct zf_zone zone;
	uint64_t ino, size;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	zf_sim_grow(rig.sim, 30);
	for (uint32_t z = 24; z < 30; z += 2)
		assert_int_equal(zf_dev_write_sync(rig.dev, z << 20, buf, 3 * BLOCK, true), 0);
	assert_int_equal(zf_fs_grow(rig.fs, 0), 0);
	zf_alloc_get_zone(zf_fs_alloc(rig.fs), 24, &zone);
	assert_int_equal(zone.pointer, 3);
	for (unsigned int i = 0; i < 3; i++) {
		data_rig_write_pattern(&rig, ino, 1, i * BLOCK, BLOCK);
		data_rig_sync(&rig);
		assert_true(zf_fs_step(rig.fs) >= 0);
	}
	for (uint32_t z = 24; z < 30; z++) {
		zf_alloc_get_zone(zf_fs_alloc(rig.fs), z, &zone);
		assert_int_equal(zone.pointer, 0);
	}
	data_rig_remount(&rig);
	size = fill(&rig, ino, 0);
	assert_true(size >= 20 * (UINT64_C(1) << 20));
	data_rig_expect(&rig, ino, 1, 0, size);
	data_rig_deinit(&rig);
}

/* ---- in use ---- */

#define FILES 6u

static void random_operations_while_it_grows(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		const struct data_rig_options options = {
			.seed = seed,
			.zone_count = 24,
			.zone_size = 64 * BLOCK,
			.node_size = 4096,
			.append_limit = 16 * BLOCK,
			.copies = 1 + seed % 2,
		};
		uint64_t ino[FILES], size[FILES] = {0};
		struct data_rig rig;
		struct zf_rng rng;

		data_rig_init(&rig, &options);
		zf_rng_seed(&rng, seed);
		for (unsigned int i = 0; i < FILES; i++) {
			char name[] = {(char)('a' + i), '\0'};

			ino[i] = data_rig_make(&rig, name);
		}
		for (unsigned int n = 0; n < 400; n++) {
			unsigned int i = (unsigned int)zf_rng_below(&rng, FILES);
			uint64_t at = zf_rng_below(&rng, size[i] + 1);
			size_t len = 1 + zf_rng_below(&rng, 20 * BLOCK);
			ssize_t r;

			if (zf_rng_chance(&rng, 4))
				assert_int_equal(
					zf_fs_grow(rig.fs, zone_count(&rig) +
								   (uint32_t)zf_rng_below(&rng, 9)),
					0);
			if (zf_rng_chance(&rng, 3))
				data_rig_remount(&rig);
			if (zf_rng_chance(&rng, 10)) {
				data_rig_truncate(&rig, ino[i], size[i] / 2);
				size[i] /= 2;
				continue;
			}
			data_rig_fill(i + 1, at, buf, len);
			r = zf_fs_write(rig.fs, &rig.ctx, ino[i], at, buf, len, 0);
			assert_true(r > 0 || r == -ENOSPC);
			if (r > 0 && at + (uint64_t)r > size[i])
				size[i] = at + (uint64_t)r;
			if (zf_rng_chance(&rng, 20))
				assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino[i], false), 0);
			if (zf_rng_chance(&rng, 30))
				assert_true(zf_fs_step(rig.fs) >= 0);
		}
		data_rig_remount(&rig);
		for (unsigned int i = 0; i < FILES; i++) {
			assert_int_equal(data_rig_size(&rig, ino[i]), size[i]);
			if (size[i] > 0)
				data_rig_expect(&rig, ino[i], i + 1, 0, size[i]);
		}
		data_rig_deinit(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_filesystem_grows),
		cmocka_unit_test(a_device_that_is_larger_is_mounted_as_it_was_and_then_grows),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(a_tiny_full_filesystem_becomes_huge),
		cmocka_unit_test(new_zones_are_used_when_they_are_durable),
		cmocka_unit_test(many_small_steps_leave_as_much_room_as_one),
		cmocka_unit_test(what_is_written_in_new_zones_is_garbage),
		cmocka_unit_test(random_operations_while_it_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Random reads, writes, truncations, syncs, steps, remounts and crashes of a few files are compared
 * with their bytes in an array. Some calls may not wait. If such a call is refused, it must have
 * changed nothing; on a device with little room that happens often. Replay: ZF_SEED=N, and
 * ZF_ROUNDS=1.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"

#define FILES	       4u
#define SIZE_MAX_BYTES (UINT64_C(3) << 20)
#define OPS	       400u

struct shadow {
	uint64_t ino, size;
	uint8_t *bytes; /* SIZE_MAX_BYTES, zero behind size */
	char name[16];
	bool exists;
};

struct world {
	struct data_rig rig;
	struct zf_rng rng;
	struct shadow files[FILES];
	unsigned int next_name;
	bool tight; /* there is less room than all files can need */
};

static uint64_t below(struct world *world, uint64_t limit)
{
	return zf_rng_below(&world->rng, limit);
}

/* Typical offsets and lengths: small, around blocks, large. */
static uint64_t draw_offset(struct world *world, const struct shadow *file)
{
	switch (below(world, 5)) {
	case 0:
		return below(world, 3000);
	case 1:
		return file->size;
	case 2:
		return below(world, SIZE_MAX_BYTES / 4096 - 1) * 4096;
	case 3:
		return below(world, file->size + 1);
	}
	return below(world, SIZE_MAX_BYTES / 4);
}

static uint64_t draw_len(struct world *world)
{
	switch (below(world, 5)) {
	case 0:
		return 1 + below(world, 200);
	case 1:
		return 4096;
	case 2:
		return 4096 * (1 + below(world, 16));
	case 3:
		return 1 + below(world, 20000);
	}
	return 1 + below(world, 600000);
}

static const struct zf_ctx hurried = {.may_wait = false};

static void compare(struct world *world, struct shadow *file, uint64_t offset, uint64_t len);

/* Returns whether a caller that may wait has to repeat the operation, which then changed nothing.
 */
static bool must_wait(struct world *world, struct shadow *file, ssize_t r, uint64_t offset,
		      uint64_t len)
{
	if (r != -EAGAIN)
		return false;
	assert_int_equal(data_rig_size(&world->rig, file->ino), file->size);
	compare(world, file, offset, len);
	return true;
}

/* Returns whether there was room for it. */
static bool make(struct world *world, struct shadow *file)
{
	struct zf_attr attr;
	int r;

	snprintf(file->name, sizeof(file->name), "file-%u", world->next_name++);
	r = zf_fs_make(world->rig.fs, &world->rig.ctx, ZF_INO_ROOT, file->name, S_IFREG | 0644, 0,
		       NULL, &attr);
	assert_true(r == 0 || (world->tight && r == -ENOSPC));
	file->exists = r == 0;
	if (file->exists) {
		file->ino = attr.ino;
		zf_fs_forget(world->rig.fs, attr.ino, 1);
	}
	file->size = 0;
	memset(file->bytes, 0, SIZE_MAX_BYTES);
	return file->exists;
}

static void make_room(struct world *world, struct shadow *file)
{
	data_rig_truncate(&world->rig, file->ino, 0);
	memset(file->bytes, 0, file->size);
	file->size = 0;
}

static void do_write(struct world *world, struct shadow *file)
{
	uint64_t offset = draw_offset(world, file), len = draw_len(world);
	struct zf_fs *fs = world->rig.fs;
	unsigned int flags = 0;
	uint8_t *bytes;
	ssize_t r = -EAGAIN;

	if (zf_rng_chance(&world->rng, 20)) {
		flags = ZF_WRITE_APPEND;
		offset = file->size;
	}
	if (zf_rng_chance(&world->rng, 3))
		flags |= ZF_WRITE_DSYNC;
	if (offset + len > SIZE_MAX_BYTES)
		return;
	bytes = malloc(len);
	zf_rng_fill(&world->rng, bytes, len);
	/* An append ignores the offset. */
	if (zf_rng_chance(&world->rng, 50))
		r = zf_fs_write(fs, &hurried, file->ino, flags & ZF_WRITE_APPEND ? 12345 : offset,
				bytes, len, flags);
	/* No other thread uses the device: a caller that may not wait gets all or nothing. */
	assert_true(r < 0 || r == (ssize_t)len);
	if (must_wait(world, file, r, offset, len))
		r = zf_fs_write(fs, &world->rig.ctx, file->ino,
				flags & ZF_WRITE_APPEND ? 12345 : offset, bytes, len, flags);
	if (world->tight && r == -ENOSPC)
		r = 0;
	assert_true(r == (ssize_t)len || (world->tight && r >= 0 && r < (ssize_t)len));
	memcpy(file->bytes + offset, bytes, (size_t)r);
	free(bytes);
	if (r > 0 && offset + (uint64_t)r > file->size)
		file->size = offset + (uint64_t)r;
	if (r < (ssize_t)len)
		make_room(world, file);
}

/* Space that is kept for the file, which other files must not get. */
static void do_keep(struct world *world, struct shadow *file)
{
	uint64_t offset = draw_offset(world, file), len = draw_len(world);
	int r;

	if (offset + len > SIZE_MAX_BYTES)
		return;
	r = zf_fs_fallocate(world->rig.fs, &world->rig.ctx, file->ino, FALLOC_FL_KEEP_SIZE, offset,
			    len);
	assert_true(r == 0 || (world->tight && r == -ENOSPC));
}

static void do_truncate(struct world *world, struct shadow *file)
{
	uint64_t size = zf_rng_chance(&world->rng, 50) ? below(world, file->size + 1)
						       : below(world, SIZE_MAX_BYTES);
	struct zf_setattr set = {.valid = ZF_SET_SIZE};
	struct zf_attr attr;
	int r = -EAGAIN;

	if (zf_rng_chance(&world->rng, 20))
		size = below(world, 3000);
	set.size = size;
	if (zf_rng_chance(&world->rng, 50))
		r = zf_fs_setattr(world->rig.fs, &hurried, file->ino, &set, &attr);
	if (must_wait(world, file, r, 0, SIZE_MAX_BYTES))
		r = zf_fs_setattr(world->rig.fs, &world->rig.ctx, file->ino, &set, &attr);
	/* A longer file has zeroes behind its old end, where the last block may have other
	 * bytes. */
	if (world->tight && r == -ENOSPC && size > file->size) {
		compare(world, file, 0, SIZE_MAX_BYTES);
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(attr.size, size);
	if (size < file->size)
		memset(file->bytes + size, 0, file->size - size);
	file->size = size;
}

static void compare(struct world *world, struct shadow *file, uint64_t offset, uint64_t len)
{
	uint8_t *buf = malloc(len + 1);
	uint64_t wanted = offset >= file->size ? 0 : file->size - offset;
	ssize_t r = -EAGAIN;

	if (zf_rng_chance(&world->rng, 30))
		r = zf_fs_read(world->rig.fs, &hurried, file->ino, offset, buf, len);
	if (r == -EAGAIN)
		r = zf_fs_read(world->rig.fs, &world->rig.ctx, file->ino, offset, buf, len);
	if (wanted > len)
		wanted = len;
	assert_int_equal(r, wanted);
	for (uint64_t i = 0; i < wanted; i++)
		if (buf[i] != file->bytes[offset + i])
			fail_msg("%s at offset %lu: read %02x, expected %02x (size %lu)",
				 file->name, (unsigned long)(offset + i), buf[i],
				 file->bytes[offset + i], (unsigned long)file->size);
	free(buf);
}

/* Data and holes take turns, cover the file, and holes hold nothing but zeroes. */
/* Reclaims any zone, whatever is in it, or the best victim. */
static void do_reclaim(struct world *world)
{
	struct zf_fs *fs = world->rig.fs;
	int r;

	if (below(world, 2))
		r = zf_reclaim_one(fs, below(world, 2) ? ZF_RECLAIM_URGENT : ZF_RECLAIM_IN_PEACE);
	else
		r = zf_reclaim_zone(fs, (uint32_t)below(world, zf_alloc_zone_count(fs->alloc)));
	/* Emptied zones come back with commits: until then there may be no room. */
	if (r < 0 && r != -EBUSY && r != -ENOSPC)
		fail_msg("reclaim: %s", strerror(-r));
}

static void compare_holes(struct world *world, struct shadow *file)
{
	uint64_t at = 0, data, hole;

	while (at < file->size) {
		int r = zf_fs_seek(world->rig.fs, &world->rig.ctx, file->ino, at, SEEK_DATA, &data);

		if (r == -ENXIO)
			data = file->size;
		else
			assert_int_equal(r, 0);
		assert_true(data >= at && data <= file->size);
		for (uint64_t i = at; i < data; i++)
			assert_int_equal(file->bytes[i], 0);
		if (data == file->size)
			break;
		assert_int_equal(zf_fs_seek(world->rig.fs, &world->rig.ctx, file->ino, data,
					    SEEK_HOLE, &hole),
				 0);
		assert_true(hole > data && hole <= file->size);
		at = hole;
	}
	assert_int_equal(
		zf_fs_seek(world->rig.fs, &world->rig.ctx, file->ino, file->size, SEEK_HOLE, &hole),
		-ENXIO);
}

static void compare_all(struct world *world)
{
	for (unsigned int i = 0; i < FILES; i++) {
		if (!world->files[i].exists)
			continue;
		assert_int_equal(data_rig_size(&world->rig, world->files[i].ino),
				 world->files[i].size);
		compare(world, &world->files[i], 0, SIZE_MAX_BYTES);
		compare_holes(world, &world->files[i]);
	}
}

static void do_op(struct world *world)
{
	struct shadow *file = &world->files[below(world, FILES)];

	if (!file->exists && !make(world, file))
		return;
	switch (below(world, 25)) {
	case 0 ... 9:
		do_write(world, file);
		break;
	case 10 ... 11:
		do_truncate(world, file);
		break;
	case 12 ... 15:
		compare(world, file, draw_offset(world, file), draw_len(world));
		break;
	case 16:
		compare_holes(world, file);
		break;
	case 17 ... 18:
		assert_int_equal(zf_fs_step(world->rig.fs), 0);
		break;
	case 19:
		assert_int_equal(zf_fs_fsync(world->rig.fs, &world->rig.ctx, file->ino, false), 0);
		break;
	case 20:
		data_rig_unlink(&world->rig, file->name, file->ino);
		file->exists = false;
		break;
	case 21 ... 22:
		do_reclaim(world);
		break;
	case 23:
		do_keep(world, file);
		break;
	case 24:
		if (zf_rng_chance(&world->rng, 20)) {
			data_rig_remount(&world->rig);
			compare_all(world);
		} else if (zf_rng_chance(&world->rng, 20)) {
			data_rig_sync(&world->rig);
			data_rig_crash(&world->rig);
			compare_all(world);
		}
		break;
	}
}

/* Leaves a third of the room that all files can need, so garbage, and sometimes live data, soon is
 * in the way. */
static void take_room(struct world *world)
{
	const uint64_t step = 256 << 10;
	uint64_t ino = data_rig_make(&world->rig, "filler"), at = 0;
	struct zf_statfs st;

	for (;; at += step) {
		assert_int_equal(zf_fs_statfs(world->rig.fs, &st), 0);
		if (st.blocks_available * 4096 < FILES * SIZE_MAX_BYTES / 3)
			return;
		data_rig_allocate(&world->rig, ino, FALLOC_FL_KEEP_SIZE, at, step);
	}
}

static void run(uint64_t seed)
{
	struct world world = {0};
	struct data_rig_options options = {.seed = seed};

	zf_rng_seed(&world.rng, seed);
	options.node_size = zf_rng_chance(&world.rng, 50) ? 4096 : 16384;
	options.append_limit = zf_rng_chance(&world.rng, 50) ? 64 << 10 : 1 << 20;
	options.zone_size = UINT64_C(1) << (20 + below(&world, 2));
	options.dirty_bytes = zf_rng_chance(&world.rng, 50) ? 256 << 10 : 4 << 20;
	options.max_active = zf_rng_chance(&world.rng, 50) ? 6 : 0;
	data_rig_init(&world.rig, &options);
	for (unsigned int i = 0; i < FILES; i++) {
		world.files[i].bytes = calloc(1, SIZE_MAX_BYTES);
		make(&world, &world.files[i]);
	}
	world.tight = zf_rng_chance(&world.rng, 50);
	if (world.tight)
		take_room(&world);
	for (unsigned int i = 0; i < OPS; i++)
		do_op(&world);
	data_rig_remount(&world.rig);
	compare_all(&world);
	data_rig_deinit(&world.rig);
	for (unsigned int i = 0; i < FILES; i++)
		free(world.files[i].bytes);
}

static void files_hold_what_was_written_to_them(void **state)
{
	const char *seed_text = getenv("ZF_SEED"), *rounds_text = getenv("ZF_ROUNDS");
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 1;
	uint64_t rounds = rounds_text ? strtoull(rounds_text, NULL, 0) : 12;

	(void)state;
	for (uint64_t i = 0; i < rounds; i++) {
		print_message("seed %lu\n", (unsigned long)(seed + i));
		run(seed + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_hold_what_was_written_to_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The bases from which schedules begin: different devices, each with a filesystem and its files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "actors.h"
#include "base/bits.h"
#include "fs/mount/format.h"

#define KIB	  UINT64_C(1024)
#define BASE_SEED UINT64_C(0x5eed)

static const struct zf_ctx waiting = {.may_wait = true};

static struct base bases[BASES];

static struct zf_geometry draw_geometry(struct zf_rng *rng)
{
	struct zf_geometry geometry = {
		.zone_size = 128 * KIB,
		.zone_capacity = zf_rng_chance(rng, 50) ? 128 * KIB : 100 * KIB,
		.zone_count = 32 + (uint32_t)zf_rng_below(rng, 16),
		.append_limit = zf_rng_chance(rng, 50) ? 16 * KIB : 64 * KIB,
		.volatile_cache = zf_rng_chance(rng, 90),
	};

	if (zf_rng_chance(rng, 50))
		geometry.max_active = geometry.max_open = 8 + (uint32_t)zf_rng_below(rng, 5);
	return geometry;
}

void actors_must(int64_t r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "actors: preparing fails: %" PRId64 "\n", r);
	abort();
}

static void put_blocks(struct zf_fs *fs, uint64_t ino, uint32_t id, unsigned int count)
{
	uint8_t bytes[ZF_BLOCK_SIZE];

	for (unsigned int b = 0; b < count; b++) {
		actors_fill(id + b, 1, bytes);
		actors_must(
			zf_fs_write(fs, &waiting, ino, b * ZF_BLOCK_SIZE, bytes, sizeof(bytes), 0));
	}
}

static void fill_base(struct base *base, struct zf_fs *fs)
{
	struct zf_attr attr;
	char name[32];

	actors_must(zf_fs_make(fs, &waiting, ZF_INO_ROOT, "dir", S_IFDIR | 0700, 0, NULL, &attr));
	base->dir = attr.ino;
	for (unsigned int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		actors_must(
			zf_fs_make(fs, &waiting, base->dir, name, S_IFREG | 0600, 0, NULL, &attr));
		base->files[i] = attr.ino;
		put_blocks(fs, attr.ino, actors_file_id(i, 0), FILE_BLOCKS_MIN + 16 * i);
	}
	for (unsigned int i = 0; i < ACTORS_MAX; i++) {
		snprintf(name, sizeof(name), "a%u.0", i);
		actors_must(
			zf_fs_make(fs, &waiting, base->dir, name, S_IFREG | 0600, 0, NULL, &attr));
		base->named[i] = attr.ino;
		put_blocks(fs, attr.ino, actors_named_id(attr.ino, 0), 1);
	}
	actors_must(zf_fs_syncfs(fs, &waiting));
}

/* A constant clock: a base is the same, whatever ran before it was made. */
static int64_t no_time(void *arg)
{
	return INT64_C(1500000000) * 1000000000;
}

const struct base *actors_base(unsigned int i)
{
	const struct zf_format_options format = {
		.label = "actors", .fsid = {3, 2, 1}, .node_size = 4096, .dir_hash_seed = 7};
	const struct zf_mount_options options = {
		.cache_bytes = 256 * KIB, .dirty_bytes = 256 * KIB, .now_ns = no_time};
	struct base *base = &bases[i];
	struct zf_geometry geometry;
	struct zf_rng rng;
	struct zf_dev *dev;
	struct zf_fs *fs;

	if (base->sim)
		return base;
	zf_rng_seed(&rng, BASE_SEED + i);
	geometry = draw_geometry(&rng);
	base->sim = zf_sim_new(&geometry, BASE_SEED + i);
	actors_must(zf_sim_open(base->sim, &actors_report, &dev));
	actors_must(zf_fs_format(dev, &format, &actors_report));
	actors_must(zf_fs_mount(dev, &options, &actors_report, &fs));
	fill_base(base, fs);
	actors_must(zf_fs_unmount(fs));
	zf_dev_close(dev);
	return base;
}

void actors_forget(void)
{
	for (unsigned int i = 0; i < BASES; i++)
		zf_sim_free(bases[i].sim);
	memset(bases, 0, sizeof(bases));
}

/* SPDX-License-Identifier: MIT */
#include "image.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/core/fs.h"
#include "fs/core/inode.h"
#include "fs/mount/format.h"
#include "fs/mount/scrubber.h"

#define NAMES	    60u	 /* so many that the trees have several levels */
#define SCATTERED   110u /* extents of one kind, more than a plain leaf holds */
#define LONG_XATTR  3000u
#define LONG_TARGET 1500u
#define BLOCK	    ((size_t)ZF_BLOCK_SIZE)

struct maker {
	struct zf_fs *fs;
	struct zf_ctx ctx;
	int64_t clock_ns;
	unsigned int fills;
};

static int64_t tick(void *arg)
{
	struct maker *maker = arg;

	return maker->clock_ns += 1000;
}

/* ---- one operation each ---- */

static uint64_t make(struct maker *maker, uint64_t dir, const char *name, mode_t mode,
		     const char *target)
{
	uint64_t rdev = S_ISCHR(mode) ? 0x105 : 0;
	struct zf_attr attr;
	int r = zf_fs_make(maker->fs, &maker->ctx, dir, name, mode, rdev, target, &attr);

	assert(r == 0);
	zf_fs_forget(maker->fs, attr.ino, 1);
	return attr.ino;
}

static void fill(struct maker *maker, uint64_t ino, uint64_t offset, size_t len)
{
	uint8_t *bytes = malloc(len);
	unsigned int seed = maker->fills++;
	ssize_t n;

	assert(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(i * 7 + i / BLOCK + seed);
	n = zf_fs_write(maker->fs, &maker->ctx, ino, offset, bytes, len, 0);
	assert(n == (ssize_t)len);
	free(bytes);
}

/* Writes content that cannot be packed into a log record, because nothing in it repeats. */
static void fill_densely(struct maker *maker, uint64_t ino, uint64_t offset, size_t len)
{
	uint8_t *bytes = malloc(len);
	uint64_t state = 0x9e3779b97f4a7c15 + maker->fills++;
	ssize_t n;

	assert(bytes);
	for (size_t i = 0; i < len; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(state >> 56);
	}
	n = zf_fs_write(maker->fs, &maker->ctx, ino, offset, bytes, len, 0);
	assert(n == (ssize_t)len);
	free(bytes);
}

static void set_xattr(struct maker *maker, uint64_t ino, const char *name, size_t len)
{
	uint8_t value[LONG_XATTR];
	int r;

	memset(value, 'v', sizeof(value));
	r = zf_fs_setxattr(maker->fs, &maker->ctx, ino, name, value, len, 0);
	assert(r == 0);
}

static void allocate(struct maker *maker, uint64_t ino, int mode, uint64_t offset, uint64_t len)
{
	int r = zf_fs_fallocate(maker->fs, &maker->ctx, ino, mode, offset, len);

	assert(r == 0);
}

static void copy(struct maker *maker, uint64_t from, uint64_t to, uint64_t offset, uint64_t len)
{
	ssize_t n = zf_fs_copy_range(maker->fs, &maker->ctx, from, 0, to, offset, len);

	assert(n == (ssize_t)len);
}

static void sync_all(struct maker *maker)
{
	int r = zf_fs_syncfs(maker->fs, &maker->ctx);

	assert(r == 0);
}

static void sync_file(struct maker *maker, uint64_t ino)
{
	int r = zf_fs_fsync(maker->fs, &maker->ctx, ino, false);

	assert(r == 0);
}

/* ---- something of everything ---- */

struct made {
	uint64_t dir, data, inline_file, zeroes, clone, scattered;
};

static void make_names(struct maker *maker, struct made *made)
{
	char target[LONG_TARGET + 1], name[48];
	struct zf_attr attr;
	int r;

	made->dir = make(maker, ZF_INO_ROOT, "dir", S_IFDIR | 0755, NULL);
	make(maker, made->dir, "sub", S_IFDIR | 02775, NULL);
	make(maker, made->dir, "fifo", S_IFIFO | 0644, NULL);
	make(maker, made->dir, "device", S_IFCHR | 0600, NULL);
	make(maker, made->dir, "link", S_IFLNK | 0777, "../file");
	memset(target, 't', LONG_TARGET);
	target[LONG_TARGET] = '\0';
	make(maker, made->dir, "long link", S_IFLNK | 0777, target);
	made->data = make(maker, ZF_INO_ROOT, "data", S_IFREG | 0644, NULL);
	r = zf_fs_link(maker->fs, &maker->ctx, made->data, made->dir, "hard", &attr);
	assert(r == 0);
	zf_fs_forget(maker->fs, attr.ino, 1);
	for (unsigned int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "one of the many names, number %u", i);
		make(maker, made->dir, name, S_IFREG | 0644, NULL);
	}
}

static void make_files(struct maker *maker, struct made *made)
{
	made->inline_file = make(maker, ZF_INO_ROOT, "inline", S_IFREG | 0640, NULL);
	made->zeroes = make(maker, ZF_INO_ROOT, "zeroes", S_IFREG | 0600, NULL);
	made->clone = make(maker, ZF_INO_ROOT, "clone", S_IFREG | 0600, NULL);
	made->scattered = make(maker, ZF_INO_ROOT, "scattered", S_IFREG | 0600, NULL);
	fill(maker, made->data, 0, 12 * BLOCK + 100);
	fill(maker, made->inline_file, 0, 300);
	sync_all(maker);
	copy(maker, made->data, made->clone, 0, 4 * BLOCK);
	for (unsigned int i = 0; i < SCATTERED; i++)
		fill(maker, made->scattered, 2 * i * BLOCK, BLOCK);
	fill(maker, made->zeroes, 0, BLOCK);
	allocate(maker, made->zeroes, FALLOC_FL_KEEP_SIZE, 2 * BLOCK, 3 * BLOCK);
	allocate(maker, made->zeroes, ZF_FALLOC_WRITE_ZEROES, 8 * BLOCK, 4 * BLOCK);
	sync_all(maker);
	fill(maker, made->zeroes, 9 * BLOCK, BLOCK);
	set_xattr(maker, made->data, "user.short", 20);
	set_xattr(maker, made->data, "user.long", LONG_XATTR);
	sync_all(maker);
}

static void make_orphans(struct maker *maker)
{
	struct zf_attr attr;
	int r = zf_fs_tmpfile(maker->fs, &maker->ctx, ZF_INO_ROOT, S_IFREG | 0600, &attr);

	assert(r == 0);
	fill(maker, attr.ino, 0, BLOCK + 100);
	sync_all(maker);
}

/* Leaves a scrub that was paused half-way, and a counted fault. */
static void leave_health(struct maker *maker)
{
	uint64_t wait_ms;
	int r = zf_scrubber_start(maker->fs, 0);

	assert(r == 0);
	r = zf_scrubber_step(maker->fs, &wait_ms);
	assert(r == 1);
	atomic_fetch_add(&maker->fs->checksum_errors, 1);
	r = zf_scrubber_pause(maker->fs);
	assert(r == 0);
}

/* Makes the device reset a zone, so that its reset count is not 0. */
static void reset_a_zone(struct maker *maker)
{
	uint64_t file = make(maker, ZF_INO_ROOT, "gone", S_IFREG | 0600, NULL);
	int r;

	fill(maker, file, 0, 2 * IMAGE_ZONE_SIZE);
	sync_all(maker);
	r = zf_fs_unlink(maker->fs, &maker->ctx, ZF_INO_ROOT, "gone");
	assert(r == 0);
	for (unsigned int i = 0; i < 3; i++) {
		r = zf_fs_settle(maker->fs);
		assert(r == 0);
	}
}

/*
 * Makes changes that are durable in the log, without a commit: operations, and data in the record
 * or outside it.
 */
static void make_log(struct maker *maker, const struct made *made)
{
	uint64_t file = make(maker, made->dir, "logged", S_IFREG | 0644, NULL);
	uint64_t other = make(maker, made->dir, "logged too", S_IFREG | 0644, NULL);
	int r;

	fill(maker, file, 0, BLOCK);
	sync_file(maker, file);
	fill_densely(maker, other, 0, 2 * BLOCK);
	sync_file(maker, other);
	fill_densely(maker, made->data, 0, 32 * BLOCK);
	fill(maker, made->inline_file, 0, 200);
	allocate(maker, other, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BLOCK);
	allocate(maker, other, 0, 4 * BLOCK, BLOCK);
	r = zf_fs_unlink(maker->fs, &maker->ctx, made->dir, "fifo");
	assert(r == 0);
	sync_file(maker, made->data);
	sync_file(maker, made->inline_file);
	sync_file(maker, other);
	copy(maker, made->scattered, other, 0, BLOCK);
	sync_file(maker, other);
}

/* ---- the image ---- */

static void format(enum image_kind kind, struct zf_memory **ret_memory, struct zf_dev **ret_dev)
{
	const struct zf_geometry geometry = {
		.zone_size = IMAGE_ZONE_SIZE,
		.zone_capacity = IMAGE_ZONE_SIZE,
		.zone_count = 40,
		.conventional = kind == IMAGE_IN_PLACE ? 5 : 0,
		.append_limit = 256u << 10,
	};
	const struct zf_format_options options = {
		.label = "lies",
		.fsid = {1, 2, 3},
		.node_size = kind == IMAGE_LARGE_NODES ? 16384 : 4096,
		.metadata_copies = kind == IMAGE_SEQUENTIAL ? 2 : 1,
		.dir_hash_seed = 4711,
		.log_secret = {9},
	};
	int r = zf_memory_new(&geometry, ret_memory);

	assert(r == 0);
	r = zf_memory_open(*ret_memory, NULL, NULL, ret_dev);
	assert(r == 0);
	r = zf_fs_format(*ret_dev, &options, NULL);
	assert(r == 0);
}

/* No operation here is large enough to need several transactions, so its intent is made by hand. */
static void add_intent(struct forge *forge, const struct made *made)
{
	const struct zf_disk_intent intent = {
		.type = ZF_INTENT_TRUNCATE,
		.ino = zf_le64_from(made->scattered),
		.from = zf_le64_from(2 * SCATTERED * BLOCK),
		.to = zf_le64_from(ZF_FILE_END_MAX),
	};

	forge->super.next_intent += 2;
	forge_insert(forge, ZF_TREE_FS,
		     ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, forge->super.next_intent - 1), &intent,
		     sizeof(intent));
}

void image_make(enum image_kind kind, struct forge *ret_forge)
{
	struct maker maker = {.ctx = {.may_wait = true}, .clock_ns = INT64_C(1700000000000000000)};
	const struct zf_mount_options options = {.now_ns = tick, .now_arg = &maker};
	struct zf_memory *memory;
	struct made made;
	struct zf_dev *dev;
	int r;

	format(kind, &memory, &dev);
	r = zf_fs_mount(dev, &options, NULL, &maker.fs);
	assert(r == 0);
	reset_a_zone(&maker);
	leave_health(&maker);
	make_names(&maker, &made);
	make_files(&maker, &made);
	make_orphans(&maker);
	make_log(&maker, &made);
	zf_fs_abandon(maker.fs);
	zf_dev_close(dev);
	forge_open(ret_forge, memory);
	add_intent(ret_forge, &made);
}

void image_free(struct forge *forge)
{
	zf_memory_free(forge->memory);
}

const char *image_kind_name(enum image_kind kind)
{
	static const char *const names[IMAGE_ALL_KINDS] = {
		[IMAGE_SEQUENTIAL] = "sequential",
		[IMAGE_IN_PLACE] = "in place",
		[IMAGE_LARGE_NODES] = "large nodes",
	};

	return names[kind];
}

/* SPDX-License-Identifier: MIT */
/*
 * The same operations make the same bytes: a small filesystem with something of everything is made
 * with a fixed uuid, clock and order, and compared with the checksums of its zones in image.txt.
 *
 * A difference means that the format or the contents have changed, or that a value which must not
 * influence them (an address in memory, the real time) was written. If the change was intended:
 *
 *      ZF_GOLDEN=tests/golden/image.txt build/NAME/tests/golden/test_golden --write
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/hash.h"
#include "fs/mount/format.h"
#include "fs/core/fs.h"
#include "io/memory.h"

#define ZONE_SIZE  (UINT64_C(256) << 10)
#define ZONE_COUNT 40u

struct image {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_fs *fs;
	int64_t clock_ns;
};

static const struct zf_ctx ctx = {.uid = 1000, .gid = 100, .umask = 022, .may_wait = true};

static int64_t tick(void *arg)
{
	struct image *image = arg;

	return image->clock_ns += 1000;
}

/* ---- something of everything ---- */

static uint64_t make(struct image *image, uint64_t dir, const char *name, mode_t mode,
		     uint64_t rdev, const char *target)
{
	struct zf_attr attr;

	assert_int_equal(zf_fs_make(image->fs, &ctx, dir, name, mode, rdev, target, &attr), 0);
	zf_fs_forget(image->fs, attr.ino, 1);
	return attr.ino;
}

static void write_bytes(struct image *image, uint64_t ino, uint64_t offset, size_t len,
			uint8_t first)
{
	uint8_t *bytes = malloc(len);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(first + i * 7);
	assert_int_equal(zf_fs_write(image->fs, &ctx, ino, offset, bytes, len, 0), len);
	free(bytes);
}

static void set_size(struct image *image, uint64_t ino, uint64_t size)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = size};
	struct zf_attr attr;

	assert_int_equal(zf_fs_setattr(image->fs, &ctx, ino, &set, &attr), 0);
}

static void set_xattr(struct image *image, uint64_t ino, const char *name, size_t len)
{
	uint8_t value[20000];

	assert_in_range(len, 0, sizeof(value));
	memset(value, 'v', len);
	assert_int_equal(zf_fs_setxattr(image->fs, &ctx, ino, name, value, len, 0), 0);
}

static void make_files(struct image *image, uint64_t dir)
{
	uint64_t small = make(image, dir, "small", S_IFREG | 0644, 0, NULL);
	uint64_t large = make(image, dir, "large", S_IFREG | 0600, 0, NULL);
	uint64_t sparse = make(image, dir, "sparse", S_IFREG | 0640, 0, NULL);

	write_bytes(image, small, 0, 1000, 's');
	write_bytes(image, large, 0, 300000, 'l');
	write_bytes(image, sparse, UINT64_C(1) << 40, 5000, 'h');
	write_bytes(image, sparse, 12345, 100, 'm');
	assert_int_equal(zf_fs_fsync(image->fs, &ctx, large, false), 0);
	write_bytes(image, large, 8192, 10000, 'o');
	set_size(image, large, 250001);
	set_xattr(image, small, "user.short", 20);
	set_xattr(image, large, "user.long", 20000);
}

static void make_names(struct image *image, uint64_t dir)
{
	struct zf_attr attr;
	uint64_t file, sub = make(image, dir, "sub", S_IFDIR | 02775, 0, NULL);
	char name[16];

	for (unsigned int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "name-%u", i);
		file = make(image, sub, name, S_IFREG | 0644, 0, NULL);
		if (i % 3 == 0)
			assert_int_equal(zf_fs_unlink(image->fs, &ctx, sub, name), 0);
	}
	make(image, sub, "fifo", S_IFIFO | 0644, 0, NULL);
	make(image, sub, "device", S_IFBLK | 0660, 0x801, NULL);
	make(image, sub, "link", S_IFLNK | 0777, 0, "../small");
	assert_int_equal(zf_fs_link(image->fs, &ctx, file, dir, "second name", &attr), 0);
	zf_fs_forget(image->fs, file, 1);
	assert_int_equal(zf_fs_rename(image->fs, &ctx, sub, "name-1", dir, "renamed", 0, NULL), 0);
}

/* Writes a record to the log, with the operations before it. */
static void sync_file(struct image *image, uint64_t dir)
{
	uint64_t file = make(image, dir, "synced", S_IFREG | 0644, 0, NULL);

	write_bytes(image, file, 0, 10000, 'y');
	assert_int_equal(zf_fs_fsync(image->fs, &ctx, file, false), 0);
}

static void make_image(struct image *image)
{
	const struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = ZONE_SIZE,
		.zone_count = ZONE_COUNT,
		.append_limit = 64 << 10,
		.volatile_cache = true,
	};
	const struct zf_format_options format = {
		.label = "golden",
		.fsid = {0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x47, 0x80, 0x90, 0xa0},
		.node_size = 4096,
		.metadata_copies = 2,
		.now_ns = INT64_C(1600000000000000000),
		.dir_hash_seed = 0x123456789abcdef0,
	};
	const struct zf_mount_options mount = {.now_ns = tick, .now_arg = image};
	uint64_t dir;

	image->clock_ns = INT64_C(1700000000000000000);
	assert_int_equal(zf_memory_new(&geometry, &image->memory), 0);
	assert_int_equal(zf_memory_open(image->memory, NULL, NULL, &image->dev), 0);
	assert_int_equal(zf_fs_format(image->dev, &format, NULL), 0);
	assert_int_equal(zf_fs_mount(image->dev, &mount, NULL, &image->fs), 0);
	dir = make(image, ZF_INO_ROOT, "dir", S_IFDIR | 0755, 0, NULL);
	make_files(image, dir);
	assert_int_equal(zf_fs_syncfs(image->fs, &ctx), 0);
	make_names(image, dir);
	sync_file(image, dir);
	assert_int_equal(zf_fs_unmount(image->fs), 0);
}

static void free_image(struct image *image)
{
	zf_dev_close(image->dev);
	zf_memory_free(image->memory);
}

/* ---- its checksums ---- */

/* One line for each zone that was written: number, pointer, checksum. To be freed. */
static char *describe(struct image *image)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	for (uint32_t z = 0; z < ZONE_COUNT; z++) {
		struct zf_zone_info info;

		assert_int_equal(zf_dev_report(image->dev, z, 1, &info), 0);
		if (info.wp > info.start)
			fprintf(out, "zone %u: %" PRIu64 " bytes, xxh3 %016" PRIx64 "\n", z,
				info.wp - info.start,
				zf_hash64(zf_memory_zone(image->memory, z), info.wp - info.start));
	}
	fclose(out);
	return text;
}

static char *make_and_describe(void)
{
	struct image image = {0};
	char *text;

	make_image(&image);
	text = describe(&image);
	free_image(&image);
	return text;
}

static const char *golden_path(void)
{
	const char *path = getenv("ZF_GOLDEN");

	if (!path) {
		fprintf(stderr, "ZF_GOLDEN must name tests/golden/image.txt\n");
		exit(2);
	}
	return path;
}

static void made_twice_it_is_the_same(void **state)
{
	char *first = make_and_describe(), *second = make_and_describe();

	assert_string_equal(first, second);
	free(first);
	free(second);
}

static void it_is_the_image_on_record(void **state)
{
	char *made = make_and_describe(), recorded[8192] = {0};
	FILE *in = fopen(golden_path(), "r");

	assert_non_null(in);
	assert_in_range(fread(recorded, 1, sizeof(recorded) - 1, in), 1, sizeof(recorded) - 2);
	fclose(in);
	assert_string_equal(made, recorded);
	free(made);
}

static int write_golden(void)
{
	char *made = make_and_describe();
	FILE *out = fopen(golden_path(), "w");
	int failed = !out || fputs(made, out) < 0;

	failed |= out && fclose(out) != 0;
	free(made);
	return failed;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_twice_it_is_the_same),
		cmocka_unit_test(it_is_the_image_on_record),
	};

	if (argc > 1 && strcmp(argv[1], "--write") == 0)
		return write_golden();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

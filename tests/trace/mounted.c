/* SPDX-License-Identifier: MIT */
/*
 * Prints what a mount finds: for each image name on standard input a line of JSON on standard
 * output,
 *
 *      {"wp": [bytes], "generation", "records": [sequence], "paths": [{"path", "mode", "size", "extents": [[type, offset,
 *       bytes, address]], "sums": {offset: CRC-32 of a whole block as it is read}}]}
 *
 * The mount recovers, and is then abandoned without an unmount.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/bits.h"
#include "ctl/json.h"
#include "fs/core/fs.h"
#include "fs/core/fs_format.h"
#include "io/open.h"
#include "log/read.h"
#include "superblock/ring.h"

#define EXTENTS_A_CALL 64u
#define NAMES_A_CALL   64u

static char prefix[] = "mounted";
static const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
static const struct zf_ctx ctx = {.may_wait = true};

static void fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	exit(1);
}

static void push_u64(struct json_object *array, uint64_t value)
{
	zf_json_push(array, json_object_new_uint64(value));
}

/* ---- before the mount ---- */

static void add_log(struct json_object *object, struct zf_dev *dev, const struct zf_super *super)
{
	struct json_object *records = json_object_new_array();
	struct zf_log_found found;
	int r = zf_log_read(dev, super, &report, &found);

	if (r < 0)
		fail("the log", r);
	for (size_t i = 0; i < found.list_count; i++)
		if (found.list[i].fate == ZF_LOG_TO_REPLAY)
			push_u64(records, found.list[i].record.sequence);
	zf_log_found_free(&found);
	zf_json_add(object, "records", records);
}

static void add_superblock(struct json_object *object, struct zf_dev *dev)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;
	int r = zf_ring_open(dev, &report, &ring);

	if (r < 0)
		fail("the ring", r);
	r = zf_ring_newest(ring, &super, &stepped_over);
	if (r < 0)
		fail("the newest superblock", r);
	zf_json_add_u64(object, "generation", super->generation);
	add_log(object, dev, super);
	zf_ring_close(ring);
}

static void add_pointers(struct json_object *object, struct zf_dev *dev)
{
	uint32_t count = zf_dev_geometry(dev)->zone_count;
	struct zf_zone_info *zones = calloc(count, sizeof(*zones));
	struct json_object *pointers = json_object_new_array();
	int r = zf_dev_report(dev, 0, count, zones);

	if (r < 0)
		fail("the zones", r);
	for (uint32_t i = 0; i < count; i++)
		push_u64(pointers, zones[i].wp - zones[i].start);
	free(zones);
	zf_json_add(object, "wp", pointers);
}

/* ---- a file ---- */

static void add_sum(struct json_object *sums, struct zf_fs *fs, uint64_t ino, uint64_t offset)
{
	uint8_t block[ZF_BLOCK_SIZE];
	ssize_t n = zf_fs_read(fs, &ctx, ino, offset, block, sizeof(block));
	char name[24];

	if (n != (ssize_t)sizeof(block))
		fail("a read", n < 0 ? (int)n : -EIO);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)offset);
	zf_json_add_u64(sums, name, crc32(0, block, sizeof(block)));
}

static struct json_object *extent_of(const struct zf_extent_info *info)
{
	struct json_object *array = json_object_new_array();

	push_u64(array, info->type);
	push_u64(array, info->offset);
	push_u64(array, info->len);
	push_u64(array, info->address);
	return array;
}

static void add_extents(struct json_object *object, struct zf_fs *fs, uint64_t ino, uint64_t size)
{
	struct json_object *extents = json_object_new_array(), *sums = json_object_new_object();
	struct zf_extent_info infos[EXTENTS_A_CALL];
	uint64_t offset = 0;
	int n;

	do {
		n = zf_fs_extents(fs, &ctx, ino, offset, infos, EXTENTS_A_CALL);
		for (int i = 0; i < n; i++) {
			const struct zf_extent_info *info = &infos[i];

			zf_json_push(extents, extent_of(info));
			offset = info->offset + info->len;
			for (uint64_t at = info->offset;
			     info->type == ZF_EXTENT_DATA &&
			     at + ZF_BLOCK_SIZE <= zf_min_u64(offset, size);
			     at += ZF_BLOCK_SIZE)
				add_sum(sums, fs, ino, at);
		}
	} while (n == (int)EXTENTS_A_CALL);
	if (n < 0)
		fail("extents", n);
	zf_json_add(object, "extents", extents);
	zf_json_add(object, "sums", sums);
}

/* ---- names ---- */

static void walk(struct json_object *paths, struct zf_fs *fs, uint64_t dir,
		 struct json_object *parent);

static void add_path(struct json_object *paths, struct zf_fs *fs, struct json_object *parent,
		     const struct zf_dirent *entry)
{
	struct json_object *object = json_object_new_object(), *path = json_object_new_array();
	struct zf_attr attr;
	int r = zf_fs_getattr(fs, &ctx, entry->ino, &attr);

	if (r < 0)
		fail(entry->name, r);
	for (size_t i = 0; i < json_object_array_length(parent); i++)
		zf_json_push(path, json_object_get(json_object_array_get_idx(parent, i)));
	zf_json_add_bytes(object, "name", entry->name, entry->name_len);
	zf_json_push(path, json_object_get(json_object_object_get(object, "name")));
	json_object_object_del(object, "name");
	zf_json_add(object, "path", path);
	zf_json_add_u64(object, "mode", attr.mode);
	zf_json_add_u64(object, "size", attr.size);
	if (S_ISREG(attr.mode))
		add_extents(object, fs, entry->ino, attr.size);
	zf_json_push(paths, object);
	if (S_ISDIR(attr.mode))
		walk(paths, fs, entry->ino, path);
}

static void walk(struct json_object *paths, struct zf_fs *fs, uint64_t dir,
		 struct json_object *parent)
{
	struct zf_dirent *entries = calloc(NAMES_A_CALL, sizeof(*entries));
	uint64_t cookie = 0;
	int n;

	while ((n = zf_fs_readdir(fs, &ctx, dir, cookie, entries, NAMES_A_CALL)) > 0) {
		for (int i = 0; i < n; i++)
			if (entries[i].cookie >= ZF_COOKIE_FIRST)
				add_path(paths, fs, parent, &entries[i]);
		cookie = entries[n - 1].cookie;
	}
	if (n < 0)
		fail("a directory", n);
	free(entries);
}

/* ---- an image ---- */

static struct json_object *look(const char *name)
{
	const struct zf_mount_options mount = {.cache_bytes = 1 << 20, .dirty_bytes = 1 << 20};
	const struct zf_open_options open = {0};
	struct json_object *object = json_object_new_object(), *paths = json_object_new_array();
	struct json_object *root = json_object_new_array();
	struct zf_dev *dev;
	struct zf_fs *fs;
	int r = zf_dev_open(name, &open, &report, &dev);

	if (r < 0)
		fail(name, r);
	add_pointers(object, dev);
	add_superblock(object, dev);
	r = zf_fs_mount(dev, &mount, &report, &fs);
	if (r < 0)
		fail("the mount", r);
	walk(paths, fs, ZF_INO_ROOT, root);
	json_object_put(root);
	zf_json_add(object, "paths", paths);
	zf_fs_abandon(fs);
	zf_dev_close(dev);
	return object;
}

int main(void)
{
	char name[4096];

	while (fgets(name, sizeof(name), stdin)) {
		struct json_object *object;

		name[strcspn(name, "\n")] = '\0';
		object = look(name);
		puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
		fflush(stdout);
		json_object_put(object);
	}
	return 0;
}

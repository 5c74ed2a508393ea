/* SPDX-License-Identifier: MIT */
/* Scenes that leave an image. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/mount/format.h"
#include "io/image.h"
#include "scenes.h"
#include "support.h"

#define EPOCH_NS    INT64_C(1767225600000000000)
#define SECOND_NS   INT64_C(1000000000)
#define NODE_SIZE   4096u
#define CONTENT_LEN 9000u
#define NOISE_LEN   1500u
#define CHANGED	    42u /* which of the tree's files */

static char prefix[] = "scenes";
static const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
static const struct zf_ctx ctx = {.may_wait = true};

/* Each reading of the clock is a second later. */
static int64_t tick(void *arg)
{
	int64_t *now_ns = arg;

	*now_ns += SECOND_NS;
	return *now_ns;
}

static struct zf_dev *open_image(const char *path)
{
	const struct zf_open_options options = {0};
	struct zf_dev *dev;

	must(zf_image_open(path, &options, &report, &dev), path);
	return dev;
}

static struct zf_dev *new_image(const char *path)
{
	const struct zf_open_options options = {0};
	const struct zf_format_options format = {
		.label = "scene", .fsid = {1}, .node_size = NODE_SIZE, .now_ns = EPOCH_NS};
	struct zf_geometry geometry;
	struct zf_dev *dev;

	must(zf_image_parse_geometry("size=64M,zone-size=2M", &report, &geometry), "geometry");
	must(zf_image_create(path, &geometry, true, &options, &report), path);
	dev = open_image(path);
	must(zf_fs_format(dev, &format, &report), "format");
	return dev;
}

static struct zf_fs *mount(struct zf_dev *dev, int64_t *now_ns)
{
	const struct zf_mount_options options = {.now_ns = tick, .now_arg = now_ns};
	struct zf_fs *fs;

	*now_ns = EPOCH_NS;
	must(zf_fs_mount(dev, &options, &report, &fs), "mount");
	return fs;
}

static void unmount(struct zf_fs *fs, struct zf_dev *dev)
{
	must(zf_fs_unmount(fs), "unmount");
	zf_dev_close(dev);
}

static const char *name_of(unsigned int file, char name[32])
{
	snprintf(name, 32, "file %u", file);
	return name;
}

void scene_tree(const char *path, unsigned int files)
{
	struct zf_dev *dev = new_image(path);
	int64_t now_ns;
	struct zf_fs *fs = mount(dev, &now_ns);
	char name[32];

	for (unsigned int i = 0; i < files; i++)
		make(fs, &ctx, ZF_INO_ROOT, name_of(i, name), S_IFREG | 0644);
	unmount(fs, dev);
}

void scene_change(const char *path)
{
	struct zf_dev *dev = open_image(path);
	int64_t now_ns;
	struct zf_fs *fs = mount(dev, &now_ns);
	const struct zf_setattr change = {.valid = ZF_SET_MODE, .mode = 0600};
	struct zf_attr attr;
	char name[32];

	must(zf_fs_lookup(fs, &ctx, ZF_INO_ROOT, name_of(CHANGED, name), &attr), name);
	must(zf_fs_setattr(fs, &ctx, attr.ino, &change, &attr), "chmod");
	zf_fs_forget(fs, attr.ino, 1);
	unmount(fs, dev);
}

/* A part of each block is noise, so that the block can be packed to that size. */
static void fill(char content[CONTENT_LEN])
{
	uint64_t random = 1;

	for (unsigned int i = 0; i < CONTENT_LEN; i++)
		content[i] = i % ZF_BLOCK_SIZE < NOISE_LEN ? (char)next_random(&random) : 'h';
}

void scene_record(const char *path)
{
	struct zf_dev *dev = new_image(path);
	int64_t now_ns;
	struct zf_fs *fs = mount(dev, &now_ns);
	uint64_t ino = make(fs, &ctx, ZF_INO_ROOT, "hello", S_IFREG | 0644);
	char content[CONTENT_LEN];

	/* After a commit: the first sync of a mount commits, and writes no record. */
	must(zf_fs_syncfs(fs, &ctx), "syncfs");
	fill(content);
	must(zf_fs_write(fs, &ctx, ino, 0, content, sizeof(content), 0), "write");
	must(zf_fs_fsync(fs, &ctx, ino, false), "fsync");
	zf_fs_abandon(fs);
	zf_dev_close(dev);
}

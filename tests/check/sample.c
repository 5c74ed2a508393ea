/* SPDX-License-Identifier: MIT */
#include "sample.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include "fs/mount/format.h"
#include "superblock/ring.h"

static const struct zf_ctx root = {.may_wait = true};

static int64_t fixed_time(void *arg)
{
	(void)arg;
	return INT64_C(1700000000) * 1000000000;
}

/* ---- device ---- */

static struct zf_dev *open_device(struct sample *sample)
{
	const struct zf_memory_options options = {0};
	struct zf_dev *dev;
	int r = zf_memory_open(sample->memory, &options, NULL, &dev);

	assert(r == 0);
	return dev;
}

struct zf_fs *sample_mount(struct sample *sample)
{
	static char prefix[] = "mount";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	const struct zf_mount_options options = {.now_ns = fixed_time};
	struct zf_fs *fs;
	int r = zf_fs_mount(open_device(sample), &options, &report, &fs);

	assert(r == 0);
	return fs;
}

void sample_unmount(struct sample *sample, struct zf_fs *fs)
{
	struct zf_dev *dev = zf_fs_dev(fs);
	int r = zf_fs_unmount(fs);

	assert(r == 0);
	zf_dev_close(dev);
	forge_open(&sample->forge, sample->memory);
}

/* ---- contents ---- */

static uint64_t make(struct zf_fs *fs, uint64_t parent, const char *name, mode_t mode,
		     const char *target)
{
	struct zf_attr attr;
	int r = zf_fs_make(fs, &root, parent, name, mode, 0, target, &attr);

	assert(r == 0);
	zf_fs_forget(fs, attr.ino, 1);
	return attr.ino;
}

static void fill(struct zf_fs *fs, uint64_t ino, size_t len, unsigned int seed)
{
	uint8_t *buf = malloc(len);
	ssize_t n;

	assert(buf);
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + i / 4096 + seed);
	n = zf_fs_write(fs, &root, ino, 0, buf, len, 0);
	assert(n == (ssize_t)len);
	free(buf);
}

static void set_xattr(struct zf_fs *fs, uint64_t ino, const char *name, size_t len)
{
	uint8_t *value = calloc(1, len);
	int r;

	assert(value);
	memset(value, 'v', len);
	r = zf_fs_setxattr(fs, &root, ino, name, value, len, 0);
	assert(r == 0);
	free(value);
}

void sample_populate(struct sample *sample, struct zf_fs *fs)
{
	struct zf_attr attr;
	int r;

	sample->dir = make(fs, ZF_INO_ROOT, "dir", S_IFDIR | 0755, NULL);
	sample->sub = make(fs, sample->dir, "sub", S_IFDIR | 0755, NULL);
	sample->deep = make(fs, sample->sub, "deep", S_IFREG | 0644, NULL);
	sample->file = make(fs, ZF_INO_ROOT, "file", S_IFREG | 0644, NULL);
	sample->other = make(fs, ZF_INO_ROOT, "other", S_IFREG | 0644, NULL);
	sample->small = make(fs, ZF_INO_ROOT, "small", S_IFREG | 0644, NULL);
	sample->sym = make(fs, ZF_INO_ROOT, "sym", S_IFLNK | 0777, "dir/sub");
	sample->fifo = make(fs, ZF_INO_ROOT, "fifo", S_IFIFO | 0644, NULL);
	sample->many = make(fs, ZF_INO_ROOT, "many", S_IFDIR | 0755, NULL);
	r = zf_fs_link(fs, &root, sample->file, sample->dir, "hard", &attr);
	assert(r == 0);
	zf_fs_forget(fs, attr.ino, 1);
	set_xattr(fs, sample->file, "user.short", 20);
	set_xattr(fs, sample->file, "user.long", SAMPLE_LONG_XATTR);
	fill(fs, sample->file, SAMPLE_FILE_BLOCKS * ZF_BLOCK_SIZE, 1);
	fill(fs, sample->other, 3 * ZF_BLOCK_SIZE, 2);
	fill(fs, sample->small, 100, 3);
	for (unsigned int i = 0; i < SAMPLE_MANY; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		make(fs, sample->many, name, S_IFREG | 0644, NULL);
	}
}

void sample_make(struct sample *sample, const struct sample_options *options)
{
	const struct zf_geometry geometry = {
		.zone_size = 4u << 20,
		.zone_capacity = 3u << 20,
		.zone_count = 32,
		.conventional = options->conventional,
		.append_limit = 128u << 10,
		.max_open = 14,
		.max_active = 14,
	};
	const struct zf_format_options format = {
		.label = "sample",
		.fsid = {1, 2, 3},
		.node_size = options->node_size,
		.metadata_copies = options->copies,
		.dir_hash_seed = 4711,
		.log_secret = {9},
	};
	struct zf_dev *dev;
	struct zf_fs *fs;
	int r = zf_memory_new(&geometry, &sample->memory);

	assert(r == 0);
	dev = open_device(sample);
	r = zf_fs_format(dev, &format, NULL);
	assert(r == 0);
	zf_dev_close(dev);
	fs = sample_mount(sample);
	sample_populate(sample, fs);
	sample_unmount(sample, fs);
}

void sample_free(struct sample *sample)
{
	zf_memory_free(sample->memory);
}

/* ---- checking ---- */

#define MESSAGES_MAX 4096u

static char *messages[MESSAGES_MAX];
static unsigned int message_count;

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	(void)arg;
	(void)level;
	if (message_count < MESSAGES_MAX)
		messages[message_count++] = strdup(message);
}

void sample_check(struct sample *sample, bool data, struct zf_check_counts *ret_counts)
{
	const struct zf_report report = {.fn = keep_message};
	const struct zf_check_options options = {.data = data};
	struct zf_dev *dev = open_device(sample);
	int r;

	while (message_count > 0)
		free(messages[--message_count]);
	r = zf_check_run(dev, &sample->forge.super, &options, &report, ret_counts);
	assert(r == 0);
	zf_dev_close(dev);
}

bool sample_said(const char *a, const char *b)
{
	for (unsigned int i = 0; i < message_count; i++)
		if (strstr(messages[i], a) && strstr(messages[i], b))
			return true;
	return false;
}

void sample_print_messages(void)
{
	for (unsigned int i = 0; i < message_count; i++)
		fprintf(stderr, "    %s\n", messages[i]);
}

void sample_expect(struct sample *sample, bool data, const char *a, const char *b)
{
	struct zf_check_counts counts;

	sample_check(sample, data, &counts);
	if (counts.errors > 0 && sample_said(a, b))
		return;
	print_error("expected a line with \"%s\" and \"%s\", but the checker said:\n", a, b);
	sample_print_messages();
	fail();
}

int sample_setup(void **state)
{
	struct sample *sample = calloc(1, sizeof(*sample));

	assert_non_null(sample);
	sample_make(sample, &(struct sample_options){0});
	*state = sample;
	return 0;
}

int sample_teardown(void **state)
{
	sample_free(*state);
	free(*state);
	return 0;
}

struct zf_key sample_key(struct sample *sample, uint64_t ino, uint8_t type)
{
	struct zf_key key = ZF_KEY(ino, type, 0);
	bool found = forge_find(&sample->forge, ZF_TREE_FS, &key);

	assert_true(found && key.objectid == ino && key.type == type);
	return key;
}

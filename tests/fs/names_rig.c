/* SPDX-License-Identifier: MIT */
#include "fs/names_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/mount/format.h"

static void note(void *arg, enum zf_report_level level, const char *message)
{
	struct names_rig *rig = arg;

	if (level != ZF_REPORT_ERROR)
		return;
	rig->errors++;
	snprintf(rig->message, sizeof(rig->message), "%s", message);
	if (!rig->errors_expected)
		fail_msg("reported: %s", message);
}

static int64_t now(void *arg)
{
	const struct names_rig *rig = arg;

	return rig->now_ns;
}

static void mount_rig(struct names_rig *rig)
{
	struct zf_memory_options memory_options = {0};

	assert_int_equal(zf_memory_open(rig->memory, &memory_options, &rig->report, &rig->dev), 0);
	assert_int_equal(zf_fs_mount(rig->dev, &rig->mount, &rig->report, &rig->fs), 0);
}

void names_rig_init(struct names_rig *rig, const struct names_rig_options *options)
{
	struct zf_geometry geometry = {
		.zone_size = 4 << 20,
		.zone_capacity = 4 << 20,
		.zone_count = options->zone_count ? options->zone_count : 64,
		.append_limit = 1 << 20,
	};
	struct zf_format_options format = {
		.node_size = options->node_size,
		.fsid = {1},
		.dir_hash_seed = 0x1122334455667788u,
		.now_ns = 1000000000,
	};
	struct zf_memory_options memory_options = {0};

	*rig = (struct names_rig){
		.ctx = {.may_wait = true},
		.now_ns = 2000000000,
		.mount = {.now_ns = now, .now_arg = rig, .cache_bytes = options->cache_bytes},
		.report = {.fn = note, .arg = rig},
	};
	assert_int_equal(zf_memory_new(&geometry, &rig->memory), 0);
	assert_int_equal(zf_memory_open(rig->memory, &memory_options, &rig->report, &rig->dev), 0);
	assert_int_equal(zf_fs_format(rig->dev, &format, &rig->report), 0);
	zf_dev_close(rig->dev);
	mount_rig(rig);
}

void names_rig_deinit(struct names_rig *rig)
{
	assert_int_equal(zf_fs_unmount(rig->fs), 0);
	zf_dev_close(rig->dev);
	zf_memory_free(rig->memory);
}

int names_rig_setup(void **state)
{
	static struct names_rig rig;
	struct names_rig_options options = {.node_size = 4096};

	names_rig_init(&rig, &options);
	*state = &rig;
	return 0;
}

int names_rig_teardown(void **state)
{
	names_rig_deinit(*state);
	return 0;
}

void names_rig_remount(struct names_rig *rig)
{
	assert_int_equal(zf_fs_unmount(rig->fs), 0);
	zf_dev_close(rig->dev);
	mount_rig(rig);
}

void names_rig_crash(struct names_rig *rig)
{
	zf_fs_abandon(rig->fs);
	zf_dev_close(rig->dev);
	mount_rig(rig);
}

/* ---- short forms ---- */

uint64_t rig_make(struct names_rig *rig, uint64_t parent, const char *name, mode_t mode)
{
	const char *target = S_ISLNK(mode) ? "target" : NULL;
	struct zf_attr attr;

	assert_int_equal(zf_fs_make(rig->fs, &rig->ctx, parent, name, mode, 0, target, &attr), 0);
	return attr.ino;
}

uint64_t rig_make_forgotten(struct names_rig *rig, uint64_t parent, const char *name, mode_t mode)
{
	uint64_t ino = rig_make(rig, parent, name, mode);

	zf_fs_forget(rig->fs, ino, 1);
	return ino;
}

struct zf_attr rig_attr(struct names_rig *rig, uint64_t ino)
{
	struct zf_attr attr;

	assert_int_equal(zf_fs_getattr(rig->fs, &rig->ctx, ino, &attr), 0);
	return attr;
}

uint64_t rig_find(struct names_rig *rig, uint64_t parent, const char *name)
{
	struct zf_attr attr;
	int r = zf_fs_lookup(rig->fs, &rig->ctx, parent, name, &attr);

	if (r == -ENOENT)
		return 0;
	assert_int_equal(r, 0);
	zf_fs_forget(rig->fs, attr.ino, 1);
	return attr.ino;
}

bool rig_inode_exists(struct names_rig *rig, uint64_t ino)
{
	struct zf_attr attr;
	int r = zf_fs_getattr(rig->fs, &rig->ctx, ino, &attr);

	assert_true(r == 0 || r == -ESTALE);
	return r == 0;
}

uint64_t rig_inode_count(struct names_rig *rig)
{
	return zf_txn_counters(rig->fs->txn)->inode_count;
}

static int count(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	(*(unsigned int *)arg)++;
	return 0;
}

unsigned int rig_count_items(struct names_rig *rig, uint64_t objectid)
{
	struct zf_key from = ZF_KEY(objectid, 0, 0), to = ZF_KEY(objectid, UINT8_MAX, UINT64_MAX);
	unsigned int items = 0;

	assert_int_equal(zf_tree_scan(rig->fs->forest, ZF_TREE_FS, &from, &to, count, &items), 0);
	return items;
}

/* SPDX-License-Identifier: MIT */
/*
 * Many threads in one small namespace, with the background threads: no deadlock, no race (run it
 * with a thread sanitizer), no wrong errors, and at the end the checker finds nothing.
 *
 * ZF_SEED repeats each thread's choices, though not how they meet.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "check/check.h"
#include "fs/mount/format.h"
#include "fs/core/fs.h"
#include "fs/core/inode.h"
#include "io/memory.h"
#include "superblock/ring.h"
#include "sim/rng.h"

#define ROOT	ZF_INO_ROOT
#define THREADS 4
#define DIRS	5
#define NAMES	12

static struct zf_fs *fs;
static uint64_t dirs[DIRS];
static unsigned int ops;

static const struct zf_report report = {zf_report_stderr, (void *)(uintptr_t)"threads"};

struct worker {
	pthread_t thread;
	struct zf_rng rng;
	uint64_t done;
};

/* What two threads that work on the same names may find. */
static void assert_expected(int r)
{
	static const int errors[] = {0,	      -ENOENT, -EEXIST,	 -ENOTDIR, -EISDIR,
				     -ESTALE, -EINVAL, -ENODATA, -EPERM,   -ENOTEMPTY};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (r == errors[i])
			return;
	}
	fprintf(stderr, "unexpected: %s\n", strerror(-r));
	abort();
}

/* Now and then as a request that must not wait, and then again as one that may. */
#define TRY(call)                                                                                  \
	({                                                                                         \
		struct zf_ctx ctx = {.may_wait = zf_rng_chance(&w->rng, 50)};                      \
		int r_ = (call);                                                                   \
		if (r_ == -EAGAIN && !ctx.may_wait) {                                              \
			ctx.may_wait = true;                                                       \
			r_ = (call);                                                               \
		}                                                                                  \
		assert_expected(r_);                                                               \
		r_;                                                                                \
	})

static uint64_t pick_dir(struct worker *w, char *name)
{
	snprintf(name, 16, "%d", (int)zf_rng_below(&w->rng, NAMES));
	return dirs[zf_rng_below(&w->rng, DIRS)];
}

static void change_inode(struct worker *w, uint64_t ino)
{
	struct zf_setattr set = {.valid = ZF_SET_MODE | ZF_SET_MTIME_NOW, .mode = 0640};
	struct zf_attr attr;
	char value[3000] = {0};

	switch (zf_rng_below(&w->rng, 4)) {
	case 0:
		TRY(zf_fs_setattr(fs, &ctx, ino, &set, &attr));
		break;
	case 1:
		TRY(zf_fs_setxattr(fs, &ctx, ino, "user.a", value,
				   zf_rng_below(&w->rng, sizeof(value)), 0));
		break;
	case 2:
		TRY(zf_fs_removexattr(fs, &ctx, ino, "user.a"));
		break;
	case 3:
		TRY(zf_fs_getattr(fs, &ctx, ino, &attr));
		break;
	}
}

static void do_one(struct worker *w)
{
	static const unsigned int flags[] = {0, RENAME_NOREPLACE, RENAME_EXCHANGE};
	char name[16], name2[16];
	uint64_t dir = pick_dir(w, name), dir2 = pick_dir(w, name2);
	struct zf_dirent entries[10];
	struct zf_attr attr;

	switch (zf_rng_below(&w->rng, 8)) {
	case 0:
	case 1: {
		mode_t mode = zf_rng_chance(&w->rng, 30) ? S_IFDIR | 0755 : S_IFREG | 0644;

		if (TRY(zf_fs_make(fs, &ctx, dir, name, mode, 0, NULL, &attr)) == 0)
			zf_fs_forget(fs, attr.ino, 1);
		break;
	}
	case 2:
		TRY(zf_fs_unlink(fs, &ctx, dir, name));
		break;
	case 3:
		TRY(zf_fs_rmdir(fs, &ctx, dir, name));
		break;
	case 4:
	case 5:
		TRY(zf_fs_rename(fs, &ctx, dir, name, dir2, name2, flags[zf_rng_below(&w->rng, 3)],
				 NULL));
		break;
	case 6:
		if (TRY(zf_fs_lookup(fs, &ctx, dir, name, &attr)) != 0)
			break;
		change_inode(w, attr.ino);
		if (TRY(zf_fs_link(fs, &ctx, attr.ino, dir2, name2, &attr)) == 0)
			zf_fs_forget(fs, attr.ino, 1);
		zf_fs_forget(fs, attr.ino, 1);
		break;
	case 7: {
		struct zf_ctx ctx = {.may_wait = true};

		assert_true(zf_fs_readdir(fs, &ctx, dir, 0, entries, 10) >= 0);
		break;
	}
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (; w->done < ops; w->done++)
		do_one(w);
	return NULL;
}

static void check(struct zf_dev *dev)
{
	const struct zf_check_options options = {.data = false};
	struct zf_check_counts counts;
	const struct zf_super *super;
	struct zf_ring *ring;
	unsigned int stepped_over;

	assert_int_equal(zf_ring_open(dev, &report, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	assert_int_equal(zf_check_run(dev, super, &options, &report, &counts), 0);
	assert_int_equal(counts.errors, 0);
	zf_ring_close(ring);
}

static void threads_in_one_namespace_do_not_disturb_each_other(void **state)
{
	const struct zf_geometry geometry = {.zone_size = 4 << 20,
					     .zone_capacity = 4 << 20,
					     .zone_count = 64,
					     .append_limit = 1 << 20};
	const struct zf_format_options format = {.fsid = {1}, .node_size = 4096};
	const struct zf_mount_options options = {
		.threads = true, .commit_ms = 20, .cache_bytes = 1 << 20};
	const char *given = getenv("ZF_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	struct zf_memory_options memory_options = {0};
	struct zf_ctx ctx = {.may_wait = true};
	struct worker workers[THREADS];
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_attr attr;
	char name[16];

	print_message("seed %" PRIu64 " (ZF_SEED)\n", seed);
	assert_int_equal(zf_memory_new(&geometry, &memory), 0);
	assert_int_equal(zf_memory_open(memory, &memory_options, &report, &dev), 0);
	assert_int_equal(zf_dev_start_thread(dev), 0);
	assert_int_equal(zf_fs_format(dev, &format, &report), 0);
	assert_int_equal(zf_fs_mount(dev, &options, &report, &fs), 0);
	for (int i = 0; i < DIRS; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(zf_fs_make(fs, &ctx, i < 3 ? ROOT : dirs[i - 3], name,
					    S_IFDIR | 0755, 0, NULL, &attr),
				 0);
		dirs[i] = attr.ino; /* held, so it may be removed and still be asked for */
	}
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.done = 0};
		zf_rng_seed(&workers[i].rng, seed + (uint64_t)i);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	assert_int_equal(zf_fs_unmount(fs), 0);
	check(dev);
	zf_dev_close(dev);
	zf_memory_free(memory);
}

#define READ_FILES 4000u

static unsigned int dirty_count(void)
{
	unsigned int count;

	zf_mutex_lock(&fs->lock);
	count = fs->dirty_count;
	zf_mutex_unlock(&fs->lock);
	return count;
}

/* Each read changes an access time, and a file stays in memory until that is stored. */
static void files_that_were_read_do_not_gather_until_the_next_commit(void **state)
{
	const struct zf_geometry geometry = {.zone_size = 4 << 20,
					     .zone_capacity = 4 << 20,
					     .zone_count = 64,
					     .append_limit = 1 << 20};
	const struct zf_format_options format = {.fsid = {1}, .node_size = 4096};
	const struct zf_mount_options options = {
		.threads = true, .commit_ms = 3600000, .cache_bytes = 1 << 20};
	const unsigned int bound = (1 << 20) / 4 / sizeof(struct zf_inode);
	struct zf_memory_options memory_options = {0};
	struct zf_ctx ctx = {.may_wait = true};
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_attr attr;
	char name[16], byte = 'x';

	assert_int_equal(zf_memory_new(&geometry, &memory), 0);
	assert_int_equal(zf_memory_open(memory, &memory_options, &report, &dev), 0);
	assert_int_equal(zf_dev_start_thread(dev), 0);
	assert_int_equal(zf_fs_format(dev, &format, &report), 0);
	assert_int_equal(zf_fs_mount(dev, &options, &report, &fs), 0);
	for (unsigned int i = 0; i < READ_FILES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(zf_fs_make(fs, &ctx, ROOT, name, S_IFREG | 0644, 0, NULL, &attr),
				 0);
		assert_int_equal(zf_fs_write(fs, &ctx, attr.ino, 0, &byte, 1, 0), 1);
		zf_fs_forget(fs, attr.ino, 1);
	}
	assert_int_equal(zf_fs_syncfs(fs, &ctx), 0);
	assert_int_equal(dirty_count(), 0);
	for (unsigned int i = 0; i < READ_FILES; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(zf_fs_lookup(fs, &ctx, ROOT, name, &attr), 0);
		assert_int_equal(zf_fs_read(fs, &ctx, attr.ino, 0, &byte, 1), 1);
		zf_fs_forget(fs, attr.ino, 1);
	}
	for (unsigned int i = 0; i < 10000 && dirty_count() > bound; i++)
		usleep(1000);
	assert_true(dirty_count() <= bound);
	assert_int_equal(zf_fs_unmount(fs), 0);
	zf_dev_close(dev);
	zf_memory_free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_in_one_namespace_do_not_disturb_each_other),
		cmocka_unit_test(files_that_were_read_do_not_gather_until_the_next_commit),
	};
	const char *given = getenv("ZF_OPS");

	ops = given ? (unsigned int)strtoul(given, NULL, 0) : 20000;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

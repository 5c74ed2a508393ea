/* SPDX-License-Identifier: MIT */
/*
 * Compares random operations on the filesystem with the oracle, over the memory device with
 * completions in any order. The runs have a tiny node cache, background steps, commits in phases
 * with operations between them, remounts, and stops without an unmount. Before a stop every file is
 * synced by itself, so changes that are not in the superblock's state are in the intent log. Now
 * and then the whole tree is compared, and the checker runs.
 *
 *      test_property [--seed S] [--ops N] [--setup K] [--verbose]
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
#include <time.h>
#include <cmocka.h>

#include "base/bits.h"
#include "check/check.h"
#include "fs/mount/format.h"
#include "fs/core/inode.h"
#include "io/memory.h"
#include "superblock/ring.h"
#include "support/workload.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

/* What the operations run on. */
struct setup {
	const char *name;
	uint64_t zone_size, zone_capacity;
	uint32_t zone_count, conventional, max_active, node_size;
	uint8_t copies;
	uint64_t cache_bytes, dirty_bytes;
	const struct workload_profile *profile;
	bool nospace;
};

static const struct setup setups[] = {
	{"small nodes, one copy", .zone_size = 256 * KIB, .zone_capacity = 256 * KIB,
	 .zone_count = 1200, .node_size = 4096, .copies = 1, .cache_bytes = 64 * KIB,
	 .dirty_bytes = 256 * KIB, .profile = &workload_everything},
	{"large nodes, two copies, short zones", .zone_size = MIB, .zone_capacity = 768 * KIB,
	 .zone_count = 400, .max_active = 14, .node_size = 16384, .copies = 2,
	 .cache_bytes = 256 * KIB, .dirty_bytes = MIB, .profile = &workload_everything},
	{"conventional zones", .zone_size = 512 * KIB, .zone_capacity = 512 * KIB,
	 .zone_count = 800, .conventional = 6, .node_size = 4096, .copies = 2,
	 .cache_bytes = 64 * KIB, .dirty_bytes = 64 * MIB, .profile = &workload_everything},
	{"a device that is often full", .zone_size = 256 * KIB, .zone_capacity = 252 * KIB,
	 .zone_count = 26, .max_active = 8, .node_size = 4096, .copies = 1, .cache_bytes = 64 * KIB,
	 .dirty_bytes = 256 * KIB, .profile = &workload_everything, .nospace = true},
	{"few files of a few blocks", .zone_size = 256 * KIB, .zone_capacity = 256 * KIB,
	 .zone_count = 100, .node_size = 4096, .copies = 1, .cache_bytes = 64 * KIB,
	 .dirty_bytes = 256 * KIB, .profile = &workload_close},
	{"few files of a few blocks, conventional zones", .zone_size = 256 * KIB,
	 .zone_capacity = 256 * KIB, .zone_count = 100, .conventional = 6, .node_size = 4096,
	 .copies = 1, .cache_bytes = 64 * KIB, .dirty_bytes = 256 * KIB,
	 .profile = &workload_close},
};

static uint64_t seed, ops = 40000;
static int only_setup = -1;
static bool verbose;

struct test {
	const struct setup *setup;
	uint64_t seed;
	struct workload_profile profile;
	struct workload workload;
	struct zf_rng rng;
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_fs *fs;
	uint64_t done;
	uint64_t stops, replays; /* replays: stops after which there was something to replay */
};

static const struct zf_report report = {zf_report_stderr, (void *)(uintptr_t)"property"};

static void say_how_to_repeat(const struct test *t)
{
	fprintf(stderr,
		"to repeat: test_property --setup %d --seed %" PRIu64 " --ops %" PRIu64 "\n",
		(int)(t->setup - setups), t->seed, t->done + 1);
}

static void expect(struct test *t, bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s, after %" PRIu64 " operations on %s\n", what, t->done, t->setup->name);
	say_how_to_repeat(t);
	fail();
}

/* ---- the device and the mount ---- */

static void open_device(struct test *t)
{
	const struct zf_memory_options options = {.seed = zf_rng_next(&t->rng) | 1};

	expect(t, zf_memory_open(t->memory, &options, &report, &t->dev) == 0, "opening failed");
}

static void make_filesystem(struct test *t)
{
	const struct setup *s = t->setup;
	const struct zf_geometry geometry = {
		.zone_size = s->zone_size,
		.zone_capacity = s->zone_capacity,
		.zone_count = s->zone_count,
		.conventional = s->conventional,
		.max_open = s->max_active,
		.max_active = s->max_active,
		.append_limit = 64 * KIB,
		.volatile_cache = true,
	};
	const struct zf_format_options format = {
		.label = "property",
		.fsid = {1, 2, 3},
		.node_size = s->node_size,
		.metadata_copies = s->copies,
		.now_ns = WORKLOAD_EPOCH_NS,
		.dir_hash_seed = t->seed,
	};

	expect(t, zf_memory_new(&geometry, &t->memory) == 0, "making the device failed");
	open_device(t);
	expect(t, zf_fs_format(t->dev, &format, &report) == 0, "formatting failed");
}

static void mount(struct test *t)
{
	const struct zf_mount_options options = {
		.cache_bytes = t->setup->cache_bytes,
		.dirty_bytes = t->setup->dirty_bytes,
		.now_ns = workload_now,
		.now_arg = &t->workload,
	};

	expect(t, zf_fs_mount(t->dev, &options, &report, &t->fs) == 0, "mounting failed");
	workload_remounted(&t->workload, t->fs);
}

/* ---- between the operations ---- */

static void check(struct test *t, bool data)
{
	const struct zf_check_options options = {.data = data};
	const struct zf_super *super;
	struct zf_check_counts counts;
	struct zf_ring *ring;
	unsigned int stepped_over;

	expect(t, zf_ring_open(t->dev, &report, &ring) == 0, "opening the ring failed");
	expect(t, zf_ring_newest(ring, &super, &stepped_over) == 0, "there is no superblock");
	expect(t, stepped_over == 0, "a superblock was stepped over");
	expect(t, zf_check_run(t->dev, super, &options, &report, &counts) == 0, "no check");
	expect(t, counts.errors == 0, "the checker found errors");
	zf_ring_close(ring);
}

static void compare(struct test *t)
{
	expect(t, workload_compare(t->fs, t->workload.oracle), "the tree is not the oracle's");
	/* A removed inode is counted until its data have landed, and until a commit is made. */
	expect(t, workload_compare_statfs(t->fs, t->workload.oracle, false), "statfs is wrong");
}

/*
 * Runs until nothing is in flight and removed files are gone. That takes a few steps, because data
 * that is in flight when its file is removed holds the file until the write has completed.
 */
static void come_to_rest(struct test *t)
{
	const struct zf_ctx ctx = {.may_wait = true};

	expect(t, workload_finish_commit(&t->workload) == 0, "a commit failed");
	expect(t, zf_fs_syncfs(t->fs, &ctx) == 0, "syncfs failed");
	for (unsigned int i = 0; i < 4; i++)
		expect(t, zf_fs_step(t->fs) >= 0, "a step failed");
	expect(t, workload_compare_statfs(t->fs, t->workload.oracle, true), "statfs is wrong");
}

static void remount(struct test *t)
{
	expect(t, workload_finish_commit(&t->workload) == 0, "a commit failed");
	expect(t, zf_fs_unmount(t->fs) == 0, "unmounting failed");
	check(t, zf_rng_chance(&t->rng, 20));
	if (zf_rng_chance(&t->rng, 30)) {
		zf_dev_close(t->dev);
		open_device(t);
	}
	mount(t);
	compare(t);
	expect(t, workload_compare_statfs(t->fs, t->workload.oracle, true), "statfs is wrong");
}

/* Syncs every file by its own fsync; the last one also makes all names durable (P1). */
static void sync_files(struct test *t)
{
	const struct zf_ctx ctx = {.may_wait = true};
	const struct oracle *oracle = t->workload.oracle;
	unsigned int first = (unsigned int)zf_rng_below(&t->rng, oracle->count);

	for (unsigned int i = 0; i < oracle->count; i++) {
		const struct oracle_inode *inode = oracle->all[(first + i) % oracle->count];

		expect(t, zf_fs_fsync(t->fs, &ctx, inode->ino, false) == 0, "fsync failed");
	}
}

/* An fsync need not keep access times: the oracle takes those found, if they are not newer. */
static void take_access_times(struct test *t)
{
	const struct zf_ctx ctx = {.may_wait = true};

	for (unsigned int i = 0; i < t->workload.oracle->count; i++) {
		struct oracle_inode *inode = t->workload.oracle->all[i];
		struct zf_attr attr;
		int64_t atime;

		expect(t, zf_fs_getattr(t->fs, &ctx, inode->ino, &attr) == 0, "an inode is gone");
		atime = attr.atime.seconds * 1000000000 + attr.atime.nanoseconds;
		expect(t, atime <= inode->atime, "an access time is too new");
		inode->atime = atime;
	}
}

static void stop(struct test *t)
{
	expect(t, workload_finish_commit(&t->workload) == 0, "a commit failed");
	sync_files(t);
	t->stops++;
	t->replays += zf_txn_is_dirty(t->fs->txn);
	zf_fs_abandon(t->fs);
	zf_dev_close(t->dev);
	open_device(t);
	check(t, false);
	mount(t);
	take_access_times(t);
	compare(t);
	expect(t, workload_compare_statfs(t->fs, t->workload.oracle, true), "statfs is wrong");
	check(t, true);
}

static void do_something_else(struct test *t)
{
	uint64_t dice = zf_rng_below(&t->rng, 10000);

	if (dice < 4) {
		remount(t);
	} else if (dice < 8) {
		compare(t);
	} else if (dice < 10) {
		expect(t, workload_finish_commit(&t->workload) == 0, "a commit failed");
		check(t, false);
	} else if (dice < 14) {
		come_to_rest(t);
	} else if (dice < 34) {
		stop(t);
	}
}

static void do_operation(struct test *t)
{
	struct zf_op op;

	workload_draw(&t->workload, &op);
	workload_run(&t->workload, &op);
	expect(t, workload_check(&t->workload, &op), "an answer is wrong");
	t->done++;
}

static void print_counts(const struct test *t)
{
	printf("%s, seed %" PRIu64 ":", t->setup->name, t->seed);
	for (unsigned int i = 0; i < OP_KIND_COUNT; i++)
		printf(" %s %" PRIu64 "+%" PRIu64, workload_op_name(i), t->workload.done[i],
		       t->workload.failed[i]);
	printf(", no space %" PRIu64 ", %" PRIu64 " stops, %" PRIu64 " with a log to replay\n",
	       t->workload.nospace, t->stops, t->replays);
}

static void run(const struct setup *setup, uint64_t run_seed, uint64_t count)
{
	struct test *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->setup = setup;
	t->seed = run_seed;
	t->profile = *setup->profile;
	t->profile.nospace = setup->nospace;
	zf_rng_seed(&t->rng, run_seed);
	workload_init(&t->workload, zf_rng_next(&t->rng) + (uint64_t)(setup - setups), &t->profile);
	t->workload.verbose = verbose;
	make_filesystem(t);
	mount(t);
	while (t->done < count) {
		do_operation(t);
		do_something_else(t);
	}
	remount(t);
	print_counts(t);
	zf_fs_abandon(t->fs);
	zf_dev_close(t->dev);
	zf_memory_free(t->memory);
	workload_deinit(&t->workload);
	free(t);
}

/* Long runs use several seeds for each setup, so that young filesystems are tested, too. */
static void random_operations_match_the_oracle(void **state)
{
	const uint64_t rounds = ops > 40000 ? 4 : 1;

	for (uint64_t round = 0; round < rounds; round++) {
		for (size_t i = 0; i < ZF_ARRAY_SIZE(setups); i++) {
			if (only_setup >= 0)
				run(&setups[only_setup], seed, ops);
			else
				run(&setups[i], seed + round, ops / ZF_ARRAY_SIZE(setups) / rounds);
			if (only_setup >= 0)
				return;
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations_match_the_oracle),
	};

	seed = (uint64_t)time(NULL);
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";

		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--ops") == 0)
			ops = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--setup") == 0)
			only_setup = atoi(value) % (int)ZF_ARRAY_SIZE(setups);
		else if (strcmp(argv[i], "--verbose") == 0)
			verbose = true;
	}
	printf("seed %" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

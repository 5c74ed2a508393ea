/* SPDX-License-Identifier: MIT */
/*
 * The namespace alone is compared with the oracle: random operations on names, links, attributes
 * and kernel references, a tiny node cache, and commits in steps, remounts and crashes in between.
 * The checker runs after every remount and crash. (tests/property adds file data; without file data
 * far more happens to names in the same time.)
 *
 * ZF_SEED repeats one run; ZF_OPS sets its length.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "check/check.h"
#include "fs/mount/format.h"
#include "io/memory.h"
#include "superblock/ring.h"
#include "support/workload.h"
#include "txn/txn.h"

static const struct workload_profile names_only = {
	.weights = {[OP_LOOKUP] = 60,
		    [OP_FORGET] = 50,
		    [OP_MAKE] = 160,
		    [OP_TMPFILE] = 40,
		    [OP_LINK] = 70,
		    [OP_UNLINK] = 80,
		    [OP_RMDIR] = 40,
		    [OP_RENAME] = 200,
		    [OP_READLINK] = 10,
		    [OP_READDIR] = 20,
		    [OP_SETFLAGS] = 30,
		    [OP_SETXATTR] = 50,
		    [OP_GETXATTR] = 20,
		    [OP_REMOVEXATTR] = 25,
		    [OP_SYNCFS] = 2,
		    [OP_STEP] = 5,
		    [OP_FREEZE] = 10},
	.size_max = 4096,
	.files_max = 80,
	.dirs_max = 30,
	.big_values = true,
};

struct run {
	uint64_t seed, done;
	uint32_t node_size;
	struct zf_rng rng;
	struct workload workload;
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_fs *fs;
};

static const struct zf_report report = {zf_report_stderr, (void *)(uintptr_t)"names"};

static void expect(const struct run *run, bool ok, const char *what)
{
	if (!ok)
		fail_msg("%s after %" PRIu64 " operations, nodes of %u bytes; ZF_SEED=%" PRIu64,
			 what, run->done, run->node_size, run->seed);
}

static void open_device(struct run *run)
{
	const struct zf_memory_options options = {.seed = zf_rng_next(&run->rng) | 1};

	expect(run, zf_memory_open(run->memory, &options, &report, &run->dev) == 0, "no device");
}

static void mount(struct run *run)
{
	const struct zf_mount_options options = {
		.cache_bytes = 16 * (uint64_t)run->node_size,
		.now_ns = workload_now,
		.now_arg = &run->workload,
	};

	expect(run, zf_fs_mount(run->dev, &options, &report, &run->fs) == 0, "no mount");
	workload_remounted(&run->workload, run->fs);
}

static void begin(struct run *run)
{
	const struct zf_geometry geometry = {
		.zone_size = 1 << 20,
		.zone_capacity = 1 << 20,
		.zone_count = 100,
		.append_limit = 65536,
		.volatile_cache = true,
	};
	const struct zf_format_options format = {
		.fsid = {1},
		.node_size = run->node_size,
		.now_ns = WORKLOAD_EPOCH_NS,
		.dir_hash_seed = run->seed,
	};

	zf_rng_seed(&run->rng, run->seed);
	workload_init(&run->workload, zf_rng_next(&run->rng), &names_only);
	expect(run, zf_memory_new(&geometry, &run->memory) == 0, "no memory");
	open_device(run);
	expect(run, zf_fs_format(run->dev, &format, &report) == 0, "no format");
	mount(run);
}

static void check(struct run *run)
{
	const struct zf_check_options options = {.data = false};
	struct zf_check_counts counts;
	const struct zf_super *super;
	struct zf_ring *ring;
	unsigned int stepped_over;

	expect(run, zf_ring_open(run->dev, &report, &ring) == 0, "no ring");
	expect(run, zf_ring_newest(ring, &super, &stepped_over) == 0, "no superblock");
	expect(run, zf_check_run(run->dev, super, &options, &report, &counts) == 0, "no check");
	expect(run, counts.errors == 0, "the checker found errors");
	zf_ring_close(ring);
}

/* With `crash` nothing is written after the last commit: orphans are left to the mount. */
static void remount(struct run *run, bool crash)
{
	expect(run, workload_finish_commit(&run->workload) == 0, "a commit failed");
	if (crash) {
		const struct zf_ctx ctx = {.may_wait = true};

		/* syncfs also stores access times, which a commit alone does not store. */
		expect(run, zf_fs_syncfs(run->fs, &ctx) == 0, "a commit failed");
		zf_fs_abandon(run->fs);
	} else {
		expect(run, zf_fs_unmount(run->fs) == 0, "unmounting failed");
	}
	zf_dev_close(run->dev);
	open_device(run);
	check(run);
	mount(run);
	expect(run, workload_compare(run->fs, run->workload.oracle), "the tree differs");
	expect(run, workload_compare_statfs(run->fs, run->workload.oracle, true),
	       "statfs is wrong");
}

static void end(struct run *run)
{
	remount(run, false);
	expect(run, zf_fs_unmount(run->fs) == 0, "unmounting failed");
	check(run);
	zf_dev_close(run->dev);
	zf_memory_free(run->memory);
	workload_deinit(&run->workload);
}

static void run_seed(uint64_t seed, uint64_t count, uint32_t node_size)
{
	struct run run = {.seed = seed, .node_size = node_size};

	begin(&run);
	for (; run.done < count; run.done++) {
		struct zf_op op;

		workload_draw(&run.workload, &op);
		workload_run(&run.workload, &op);
		expect(&run, workload_check(&run.workload, &op), "an answer is wrong");
		if (zf_rng_chance(&run.rng, 1) && zf_rng_chance(&run.rng, 10))
			remount(&run, zf_rng_chance(&run.rng, 50));
	}
	end(&run);
}

static void names_are_what_the_oracle_says(void **state)
{
	const char *seed = getenv("ZF_SEED"), *ops = getenv("ZF_OPS");
	uint64_t first = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
	uint64_t count = ops ? strtoull(ops, NULL, 0) : 20000;

	print_message("seed %" PRIu64 " (ZF_SEED)\n", first);
	run_seed(first, count, 4096);
	run_seed(first, count, 16384);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_what_the_oracle_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

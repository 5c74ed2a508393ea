/* SPDX-License-Identifier: MIT */
/*
 * A day in the life of a small device: files like those of a home directory are made, appended to,
 * overwritten, replaced, renamed, synced and deleted for so many simulated hours, with a commit
 * every five simulated seconds. The files fill most of the device all the time, and the bytes
 * written are many times its size. In the end all data must be as written, the checker must find no
 * error, and the write amplification must be bounded.
 *
 *      test_aging [--seed S] [--hours N] [--full PERCENT]
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
#include <cmocka.h>

#include "age/load.h"
#include "age/plan.h"
#include "age/traffic.h"
#include "check/check.h"
#include "fs/mount/format.h"
#include "io/memory.h"
#include "superblock/ring.h"

#define MIB	     (UINT64_C(1) << 20)
#define SECOND_NS    INT64_C(1000000000)
#define EPOCH_NS     (INT64_C(1700000000) * SECOND_NS)
#define HOUR_NS	     (3600 * SECOND_NS)
#define COMMIT_NS    (5 * SECOND_NS)
#define PAUSE_MAX_NS (SECOND_NS) /* between two operations */

/* A generous limit: bytes of data, nodes and records together, for each byte that was written. */
#define AMPLIFICATION_MAX 12.0

static const struct zf_report report = {zf_report_stderr, (void *)(uintptr_t)"aging"};
static uint64_t seed = 1, hours = 24;
static double full = 70;

struct day {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_fs *fs;
	struct age_user user;
	struct age_traffic traffic;
	struct age_load *load;
	struct age_plan plan;
	struct age_random pauses;
	int64_t now_ns, commit_ns; /* commit_ns: when the next commit is due */
};

static int64_t now(void *arg)
{
	const struct day *day = arg;

	return day->now_ns;
}

static bool commit_due(void *arg)
{
	struct day *day = arg;

	if (day->now_ns < day->commit_ns)
		return false;
	day->commit_ns = day->now_ns + COMMIT_NS;
	return true;
}

static void begin(struct day *day)
{
	const struct zf_geometry geometry = {
		.zone_size = 4 * MIB,
		.zone_capacity = 4 * MIB,
		.zone_count = 64,
		.max_open = 8,
		.max_active = 8,
		.append_limit = 256 << 10,
		.volatile_cache = true,
	};
	const struct zf_format_options format = {.fsid = {1}, .now_ns = EPOCH_NS};
	const struct zf_mount_options options = {
		.cache_bytes = 8 * MIB, .dirty_bytes = 4 * MIB, .now_ns = now, .now_arg = day};
	const struct zf_memory_options device = {.seed = seed};
	struct age_tree_options tree = {.size_max = 2 * MIB};

	age_plan(&geometry, full, &day->plan);
	tree.bytes = day->plan.bytes;
	day->now_ns = day->commit_ns = EPOCH_NS;
	day->pauses.state = seed;
	assert_int_equal(zf_memory_new(&geometry, &day->memory), 0);
	assert_int_equal(zf_memory_open(day->memory, &device, &report, &day->dev), 0);
	assert_int_equal(zf_fs_format(day->dev, &format, &report), 0);
	assert_int_equal(zf_fs_mount(day->dev, &options, &report, &day->fs), 0);
	age_user_init(&day->user, day->fs, seed);
	day->user.commit_due = commit_due;
	day->user.commit_arg = day;
	day->load = age_tree_new(&day->user, &tree);
	assert_non_null(day->load);
	age_traffic_start(&day->traffic, day->fs);
}

static void live(struct day *day)
{
	int r = day->load->ops->fill(day->load);

	while (r == 0 && day->now_ns < EPOCH_NS + (int64_t)hours * HOUR_NS) {
		day->now_ns += (int64_t)age_below(&day->pauses, PAUSE_MAX_NS);
		r = day->load->ops->step(day->load);
	}
	if (r < 0)
		fail_msg("after %.1f hours and %.2f GiB: %s",
			 (double)(day->now_ns - EPOCH_NS) / HOUR_NS,
			 (double)day->user.bytes / (1 << 30), strerror(-r));
}

static double amplification(const struct day *day)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < AGE_KINDS; i++)
		bytes += day->traffic.bytes[i];
	return (double)bytes / (double)day->user.bytes;
}

static void check(struct day *day)
{
	const struct zf_check_options options = {.data = true};
	const struct zf_super *super;
	struct zf_check_counts counts;
	unsigned int stepped_over;
	struct zf_ring *ring;

	assert_int_equal(zf_ring_open(day->dev, &report, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	assert_int_equal(stepped_over, 0);
	assert_int_equal(zf_check_run(day->dev, super, &options, &report, &counts), 0);
	assert_int_equal(counts.errors, 0);
	zf_ring_close(ring);
}

static void end(struct day *day)
{
	age_traffic_stop(&day->traffic);
	assert_int_equal(zf_fs_unmount(day->fs), 0);
	check(day);
	day->load->ops->free(day->load);
	zf_dev_close(day->dev);
	zf_memory_free(day->memory);
}

static void say(const struct day *day, const struct age_fragments *fragments)
{
	const uint64_t *counts = age_tree_counts(day->load);

	print_message("seed %" PRIu64 ", %" PRIu64
		      " hours, %.0f %% full: %.2f GiB written, %.1f times the device",
		      seed, hours, full, (double)day->user.bytes / (1 << 30),
		      (double)day->user.bytes / (256 * MIB));
	for (unsigned int i = 0; i < AGE_KINDS; i++)
		print_message(", %s %.2f", age_kind_names[i],
			      (double)day->traffic.bytes[i] / (double)day->user.bytes);
	print_message("; %" PRIu64 " files of %.1f extents; %" PRIu64 " created, %" PRIu64
		      " deleted, %" PRIu64 " fsyncs\n",
		      fragments->files, (double)fragments->extents / (double)fragments->files,
		      counts[AGE_CREATE], counts[AGE_DELETE], counts[AGE_FSYNC]);
}

static void a_day_of_work_leaves_every_byte_where_it_was_put(void **state)
{
	const struct zf_ctx ctx = {.may_wait = true};
	struct day *day = calloc(1, sizeof(*day));
	struct age_fragments fragments;

	assert_non_null(day);
	begin(day);
	live(day);
	assert_int_equal(zf_fs_syncfs(day->fs, &ctx), 0);
	assert_int_equal(day->load->ops->verify(day->load, &fragments), 0);
	say(day, &fragments);
	assert_true(amplification(day) < AMPLIFICATION_MAX);
	end(day);
	free(day);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_of_work_leaves_every_byte_where_it_was_put),
	};

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--hours") == 0)
			hours = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--full") == 0)
			full = strtod(argv[i + 1], NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/*
 * A filesystem is copied to another device: what arrives, what is refused, and what an interrupted
 * copy leaves. Linked with --wrap=zf_zone_rules_report, so that a device may or may not count its
 * resets: emulated devices do, disks do not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/zone.h"
#include "base/bits.h"
#include "transfer/copy.h"
#include "transfer/copy_bytes.h"
#include "fs/data_rig.h"
#include "fs/mount/format.h"
#include "io/zone_rules.h"
#include "superblock/ring.h"

#define BLOCK	    4096u
#define FILE_BYTES  700001u
#define OLD_FSID    8
#define SMALL_BYTES 200001u

/* Devices with this limit do not count resets. 0: all do. */
static uint32_t not_counting;

void __real_zf_zone_rules_report(const struct zf_zone_rules *rules, uint32_t zone_no,
				 struct zf_zone_info *ret_info);
void __wrap_zf_zone_rules_report(const struct zf_zone_rules *rules, uint32_t zone_no,
				 struct zf_zone_info *ret_info);

void __wrap_zf_zone_rules_report(const struct zf_zone_rules *rules, uint32_t zone_no,
				 struct zf_zone_info *ret_info)
{
	__real_zf_zone_rules_report(rules, zone_no, ret_info);
	if (not_counting != 0 && rules->geometry.max_active == not_counting)
		ret_info->reset_count = 0;
}

/* ---- source and target ---- */

static const struct data_rig_options plain = {
	.seed = 3,
	.zone_count = 24,
	.zone_size = 32 * BLOCK,
	.node_size = BLOCK,
	.append_limit = 16 * BLOCK,
	.max_active = 20,
};

struct pair {
	struct data_rig rig; /* the source's; then, if the copy succeeded, the target's */
	struct zf_sim *target;
	uint64_t big, small;
	char messages[2048];
};

static void note(void *arg, enum zf_report_level level, const char *message)
{
	struct pair *pair = arg;
	size_t used = strlen(pair->messages);

	(void)level;
	snprintf(pair->messages + used, sizeof(pair->messages) - used, "%s\n", message);
}

/* Files that come and go, so that zones are reset. */
static void churn(struct data_rig *rig, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t ino = data_rig_make(rig, "passing");

		data_rig_write_pattern(rig, ino, 9, 0, 3 * 32 * BLOCK);
		data_rig_sync(rig);
		data_rig_unlink(rig, "passing", ino);
		for (unsigned int n = 0; n < 4; n++) {
			data_rig_sync(rig);
			zf_fs_step(rig->fs);
		}
	}
}

/* Uses a filesystem and then unmounts it, or leaves a log for the next mount to replay. */
static void make_source(struct pair *pair, const struct data_rig_options *options, bool clean)
{
	struct data_rig *rig = &pair->rig;

	memset(pair, 0, sizeof(*pair));
	data_rig_init(rig, options);
	pair->big = data_rig_make(rig, "big");
	pair->small = data_rig_make(rig, "small");
	data_rig_write_pattern(rig, pair->big, 1, 0, FILE_BYTES);
	data_rig_sync(rig);
	churn(rig, 3);
	data_rig_write_pattern(rig, pair->small, 2, 0, SMALL_BYTES);
	if (clean)
		assert_int_equal(zf_fs_unmount(rig->fs), 0);
	else
		assert_int_equal(zf_fs_fsync(rig->fs, &rig->ctx, pair->small, false), 0);
	if (!clean)
		zf_fs_abandon(rig->fs);
	rig->fs = NULL;
	zf_dev_close(rig->dev);
	rig->dev = NULL;
}

static struct zf_geometry geometry_of(const struct data_rig_options *options)
{
	return (struct zf_geometry){
		.zone_size = options->zone_size,
		.zone_capacity =
			options->zone_capacity ? options->zone_capacity : options->zone_size,
		.zone_count = options->zone_count,
		.append_limit = options->append_limit,
		.max_active = options->max_active,
		.conventional = options->conventional,
		.volatile_cache = true,
	};
}

/* Makes a target of another model, with other limits and more room. */
static void make_target(struct pair *pair, const struct data_rig_options *options)
{
	struct zf_geometry geometry = geometry_of(options);

	geometry.append_limit = 4 * BLOCK;
	geometry.max_active += 5;
	pair->target = zf_sim_new(&geometry, 99);
}

/* The target held a filesystem before, in all its zones. */
static void use_target(struct pair *pair)
{
	const struct zf_format_options format = {
		.node_size = BLOCK, .fsid = {OLD_FSID}, .dir_hash_seed = 1};
	struct zf_dev *dev;
	void *zone;

	assert_int_equal(zf_sim_open(pair->target, NULL, &dev), 0);
	for (unsigned int times = 0; times < 9; times++)
		assert_int_equal(zf_fs_format(dev, &format, NULL), 0);
	zone = aligned_alloc(BLOCK, plain.zone_size);
	memset(zone, 1, plain.zone_size);
	for (uint32_t z = 18; z < 24; z++)
		assert_int_equal(
			zf_dev_write_sync(dev, z * plain.zone_size, zone, 16 * BLOCK, true), 0);
	free(zone);
	zf_dev_close(dev);
}

static int copy(struct pair *pair)
{
	const struct zf_report report = {.fn = note, .arg = pair};
	struct zf_dev *from, *to;
	int r;

	pair->messages[0] = '\0';
	assert_int_equal(zf_sim_open(pair->rig.sim, NULL, &from), 0);
	assert_int_equal(zf_sim_open(pair->target, NULL, &to), 0);
	r = zf_transfer_copy(from, to, NULL, &report);
	zf_dev_close(from);
	zf_dev_close(to);
	return r;
}

/* The power fails, then the target is checked and mounted. */
static void mount_target(struct pair *pair)
{
	zf_sim_free(pair->rig.sim);
	pair->rig.sim = pair->target;
	data_rig_crash(&pair->rig);
}

static void expect_files(struct pair *pair)
{
	data_rig_expect(&pair->rig, pair->big, 1, 0, FILE_BYTES);
	data_rig_expect(&pair->rig, pair->small, 2, 0, SMALL_BYTES);
}

static void expect_same_zones(struct pair *pair)
{
	struct zf_dev *from, *to;

	assert_int_equal(zf_sim_open(pair->rig.sim, NULL, &from), 0);
	assert_int_equal(zf_sim_open(pair->target, NULL, &to), 0);
	for (uint32_t z = 0; z < pair->rig.options.zone_count; z++) {
		struct zf_zone_info a, b;

		assert_int_equal(zf_dev_report(from, z, 1, &a), 0);
		assert_int_equal(zf_dev_report(to, z, 1, &b), 0);
		assert_int_equal(a.wp, b.wp);
		assert_int_equal(a.cond, b.cond);
		for (uint64_t at = a.start; at < a.wp && a.cond != ZF_ZONE_NOT_WP; at += BLOCK) {
			uint8_t left[BLOCK], right[BLOCK];

			zf_sim_peek(pair->rig.sim, at, left);
			zf_sim_peek(pair->target, at, right);
			assert_memory_equal(left, right, BLOCK);
		}
	}
	zf_dev_close(from);
	zf_dev_close(to);
}

static void drop(struct pair *pair)
{
	zf_sim_free(pair->rig.sim);
	zf_sim_free(pair->target);
}

static void arrives(const struct data_rig_options *options, bool clean, bool used)
{
	struct pair pair;

	make_source(&pair, options, clean);
	make_target(&pair, options);
	if (used)
		use_target(&pair);
	assert_int_equal(copy(&pair), 0);
	assert_string_equal(pair.messages, "");
	expect_same_zones(&pair);
	mount_target(&pair);
	expect_files(&pair);
	churn(&pair.rig, 3);
	data_rig_remount(&pair.rig);
	expect_files(&pair);
	data_rig_deinit(&pair.rig);
}

/* ---- what arrives ---- */

static void all_of_it_arrives_and_goes_on(void **state)
{
	(void)state;
	arrives(&plain, true, false);
}

static void so_does_what_the_log_holds(void **state)
{
	(void)state;
	arrives(&plain, false, false);
}

static void the_target_may_have_been_used(void **state)
{
	(void)state;
	arrives(&plain, true, true);
	arrives(&plain, false, true);
}

static void both_copies_of_the_metadata_arrive(void **state)
{
	struct data_rig_options options = plain;

	(void)state;
	options.copies = 2;
	options.zone_count = 32;
	arrives(&options, true, false);
	arrives(&options, false, true);
}

static void zones_may_hold_less_than_their_size(void **state)
{
	struct data_rig_options options = plain;

	(void)state;
	options.zone_capacity = 27 * BLOCK;
	arrives(&options, true, false);
}

static void conventional_zones_arrive(void **state)
{
	struct data_rig_options options = plain;

	(void)state;
	options.conventional = 12;
	arrives(&options, true, false);
	arrives(&options, false, false);
	arrives(&options, true, true);
	/* The log and its data are there too, behind the pointers of the last commit. */
	options.conventional = 22;
	arrives(&options, false, false);
}

static void what_is_written_in_place_arrives(void **state)
{
	struct data_rig_options options = plain;
	struct pair pair;
	uint64_t ino;

	(void)state;
	options.conventional = 12;
	make_source(&pair, &options, true);
	data_rig_crash(&pair.rig); /* mounts it again */
	ino = data_rig_make(&pair.rig, "in place");
	data_rig_allocate(&pair.rig, ino, ZF_FALLOC_WRITE_ZEROES, 0, 8 * BLOCK);
	data_rig_write_pattern(&pair.rig, ino, 5, 0, 3 * BLOCK);
	assert_int_equal(zf_fs_unmount(pair.rig.fs), 0);
	pair.rig.fs = NULL;
	zf_dev_close(pair.rig.dev);
	pair.rig.dev = NULL;
	make_target(&pair, &options);
	assert_int_equal(copy(&pair), 0);
	mount_target(&pair);
	data_rig_expect(&pair.rig, ino, 5, 0, 3 * BLOCK);
	data_rig_expect_zeroes(&pair.rig, ino, 3 * BLOCK, 5 * BLOCK);
	expect_files(&pair);
	data_rig_deinit(&pair.rig);
}

/* Zones that were finished before they were full are finished in the copy, too. */
static void finished_zones_are_finished(void **state)
{
	struct pair pair;
	struct zf_dev *dev;
	struct zf_zone_info info;
	uint32_t z = 2;

	(void)state;
	make_source(&pair, &plain, true);
	assert_int_equal(zf_sim_open(pair.rig.sim, NULL, &dev), 0);
	do
		assert_int_equal(zf_dev_report(dev, z++, 1, &info), 0);
	while (info.cond != ZF_ZONE_CLOSED);
	assert_int_equal(zf_dev_finish(dev, z - 1), 0);
	zf_dev_close(dev);
	make_target(&pair, &plain);
	assert_int_equal(copy(&pair), 0);
	expect_same_zones(&pair);
	drop(&pair);
}

/* A disk does not count resets, but an image does. The copy uses the filesystem's own counts. */
static void from_a_disk_that_does_not_count_resets(void **state)
{
	(void)state;
	not_counting = plain.max_active;
	arrives(&plain, true, false);
	arrives(&plain, false, true);
	not_counting = 0;
}

static void to_a_disk_that_does_not_count_resets(void **state)
{
	(void)state;
	not_counting = plain.max_active + 5;
	arrives(&plain, true, false);
	arrives(&plain, false, true);
	not_counting = 0;
}

static void more_zones_are_for_growing(void **state)
{
	struct data_rig_options options = plain;
	struct pair pair;

	(void)state;
	make_source(&pair, &plain, true);
	options.zone_count = 40;
	make_target(&pair, &options);
	assert_int_equal(copy(&pair), 0);
	mount_target(&pair);
	assert_int_equal(zf_alloc_zone_count(zf_fs_alloc(pair.rig.fs)), plain.zone_count);
	assert_int_equal(zf_fs_grow(pair.rig.fs, 0), 0);
	assert_int_equal(zf_alloc_zone_count(zf_fs_alloc(pair.rig.fs)), 40);
	churn(&pair.rig, 2);
	expect_files(&pair);
	data_rig_deinit(&pair.rig);
}

static void an_offline_zone_is_told_and_does_not_pass_for_empty(void **state)
{
	struct pair pair;
	struct zf_zone_info info;
	struct zf_dev *dev;

	(void)state;
	make_source(&pair, &plain, true);
	/* An empty zone is offline: the source can still be mounted. */
	zf_sim_set_zone_cond(pair.rig.sim, plain.zone_count - 1, ZF_ZONE_OFFLINE);
	make_target(&pair, &plain);
	assert_int_equal(copy(&pair), 0);
	assert_non_null(strstr(pair.messages, "zone 23 is offline"));
	assert_int_equal(zf_sim_open(pair.target, NULL, &dev), 0);
	assert_int_equal(zf_dev_report(dev, plain.zone_count - 1, 1, &info), 0);
	assert_int_equal(info.cond, ZF_ZONE_FULL);
	zf_dev_close(dev);
	drop(&pair);
}

static uint32_t newest_root_zone(struct pair *pair, unsigned int copy_no)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;
	struct zf_dev *dev;
	uint32_t zone_no;

	assert_int_equal(zf_sim_open(pair->rig.sim, NULL, &dev), 0);
	assert_int_equal(zf_ring_open(dev, NULL, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	zone_no = (uint32_t)(super->root.address[copy_no] / super->zone_size);
	zf_ring_close(ring);
	zf_dev_close(dev);
	return zone_no;
}

static void expect_readable(struct pair *pair);

/* If one copy of the metadata is lost, the other one is copied. */
static void a_copy_of_the_metadata_may_be_offline(void **state)
{
	struct data_rig_options options = plain;

	(void)state;
	options.copies = 2;
	options.zone_count = 32;
	for (unsigned int c = 0; c < 2; c++) {
		struct pair pair;

		make_source(&pair, &options, true);
		zf_sim_set_zone_cond(pair.rig.sim, newest_root_zone(&pair, c), ZF_ZONE_OFFLINE);
		make_target(&pair, &options);
		assert_int_equal(copy(&pair), 0);
		expect_readable(&pair);
		drop(&pair);
	}
}

/* The newest superblock is that of the unmount before, which was clean; the log is not empty. */
static void so_does_the_log_of_a_mount_without_a_commit(void **state)
{
	struct data_rig_options options = plain;

	(void)state;
	for (options.conventional = 0; options.conventional <= 22; options.conventional += 22) {
		struct pair pair;

		make_source(&pair, &options, true);
		data_rig_crash(&pair.rig); /* mounts it */
		data_rig_write_pattern(&pair.rig, pair.small, 2, 0, SMALL_BYTES + 3 * BLOCK);
		assert_int_equal(zf_fs_fsync(pair.rig.fs, &pair.rig.ctx, pair.small, false), 0);
		zf_fs_abandon(pair.rig.fs);
		pair.rig.fs = NULL;
		zf_dev_close(pair.rig.dev);
		pair.rig.dev = NULL;
		make_target(&pair, &options);
		assert_int_equal(copy(&pair), 0);
		mount_target(&pair);
		data_rig_expect(&pair.rig, pair.small, 2, 0, SMALL_BYTES + 3 * BLOCK);
		expect_files(&pair);
		data_rig_deinit(&pair.rig);
	}
}

/*
 * A backup is copied back over a later state of the same filesystem. Nothing of that state may be
 * left, above all no log record: replay could not tell such a record from one of the backup.
 */
static void a_target_that_went_on_forgets_it(void **state)
{
	struct data_rig_options options = plain;

	(void)state;
	for (options.conventional = 0; options.conventional <= 22; options.conventional += 22) {
		struct pair pair, since;

		make_source(&pair, &options, true);
		since = pair;
		since.rig.sim = zf_sim_clone(pair.rig.sim);
		since.rig.report.arg = &since.rig;
		data_rig_crash(&since.rig); /* mounts it */
		data_rig_write_pattern(&since.rig, since.small, 7, 0, SMALL_BYTES);
		assert_int_equal(zf_fs_fsync(since.rig.fs, &since.rig.ctx, since.small, false), 0);
		zf_fs_abandon(since.rig.fs);
		zf_dev_close(since.rig.dev);
		pair.target = since.rig.sim;
		assert_int_equal(copy(&pair), 0);
		mount_target(&pair);
		expect_files(&pair);
		data_rig_deinit(&pair.rig);
	}
}

/* An image keeps its holes, and a large disk is not written needlessly. */
static void only_what_is_not_zero_is_zeroed(void **state)
{
	static uint8_t block[BLOCK] __attribute__((aligned(4096)));
	struct data_rig_options options = plain;
	struct zf_copy_bytes *bytes;
	struct zf_dev_stats stats;
	struct zf_geometry geometry;
	struct zf_sim *sim;
	struct zf_dev *dev;

	(void)state;
	options.conventional = 12;
	options.append_limit = 4 * BLOCK; /* and so the unit */
	geometry = geometry_of(&options);
	sim = zf_sim_new(&geometry, 1);
	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
	memset(block, 1, BLOCK);
	for (unsigned int at = 0; at < 32; at += 10)
		assert_int_equal(zf_dev_write_sync(dev, at * BLOCK, block, BLOCK, false), 0);
	assert_int_equal(zf_copy_bytes_new(dev, dev, &bytes), 0);
	assert_int_equal(zf_copy_bytes_clear(bytes, BLOCK, 22 * BLOCK), 0);
	zf_copy_bytes_free(bytes);
	zf_dev_get_stats(dev, &stats);
	assert_int_equal(stats.write_bytes, (4 + 2 * 4) * BLOCK);
	for (unsigned int at = 0; at < 32; at++) {
		assert_int_equal(zf_dev_read_buf(dev, at * BLOCK, block, BLOCK), 0);
		assert_int_equal(zf_is_zero(block, BLOCK), at != 0 && at != 30);
	}
	zf_dev_close(dev);
	zf_sim_free(sim);
}

/* ---- what is refused, before anything is written ---- */

static void refuses(struct pair *pair, int error, const char *says)
{
	uint64_t before = zf_sim_digest(pair->target);

	assert_int_equal(copy(pair), error);
	if (!strstr(pair->messages, says))
		fail_msg("expected '%s' in: %s", says, pair->messages);
	assert_int_equal(zf_sim_digest(pair->target), before);
}

static void refuses_target(const struct data_rig_options *options, const char *says)
{
	struct pair pair;

	make_source(&pair, &plain, true);
	make_target(&pair, options);
	refuses(&pair, -EINVAL, says);
	drop(&pair);
}

static void another_shape_is_refused_with_both_numbers(void **state)
{
	struct data_rig_options options = plain;

	(void)state;
	options.zone_size = 64 * BLOCK;
	refuses_target(&options, "a zone size of 262144, the filesystem on sim needs 131072");
	options = plain;
	options.zone_capacity = 31 * BLOCK;
	refuses_target(&options, "a zone capacity of 126976, the filesystem on sim needs 131072");
	options = plain;
	options.zone_count = 23;
	refuses_target(&options,
		       "a number of zones of 23, the filesystem on sim needs at least 24");
	options = plain;
	options.conventional = 2;
	refuses_target(&options,
		       "a number of conventional zones of 2, the filesystem on sim needs 0");
}

static void too_few_active_zones_are_refused(void **state)
{
	struct data_rig_options options = plain;
	struct pair pair;
	struct zf_dev *dev;
	static uint8_t block[BLOCK] __attribute__((aligned(4096)));

	(void)state;
	options.max_active = 0; /* 5: fewer than any filesystem needs */
	refuses_target(&options, "this device cannot be used");

	/* This limit is enough for a filesystem, but not for so many partly written zones. */
	make_source(&pair, &plain, true);
	assert_int_equal(zf_sim_open(pair.rig.sim, NULL, &dev), 0);
	for (uint32_t z = 2; z < 24; z++) {
		struct zf_zone_info info;

		assert_int_equal(zf_dev_report(dev, z, 1, &info), 0);
		if (info.cond == ZF_ZONE_EMPTY)
			assert_int_equal(zf_dev_write_sync(dev, info.start, block, BLOCK, true), 0);
	}
	zf_dev_close(dev);
	options.max_active = 3;
	make_target(&pair, &options);
	refuses(&pair, -EINVAL, "a limit of active zones of 8, the filesystem on sim needs");
	drop(&pair);
}

/* The zones with the newest root nodes are finished last: all of them are active until then. */
static void full_zones_of_both_copies_count_as_active(void **state)
{
	static uint8_t block[BLOCK] __attribute__((aligned(4096)));
	struct data_rig_options options = plain;
	struct pair pair;
	struct zf_dev *dev;
	uint32_t root[2];
	int r = -EINVAL;

	(void)state;
	options.copies = 2;
	make_source(&pair, &options, true);
	for (unsigned int c = 0; c < 2; c++)
		root[c] = newest_root_zone(&pair, c);
	assert_int_equal(zf_sim_open(pair.rig.sim, NULL, &dev), 0);
	for (uint32_t z = 2; z < 24; z++) {
		struct zf_zone_info info;

		assert_int_equal(zf_dev_report(dev, z, 1, &info), 0);
		if (z == root[0] || z == root[1])
			assert_int_equal(zf_dev_finish(dev, z), 0);
		else if (info.cond == ZF_ZONE_EMPTY)
			assert_int_equal(zf_dev_write_sync(dev, info.start, block, BLOCK, true), 0);
	}
	zf_dev_close(dev);
	for (options.max_active = 3; r == -EINVAL; options.max_active++) {
		uint64_t before;

		make_target(&pair, &options);
		before = zf_sim_digest(pair.target);
		r = copy(&pair);
		if (r == -EINVAL)
			assert_int_equal(zf_sim_digest(pair.target), before);
		zf_sim_free(pair.target);
	}
	assert_int_equal(r, 0);
	zf_sim_free(pair.rig.sim);
}

static void a_dead_zone_in_the_way_is_refused(void **state)
{
	struct pair pair;

	(void)state;
	make_source(&pair, &plain, true);
	make_target(&pair, &plain);
	zf_sim_set_zone_cond(pair.target, 2, ZF_ZONE_READONLY);
	refuses(&pair, -EINVAL, "zone 2 is read-only, but data has to be copied to it");
	drop(&pair);
}

static void what_is_no_filesystem_is_refused(void **state)
{
	struct zf_geometry geometry = geometry_of(&plain);
	struct pair pair;

	(void)state;
	make_source(&pair, &plain, true);
	make_target(&pair, &plain);
	zf_sim_free(pair.rig.sim);
	pair.rig.sim = zf_sim_new(&geometry, 1);
	refuses(&pair, -ENODEV, "no zfuse filesystem on it");
	drop(&pair);
}

static void pointers_that_may_be_too_low_are_refused(void **state)
{
	struct pair pair;

	(void)state;
	make_source(&pair, &plain, true);
	make_target(&pair, &plain);
	zf_sim_crash(pair.rig.sim, 1, ZF_SIM_CUT_HOST);
	refuses(&pair, -EUCLEAN, "mount it once");
	drop(&pair);
}

/* ---- interrupted ---- */

/* Tries to mount. Returns whether that was possible. */
static bool mounts(struct pair *pair, bool read_only)
{
	const struct zf_mount_options options = {.read_only = read_only};
	struct zf_dev *dev;
	struct zf_fs *fs;
	bool mounted;

	assert_int_equal(zf_sim_open(pair->target, NULL, &dev), 0);
	mounted = zf_fs_mount(dev, &options, NULL, &fs) == 0;
	if (mounted)
		zf_fs_abandon(fs);
	zf_dev_close(dev);
	return mounted;
}

/* All data arrived, and only the last flush failed: if the target mounts, it holds everything. */
static void expect_whole(struct pair *pair)
{
	struct pair whole = *pair;

	whole.rig.sim = zf_sim_clone(pair->target);
	whole.rig.report.arg = &whole.rig;
	data_rig_crash(&whole.rig);
	expect_files(&whole);
	data_rig_drop(&whole.rig);
}

/*
 * The same, but the second copy of the newest nodes, which is written last, may be missing: the
 * first copy serves then.
 */
static void expect_readable(struct pair *pair)
{
	const struct zf_mount_options options = {.read_only = true};
	struct pair readable = *pair;
	struct zf_dev *dev;

	assert_int_equal(zf_sim_open(pair->target, NULL, &dev), 0);
	assert_int_equal(zf_fs_mount(dev, &options, NULL, &readable.rig.fs), 0);
	data_rig_expect(&readable.rig, pair->big, 1, 0, FILE_BYTES);
	zf_fs_abandon(readable.rig.fs);
	zf_dev_close(dev);
}

/* Returns false when the copy was done before the cut. */
static bool cut_at(struct pair *pair, uint64_t n, void (*check)(struct pair *pair), bool *mounted)
{
	struct zf_sim *before = zf_sim_clone(pair->target);
	bool is_cut;

	zf_sim_set_cut(pair->target, zf_sim_commands(pair->target) + n);
	copy(pair);
	is_cut = zf_sim_is_cut(pair->target);
	zf_sim_crash(pair->target, n, ZF_SIM_CUT_DEVICE);
	*mounted = is_cut && (mounts(pair, true) || mounts(pair, false));
	if (*mounted)
		check(pair);
	zf_sim_free(pair->target);
	pair->target = before;
	return is_cut;
}

static void cut_everywhere(const struct data_rig_options *options, bool clean)
{
	struct pair pair;
	bool mounted;
	uint64_t n = 1, last = 0;

	make_source(&pair, options, clean);
	make_target(&pair, options);
	for (; cut_at(&pair, n, options->copies == 2 ? expect_readable : expect_whole, &mounted);
	     n++)
		if (mounted && last == 0)
			last = n;
	print_message("of %lu cuts, those from %lu on left it whole\n", (unsigned long)n - 1,
		      (unsigned long)last);
	assert_true(n > 60);
	assert_true(last == 0 || last + (options->copies == 2 ? 6 : 1) >= n);
	drop(&pair);
}

static void what_an_interrupted_copy_leaves_cannot_be_mounted(void **state)
{
	struct data_rig_options options = plain;

	(void)state;
	cut_everywhere(&options, true);
	cut_everywhere(&options, false);
	options.conventional = 6;
	cut_everywhere(&options, true);
	cut_everywhere(&options, false);
	options.copies = 2;
	options.zone_count = 32;
	cut_everywhere(&options, false);
}

/* The state that use_target() has left. */
static void expect_untouched(struct zf_dev *dev)
{
	for (uint32_t z = 18; z < 24; z++) {
		struct zf_zone_info info;

		assert_int_equal(zf_dev_report(dev, z, 1, &info), 0);
		assert_int_equal(info.wp - info.start, 16 * BLOCK);
	}
}

static void expect_old_or_whole(struct pair *pair)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;
	struct zf_dev *dev;
	bool old;

	assert_int_equal(zf_sim_open(pair->target, NULL, &dev), 0);
	assert_int_equal(zf_ring_open(dev, NULL, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	old = super->fsid[0] == OLD_FSID;
	zf_ring_close(ring);
	if (old)
		expect_untouched(dev);
	zf_dev_close(dev);
	if (!old)
		expect_whole(pair);
}

/* The former filesystem cannot be mounted either, once any part of it is gone. */
static void nor_can_what_was_there(void **state)
{
	struct pair pair;
	bool mounted;

	(void)state;
	make_source(&pair, &plain, true);
	make_target(&pair, &plain);
	use_target(&pair);
	for (uint64_t n = 1; cut_at(&pair, n, expect_old_or_whole, &mounted); n++)
		;
	drop(&pair);
}

/* A copy may be repeated until it succeeds. */
static void an_interrupted_copy_is_done_again(void **state)
{
	struct pair pair;

	(void)state;
	make_source(&pair, &plain, false);
	make_target(&pair, &plain);
	for (uint64_t n = 10; n < 100; n += 30) {
		zf_sim_set_cut(pair.target, zf_sim_commands(pair.target) + n);
		assert_true(copy(&pair) < 0);
		zf_sim_crash(pair.target, n, ZF_SIM_CUT_DEVICE);
	}
	assert_int_equal(copy(&pair), 0);
	mount_target(&pair);
	expect_files(&pair);
	data_rig_deinit(&pair.rig);
}

static void errors_are_told(void **state)
{
	struct pair pair;

	(void)state;
	make_source(&pair, &plain, true);
	make_target(&pair, &plain);
	zf_sim_add_fault(pair.target,
			 &(struct zf_sim_fault){.op = ZF_IO_WRITE, .nth = 20, .error = -EIO});
	assert_int_equal(copy(&pair), -EIO);
	assert_non_null(strstr(pair.messages, "cannot be written at"));
	assert_non_null(strstr(pair.messages, "copy it again"));
	assert_false(mounts(&pair, false));
	drop(&pair);
}

/* ---- progress ---- */

static void add_up(void *arg, uint64_t done, uint64_t total)
{
	uint64_t *last = arg;

	assert_true(done >= *last && done <= total);
	*last = done;
	if (done == total)
		*last = UINT64_MAX;
}

static void progress_goes_from_nothing_to_all(void **state)
{
	uint64_t last = 0;
	const struct zf_progress progress = {.fn = add_up, .arg = &last};
	struct zf_dev *from, *to;
	struct pair pair;

	(void)state;
	make_source(&pair, &plain, true);
	make_target(&pair, &plain);
	assert_int_equal(zf_sim_open(pair.rig.sim, NULL, &from), 0);
	assert_int_equal(zf_sim_open(pair.target, NULL, &to), 0);
	assert_int_equal(zf_transfer_copy(from, to, &progress, NULL), 0);
	assert_true(last == UINT64_MAX);
	zf_dev_close(from);
	zf_dev_close(to);
	drop(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it_arrives_and_goes_on),
		cmocka_unit_test(so_does_what_the_log_holds),
		cmocka_unit_test(the_target_may_have_been_used),
		cmocka_unit_test(both_copies_of_the_metadata_arrive),
		cmocka_unit_test(zones_may_hold_less_than_their_size),
		cmocka_unit_test(conventional_zones_arrive),
		cmocka_unit_test(what_is_written_in_place_arrives),
		cmocka_unit_test(finished_zones_are_finished),
		cmocka_unit_test(from_a_disk_that_does_not_count_resets),
		cmocka_unit_test(to_a_disk_that_does_not_count_resets),
		cmocka_unit_test(more_zones_are_for_growing),
		cmocka_unit_test(an_offline_zone_is_told_and_does_not_pass_for_empty),
		cmocka_unit_test(a_copy_of_the_metadata_may_be_offline),
		cmocka_unit_test(so_does_the_log_of_a_mount_without_a_commit),
		cmocka_unit_test(a_target_that_went_on_forgets_it),
		cmocka_unit_test(only_what_is_not_zero_is_zeroed),
		cmocka_unit_test(another_shape_is_refused_with_both_numbers),
		cmocka_unit_test(too_few_active_zones_are_refused),
		cmocka_unit_test(full_zones_of_both_copies_count_as_active),
		cmocka_unit_test(a_dead_zone_in_the_way_is_refused),
		cmocka_unit_test(what_is_no_filesystem_is_refused),
		cmocka_unit_test(pointers_that_may_be_too_low_are_refused),
		cmocka_unit_test(what_an_interrupted_copy_leaves_cannot_be_mounted),
		cmocka_unit_test(nor_can_what_was_there),
		cmocka_unit_test(an_interrupted_copy_is_done_again),
		cmocka_unit_test(errors_are_told),
		cmocka_unit_test(progress_goes_from_nothing_to_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

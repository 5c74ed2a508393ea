/* SPDX-License-Identifier: MIT */
/*
 * A program that gets ENOSPC and tries again costs no commits, because zfuse remembers which
 * efforts were in vain. They are made again as soon as something was freed (alloc/vain.h).
 *
 *      test_refused [SEED [ROUNDS]]
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/alloc_internal.h"
#include "alloc/vain.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"

#define BLOCK UINT64_C(4096)
#define MIB   (UINT64_C(1) << 20)
#define FAR   (UINT64_C(1) << 40) /* in a file, behind all that it has */
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

/* Sanitizers make it ten times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARE 10u
#else
#define SHARE 1u
#endif

#define FAILURES    1000u
#define COMMITS_MAX 2u

static const struct data_rig_options shapes[] = {
	{.seed = 1, .zone_count = 16, .zone_size = 4 * MIB, .max_active = 6, .memory = true},
	{.seed = 2, .zone_count = 16, .zone_size = 4 * MIB, .node_size = 4096, .memory = true},
	{.seed = 3,
	 .zone_count = 24,
	 .zone_size = 4 * MIB,
	 .copies = 2,
	 .max_active = 7,
	 .memory = true},
	{.seed = 4, .zone_count = 40, .zone_size = 1 * MIB, .node_size = 4096, .memory = true},
};

static uint64_t seed = 1;
static unsigned int rounds = 200;
static uint8_t buf[MIB];

static uint64_t commits(struct data_rig *rig)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(zf_fs_txn(rig->fs), &stats);
	return stats.commits;
}

/* Pretends that something was freed: efforts that were in vain are made again. */
static void forget(struct data_rig *rig)
{
	zf_fs_alloc(rig->fs)->freed++;
}

/* ---- full ---- */

/* The files of each test: a file with data and an empty one, both in the root directory. */
struct full {
	struct data_rig rig;
	uint64_t file, empty;
	unsigned int names; /* beside them */
};

static void fill_with_data(struct full *full)
{
	struct data_rig *rig = &full->rig;
	uint64_t at = data_rig_size(rig, full->file);

	for (size_t len = sizeof(buf); len > 0; len /= 2) {
		ssize_t r;

		while ((r = zf_fs_write(rig->fs, &rig->ctx, full->file, at, buf, len, 0)) > 0)
			at += (uint64_t)r;
		assert_int_equal(r, -ENOSPC);
	}
}

static int make(struct data_rig *rig, const char *name, mode_t mode)
{
	const char *target = S_ISLNK(mode) ? "target" : NULL;
	struct zf_attr attr;
	int r = zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, mode, 0, target, &attr);

	if (r == 0)
		zf_fs_forget(rig->fs, attr.ino, 1);
	return r;
}

static int make_numbered(struct data_rig *rig, unsigned int number)
{
	char name[128];

	snprintf(name, sizeof(name), "%0100u", number);
	return make(rig, name, S_IFDIR | 0755);
}

static void remove_numbered(struct data_rig *rig, unsigned int number)
{
	char name[128];

	snprintf(name, sizeof(name), "%0100u", number);
	assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, ZF_INO_ROOT, name), 0);
}

static void fill_with_names(struct full *full)
{
	int r;

	while ((r = make_numbered(&full->rig, full->names)) == 0)
		full->names++;
	assert_int_equal(r, -ENOSPC);
}

static void full_init(struct full *full, const struct data_rig_options *options)
{
	*full = (struct full){0};
	data_rig_init(&full->rig, options);
	memset(buf, 7, sizeof(buf));
	full->file = data_rig_make(&full->rig, "file");
	full->empty = data_rig_make(&full->rig, "empty");
	fill_with_data(full);
	fill_with_names(full);
	data_rig_sync(&full->rig);
	fill_with_names(full);
}

static void full_deinit(struct full *full)
{
	data_rig_deinit(&full->rig);
}

/* ---- failing ---- */

static int make_dir(struct full *full)
{
	return make(&full->rig, "new", S_IFDIR | 0755);
}

static int make_file(struct full *full)
{
	return make(&full->rig, "new", S_IFREG | 0644);
}

static int make_symlink(struct full *full)
{
	return make(&full->rig, "new", S_IFLNK | 0777);
}

static int make_unnamed(struct full *full)
{
	struct zf_attr attr;

	return zf_fs_tmpfile(full->rig.fs, &full->rig.ctx, ZF_INO_ROOT, S_IFREG | 0600, &attr);
}

static int add_link(struct full *full)
{
	struct zf_attr attr;

	return zf_fs_link(full->rig.fs, &full->rig.ctx, full->file, ZF_INO_ROOT, "new", &attr);
}

static int rename_file(struct full *full)
{
	return zf_fs_rename(full->rig.fs, &full->rig.ctx, ZF_INO_ROOT, "file", ZF_INO_ROOT, "new",
			    0, NULL);
}

static int set_xattr(struct full *full)
{
	return zf_fs_setxattr(full->rig.fs, &full->rig.ctx, full->file, "user.new", buf, 30000, 0);
}

static int extend(struct full *full)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = FAR};
	struct zf_attr attr;

	return zf_fs_setattr(full->rig.fs, &full->rig.ctx, full->empty, &set, &attr);
}

static int write_some(struct full *full, size_t len, unsigned int flags)
{
	return (int)zf_fs_write(full->rig.fs, &full->rig.ctx, full->empty, FAR, buf, len, flags);
}

static int write_block(struct full *full)
{
	return write_some(full, BLOCK, 0);
}

static int write_much(struct full *full)
{
	return write_some(full, sizeof(buf), 0);
}

static int write_durably(struct full *full)
{
	return write_some(full, BLOCK, ZF_WRITE_DSYNC);
}

static int write_page(struct full *full)
{
	return write_some(full, BLOCK, ZF_WRITE_PAGE | ZF_WRITE_CACHE);
}

static int overwrite(struct full *full)
{
	return (int)zf_fs_write(full->rig.fs, &full->rig.ctx, full->file, 0, buf, BLOCK, 0);
}

static int allocate(struct full *full)
{
	return zf_fs_fallocate(full->rig.fs, &full->rig.ctx, full->empty, 0, 0, 2 * MIB);
}

static int zero_part(struct full *full)
{
	return zf_fs_fallocate(full->rig.fs, &full->rig.ctx, full->file, FALLOC_FL_ZERO_RANGE, 5,
			       10);
}

static int write_zeroes(struct full *full)
{
	return zf_fs_fallocate(full->rig.fs, &full->rig.ctx, full->empty, ZF_FALLOC_WRITE_ZEROES, 0,
			       2 * MIB);
}

static int copy_blocks(struct full *full)
{
	return (int)zf_fs_copy_range(full->rig.fs, &full->rig.ctx, full->file, 0, full->empty, FAR,
				     8 * BLOCK);
}

static int copy_bytes(struct full *full)
{
	return (int)zf_fs_copy_range(full->rig.fs, &full->rig.ctx, full->file, 0, full->empty,
				     FAR + 5, 100);
}

static const struct operation {
	const char *name;
	int (*run)(struct full *full);
	bool fits; /* what is left when names do not fit any more may do for it */
} operations[] = {
	{"mkdir", make_dir},
	{"create", make_file},
	{"symlink", make_symlink},
	{"tmpfile", make_unnamed},
	{"link", add_link},
	{"rename", rename_file},
	{"setxattr", set_xattr},
	{"truncate", extend, .fits = true},
	{"write", write_block},
	{"write much", write_much},
	{"write durably", write_durably},
	{"write a page", write_page},
	{"overwrite", overwrite},
	{"fallocate", allocate},
	{"zero range", zero_part},
	{"write zeroes", write_zeroes},
	{"copy blocks", copy_blocks},
	{"copy bytes", copy_bytes},
};

static void fail_often(struct full *full, const struct operation *operation)
{
	uint64_t before = commits(&full->rig), taken;

	forget(&full->rig);
	for (unsigned int i = 0; i < FAILURES / SHARE; i++) {
		int r = operation->run(full);

		if (r != -ENOSPC)
			fail_msg("%s: %d, expected -ENOSPC", operation->name, r);
	}
	taken = commits(&full->rig) - before;
	if (taken > COMMITS_MAX)
		fail_msg("seed %" PRIu64 ": %u times %s took %" PRIu64 " commits",
			 full->rig.options.seed, FAILURES / SHARE, operation->name, taken);
}

static void a_thousand_failures_take_two_commits(void **state)
{
	(void)state;
	for (size_t s = 0; s < ZF_ARRAY_SIZE(shapes); s++) {
		struct full full;

		full_init(&full, &shapes[s]);
		for (size_t i = 0; i < ZF_ARRAY_SIZE(operations); i++)
			if (!operations[i].fits)
				fail_often(&full, &operations[i]);
		full_deinit(&full);
	}
}

/* Takes metadata's room until no edit can be made. Returns how many blocks it took. */
static uint64_t starve(struct data_rig *rig)
{
	struct zf_trans trans;
	uint64_t taken = 0;

	while (zf_trans_join(rig->fs->txn, ZF_RESERVE_NORMAL, 1, false, &trans) == 0) {
		zf_trans_leave(&trans);
		assert_int_equal(
			zf_alloc_reserve(zf_fs_alloc(rig->fs), ZF_RESERVE_SYSTEM, 16, 0, 0), 0);
		taken += 16;
	}
	return taken;
}

static void so_do_those_that_need_next_to_nothing(void **state)
{
	(void)state;
	for (size_t s = 0; s < ZF_ARRAY_SIZE(shapes); s++) {
		struct full full;
		uint64_t taken;

		full_init(&full, &shapes[s]);
		taken = starve(&full.rig);
		for (size_t i = 0; i < ZF_ARRAY_SIZE(operations); i++)
			if (operations[i].fits)
				fail_often(&full, &operations[i]);
		zf_alloc_unreserve(zf_fs_alloc(full.rig.fs), taken, 0);
		full_deinit(&full);
	}
}

/* ---- what makes room ---- */

static void remove_file(struct full *full)
{
	data_rig_unlink(&full->rig, "file", full->file);
}

static void truncate_file(struct full *full)
{
	data_rig_truncate(&full->rig, full->file, 4 * MIB + 5);
}

static void punch_file(struct full *full)
{
	uint64_t size = data_rig_size(&full->rig, full->file);

	for (uint64_t at = 0; at < size; at += 64 * BLOCK)
		data_rig_allocate(&full->rig, full->file, PUNCH, at, 32 * BLOCK);
}

static void remove_names(struct full *full)
{
	while (full->names > 0)
		remove_numbered(&full->rig, --full->names);
}

/* Closes an open file without a name, which is then deleted. */
static void close_removed(struct full *full)
{
	struct data_rig *rig = &full->rig;
	struct zf_attr attr;

	assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ZF_INO_ROOT, "file", &attr), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, "file"), 0);
	assert_int_equal(write_much(full), -ENOSPC);
	assert_int_equal(write_much(full), -ENOSPC);
	zf_fs_forget(rig->fs, full->file, UINT64_MAX);
}

static void expect_room_after(const char *what, void (*make_room)(struct full *full),
			      int (*run)(struct full *full))
{
	for (size_t s = 0; s < ZF_ARRAY_SIZE(shapes); s++) {
		struct full full;

		full_init(&full, &shapes[s]);
		for (unsigned int i = 0; i < 3; i++)
			assert_int_equal(run(&full), -ENOSPC);
		make_room(&full);
		if (run(&full) < 0)
			fail_msg("seed %" PRIu64 ": no room after %s", shapes[s].seed, what);
		full_deinit(&full);
	}
}

static void what_was_freed_can_be_used_at_once(void **state)
{
	(void)state;
	expect_room_after("removing a file", remove_file, write_much);
	expect_room_after("removing a file", remove_file, make_dir);
	expect_room_after("removing a file", remove_file, allocate);
	expect_room_after("truncating a file", truncate_file, write_much);
	expect_room_after("truncating a file", truncate_file, zero_part);
	expect_room_after("punching holes", punch_file, make_dir);
	expect_room_after("removing names", remove_names, make_dir);
	expect_room_after("removing names", remove_names, add_link);
}

static void so_can_what_is_deleted_later(void **state)
{
	(void)state;
	expect_room_after("closing a removed file", close_removed, write_much);
}

/* No zone of the file is reset while it is read. */
static void what_was_being_read_can_be_used_afterwards(void **state)
{
	struct zf_alloc *alloc;
	struct full full;
	uint64_t zone_size;

	(void)state;
	full_init(&full, &shapes[0]);
	alloc = zf_fs_alloc(full.rig.fs);
	zone_size = alloc->geometry->zone_size;
	for (uint32_t z = 2; z < zf_alloc_zone_count(alloc); z++)
		zf_alloc_read_begin(alloc, z * zone_size);
	remove_file(&full);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(write_much(&full), -ENOSPC);
	for (uint32_t z = 2; z < zf_alloc_zone_count(alloc); z++)
		zf_alloc_read_end(alloc, z * zone_size);
	assert_true(write_much(&full) > 0);
	full_deinit(&full);
}

static void a_smaller_request_is_granted(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &shapes[0]);
	ino = data_rig_make(&rig, "file");
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(zf_fs_fallocate(rig.fs, &rig.ctx, ino, 0, 0, 64 * MIB), -ENOSPC);
	data_rig_write(&rig, ino, 0, buf, sizeof(buf));
	data_rig_deinit(&rig);
}

/* ---- when it is forgotten ---- */

struct known {
	struct data_rig rig;
	struct zf_alloc *alloc;
	struct zf_vain vain;
	uint64_t file;
};

/* Records an effort that was in vain. */
static void known_again(struct known *known)
{
	struct zf_vain_trial trial;

	zf_vain_begin(&trial, known->alloc);
	zf_vain_end(&known->vain, known->alloc, &trial);
	assert_true(zf_vain_is_known(&known->vain, known->alloc));
}

static void known_init(struct known *known)
{
	*known = (struct known){0};
	data_rig_init(&known->rig, &shapes[3]);
	known->alloc = zf_fs_alloc(known->rig.fs);
	known->file = data_rig_make(&known->rig, "file");
	for (uint64_t at = 0; at < 8 * MIB; at += MIB)
		data_rig_write(&known->rig, known->file, at, buf, MIB);
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(make_numbered(&known->rig, i), 0);
	data_rig_sync(&known->rig);
	assert_false(zf_vain_is_known(&known->vain, known->alloc));
	known_again(known);
}

static void expect_forgotten(struct known *known)
{
	assert_false(zf_vain_is_known(&known->vain, known->alloc));
	known_again(known);
}

static void each_reason_is_one(void **state)
{
	struct known known;
	struct zf_attr attr;

	(void)state;
	known_init(&known);
	/* A node is copied: that makes no room yet. */
	assert_int_equal(make_numbered(&known.rig, 1000), 0);
	assert_true(zf_vain_is_known(&known.vain, known.alloc));
	data_rig_sync(&known.rig);
	expect_forgotten(&known);
	data_rig_allocate(&known.rig, known.file, PUNCH, 0, BLOCK);
	expect_forgotten(&known);
	for (unsigned int i = 0; i < 1000; i++)
		remove_numbered(&known.rig, i);
	expect_forgotten(&known);
	/* Pretends that the failed effort had seen one zone fewer without live data. */
	data_rig_truncate(&known.rig, known.file, 0);
	known_again(&known);
	assert_true(known.vain.trial.coming > 0);
	known.vain.trial.coming--;
	expect_forgotten(&known);
	known.vain.trial.node_blocks++;
	expect_forgotten(&known);
	assert_int_equal(zf_fs_getattr(known.rig.fs, &known.rig.ctx, known.file, &attr), 0);
	assert_true(zf_vain_is_known(&known.vain, known.alloc));
	data_rig_deinit(&known.rig);
}

static void nothing_is_remembered_of_an_effort_that_came_too_early(void **state)
{
	struct zf_vain_trial trial;
	struct known known;

	(void)state;
	known_init(&known);
	zf_vain_begin(&trial, known.alloc);
	data_rig_allocate(&known.rig, known.file, PUNCH, 0, BLOCK);
	data_rig_sync(&known.rig);
	zf_vain_end(&known.vain, known.alloc, &trial);
	assert_false(zf_vain_is_known(&known.vain, known.alloc));
	data_rig_deinit(&known.rig);
}

static void an_effort_ends_that_leaves_as_much_garbage_twice(void **state)
{
	struct zf_vain_trial trial;
	struct known known;

	(void)state;
	known_init(&known);
	zf_vain_begin(&trial, known.alloc);
	assert_true(zf_vain_goes_on(&trial, known.alloc));
	assert_false(zf_vain_goes_on(&trial, known.alloc));
	trial.garbage++;
	assert_true(zf_vain_goes_on(&trial, known.alloc));
	trial.stuck++;
	assert_true(zf_vain_goes_on(&trial, known.alloc));
	assert_true(zf_vain_goes_on(&trial, known.alloc));
	assert_false(zf_vain_goes_on(&trial, known.alloc));
	data_rig_deinit(&known.rig);
}

/* ---- against what would be without ---- */

#define FILES	 12u
#define TRIES	 3u
#define PER_CENT 5u

struct model {
	struct full full;
	struct zf_rng rng;
	uint64_t files[FILES];
	bool forgets; /* before each operation */
	unsigned int refused, granted;
};

static int write_at_random(struct model *model)
{
	struct data_rig *rig = &model->full.rig;
	uint64_t ino = model->files[zf_rng_below(&model->rng, FILES)];
	uint64_t at = zf_rng_below(&model->rng, 4 * MIB);
	uint64_t most = zf_rng_below(&model->rng, 4) ? 20000 : MIB;
	size_t len = (size_t)(1 + zf_rng_below(&model->rng, most));

	if (zf_rng_below(&model->rng, 4) == 0)
		return zf_fs_fallocate(rig->fs, &rig->ctx, ino, 0, at, len);
	return (int)zf_fs_write(rig->fs, &rig->ctx, ino, at, buf, len, 0);
}

static int name_at_random(struct model *model)
{
	int r = make_numbered(&model->full.rig, model->full.names);

	model->full.names += r == 0;
	return r;
}

static void free_at_random(struct model *model)
{
	struct data_rig *rig = &model->full.rig;
	uint64_t file = model->files[zf_rng_below(&model->rng, FILES)];
	uint64_t at = zf_rng_below(&model->rng, 4 * MIB);

	switch (zf_rng_below(&model->rng, 4)) {
	case 0:
		data_rig_allocate(rig, file, PUNCH, at, 1 + zf_rng_below(&model->rng, MIB));
		break;
	case 1:
		data_rig_truncate(rig, file, at);
		break;
	case 2:
		data_rig_truncate(
			rig, model->full.file,
			zf_rng_below(&model->rng, data_rig_size(rig, model->full.file) + 1));
		break;
	default:
		for (uint64_t n = zf_rng_below(&model->rng, 300); n > 0 && model->full.names > 0;
		     n--)
			remove_numbered(rig, --model->full.names);
	}
}

/* Acts as a program that gets ENOSPC, frees nothing, and tries again. */
static void take_at_random(struct model *model)
{
	bool name = zf_rng_below(&model->rng, 2);

	for (unsigned int i = 0; i < TRIES; i++) {
		int r;

		if (model->forgets)
			forget(&model->full.rig);
		r = name ? name_at_random(model) : write_at_random(model);
		assert_true(r >= 0 || r == -ENOSPC);
		model->refused += r < 0;
		model->granted += r >= 0;
	}
}

static void step(struct model *model)
{
	uint64_t what = zf_rng_below(&model->rng, 100);

	if (what < 8)
		free_at_random(model);
	else if (what < 10)
		data_rig_sync(&model->full.rig);
	else if (what < 13)
		assert_true(zf_fs_step(model->full.rig.fs) >= 0);
	else
		take_at_random(model);
}

static unsigned int count_granted(const struct data_rig_options *options, bool forgets)
{
	struct model model = {.forgets = forgets};

	full_init(&model.full, options);
	zf_rng_seed(&model.rng, seed + options->seed);
	truncate_file(&model.full);
	for (unsigned int i = 0; i < FILES; i++) {
		char name[16];

		snprintf(name, sizeof(name), "file %u", i);
		model.files[i] = data_rig_make(&model.full.rig, name);
	}
	for (unsigned int i = 0; i < rounds / SHARE; i++)
		step(&model);
	print_message("%u granted, %u refused%s\n", model.granted, model.refused,
		      forgets ? " without memory" : "");
	full_deinit(&model.full);
	return model.granted;
}

static void no_request_is_refused_that_a_try_would_grant(void **state)
{
	(void)state;
	for (size_t s = 0; s < ZF_ARRAY_SIZE(shapes); s++) {
		unsigned int with = count_granted(&shapes[s], false);
		unsigned int without = count_granted(&shapes[s], true);

		if (with * 100 < without * (100 - PER_CENT))
			fail_msg("seed %" PRIu64 ": %u granted, expected %u", seed, with, without);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_failures_take_two_commits),
		cmocka_unit_test(so_do_those_that_need_next_to_nothing),
		cmocka_unit_test(what_was_freed_can_be_used_at_once),
		cmocka_unit_test(so_can_what_is_deleted_later),
		cmocka_unit_test(what_was_being_read_can_be_used_afterwards),
		cmocka_unit_test(a_smaller_request_is_granted),
		cmocka_unit_test(each_reason_is_one),
		cmocka_unit_test(nothing_is_remembered_of_an_effort_that_came_too_early),
		cmocka_unit_test(an_effort_ends_that_leaves_as_much_garbage_twice),
		cmocka_unit_test(no_request_is_refused_that_a_try_would_grant),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		rounds = (unsigned int)strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

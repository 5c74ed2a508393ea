/* SPDX-License-Identifier: MIT */
/*
 * The order that programs rely on that replace files without syncing them (P2). A file is replaced
 * by a rename over it, or by a truncation and new writes. As soon as the log has the loss of the
 * old content, whoever caused that record, the new content is durable. The power goes at every
 * command.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "log/log.h"

#define BLOCK 4096u

/* Of the content before and after: bytes, and seeds. */
#define OLD_LEN (20 * BLOCK + 17)
enum {
	OLD = 1,
	NEW = 2,
	OTHER = 3,
};

static struct data_rig rig;
static uint8_t buf[64 * BLOCK];
static uint64_t target, other;
static size_t new_len; /* bytes */

/* False: the power is gone. */
typedef bool step_fn(void);

static bool write_pattern(uint64_t ino, uint64_t seed, size_t len)
{
	data_rig_fill(seed, 0, buf, len);
	return zf_fs_write(rig.fs, &rig.ctx, ino, 0, buf, len, 0) == (ssize_t)len;
}

static void begin(uint64_t seed)
{
	const struct data_rig_options options = {.seed = seed, .node_size = 4096};

	data_rig_init(&rig, &options);
	target = data_rig_make(&rig, "target");
	other = data_rig_make(&rig, "other");
	assert_true(write_pattern(target, OLD, OLD_LEN));
	data_rig_sync(&rig);
}

static bool make_new(uint64_t *ret_ino)
{
	struct zf_attr attr;

	if (zf_fs_make(rig.fs, &rig.ctx, ZF_INO_ROOT, "new", 0100600, 0, NULL, &attr) < 0)
		return false;
	zf_fs_forget(rig.fs, attr.ino, 1);
	*ret_ino = attr.ino;
	return true;
}

/* Another program syncs a file of its own. */
static bool sync_other(void)
{
	return write_pattern(other, OTHER, 100) && zf_fs_fsync(rig.fs, &rig.ctx, other, false) == 0;
}

/* ---- what may be found ---- */

enum content {
	IS_EMPTY,
	IS_OLD,
	IS_NEW,
};

static bool is_pattern(uint64_t ino, uint64_t seed, size_t size, size_t len)
{
	uint8_t *wanted = malloc(len);
	bool r;

	assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, 0, buf, sizeof(buf)), size);
	data_rig_fill(seed, 0, wanted, len);
	r = size == len && memcmp(buf, wanted, len) == 0;
	free(wanted);
	return r;
}

static enum content find_content(void)
{
	struct zf_attr attr;

	assert_int_equal(zf_fs_lookup(rig.fs, &rig.ctx, ZF_INO_ROOT, "target", &attr), 0);
	zf_fs_forget(rig.fs, attr.ino, 1);
	if (attr.size == 0)
		return IS_EMPTY;
	if (is_pattern(attr.ino, OLD, attr.size, OLD_LEN))
		return IS_OLD;
	assert_true(is_pattern(attr.ino, NEW, attr.size, new_len));
	return IS_NEW;
}

/* ---- a cut at every command ---- */

/* False: all commands were made before the power went. */
static bool cut_at(step_fn *run, uint64_t command, bool may_be_empty)
{
	enum content content;
	bool answered, cut;

	begin(command);
	zf_sim_set_cut(rig.sim, zf_sim_commands(rig.sim) + command);
	rig.errors_expected = true;
	answered = run();
	cut = zf_sim_is_cut(rig.sim);
	data_rig_crash(&rig);
	content = find_content();
	assert_true(may_be_empty || content != IS_EMPTY);
	if (answered) {
		assert_int_equal(content, IS_NEW);
		data_rig_expect(&rig, other, OTHER, 0, 100);
	}
	assert_true(answered || cut);
	data_rig_deinit(&rig);
	return cut;
}

static void cut_everywhere(step_fn *run, bool may_be_empty)
{
	static const size_t lens[] = {1, 1000, BLOCK, 9 * BLOCK + 5, 60 * BLOCK};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		uint64_t command = 1;

		new_len = lens[i];
		while (cut_at(run, command, may_be_empty))
			command++;
		assert_true(command > 1);
	}
}

/* ---- a rename ---- */

static bool rename_over(void)
{
	uint64_t ino;

	return make_new(&ino) && write_pattern(ino, NEW, new_len) &&
	       zf_fs_rename(rig.fs, &rig.ctx, ZF_INO_ROOT, "new", ZF_INO_ROOT, "target", 0, NULL) ==
		       0 &&
	       sync_other();
}

static void a_file_that_is_replaced_is_old_or_new(void **state)
{
	(void)state;
	cut_everywhere(rename_over, false);
}

/* The new content is only a size: a hole. */
static void a_hole_replaces_a_file_whole(void **state)
{
	struct zf_attr attr;
	uint64_t ino = 0, hole;

	(void)state;
	begin(1);
	hole = data_rig_make(&rig, "hole");
	data_rig_truncate(&rig, hole, 9 * BLOCK);
	assert_true(make_new(&ino));
	assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, hole, 0, ino, 0, 9 * BLOCK), 9 * BLOCK);
	assert_int_equal(
		zf_fs_rename(rig.fs, &rig.ctx, ZF_INO_ROOT, "new", ZF_INO_ROOT, "target", 0, NULL),
		0);
	assert_true(sync_other());
	data_rig_crash(&rig);
	assert_int_equal(zf_fs_lookup(rig.fs, &rig.ctx, ZF_INO_ROOT, "target", &attr), 0);
	zf_fs_forget(rig.fs, attr.ino, 1);
	assert_int_equal(attr.ino, ino);
	assert_int_equal(attr.size, 9 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- a truncation ---- */

static bool truncate_target(void)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE};
	struct zf_attr attr;

	return zf_fs_setattr(rig.fs, &rig.ctx, target, &set, &attr) == 0;
}

static bool write_again(void)
{
	return truncate_target() && write_pattern(target, NEW, new_len) &&
	       zf_fs_close(rig.fs, &rig.ctx, target) == 0;
}

static bool write_again_and_land(void)
{
	return write_again() && zf_data_flush_all(rig.fs, true) == 0 && sync_other();
}

static void a_file_that_is_written_again_is_empty_at_worst(void **state)
{
	(void)state;
	cut_everywhere(write_again_and_land, true);
}

/* The record of the new content waits until the content is durable. */
static void what_landed_is_flushed_before_the_log_tells_of_it(void **state)
{
	struct zf_dev_stats before, after;

	(void)state;
	new_len = 9 * BLOCK;
	begin(1);
	assert_true(write_again());
	assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
	assert_true(zf_log_pending_mark(rig.fs->log) > 0);
	zf_dev_get_stats(rig.dev, &before);
	assert_true(sync_other());
	zf_dev_get_stats(rig.dev, &after);
	assert_int_equal(after.flushes, before.flushes + 1);
	assert_int_equal(zf_log_pending_mark(rig.fs->log), 0);
	/* The next record has nothing to wait for. */
	assert_true(sync_other());
	zf_dev_get_stats(rig.dev, &before);
	assert_int_equal(after.flushes, before.flushes);
	data_rig_crash(&rig);
	assert_int_equal(find_content(), IS_NEW);
	data_rig_deinit(&rig);
}

/* Neither the truncation nor the close has made anything durable, or waited for it. */
static void no_call_waits_until_the_data_has_landed(void **state)
{
	struct zf_dev_stats before, after;

	(void)state;
	new_len = 9 * BLOCK;
	begin(1);
	zf_dev_get_stats(rig.dev, &before);
	assert_true(write_again());
	zf_dev_get_stats(rig.dev, &after);
	assert_int_equal(after.flushes, before.flushes);
	assert_int_equal(after.fua_writes, before.fua_writes);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_is_replaced_is_old_or_new),
		cmocka_unit_test(a_hole_replaces_a_file_whole),
		cmocka_unit_test(a_file_that_is_written_again_is_empty_at_worst),
		cmocka_unit_test(what_landed_is_flushed_before_the_log_tells_of_it),
		cmocka_unit_test(no_call_waits_until_the_data_has_landed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

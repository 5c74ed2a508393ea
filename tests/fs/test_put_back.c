/* SPDX-License-Identifier: MIT */
/* Data that could not land for lack of memory is dirty again: the effects on flush, fsync and
 * other callers. */
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>

#include "alloc/alloc_internal.h"
#include "fs/data/append.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/map/extent.h"
#include "fs/data/flush.h"
#include "fs/core/inode.h"

#define BLOCK	4096u
#define WRITTEN 30u /* blocks */

/* ---- what the linker calls in place of the library's (meson.build) ---- */

static unsigned int puts_to_fail;
static bool put_fails_after_the_first, inline_fails, split_fails, malloc_fails;
static void (*once_a_flush_waits)(void);

int __real_zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
			 uint64_t *ret_len);
int __wrap_zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
			 uint64_t *ret_len);
int __wrap_zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
			 uint64_t *ret_len)
{
	if (puts_to_fail > 0 && !put_fails_after_the_first) {
		puts_to_fail--;
		return -ENOMEM;
	}
	put_fails_after_the_first = false;
	return __real_zf_extent_put(editor, extent, ret_len);
}

int __real_zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len);
int __wrap_zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len);
int __wrap_zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len)
{
	return inline_fails ? -ENOMEM : __real_zf_extent_put_inline(editor, bytes, len);
}

/* A flush calls this without a lock, before it looks for dirty data. */
uint64_t __real_zf_flush_events(struct zf_fs *fs);
uint64_t __wrap_zf_flush_events(struct zf_fs *fs);
uint64_t __wrap_zf_flush_events(struct zf_fs *fs)
{
	void (*now)(void) = once_a_flush_waits;

	once_a_flush_waits = NULL;
	if (now)
		now();
	return __real_zf_flush_events(fs);
}

int __real_zf_alloc_append_begin(struct zf_alloc *alloc, enum zf_role role, uint64_t want,
				 struct zf_append_grant *ret_grant);
int __wrap_zf_alloc_append_begin(struct zf_alloc *alloc, enum zf_role role, uint64_t want,
				 struct zf_append_grant *ret_grant);

int __wrap_zf_alloc_append_begin(struct zf_alloc *alloc, enum zf_role role, uint64_t want,
				 struct zf_append_grant *ret_grant)
{
	int r = __real_zf_alloc_append_begin(alloc, role, want, ret_grant);

	malloc_fails = split_fails && r == 0 && ret_grant->len < want;
	split_fails &= !malloc_fails;
	return r;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	if (!malloc_fails)
		return __real_malloc(size);
	malloc_fails = false;
	return NULL;
}

/* ---- tests ---- */

static struct data_rig rig;
static uint64_t ino;

static void begin(const struct data_rig_options *options, uint64_t size)
{
	data_rig_init(&rig, options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, size);
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_step(rig.fs), 0);
}

static void expect_nothing_reserved(void)
{
	assert_int_equal(rig.fs->flush.used_bytes, 0);
	assert_int_equal(rig.fs->flush.flight_bytes, 0);
	assert_int_equal(zf_fs_alloc(rig.fs)->reserved_blocks, 0);
	assert_int_equal(zf_fs_alloc(rig.fs)->reserved_items, 0);
}

static void write_again(void)
{
	data_rig_write_pattern(&rig, ino, 3, 10 * BLOCK, BLOCK);
}

/* P1. A newer version replaces data in flight; the flush did not originally wait for that version.
 */
static void a_flush_waits_for_the_version_over_what_could_not_land(void **state)
{
	const struct data_rig_options options = {.seed = 1};
	int r;

	(void)state;
	begin(&options, WRITTEN * BLOCK);
	data_rig_write_pattern(&rig, ino, 2, 10 * BLOCK, BLOCK);
	once_a_flush_waits = write_again;
	puts_to_fail = 1;
	r = zf_fs_syncfs(rig.fs, &rig.ctx);
	assert_null(once_a_flush_waits);
	assert_int_equal(puts_to_fail, 0);
	assert_int_equal(r, -ENOMEM);
	data_rig_sync(&rig);
	expect_nothing_reserved();
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 10 * BLOCK);
	data_rig_expect(&rig, ino, 3, 10 * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* Another thread may have seen the block in flight, and waits for the result. */
static void whoever_waits_for_a_small_file_hears_that_it_could_not_be_stored(void **state)
{
	const struct data_rig_options options = {.seed = 2};
	struct zf_inode *inode;
	uint64_t seen;

	(void)state;
	begin(&options, 100);
	data_rig_write_pattern(&rig, ino, 2, 0, 100);
	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	seen = __real_zf_flush_events(rig.fs);
	inline_fails = true;
	assert_int_equal(zf_data_flush(inode, false), -ENOMEM);
	inline_fails = false;
	assert_true(__real_zf_flush_events(rig.fs) > seen);
	zf_inode_put(inode);
	data_rig_sync(&rig);
	expect_nothing_reserved();
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 2, 0, 100);
	data_rig_deinit(&rig);
}

static void an_append_that_could_not_be_split_keeps_what_it_had_reserved_and_no_more(void **state)
{
	const struct data_rig_options options = {.seed = 3, .zone_size = 512 << 10};
	unsigned int tries = 0;

	(void)state;
	begin(&options, 37 * BLOCK);
	split_fails = true;
	/* Writes until an append meets the end of a zone. */
	while (split_fails && tries++ < 20) {
		data_rig_write_pattern(&rig, ino, 2 + tries, 0, 37 * BLOCK);
		if (split_fails)
			(void)zf_fs_syncfs(rig.fs, &rig.ctx);
	}
	assert_false(split_fails);
	data_rig_sync(&rig);
	expect_nothing_reserved();
	data_rig_expect(&rig, ino, 2 + tries, 0, 37 * BLOCK);
	data_rig_deinit(&rig);
}

/*
 * P3. A log record has the zeroes over bytes that were cut off, but the trees do not get them: then
 * the trees do not get the size that goes with them either.
 */
static void a_file_does_not_grow_over_what_was_cut_off_without_its_data(void **state)
{
	const struct zf_setattr mode = {.valid = ZF_SET_MODE, .mode = 0600};
	const struct data_rig_options options = {.seed = 4};
	const uint64_t size = 3 * BLOCK + 100, end = 5 * BLOCK;
	struct zf_attr attr;

	(void)state;
	/* The trees get none of the data, or only the first piece. */
	for (unsigned int first = 0; first < 2; first++) {
		begin(&options, end);
		data_rig_truncate(&rig, ino, size);
		data_rig_sync(&rig);
		data_rig_write_pattern(&rig, ino, 2, 4 * BLOCK, BLOCK);
		if (first)
			data_rig_write_pattern(&rig, ino, 1, 0, BLOCK);
		puts_to_fail = 100;
		put_fails_after_the_first = first;
		assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), -ENOMEM);
		assert_int_equal(zf_fs_setattr(rig.fs, &rig.ctx, ino, &mode, &attr), 0);
		assert_int_equal(zf_txn_commit(rig.fs->txn, true), 0);
		puts_to_fail = 0;
		data_rig_crash(&rig);
		assert_int_equal(data_rig_size(&rig, ino), size);
		data_rig_expect(&rig, ino, 1, 0, size);
		data_rig_deinit(&rig);
	}
}

/*
 * P1. Data of a durable log record that the trees never got may be dropped before it lands. The
 * next fsync records that, though the trees have not changed.
 */
static void what_rode_with_a_record_and_is_gone_does_not_come_back(void **state)
{
	const struct data_rig_options options = {.seed = 6};

	(void)state;
	begin(&options, 10 * BLOCK);
	data_rig_allocate(&rig, ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4 * BLOCK, BLOCK);
	data_rig_sync(&rig);
	data_rig_write_pattern(&rig, ino, 2, 4 * BLOCK, BLOCK);
	puts_to_fail = 2;
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), -ENOMEM);
	assert_int_equal(puts_to_fail, 0);
	data_rig_allocate(&rig, ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4 * BLOCK, BLOCK);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	data_rig_crash(&rig);
	data_rig_expect_zeroes(&rig, ino, 4 * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* Memory is available again at once, so no other flush starts. */
static void an_unmount_stores_what_is_dirty_again(void **state)
{
	const struct data_rig_options options = {.seed = 5};

	(void)state;
	begin(&options, WRITTEN * BLOCK);
	data_rig_write_pattern(&rig, ino, 2, 10 * BLOCK, BLOCK);
	puts_to_fail = 2;
	data_rig_remount(&rig);
	assert_int_equal(puts_to_fail, 0);
	data_rig_expect(&rig, ino, 2, 10 * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flush_waits_for_the_version_over_what_could_not_land),
		cmocka_unit_test(whoever_waits_for_a_small_file_hears_that_it_could_not_be_stored),
		cmocka_unit_test(
			an_append_that_could_not_be_split_keeps_what_it_had_reserved_and_no_more),
		cmocka_unit_test(a_file_does_not_grow_over_what_was_cut_off_without_its_data),
		cmocka_unit_test(what_rode_with_a_record_and_is_gone_does_not_come_back),
		cmocka_unit_test(an_unmount_stores_what_is_dirty_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

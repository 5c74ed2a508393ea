/* SPDX-License-Identifier: MIT */
/*
 * Log records with a valid hash and invalid content (P7): a mount refuses them, or accepts what can
 * be in a tree. It does not crash or hang, nor come to harm that a read-only mount would not show.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/core/inode.h"
#include "fs/core/item.h"
#include "fs/replay_rig.h"
#include "sim/rng.h"

#define BLOCK 4096u

static struct replay_rig rig;
static uint64_t file, other, dir, link_ino; /* committed */
static uint64_t data_address, meta_address; /* of the file's first block; of a node */

static void begin(uint64_t seed)
{
	struct data_rig_options options = {.seed = seed, .zone_count = 24};
	struct data_rig_extents extents;
	struct zf_attr attr;
	uint8_t buf[8 * BLOCK];

	replay_rig_init(&rig, &options);
	file = data_rig_make(&rig.rig, "file");
	other = data_rig_make(&rig.rig, "other");
	data_rig_fill(1, 0, buf, sizeof(buf));
	data_rig_write(&rig.rig, file, 0, buf, sizeof(buf));
	data_rig_write(&rig.rig, other, 0, buf, sizeof(buf));
	assert_int_equal(zf_fs_make(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, "dir", S_IFDIR | 0755, 0,
				    NULL, &attr),
			 0);
	dir = attr.ino;
	assert_int_equal(zf_fs_make(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, "link", S_IFLNK | 0777,
				    0, "target", &attr),
			 0);
	link_ino = attr.ino;
	replay_rig_commit(&rig);
	data_rig_extents(&rig.rig, file, &extents);
	data_address = extents.at[0].address;
	meta_address = rig.super.root.address[0];
	rig.rig.errors_expected = true;
}

/* Returns the result of a mount. A state that the mount refused can still be read. */
static int mount_result(void)
{
	struct zf_attr attr;
	int r, read_only;

	replay_rig_crash(&rig, 1);
	r = replay_rig_try_mount(&rig, false);
	if (r == 0) {
		zf_fs_unmount(rig.rig.fs);
		rig.rig.fs = NULL;
		zf_dev_close(rig.rig.dev);
		rig.rig.dev = NULL;
		return 0;
	}
	rig.rig.fs = NULL;
	assert_int_equal(replay_rig_try_mount(&rig, false), r);
	rig.rig.fs = NULL;
	read_only = replay_rig_try_mount(&rig, true);
	assert_int_equal(read_only, 0);
	assert_int_equal(zf_fs_lookup(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, "file", &attr), 0);
	assert_int_equal(zf_fs_unmount(rig.rig.fs), 0);
	rig.rig.fs = NULL;
	zf_dev_close(rig.rig.dev);
	rig.rig.dev = NULL;
	return r;
}

static void end(void)
{
	rig.rig.fs = NULL;
	replay_rig_drop(&rig);
}

/* ---- values ---- */

static struct zf_disk_inode inode_item(uint32_t mode, uint64_t size)
{
	return (struct zf_disk_inode){
		.generation = zf_le64_from(1),
		.change = zf_le64_from(1),
		.size = zf_le64_from(size),
		.mode = zf_le32_from(mode),
		.nlink = zf_le32_from(S_ISDIR(mode) ? 2 : 1),
		.next_cookie = zf_le64_from(S_ISDIR(mode) ? 3 : 0),
		.tree = zf_le64_from(ZF_TREE_FS),
	};
}

static void set_inode(struct zf_log_body *body, uint64_t ino, uint32_t mode)
{
	struct zf_disk_inode item = inode_item(mode, S_ISLNK(mode) ? 6 : 0);
	struct zf_key key = ZF_KEY(ino, ZF_KEY_INODE, 0);

	zf_log_body_set(body, &key, &item, sizeof(item));
}

static struct zf_log_body *operation(void)
{
	return replay_rig_body(&rig, ZF_LOG_OPERATION);
}

static struct zf_log_body *state_of(uint64_t ino, uint32_t mode, uint64_t size)
{
	struct zf_log_body *body = replay_rig_body(&rig, ZF_LOG_EXTENTS);
	struct zf_disk_inode item = inode_item(mode, size);

	zf_log_body_inode(body, ino, &item, sizeof(item));
	return body;
}

static void add_data(struct zf_log_body *body, uint64_t offset, uint64_t len, uint64_t address,
		     uint8_t flags)
{
	static const uint64_t csums[4096];

	zf_log_body_range(body, &(struct zf_log_range){
					.type = ZF_LOG_RANGE_DATA,
					.flags = flags,
					.offset = offset,
					.len = len,
					.address = address,
					.csums = csums,
				});
}

static void add_plain(struct zf_log_body *body, enum zf_log_range_type type, uint64_t offset,
		      uint64_t len, uint8_t flags)
{
	static const uint8_t bytes[BLOCK];

	zf_log_body_range(body, &(struct zf_log_range){
					.type = type,
					.flags = flags,
					.offset = offset,
					.len = len,
					.bytes = bytes,
					.inline_len = type == ZF_LOG_RANGE_INLINE ? 100 : 0,
				});
}

/* ---- one by one ---- */

static void delete_inode(void)
{
	struct zf_key key = ZF_KEY(file, ZF_KEY_INODE, 0);

	zf_log_body_delete(operation(), &key);
}

static void delete_extent(void)
{
	struct zf_key key = ZF_KEY(file, ZF_KEY_EXTENT, 0);

	zf_log_body_delete(operation(), &key);
}

static void delete_of_no_inode(void)
{
	struct zf_key key = ZF_KEY(ZF_INO_INTENTS, ZF_KEY_REF, 0);

	zf_log_body_delete(operation(), &key);
}

static void delete_unknown_key(void)
{
	struct zf_key key = ZF_KEY(file, 77, 0);

	zf_log_body_delete(operation(), &key);
}

static void set_intent(void)
{
	struct zf_key key = ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, 1);
	struct zf_disk_intent intent = {
		.type = ZF_INTENT_TRUNCATE,
		.ino = zf_le64_from(file),
		.to = zf_le64_from(1 << 20),
	};

	zf_log_body_set(operation(), &key, &intent, sizeof(intent));
}

static void set_orphan_with_a_value(void)
{
	struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, file);

	zf_log_body_set(operation(), &key, "12345678", 8);
}

static void set_inode_of_the_orphans(void)
{
	set_inode(operation(), ZF_INO_ORPHANS, S_IFREG | 0644);
}

static void set_inode_of_another_type(void)
{
	set_inode(operation(), file, S_IFDIR | 0755);
}

static void set_inode_twice(void)
{
	struct zf_log_body *body = operation();

	set_inode(body, 5000, S_IFREG | 0644);
	set_inode(body, 5000, S_IFIFO | 0644);
}

static void set_inode_beyond_counting(void)
{
	set_inode(operation(), UINT64_MAX, S_IFREG | 0644);
}

static void set_short_inode(void)
{
	struct zf_key key = ZF_KEY(file, ZF_KEY_INODE, 0);

	zf_log_body_set(operation(), &key, "12345678", 8);
}

static void set_extent_of_a_file(void)
{
	struct zf_key key = ZF_KEY(file, ZF_KEY_EXTENT, 0);
	struct zf_disk_extent extent = {
		.type = ZF_EXTENT_DATA,
		.count = zf_le32_from(1),
		.generation = zf_le64_from(1),
		.address = zf_le64_from(data_address),
	};

	zf_log_body_set(operation(), &key, &extent, sizeof(extent));
}

static void set_data_of_a_link(void)
{
	struct zf_key key = ZF_KEY(link_ino, ZF_KEY_EXTENT, 0);
	struct zf_disk_extent extent = {
		.type = ZF_EXTENT_ZERO,
		.count = zf_le32_from(1),
		.generation = zf_le64_from(1),
	};

	zf_log_body_set(operation(), &key, &extent, sizeof(extent));
}

static void set_name_without_a_hash(void)
{
	struct zf_key key = ZF_KEY(ZF_INO_ROOT, ZF_KEY_DIR_NAME, 1);
	struct {
		struct zf_disk_dirent dirent;
		char name[4];
	} value = {
		.dirent = {.ino = zf_le64_from(file),
			   .tree = zf_le64_from(ZF_TREE_FS),
			   .cookie = zf_le64_from(50),
			   .type = 8,
			   .name_len = zf_le16_from(4)},
		.name = "name",
	};

	zf_log_body_set(operation(), &key, &value, sizeof(value));
}

static void resize_a_directory(void)
{
	zf_log_body_resize(operation(), dir, 0);
}

static void resize_what_is_not_there(void)
{
	zf_log_body_resize(operation(), 9999, 0);
}

static void resize_too_far(void)
{
	zf_log_body_resize(operation(), file, UINT64_MAX);
}

static void state_of_nothing(void)
{
	state_of(9999, S_IFREG | 0644, 0);
}

static void state_of_the_orphans(void)
{
	state_of(ZF_INO_ORPHANS, S_IFREG | 0644, 0);
}

static void state_of_a_directory(void)
{
	state_of(dir, S_IFDIR | 0755, 0);
}

static void state_of_another_type(void)
{
	state_of(file, S_IFIFO | 0644, 0);
}

static void state_of_a_directory_as_file(void)
{
	state_of(dir, S_IFREG | 0644, 0);
}

static void state_with_a_huge_size(void)
{
	state_of(file, S_IFREG | 0644, UINT64_MAX);
}

static void data_in_a_metadata_zone(void)
{
	add_data(state_of(file, S_IFREG | 0644, BLOCK), 0, BLOCK, meta_address, 0);
}

static void data_in_the_superblock(void)
{
	add_data(state_of(file, S_IFREG | 0644, BLOCK), 0, BLOCK, 0, 0);
}

static void data_beyond_the_device(void)
{
	add_data(state_of(file, S_IFREG | 0644, BLOCK), 0, BLOCK, UINT64_C(1) << 50, 0);
}

static void data_beyond_a_pointer(void)
{
	add_data(state_of(file, S_IFREG | 0644, BLOCK), 0, BLOCK, 23 << 20, 0);
}

static void data_across_zones(void)
{
	uint64_t end = (data_address / (1 << 20) + 1) * (1 << 20);

	add_data(state_of(file, S_IFREG | 0644, 2 * BLOCK), 0, 2 * BLOCK, end - BLOCK, 0);
}

static void data_with_unknown_flags(void)
{
	add_data(state_of(file, S_IFREG | 0644, BLOCK), 0, BLOCK, data_address, 0x80);
}

static void data_both_shared_and_in_place(void)
{
	add_data(state_of(file, S_IFREG | 0644, BLOCK), 0, BLOCK, data_address,
		 ZF_EXTENT_SHARED | ZF_EXTENT_OVERWRITE);
}

static void data_without_checksums(void)
{
	zf_log_body_range(state_of(file, S_IFREG | 0644, BLOCK),
			  &(struct zf_log_range){.type = ZF_LOG_RANGE_DATA,
						 .len = BLOCK,
						 .address = data_address});
}

static void more_zeroes_than_the_device_has(void)
{
	add_plain(state_of(file, S_IFREG | 0644, BLOCK), ZF_LOG_RANGE_ZERO, 0, UINT64_C(1) << 60,
		  0);
}

static void shared_zeroes(void)
{
	add_plain(state_of(file, S_IFREG | 0644, BLOCK), ZF_LOG_RANGE_ZERO, 0, BLOCK,
		  ZF_EXTENT_SHARED);
}

static void inline_bytes_in_the_middle(void)
{
	add_plain(state_of(file, S_IFREG | 0644, 8 * BLOCK), ZF_LOG_RANGE_INLINE, BLOCK, BLOCK, 0);
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *name;
		void (*make)(void);
	} cases[] = {
#define CASE(fn) {#fn, fn}
		CASE(delete_inode),
		CASE(delete_extent),
		CASE(delete_of_no_inode),
		CASE(delete_unknown_key),
		CASE(set_intent),
		CASE(set_orphan_with_a_value),
		CASE(set_inode_of_the_orphans),
		CASE(set_inode_of_another_type),
		CASE(set_inode_beyond_counting),
		CASE(set_short_inode),
		CASE(set_extent_of_a_file),
		CASE(set_data_of_a_link),
		CASE(set_name_without_a_hash),
		CASE(set_inode_twice),
		CASE(resize_a_directory),
		CASE(resize_what_is_not_there),
		CASE(resize_too_far),
		CASE(state_of_nothing),
		CASE(state_of_the_orphans),
		CASE(state_of_a_directory),
		CASE(state_of_another_type),
		CASE(state_of_a_directory_as_file),
		CASE(state_with_a_huge_size),
		CASE(data_in_a_metadata_zone),
		CASE(data_in_the_superblock),
		CASE(data_beyond_the_device),
		CASE(data_beyond_a_pointer),
		CASE(data_across_zones),
		CASE(data_with_unknown_flags),
		CASE(data_both_shared_and_in_place),
		CASE(data_without_checksums),
		CASE(more_zeroes_than_the_device_has),
		CASE(shared_zeroes),
		CASE(inline_bytes_in_the_middle),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r;

		begin(100 + i);
		cases[i].make();
		r = mount_result();
		if (r != -EUCLEAN)
			fail_msg("%s: mounting gave %d", cases[i].name, r);
		end();
	}
}

/* A number must leave room for all numbers that will ever be counted after it. */
static void numbers_near_the_end_of_counting_are_refused(void **state)
{
	(void)state;
	for (unsigned int beyond = 0; beyond < 2; beyond++) {
		begin(200 + beyond);
		rig.number = ZF_SUPER_COUNTER_MAX / 2 - 1 + beyond;
		set_inode(replay_rig_body(&rig, ZF_LOG_OPERATION), file, S_IFREG | 0600);
		assert_int_equal(mount_result(), beyond ? -EUCLEAN : 0);
		end();
	}
}

/* ---- what a tree could hold is taken ---- */

static void bytes_that_others_have_are_counted_once(void **state)
{
	struct zf_log_body *body;

	(void)state;
	begin(200);
	/* Ranges name the same bytes several times, shifted, overlapping, and of the other file. */
	body = state_of(other, S_IFREG | 0644, 64 * BLOCK);
	add_data(body, 8 * BLOCK, 4 * BLOCK, data_address, 0);
	add_data(body, 9 * BLOCK, 4 * BLOCK, data_address, 0);
	add_data(body, 10 * BLOCK, 8 * BLOCK, data_address, 0);
	add_data(body, 11 * BLOCK, 7 * BLOCK, data_address + BLOCK, ZF_EXTENT_SHARED);
	add_data(body, 30 * BLOCK, 8 * BLOCK, data_address, ZF_EXTENT_SHARED);
	/* Another body marks one of its ranges as shared. */
	body = state_of(file, S_IFREG | 0644, 8 * BLOCK);
	add_data(body, 0, 8 * BLOCK, data_address, ZF_EXTENT_SHARED);
	add_data(body, 2 * BLOCK, 4 * BLOCK, data_address, 0);
	add_data(body, 0, 7 * BLOCK, data_address + BLOCK, 0);
	replay_rig_crash(&rig, 1);
	rig.rig.errors_expected = false;
	replay_rig_mount(&rig);
	replay_rig_remount(&rig);
	data_rig_truncate(&rig.rig, file, 0);
	data_rig_truncate(&rig.rig, other, 0);
	assert_int_equal(data_rig_live_blocks(&rig.rig), 0);
	replay_rig_deinit(&rig);
}

static void data_behind_the_end_is_left_out(void **state)
{
	struct zf_log_body *body;

	(void)state;
	begin(201);
	body = state_of(other, S_IFREG | 0644, BLOCK + 1);
	add_data(body, 0, 8 * BLOCK, data_address, 0);
	add_data(body, 4 * BLOCK, 4 * BLOCK, data_address, 0);
	add_plain(state_of(file, S_IFREG | 0644, 10), ZF_LOG_RANGE_INLINE, 0, BLOCK, 0);
	replay_rig_crash(&rig, 1);
	rig.rig.errors_expected = false;
	replay_rig_mount(&rig);
	assert_int_equal(data_rig_size(&rig.rig, other), BLOCK + 1);
	data_rig_expect(&rig.rig, other, 1, 0, BLOCK + 1);
	data_rig_expect_zeroes(&rig.rig, file, 0, 10);
	replay_rig_deinit(&rig);
}

/* ---- at random ---- */

static uint64_t draw_ino(struct zf_rng *rng)
{
	const uint64_t inos[] = {file,		 other,		 dir, link_ino, ZF_INO_ROOT,
				 ZF_INO_ORPHANS, ZF_INO_INTENTS, 5000};

	return inos[zf_rng_below(rng, sizeof(inos) / sizeof(inos[0]))];
}

static uint32_t draw_mode(struct zf_rng *rng)
{
	const uint32_t modes[] = {S_IFREG | 0644, S_IFREG | 0644, S_IFREG | 0600,
				  S_IFDIR | 0755, S_IFLNK | 0777, S_IFIFO};

	return modes[zf_rng_below(rng, sizeof(modes) / sizeof(modes[0]))];
}

static void draw_edit(struct zf_rng *rng, struct zf_log_body *body)
{
	struct zf_key key =
		ZF_KEY(draw_ino(rng), (uint8_t)(1 + zf_rng_below(rng, 11)), zf_rng_below(rng, 4));
	uint8_t value[64] = {0};

	switch (zf_rng_below(rng, 4)) {
	case 0:
		set_inode(body, key.objectid, draw_mode(rng));
		break;
	case 1:
		zf_log_body_delete(body, &key);
		break;
	case 2:
		key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, draw_ino(rng));
		zf_log_body_set(body, &key, "", 0);
		break;
	default:
		zf_log_body_set(body, &key, value, zf_rng_below(rng, sizeof(value)));
	}
}

static void draw_operation(struct zf_rng *rng)
{
	struct zf_log_body *body = operation();
	unsigned int edits = (unsigned int)zf_rng_below(rng, 3);

	if (zf_rng_below(rng, 3) == 0)
		zf_log_body_resize(body, zf_rng_below(rng, 4) ? file : draw_ino(rng),
				   zf_rng_below(rng, 20 * BLOCK));
	for (unsigned int i = 0; i < edits; i++)
		draw_edit(rng, body);
}

static void draw_state(struct zf_rng *rng)
{
	uint64_t ino = zf_rng_below(rng, 8) ? (zf_rng_below(rng, 2) ? file : other) : draw_ino(rng);
	struct zf_log_body *body = state_of(ino, S_IFREG | 0644, zf_rng_below(rng, 40 * BLOCK));
	unsigned int ranges = (unsigned int)zf_rng_below(rng, 8);

	for (unsigned int i = 0; i < ranges; i++) {
		uint64_t offset = zf_rng_below(rng, 40) * BLOCK;
		uint64_t len = (1 + zf_rng_below(rng, 8)) * BLOCK;
		uint64_t address = data_address + zf_rng_below(rng, 16) * BLOCK;

		switch (zf_rng_below(rng, 5)) {
		case 0:
			add_plain(body, ZF_LOG_RANGE_HOLE, offset, len, 0);
			break;
		case 1:
			add_plain(body, ZF_LOG_RANGE_ZERO, offset, len,
				  zf_rng_below(rng, 2) ? ZF_EXTENT_UNWRITTEN : 0);
			break;
		case 2:
			add_plain(body, ZF_LOG_RANGE_INLINE, 0, BLOCK, 0);
			break;
		default:
			add_data(body, offset, len, address,
				 zf_rng_below(rng, 2) ? ZF_EXTENT_SHARED : 0);
		}
	}
}

/*
 * Bodies of file states that the checks let through leave a whole filesystem, however wild: so the
 * checker comes after those. Operations may make names that lead nowhere.
 */
static void anything_is_taken_or_refused(void **state)
{
	struct zf_rng rng;
	unsigned int taken = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 150; seed++) {
		bool states_only = seed % 3 > 0;
		int r;

		print_message("seed %lu\n", (unsigned long)seed);
		begin(1000 + seed);
		zf_rng_seed(&rng, seed);
		for (unsigned int i = 1 + (unsigned int)zf_rng_below(&rng, 6); i > 0; i--) {
			if (states_only || zf_rng_below(&rng, 2))
				draw_state(&rng);
			else
				draw_operation(&rng);
		}
		r = mount_result();
		taken += r == 0;
		if (r == 0 && states_only) {
			rig.rig.errors = 0;
			rig.rig.errors_expected = false;
			replay_rig_mount(&rig);
			replay_rig_deinit(&rig);
			continue;
		}
		end();
	}
	assert_true(taken > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(numbers_near_the_end_of_counting_are_refused),
		cmocka_unit_test(bytes_that_others_have_are_counted_once),
		cmocka_unit_test(data_behind_the_end_is_left_out),
		cmocka_unit_test(anything_is_taken_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Directories: listings during changes, names that share a hash, and very many entries. */
#include "fs/names_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "alloc/reserve.h"
#include "fs/collide.h"
#include "fs/core/item.h"
#include "sim/rng.h"

#define ROOT ZF_INO_ROOT

/* ---- listings ---- */

static void a_listing_has_every_entry_once_with_its_type(void **state)
{
	static const mode_t modes[] = {S_IFREG, S_IFDIR, S_IFLNK, S_IFCHR,
				       S_IFBLK, S_IFIFO, S_IFSOCK};
	struct names_rig *rig = *state;
	struct zf_dirent entries[10];
	char name[8];

	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "%d", i);
		rig_make(rig, ROOT, name, modes[i] | 0700);
	}
	assert_int_equal(zf_fs_readdir(rig->fs, &rig->ctx, ROOT, 0, entries, 10), 9);
	assert_string_equal(entries[0].name, ".");
	assert_int_equal(entries[0].cookie, 1);
	assert_string_equal(entries[1].name, "..");
	assert_int_equal(entries[1].cookie, 2);
	for (int i = 0; i < 7; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_string_equal(entries[i + 2].name, name);
		assert_int_equal(entries[i + 2].name_len, 1);
		assert_int_equal(entries[i + 2].type, modes[i] >> 12);
		assert_int_equal(entries[i + 2].ino, rig_find(rig, ROOT, name));
	}
	/* Lists one entry at a time, each from the position where the last one ended. */
	for (int i = 0; i < 9; i++) {
		struct zf_dirent one;

		assert_int_equal(zf_fs_readdir(rig->fs, &rig->ctx, ROOT,
					       i ? entries[i - 1].cookie : 0, &one, 1),
				 1);
		assert_string_equal(one.name, entries[i].name);
	}
	assert_int_equal(zf_fs_readdir(rig->fs, &rig->ctx, ROOT, entries[8].cookie, entries, 10),
			 0);
	assert_int_equal(zf_fs_readdir(rig->fs, &rig->ctx, ROOT, UINT64_MAX, entries, 10), 0);
}

#define STAY 300

struct listing {
	unsigned int seen[STAY];
	unsigned int others;
};

static void note_entry(struct listing *listing, const struct zf_dirent *entry)
{
	if (strncmp(entry->name, "stay", 4) == 0)
		listing->seen[atoi(entry->name + 4)]++;
	else
		listing->others++;
}

/* Makes, removes and renames temporary names. Replaces permanent names by other inodes. */
static void disturb(struct names_rig *rig, struct zf_rng *rng, uint64_t dir)
{
	char name[32], other[32];
	struct zf_attr attr;

	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "go%d", (int)zf_rng_below(rng, 50));
		snprintf(other, sizeof(other), "go%d", (int)zf_rng_below(rng, 50));
		switch (zf_rng_below(rng, 4)) {
		case 0:
			if (zf_fs_make(rig->fs, &rig->ctx, dir, name, S_IFREG, 0, NULL, &attr) == 0)
				zf_fs_forget(rig->fs, attr.ino, 1);
			break;
		case 1:
			zf_fs_unlink(rig->fs, &rig->ctx, dir, name);
			break;
		case 2:
			zf_fs_rename(rig->fs, &rig->ctx, dir, name, dir, other, 0, NULL);
			break;
		case 3:
			snprintf(other, sizeof(other), "stay%d", (int)zf_rng_below(rng, STAY));
			zf_fs_rename(rig->fs, &rig->ctx, dir, name, dir, other,
				     zf_rng_chance(rng, 50) ? RENAME_EXCHANGE : 0, NULL);
			break;
		}
	}
}

static void what_stays_is_listed_once_whatever_comes_and_goes(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	struct zf_dirent entries[7];
	struct zf_rng rng;
	char name[32];

	zf_rng_seed(&rng, 1);
	for (int i = 0; i < STAY; i++) {
		snprintf(name, sizeof(name), "stay%d", i);
		rig_make(rig, dir, name, S_IFREG | 0644);
	}
	for (int round = 0; round < 10; round++) {
		struct listing listing = {.others = 0};
		uint64_t cookie = 0;
		int count;

		while ((count = zf_fs_readdir(rig->fs, &rig->ctx, dir, cookie, entries,
					      1 + (unsigned int)zf_rng_below(&rng, 7))) > 0) {
			for (int i = 0; i < count; i++)
				note_entry(&listing, &entries[i]);
			cookie = entries[count - 1].cookie;
			disturb(rig, &rng, dir);
			if (zf_rng_chance(&rng, 3))
				names_rig_remount(rig);
		}
		assert_int_equal(count, 0);
		for (int i = 0; i < STAY; i++)
			assert_int_equal(listing.seen[i], 1);
	}
}

/* ---- names that share a hash ---- */

/* Three names of one hash: `a` is given, b and c are made for it. */
struct trio {
	char a[32], b[32], c[32];
};

static struct trio find_trio(struct names_rig *rig, unsigned int n)
{
	struct trio trio;
	uint64_t seed = rig->fs->super.dir_hash_seed;

	for (unsigned int tries = n * 1000;; tries++) {
		snprintf(trio.a, sizeof(trio.a), "some name %u", tries);
		if (!collide_8(seed, trio.a, trio.b) || !collide_16(seed, trio.a, trio.c))
			continue;
		assert_int_equal(zf_item_hash_name(seed, trio.b, 8),
				 zf_item_hash_name(seed, trio.a, strlen(trio.a)));
		assert_int_equal(zf_item_hash_name(seed, trio.c, 16),
				 zf_item_hash_name(seed, trio.a, strlen(trio.a)));
		return trio;
	}
}

static void names_of_one_hash_live_side_by_side(void **state)
{
	struct names_rig *rig = *state;
	struct trio trio = find_trio(rig, 1);
	uint64_t a = rig_make(rig, ROOT, trio.a, S_IFREG | 0644);
	uint64_t b = rig_make_forgotten(rig, ROOT, trio.b, S_IFREG | 0644);
	uint64_t c;

	assert_int_equal(rig_find(rig, ROOT, trio.c), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, trio.c), -ENOENT);
	c = rig_make_forgotten(rig, ROOT, trio.c, S_IFDIR | 0755);
	names_rig_remount(rig);
	assert_int_equal(rig_find(rig, ROOT, trio.a), a);
	assert_int_equal(rig_find(rig, ROOT, trio.b), b);
	assert_int_equal(rig_find(rig, ROOT, trio.c), c);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, trio.b), 0);
	assert_int_equal(rig_find(rig, ROOT, trio.a), a);
	assert_int_equal(rig_find(rig, ROOT, trio.b), 0);
	assert_int_equal(rig_find(rig, ROOT, trio.c), c);
	assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, ROOT, trio.c), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, trio.a), 0);
	assert_int_equal(rig_attr(rig, ROOT).size, 0);
	assert_int_equal(rig_count_items(rig, ROOT), 2);
}

static void renames_within_one_hash_lose_nothing(void **state)
{
	struct names_rig *rig = *state;
	struct trio trio = find_trio(rig, 2);
	uint64_t a = rig_make(rig, ROOT, trio.a, S_IFREG | 0644);
	uint64_t b;

	/* Renames to a free name of the same hash, and back. */
	assert_int_equal(zf_fs_rename(rig->fs, &rig->ctx, ROOT, trio.a, ROOT, trio.b, 0, NULL), 0);
	assert_int_equal(rig_find(rig, ROOT, trio.a), 0);
	assert_int_equal(rig_find(rig, ROOT, trio.b), a);
	assert_int_equal(zf_fs_rename(rig->fs, &rig->ctx, ROOT, trio.b, ROOT, trio.a, 0, NULL), 0);
	assert_int_equal(rig_find(rig, ROOT, trio.a), a);

	b = rig_make_forgotten(rig, ROOT, trio.b, S_IFDIR | 0755);
	rig_make_forgotten(rig, ROOT, trio.c, S_IFREG | 0644);
	assert_int_equal(
		zf_fs_rename(rig->fs, &rig->ctx, ROOT, trio.a, ROOT, trio.b, RENAME_EXCHANGE, NULL),
		0);
	assert_int_equal(rig_find(rig, ROOT, trio.a), b);
	assert_int_equal(rig_find(rig, ROOT, trio.b), a);
	assert_int_equal(zf_fs_rename(rig->fs, &rig->ctx, ROOT, trio.b, ROOT, trio.c, 0, NULL), 0);
	assert_int_equal(rig_find(rig, ROOT, trio.b), 0);
	assert_int_equal(rig_find(rig, ROOT, trio.c), a);
	names_rig_remount(rig);
	assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, ROOT, trio.a), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, trio.c), 0);
	assert_int_equal(rig_count_items(rig, ROOT), 2);
	assert_int_equal(rig_count_items(rig, a), 0);
}

/* Fills the hash's item completely, with names that really have another hash. */
static void fill_chain(struct names_rig *rig, const char *name)
{
	struct zf_key key =
		ZF_KEY(ROOT, ZF_KEY_DIR_NAME,
		       zf_item_hash_name(rig->fs->super.dir_hash_seed, name, strlen(name)));
	struct zf_disk_dirent dirent = {
		.ino = zf_le64_from(ZF_INO_FIRST),
		.tree = zf_le64_from(ZF_TREE_FS),
		.cookie = zf_le64_from(3),
		.type = 8,
		.name_len = zf_le16_from(200),
	};
	uint8_t chain[4 * (sizeof(dirent) + 200)] = {0};
	struct zf_trans trans;

	for (size_t i = 0; i < 4; i++) {
		memcpy(chain + i * (sizeof(dirent) + 200), &dirent, sizeof(dirent));
		memset(chain + i * (sizeof(dirent) + 200) + sizeof(dirent), 'a' + (int)i, 200);
	}
	assert_int_equal(zf_trans_join(rig->fs->txn, ZF_RESERVE_NORMAL, 1, true, &trans), 0);
	assert_int_equal(
		zf_tree_set(rig->fs->forest, trans.writer, ZF_TREE_FS, &key, chain, sizeof(chain)),
		0);
	zf_trans_leave(&trans);
}

static void entries_under_a_hash_that_is_not_theirs_are_refused(void **state)
{
	struct names_rig *rig = *state;
	struct zf_attr attr;

	fill_chain(rig, "victim");
	rig->errors_expected = true;
	assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ROOT, "victim", &attr), -EUCLEAN);
	assert_int_equal(zf_fs_make(rig->fs, &rig->ctx, ROOT, "victim", S_IFREG, 0, NULL, &attr),
			 -EUCLEAN);
	assert_non_null(strstr(rig->message, "corrupt entry of directory at 1: hash has"));
	assert_int_equal(zf_txn_error(rig->fs->txn), 0);
}

/* ---- very many ---- */

/* The processor time of this process, so that other load on the machine does not count. */
static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#define MANY 200000

/* Makes, finds, lists and removes; returns how long each took for one entry, in microseconds. */
static void two_hundred_thousand_entries_cost_no_more_each_than_a_few(void **state)
{
	struct names_rig rig;
	struct names_rig_options options = {.zone_count = 128};
	static struct zf_dirent entries[256];
	double began, first = 0, made, found, listed, removed;
	uint64_t dir, cookie = 0;
	unsigned int total = 0;
	char name[64];
	int count;

	names_rig_init(&rig, &options);
	dir = rig_make(&rig, ROOT, "dir", S_IFDIR | 0755);
	began = seconds();
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "a file with number %d", i);
		rig_make_forgotten(&rig, dir, name, S_IFREG | 0644);
		if (i == MANY / 20)
			first = (seconds() - began) / (MANY / 20);
	}
	made = (seconds() - began) / MANY;
	names_rig_remount(&rig);
	began = seconds();
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "a file with number %d", (int)((i * 7919l) % MANY));
		assert_int_not_equal(rig_find(&rig, dir, name), 0);
	}
	found = (seconds() - began) / MANY;
	began = seconds();
	while ((count = zf_fs_readdir(rig.fs, &rig.ctx, dir, cookie, entries, 256)) > 0) {
		total += (unsigned int)count;
		cookie = entries[count - 1].cookie;
	}
	listed = (seconds() - began) / MANY;
	assert_int_equal(total, MANY + 2);
	began = seconds();
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "a file with number %d", i);
		assert_int_equal(zf_fs_unlink(rig.fs, &rig.ctx, dir, name), 0);
	}
	removed = (seconds() - began) / MANY;
	print_message("µs an entry: make %.1f (the first ones %.1f), find %.1f, list %.2f, remove "
		      "%.1f\n",
		      made * 1e6, first * 1e6, found * 1e6, listed * 1e6, removed * 1e6);
	/* No time grows with the size of the directory. */
	assert_true(made < 10 * first + 1e-4);
	assert_int_equal(rig_attr(&rig, dir).size, 0);
	assert_int_equal(zf_fs_rmdir(rig.fs, &rig.ctx, ROOT, "dir"), 0);
	assert_int_equal(rig_inode_count(&rig), 1);
	names_rig_deinit(&rig);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, names_rig_setup, names_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_listing_has_every_entry_once_with_its_type),
		TEST(what_stays_is_listed_once_whatever_comes_and_goes),
		TEST(names_of_one_hash_live_side_by_side),
		TEST(renames_within_one_hash_lose_nothing),
		TEST(entries_under_a_hash_that_is_not_theirs_are_refused),
		cmocka_unit_test(two_hundred_thousand_entries_cost_no_more_each_than_a_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

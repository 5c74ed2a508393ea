/* SPDX-License-Identifier: MIT */
/*
 * Readers, writers and a committing thread at once, with a cache that is too small. The test is for
 * the thread sanitizer; it also checks that no reader gets a false error or a wrong value.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"
#include "sim/rng.h"

#define WRITERS 3
#define READERS 3
#define COMMITS 300
#define KEYS	1500 /* of each writer */
#define KEEP	50   /* every KEEPth key is never deleted: readers must always find it */

struct value {
	uint64_t key, version, sum; /* sum = key + version: not torn */
	uint8_t padding[60];
};

static struct rig rig;
static struct zf_rwlock join; /* writers read-lock it for one operation */
static atomic_bool stop;
static atomic_uint failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: " #condition "\n", __FILE__, __LINE__);            \
			atomic_fetch_add(&failures, 1);                                            \
			atomic_store(&stop, true);                                                 \
		}                                                                                  \
	} while (0)

static struct zf_key key_of(unsigned int writer, uint64_t n)
{
	return ZF_KEY(writer, 1, n);
}

static enum zf_tree_id tree_of(unsigned int writer)
{
	return writer % 2 ? ZF_TREE_SUMMARY : ZF_TREE_FS;
}

static int set(unsigned int writer, uint64_t n, uint64_t version)
{
	struct zf_key key = key_of(writer, n);
	struct value value = {.key = n, .version = version, .sum = n + version};
	/* In one of the trees all values have the same length, so its leaves are packed. */
	size_t len = tree_of(writer) == ZF_TREE_FS
			     ? offsetof(struct value, padding)
			     : sizeof(value) - (version * 7) % sizeof(value.padding);
	int r;

	zf_rwlock_rdlock(&join);
	r = zf_tree_set(rig.forest, rig_writer(&rig), tree_of(writer), &key, &value, len);
	zf_rwlock_unlock(&join);
	return r;
}

static int delete_some(unsigned int writer, uint64_t n, struct zf_rng *rng)
{
	struct zf_key from = key_of(writer, n);
	struct zf_key to = key_of(writer, n + KEEP - 1 - n % KEEP);
	int r;

	if (n % KEEP == 0)
		return 0;
	zf_rwlock_rdlock(&join);
	if (zf_rng_chance(rng, 95))
		r = zf_tree_delete(rig.forest, rig_writer(&rig), tree_of(writer), &from);
	else
		r = zf_tree_delete_range(rig.forest, rig_writer(&rig), tree_of(writer), &from, &to,
					 100);
	zf_rwlock_unlock(&join);
	return r == -ENOENT ? 0 : r;
}

static void *write_thread(void *arg)
{
	unsigned int writer = (unsigned int)(uintptr_t)arg;
	uint64_t version = 0;
	struct zf_rng rng;

	zf_rng_seed(&rng, writer);
	while (!atomic_load(&stop)) {
		uint64_t n = zf_rng_below(&rng, KEYS);

		if (zf_rng_chance(&rng, 60))
			CHECK(set(writer, n, ++version) == 0);
		else
			CHECK(delete_some(writer, n, &rng) == 0);
	}
	return NULL;
}

static bool is_sound(const struct zf_key *key, const struct value *value)
{
	return value->key == key->offset && value->sum == value->key + value->version;
}

struct seen {
	struct zf_key last;
	unsigned int kept;
};

static int scan_item(void *arg, const struct zf_key *key, const void *bytes, size_t len)
{
	struct seen *seen = arg;
	struct value value = {0};

	memcpy(&value, bytes, len);
	CHECK(is_sound(key, &value));
	CHECK(zf_key_cmp(&seen->last, key) < 0);
	seen->last = *key;
	seen->kept += key->offset % KEEP == 0;
	return 0;
}

static void *read_thread(void *arg)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, 100 + (uintptr_t)arg);
	while (!atomic_load(&stop)) {
		unsigned int writer = (unsigned int)zf_rng_below(&rng, WRITERS);
		uint64_t n = zf_rng_below(&rng, KEYS / KEEP) * KEEP;
		struct zf_key key = key_of(writer, n), to = key_of(writer, KEYS);
		struct value value;
		struct seen seen = {0};
		int r;

		r = zf_tree_lookup(rig.forest, tree_of(writer), &key, &value, sizeof(value), NULL);
		CHECK(r == 0 && is_sound(&key, &value));
		key.offset += zf_rng_below(&rng, KEEP);
		r = zf_tree_lookup_le(rig.forest, tree_of(writer), &key, &value, sizeof(value),
				      NULL);
		CHECK(r == 0 && key.offset >= n && is_sound(&key, &value));
		if (!zf_rng_chance(&rng, 5))
			continue;
		key = key_of(writer, 0);
		r = zf_tree_scan(rig.forest, tree_of(writer), &key, &to, scan_item, &seen);
		CHECK(r == 0 && seen.kept == KEYS / KEEP);
	}
	return NULL;
}

static void commit(void)
{
	zf_rwlock_wrlock(&join);
	rig_freeze(&rig);
	zf_rwlock_unlock(&join);
	rig_seal(&rig, ZF_TREE_FS);
	rig_seal(&rig, ZF_TREE_SUMMARY);
	rig_seal_root(&rig);
	rig_write(&rig);
	rig_clean(&rig);
}

static int count_packed(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	unsigned int *packed = arg;

	assert_int_equal(error, 0);
	*packed += zf_node_is_packed(node);
	return 0;
}

static void readers_writers_and_commits_do_not_disturb_each_other(void **state)
{
	const struct rig_options options = {.node_size = 4096,
					    .copies = 1,
					    .zone_count = 600,
					    .zone_blocks = 128,
					    .cache_bytes = 24 * 4096};
	pthread_t threads[WRITERS + READERS];
	unsigned int packed = 0;

	rig_init(&rig, &options);
	rig.verbose = true;
	zf_rwlock_init(&join, ZF_RANK_JOIN);
	for (unsigned int w = 0; w < WRITERS; w++) {
		for (uint64_t n = 0; n < KEYS; n += KEEP)
			assert_int_equal(set(w, n, 0), 0);
	}
	for (uintptr_t i = 0; i < WRITERS + READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						i < WRITERS ? write_thread : read_thread,
						(void *)i),
				 0);
	for (unsigned int i = 0; i < COMMITS && !atomic_load(&stop); i++)
		commit();
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < WRITERS + READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&failures), 0);
	assert_int_equal(rig.messages, 0);
	rig_check(&rig);
	commit();
	rig_reopen(&rig);
	rig_check(&rig);
	assert_int_equal(zf_tree_walk(rig.forest, ZF_TREE_FS, count_packed, &packed), 0);
	assert_true(packed > 0);
	rig_deinit(&rig);
	zf_rwlock_deinit(&join);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_writers_and_commits_do_not_disturb_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

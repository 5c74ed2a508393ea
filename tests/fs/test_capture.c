/* SPDX-License-Identifier: MIT */
/*
 * The log has every change of names and attributes. The test does random operations, and applies
 * their log records to the items that the tree had before them. The result must equal the tree,
 * except for what is not logged as an operation: content, access times, and the deletion of inodes
 * without a name.
 *
 * ZF_SEED repeats one run; ZF_OPS sets its length.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <cmocka.h>

#include "base/bits.h"
#include "fs/data/durable.h"
#include "fs/mount/format.h"
#include "fs/core/inode.h"
#include "fs/item_map.h"
#include "io/memory.h"
#include "log/read.h"
#include "superblock/ring.h"
#include "support/workload.h"

/* Only the test makes commits. */
static const struct workload_profile no_content = {
	.weights = {[OP_LOOKUP] = 40,
		    [OP_FORGET] = 40,
		    [OP_MAKE] = 160,
		    [OP_TMPFILE] = 40,
		    [OP_LINK] = 70,
		    [OP_UNLINK] = 80,
		    [OP_RMDIR] = 40,
		    [OP_RENAME] = 200,
		    [OP_READLINK] = 5,
		    [OP_READDIR] = 10,
		    [OP_SETATTR] = 100,
		    [OP_SETFLAGS] = 40,
		    [OP_SETXATTR] = 60,
		    [OP_REMOVEXATTR] = 30,
		    [OP_STEP] = 5},
	.size_max = 64 << 10,
	.files_max = 60,
	.dirs_max = 20,
	.big_values = true,
};

struct run {
	uint64_t seed, done, edits, checks;
	struct zf_rng rng;
	struct workload workload;
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_fs *fs;
	struct item_map before; /* when the last commit was made */
	uint64_t commits;
};

static const struct zf_report report = {zf_report_stderr, (void *)(uintptr_t)"capture"};

static void expect(const struct run *run, bool ok, const char *what)
{
	if (!ok)
		fail_msg("%s after %" PRIu64 " operations; ZF_SEED=%" PRIu64, what, run->done,
			 run->seed);
}

/* ---- the tree ---- */

static int take_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	item_map_set(arg, key, value, len);
	return 0;
}

static void take_tree(struct run *run, struct item_map *map)
{
	const struct zf_key from = ZF_KEY_MIN, to = ZF_KEY_MAX;

	item_map_deinit(map);
	expect(run, zf_tree_scan(run->fs->forest, ZF_TREE_FS, &from, &to, take_item, map) == 0,
	       "no scan");
}

static uint64_t count_commits(const struct run *run)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(run->fs->txn, &stats);
	return stats.commits;
}

static void commit(struct run *run)
{
	expect(run, zf_txn_commit(run->fs->txn, true) == 0, "a commit failed");
	take_tree(run, &run->before);
	run->commits = count_commits(run);
}

/* ---- what the log says ---- */

static void apply_body(struct run *run, const struct zf_log_body_view *body, struct item_map *map)
{
	struct zf_log_edit edit;

	expect(run, body->type == ZF_LOG_OPERATION, "a body is no operation");
	for (size_t at = 0; zf_log_next_edit(body, &at, &edit); run->edits++) {
		if (edit.kind == ZF_LOG_SET)
			item_map_set(map, &edit.key, edit.value, edit.len);
		else if (edit.kind == ZF_LOG_DELETE && !item_map_delete(map, &edit.key)) {
			print_error("item (%" PRIu64 " %u %" PRIx64 ")\n", edit.key.objectid,
				    edit.key.type, edit.key.offset);
			expect(run, false, "no item to delete");
		}
	}
}

static void apply_log(struct run *run, struct item_map *map)
{
	const struct zf_super *super;
	struct zf_log_found found;
	struct zf_ring *ring;
	unsigned int stepped_over;

	expect(run, zf_ring_open(run->dev, &report, &ring) == 0, "no ring");
	expect(run, zf_ring_newest(ring, &super, &stepped_over) == 0, "no superblock");
	expect(run, zf_log_read(run->dev, super, &report, &found) == 0, "no log");
	for (size_t i = 0; i < found.body_count; i++) {
		expect(run, found.bodies[i].number == super->op_number + 1 + i, "a number lacks");
		apply_body(run, &found.bodies[i], map);
	}
	zf_log_found_free(&found);
	zf_ring_close(ring);
}

/* ---- comparing ---- */

static const struct zf_disk_inode *inode_of(const struct item_map *map, uint64_t ino)
{
	const struct zf_key key = ZF_KEY(ino, ZF_KEY_INODE, 0);
	const struct item *item = item_map_find(map, &key);

	return item ? (const struct zf_disk_inode *)item->value : NULL;
}

/* An inode without a name: it is deleted at some later time. */
static bool is_doomed(const struct item_map *map, uint64_t ino)
{
	const struct zf_disk_inode *inode = inode_of(map, ino);

	return inode && zf_le32_get(inode->nlink) == 0;
}

/* Whether operations log changes of the item, which is in `map`. */
static bool counts(const struct item_map *map, const struct zf_key *key)
{
	const struct zf_disk_inode *inode = inode_of(map, key->objectid);

	if (key->type == ZF_KEY_INTENT || is_doomed(map, key->objectid))
		return false;
	if (key->type == ZF_KEY_ORPHAN)
		return false;
	return key->type != ZF_KEY_EXTENT || (inode && S_ISLNK(zf_le32_get(inode->mode)));
}

static bool is_same_inode(const struct item *a, const struct item *b)
{
	struct zf_disk_inode x, y;

	memcpy(&x, a->value, sizeof(x));
	memcpy(&y, b->value, sizeof(y));
	x.atime = y.atime;
	x.change = y.change; /* with which the access time was stored, too */
	if (S_ISREG(zf_le32_get(x.mode))) {
		x.size = y.size;
		x.bytes = y.bytes;
	}
	return memcmp(&x, &y, sizeof(x)) == 0;
}

static bool is_same(const struct item *a, const struct item *b)
{
	if (a->len != b->len)
		return false;
	if (a->key.type == ZF_KEY_INODE)
		return is_same_inode(a, b);
	return memcmp(a->value, b->value, a->len) == 0;
}

/* Compares every item of `map` that counts with the item in `other`. */
static void compare(struct run *run, const struct item_map *map, const struct item_map *other,
		    const char *what)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct item *item = &map->at[i], *twin = item_map_find(other, &item->key);

		if (!counts(map, &item->key))
			continue;
		if (!twin || !is_same(item, twin))
			print_error("item (%" PRIu64 " %u %" PRIx64 "): %s\n", item->key.objectid,
				    item->key.type, item->key.offset, twin ? "differs" : "lacks");
		expect(run, twin && is_same(item, twin), what);
	}
}

/* An orphan's entry says that the orphan is to be deleted, and exists as long as the orphan. */
static void compare_orphans(struct run *run, const struct item_map *model,
			    const struct item_map *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct zf_key *key = &tree->at[i].key;

		if (key->type == ZF_KEY_ORPHAN || is_doomed(tree, key->objectid))
			expect(run, item_map_find(model, key) || key->type == ZF_KEY_EXTENT,
			       "the log does not know of an orphan");
		if (key->type == ZF_KEY_ORPHAN)
			expect(run, is_doomed(model, key->offset), "an orphan has a name");
	}
}

static void check(struct run *run)
{
	struct item_map model = {0}, tree = {0};

	expect(run, zf_durable_names(run->fs) == 0, "fsync failed");
	if (count_commits(run) != run->commits) {
		/* Something else has made a commit, at an unknown time. */
		commit(run);
		return;
	}
	for (size_t i = 0; i < run->before.count; i++)
		item_map_set(&model, &run->before.at[i].key, run->before.at[i].value,
			     run->before.at[i].len);
	apply_log(run, &model);
	take_tree(run, &tree);
	compare(run, &tree, &model, "the log lacks what the tree has");
	compare(run, &model, &tree, "the log has what the tree lacks");
	compare_orphans(run, &model, &tree);
	run->checks++;
	item_map_deinit(&model);
	item_map_deinit(&tree);
}

/* ---- the run ---- */

static void begin(struct run *run)
{
	const struct zf_memory_options memory_options = {.seed = run->seed | 1};
	const struct zf_mount_options options = {
		.cache_bytes = 256 << 10,
		.now_ns = workload_now,
		.now_arg = &run->workload,
	};
	const struct zf_geometry geometry = {
		.zone_size = 1 << 20,
		.zone_capacity = 1 << 20,
		.zone_count = 100,
		.append_limit = 256 << 10,
		.volatile_cache = true,
	};
	const struct zf_format_options format = {
		.fsid = {1},
		.node_size = 4096,
		.now_ns = WORKLOAD_EPOCH_NS,
		.dir_hash_seed = run->seed,
	};

	zf_rng_seed(&run->rng, run->seed);
	workload_init(&run->workload, zf_rng_next(&run->rng), &no_content);
	expect(run, zf_memory_new(&geometry, &run->memory) == 0, "no memory");
	expect(run, zf_memory_open(run->memory, &memory_options, &report, &run->dev) == 0,
	       "no device");
	expect(run, zf_fs_format(run->dev, &format, &report) == 0, "no format");
	expect(run, zf_fs_mount(run->dev, &options, &report, &run->fs) == 0, "no mount");
	workload_remounted(&run->workload, run->fs);
	commit(run);
}

static void end(struct run *run)
{
	check(run);
	print_message("seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " edits in %" PRIu64
		      " logs\n",
		      run->seed, run->done, run->edits, run->checks);
	expect(run, run->checks > 0 && run->edits > 0, "nothing was compared");
	expect(run, zf_fs_unmount(run->fs) == 0, "no unmount");
	zf_dev_close(run->dev);
	zf_memory_free(run->memory);
	workload_deinit(&run->workload);
	item_map_deinit(&run->before);
}

static void do_operation(struct run *run)
{
	struct zf_op op;

	workload_draw(&run->workload, &op);
	workload_run(&run->workload, &op);
	expect(run, workload_check(&run->workload, &op), "an answer is wrong");
	run->done++;
}

static void run_one(uint64_t seed, uint64_t ops)
{
	struct run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	run->seed = seed;
	begin(run);
	while (run->done < ops) {
		do_operation(run);
		if (zf_rng_chance(&run->rng, 4))
			check(run);
		if (zf_rng_chance(&run->rng, 1))
			commit(run);
	}
	end(run);
	free(run);
}

static void the_log_has_every_change_of_names_and_attributes(void **state)
{
	const char *seed = getenv("ZF_SEED"), *ops = getenv("ZF_OPS");
	uint64_t count = ops ? strtoull(ops, NULL, 0) : 4000;

	(void)state;
	if (seed) {
		run_one(strtoull(seed, NULL, 0), count);
		return;
	}
	for (uint64_t i = 0; i < 3; i++)
		run_one((uint64_t)time(NULL) + i, count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_log_has_every_change_of_names_and_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

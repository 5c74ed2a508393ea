/* SPDX-License-Identifier: MIT */
/*
 * P7, the pointers to nodes: each field of the superblock's root pointer, of every item of the root
 * tree, and of children is set to hostile values, one at a time, with all checksums made right
 * afterwards. Then the device is mounted and written to, grown and checked. A mount may refuse the
 * device with a message; a device that it accepts must be able to commit.
 *
 * The values at limits come first, then random ones: `--rounds N` is their number for each field,
 * `--seed N` repeats a run.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "sample.h"
#include "sim/rng.h"
#include "txn/root_format.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define ZONE (UINT64_C(4) << 20) /* zone size of the sample; its capacity is 3 MiB */

static const struct zf_ctx root = {.may_wait = true};
static struct zf_rng rng;
static uint64_t seed;
static unsigned int rounds = 1;
static unsigned int errors; /* reported by a mount */

struct hostile {
	const char *what;
	size_t offset, size; /* in struct zf_disk_root, or in struct zf_disk_child */
};

static const struct hostile root_fields[] = {
	{"address[0]", offsetof(struct zf_disk_root, ptr.address), 8},
	{"address[1]", offsetof(struct zf_disk_root, ptr.address) + 8, 8},
	{"generation", offsetof(struct zf_disk_root, ptr.generation), 8},
	{"csum", offsetof(struct zf_disk_root, ptr.csum), 8},
	{"level", offsetof(struct zf_disk_root, level), 1},
	{"reserved", offsetof(struct zf_disk_root, reserved), 8},
	{"reserved at the end", sizeof(struct zf_disk_root) - 1, 1},
};

static const struct hostile child_fields[] = {
	{"key.objectid", offsetof(struct zf_disk_child, key.objectid), 8},
	{"key.type", offsetof(struct zf_disk_child, key.type), 1},
	{"key.offset", offsetof(struct zf_disk_child, key.offset), 8},
	{"reserved", offsetof(struct zf_disk_child, reserved), 7},
	{"address[0]", offsetof(struct zf_disk_child, ptr.address), 8},
	{"address[1]", offsetof(struct zf_disk_child, ptr.address) + 8, 8},
	{"generation", offsetof(struct zf_disk_child, ptr.generation), 8},
	{"csum", offsetof(struct zf_disk_child, ptr.csum), 8},
};

/* ---- values ---- */

/* Values at the limits of some field; for the other fields they are arbitrary values. */
static uint64_t border(const struct sample *sample, unsigned int i)
{
	const struct zf_super *super = &sample->forge.super;
	const uint64_t values[] = {
		0,
		1,
		2,
		7,
		8,
		255,
		4095,
		ZF_BLOCK_SIZE,
		ZONE,
		2 * ZONE,
		2 * ZONE + 1,
		3 * ZONE - ZF_BLOCK_SIZE,
		2 * ZONE + (3u << 20) - ZF_BLOCK_SIZE,
		super->zone_count * ZONE - ZF_BLOCK_SIZE,
		super->zone_count * ZONE,
		super->generation,
		super->generation + 1,
		super->generation + 2,
		super->generation + 3,
		super->root.address[0],
		super->root.csum,
		(uint64_t)super->meta_zone[0] * ZONE + super->meta_pointer[0],
		INT64_MAX,
		UINT64_MAX - 4095,
		UINT64_MAX,
	};

	return i < sizeof(values) / sizeof(values[0]) ? values[i]
						      : zf_rng_next(&rng) >> zf_rng_below(&rng, 64);
}

#define BORDERS 25u

/* ---- use ---- */

static void count_errors(void *arg, enum zf_report_level level, const char *message)
{
	(void)arg;
	(void)message;
	errors += level == ZF_REPORT_ERROR;
}

static const struct zf_report counting = {.fn = count_errors};

static void change(struct zf_fs *fs)
{
	static uint8_t bytes[20000];
	struct zf_attr attr;

	if (zf_fs_make(fs, &root, ZF_INO_ROOT, "new", S_IFREG | 0644, 0, NULL, &attr) == 0) {
		(void)zf_fs_write(fs, &root, attr.ino, 0, bytes, sizeof(bytes), 0);
		(void)zf_fs_fsync(fs, &root, attr.ino, false);
		zf_fs_forget(fs, attr.ino, 1);
	}
	(void)zf_fs_unlink(fs, &root, ZF_INO_ROOT, "other");
	(void)zf_fs_syncfs(fs, &root);
	(void)zf_fs_grow(fs, 40);
	for (unsigned int i = 0; i < 3; i++)
		(void)zf_fs_step(fs);
}

static void mount_and_change(struct sample *sample)
{
	const struct zf_mount_options options = {0};
	const struct zf_memory_options memory = {0};
	struct zf_fs *fs;
	struct zf_dev *dev;

	assert_int_equal(zf_memory_open(sample->memory, &memory, NULL, &dev), 0);
	errors = 0;
	if (zf_fs_mount(dev, &options, &counting, &fs) == 0) {
		change(fs);
		(void)zf_fs_unmount(fs);
	} else {
		assert_int_not_equal(errors, 0);
	}
	zf_dev_close(dev);
}

static void use(struct sample *sample)
{
	struct zf_check_counts counts;

	sample_check(sample, false, &counts);
	mount_and_change(sample);
	forge_open(&sample->forge, sample->memory);
	sample_check(sample, true, &counts);
}

/* ---- the three places ---- */

static void put(uint8_t *bytes, const struct hostile *field, uint64_t value)
{
	for (size_t i = 0; i < field->size; i++)
		bytes[field->offset + i] = (uint8_t)(value >> (8 * i));
}

static void in_a_root_item(struct sample *sample, const struct hostile *field, uint64_t value,
			   enum zf_tree_id tree)
{
	struct zf_key key = ZF_KEY(tree, ZF_KEY_ROOT, 0);
	struct zf_disk_root disk;

	forge_get(&sample->forge, ZF_TREE_ROOT, key, &disk, sizeof(disk));
	put((uint8_t *)&disk, field, value);
	forge_set(&sample->forge, ZF_TREE_ROOT, key, &disk, sizeof(disk));
}

static void in_the_superblock(struct sample *sample, const struct hostile *field, uint64_t value)
{
	struct zf_super *super = &sample->forge.super;
	struct zf_disk_root disk = {.level = super->root_level};

	zf_node_ptr_encode(&super->root, &disk.ptr);
	put((uint8_t *)&disk, field, value);
	zf_node_ptr_decode(&disk.ptr, &super->root);
	super->root_level = disk.level;
	forge_write_super(&sample->forge);
}

/* Changes the last child of the fs tree's root; forge_seal() finds the root by the first one. */
static void in_a_child(struct sample *sample, const struct hostile *field, uint64_t value)
{
	uint64_t address[ZF_TREE_LEVEL_MAX];
	unsigned int top = forge_path(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, address);
	uint8_t *node = forge_bytes(&sample->forge, address[top]);
	struct zf_disk_child *child = (void *)(node + sizeof(struct zf_disk_node_header));

	assert_true(top > 0 && zf_node_count(node) > 1);
	put((uint8_t *)&child[zf_node_count(node) - 1], field, value);
	forge_seal(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, top);
}

/* ---- the claims ---- */

/* The nodes are small, so that the root of the fs tree has children. */
static void make(struct sample *sample)
{
	sample_make(sample, &(struct sample_options){.node_size = 4096,
						     .copies = zf_rng_chance(&rng, 20) ? 2 : 1});
}

static void try_root_item(const struct hostile *field, unsigned int i, enum zf_tree_id tree)
{
	struct sample sample;

	make(&sample);
	in_a_root_item(&sample, field, border(&sample, i), tree);
	use(&sample);
	sample_free(&sample);
}

static void a_wrong_root_item_is_no_assertion(void **state)
{
	(void)state;
	for (size_t f = 0; f < sizeof(root_fields) / sizeof(root_fields[0]); f++) {
		/* Zero is special in most fields; each other value is tried in one tree, drawn. */
		for (enum zf_tree_id tree = ZF_TREE_FS; tree < ZF_TREE_COUNT; tree++)
			try_root_item(&root_fields[f], 0, tree);
		for (unsigned int i = 1; i < BORDERS + rounds; i++)
			try_root_item(
				&root_fields[f], i,
				(enum zf_tree_id)(ZF_TREE_FS +
						  zf_rng_below(&rng, ZF_TREE_COUNT - ZF_TREE_FS)));
	}
}

static void a_wrong_root_of_the_superblock_is_no_assertion(void **state)
{
	(void)state;
	for (size_t f = 0; f < 5; f++)
		for (unsigned int i = 0; i < BORDERS + rounds; i++) {
			struct sample sample;

			make(&sample);
			in_the_superblock(&sample, &root_fields[f], border(&sample, i));
			/* Without a check: it needs a readable superblock; a mount may use an
			 * older one. */
			mount_and_change(&sample);
			sample_free(&sample);
		}
}

static void a_wrong_child_is_no_assertion(void **state)
{
	(void)state;
	for (size_t f = 0; f < sizeof(child_fields) / sizeof(child_fields[0]); f++)
		for (unsigned int i = 0; i < BORDERS + rounds; i++) {
			struct sample sample;

			make(&sample);
			in_a_child(&sample, &child_fields[f], border(&sample, i));
			use(&sample);
			sample_free(&sample);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_root_item_is_no_assertion),
		cmocka_unit_test(a_wrong_root_of_the_superblock_is_no_assertion),
		cmocka_unit_test(a_wrong_child_is_no_assertion),
	};

	seed = (uint64_t)time(NULL);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = (unsigned int)strtoul(argv[i + 1], NULL, 0);
	}
	zf_rng_seed(&rng, seed);
	printf("seed %" PRIu64 " (replay with --seed)\n", seed);
	return cmocka_run_group_tests_name("check_roots", tests, NULL, NULL);
}

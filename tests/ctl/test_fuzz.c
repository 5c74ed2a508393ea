/* SPDX-License-Identifier: MIT */
/*
 * Hostile devices (P7): random bytes of metadata are changed, in most rounds with every checksum
 * above made right again, so that what lies behind them is reached. Then the device is mounted
 * read-only and all its files are read, every command of zfusectl is run on it, it is checked, what
 * can be read of it is salvaged, and at times it is mounted and changed. What comes out is of no interest: it has to come out, without
 * a crash, a leak or a hang (the sanitizers and the timeout tell).
 *
 * `--seed N` replays, `--rounds N` says how long.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "check/sample.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "salvage/salvage.h"
#include "sim/rng.h"

static const struct zf_ctx root = {.may_wait = true};

/* ---- damage ---- */

struct target {
	enum zf_tree_id tree;
	struct zf_key key;
	unsigned int level;
	uint64_t address;
};

static enum zf_tree_id pick_tree(struct zf_rng *rng, enum zf_tree_id first)
{
	return (enum zf_tree_id)(first + zf_rng_below(rng, (uint64_t)(ZF_TREE_COUNT - first)));
}

/* A node on the way to a random key. */
static struct target pick_node(struct sample *sample, struct zf_rng *rng, enum zf_tree_id tree)
{
	struct target target = {
		.tree = tree,
		.key = ZF_KEY(zf_rng_below(rng, 600), 0, 0),
	};
	uint64_t address[ZF_TREE_LEVEL_MAX];
	unsigned int top;

	if (target.tree == ZF_TREE_SUMMARY)
		target.key.objectid = zf_rng_below(rng, 128) << 20;
	top = forge_path(&sample->forge, target.tree, target.key, address);
	target.level = (unsigned int)zf_rng_below(rng, top + 1);
	target.address = address[target.level];
	return target;
}

/* Values that break arithmetic are likelier than others. */
static uint8_t pick_byte(struct zf_rng *rng)
{
	static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};

	return zf_rng_chance(rng, 50) ? edges[zf_rng_below(rng, sizeof(edges))]
				      : (uint8_t)zf_rng_next(rng);
}

/* Positions that hold something: the first bytes (header, keys), or the values at the end. */
static size_t pick_offset(struct zf_rng *rng, size_t size)
{
	switch (zf_rng_below(rng, 3)) {
	case 0:
		return (size_t)zf_rng_below(rng, 72);
	case 1:
		return (size_t)zf_rng_below(rng, size / 8);
	default:
		return size - 1 - (size_t)zf_rng_below(rng, size / 2);
	}
}

static void damage_node(struct sample *sample, struct zf_rng *rng)
{
	struct target target = pick_node(sample, rng, pick_tree(rng, ZF_TREE_ROOT));
	uint8_t *node = forge_bytes(&sample->forge, target.address);
	unsigned int bytes = 1 + (unsigned int)zf_rng_below(rng, 8);

	for (unsigned int i = 0; i < bytes; i++)
		node[pick_offset(rng, sample->forge.super.node_size)] = pick_byte(rng);
	/* Above the leaves the way to the node may lead nowhere now, or in a circle. */
	if (target.level == 0 && zf_rng_chance(rng, 85))
		forge_seal(&sample->forge, target.tree, target.key, 0);
}

/* One pointer of an internal node is another one's, or leads anywhere. */
static void damage_pointer(struct sample *sample, struct zf_rng *rng)
{
	struct target target = pick_node(sample, rng, pick_tree(rng, ZF_TREE_ROOT));
	uint64_t address[ZF_TREE_LEVEL_MAX];
	unsigned int top = forge_path(&sample->forge, target.tree, target.key, address), last;
	struct zf_node_ptr ptr;
	uint8_t *node;

	if (top == 0)
		return;
	node = forge_bytes(&sample->forge, address[1]);
	last = zf_node_count(node) - 1;
	ptr = zf_node_child(node, (unsigned int)zf_rng_below(rng, last + 1));
	if (zf_rng_chance(rng, 50))
		ptr.address[0] = zf_rng_below(rng, 40u << 20) / ZF_BLOCK_SIZE * ZF_BLOCK_SIZE;
	zf_node_set_child(node, last, &ptr);
	/* By the node's first child: its last one is what was changed. */
	target.key = zf_node_key(node, 0);
	if (last > 0)
		forge_seal(&sample->forge, target.tree, target.key, 1);
}

/* A whole item is replaced: fields by random ones, and its length. */
static void damage_item(struct sample *sample, struct zf_rng *rng, enum zf_tree_id tree)
{
	struct target target = pick_node(sample, rng, tree);
	struct zf_key key = target.key;
	uint8_t value[ZF_NODE_SIZE_MAX];
	size_t len;

	if (!forge_find(&sample->forge, target.tree, &key))
		return;
	len = forge_get(&sample->forge, target.tree, key, value, sizeof(value));
	if (zf_rng_chance(rng, 20)) {
		forge_delete(&sample->forge, target.tree, key);
		return;
	}
	for (unsigned int i = 0; len > 0 && i < 3; i++)
		value[zf_rng_below(rng, len < 200 ? len : 200)] = pick_byte(rng);
	if (zf_rng_chance(rng, 20))
		len = (size_t)zf_rng_below(rng, len + 1);
	forge_set(&sample->forge, target.tree, key, value, len);
}

static void damage_super(struct sample *sample, struct zf_rng *rng)
{
	uint8_t *record = forge_bytes(&sample->forge, sample->forge.super.address);

	if (zf_rng_chance(rng, 50)) {
		record[zf_rng_below(rng, 400)] = pick_byte(rng);
		return;
	}
	sample->forge.super.root_level = (uint8_t)zf_rng_below(rng, ZF_TREE_LEVEL_MAX);
	sample->forge.super.root.address[0] = zf_rng_below(rng, 1u << 15) * ZF_BLOCK_SIZE;
	forge_write_super(&sample->forge);
}

/* Structure last: after that the way to an item may lead nowhere. */
static void damage(struct sample *sample, struct zf_rng *rng)
{
	uint64_t kind = zf_rng_below(rng, 10);

	for (uint64_t i = zf_rng_below(rng, 4); kind > 2 && i < 4; i++)
		damage_item(sample, rng, pick_tree(rng, ZF_TREE_FS));
	if (kind == 0)
		damage_super(sample, rng);
	else if (kind == 1)
		damage_item(sample, rng, ZF_TREE_ROOT);
	else if (kind < 4)
		damage_pointer(sample, rng);
	else if (kind < 6)
		damage_node(sample, rng);
}

/* ---- use ---- */

static void read_file(struct zf_fs *fs, uint64_t ino)
{
	static const char *const names[] = {"user.short", "user.long"};
	struct zf_extent_info extents[16];
	char buf[16384];
	uint64_t offset;

	for (offset = 0; offset < 1u << 20; offset += sizeof(buf))
		if (zf_fs_read(fs, &root, ino, offset, buf, sizeof(buf)) <= 0)
			break;
	(void)zf_fs_seek(fs, &root, ino, 0, SEEK_HOLE, &offset);
	(void)zf_fs_extents(fs, &root, ino, 0, extents, 16);
	(void)zf_fs_readlink(fs, &root, ino, buf, sizeof(buf));
	(void)zf_fs_listxattr(fs, &root, ino, buf, sizeof(buf));
	for (unsigned int i = 0; i < 2; i++)
		(void)zf_fs_getxattr(fs, &root, ino, names[i], buf, sizeof(buf));
}

static void list(struct zf_fs *fs, uint64_t ino, unsigned int depth)
{
	struct zf_dirent *entries = calloc(64, sizeof(*entries));
	uint64_t cookie = 0;
	int n;

	assert(entries);
	for (unsigned int calls = 0; calls < 20; calls++) {
		n = zf_fs_readdir(fs, &root, ino, cookie, entries, 64);
		for (int i = 0; i < n; i++) {
			struct zf_attr attr;

			cookie = entries[i].cookie;
			if (entries[i].name[0] == '.')
				continue;
			if (zf_fs_lookup(fs, &root, ino, entries[i].name, &attr) == 0)
				zf_fs_forget(fs, attr.ino, 1);
			if (S_ISDIR(entries[i].type << 12) && depth < 5)
				list(fs, entries[i].ino, depth + 1);
			else
				read_file(fs, entries[i].ino);
		}
		if (n <= 0)
			break;
	}
	free(entries);
}

static void change(struct zf_fs *fs)
{
	struct zf_attr attr;

	if (zf_fs_make(fs, &root, ZF_INO_ROOT, "new", S_IFREG | 0644, 0, NULL, &attr) == 0) {
		(void)zf_fs_write(fs, &root, attr.ino, 0, "bytes", 5, 0);
		(void)zf_fs_fsync(fs, &root, attr.ino, false);
		zf_fs_forget(fs, attr.ino, 1);
	}
	(void)zf_fs_rename(fs, &root, ZF_INO_ROOT, "other", ZF_INO_ROOT, "file", 0, NULL);
	(void)zf_fs_unlink(fs, &root, ZF_INO_ROOT, "file");
	if (zf_fs_lookup(fs, &root, ZF_INO_ROOT, "dir", &attr) == 0) {
		(void)zf_fs_unlink(fs, &root, attr.ino, "hard");
		(void)zf_fs_rmdir(fs, &root, attr.ino, "sub");
		zf_fs_forget(fs, attr.ino, 1);
	}
	(void)zf_fs_grow(fs, 40);
	for (unsigned int i = 0; i < 3; i++)
		(void)zf_fs_step(fs);
}

static void run_commands(struct zf_dev *dev, struct zf_fs *fs, bool hex)
{
	static const char *const names[] = {"super", "zones",  "log", "df",
					    "check", "status", "file"};
	struct zf_report_source source = {.dev = dev, .fs = fs};
	struct json_object *args = json_object_new_object(), *result;

	if (zf_ring_open(dev, NULL, &source.ring) < 0) {
		json_object_put(args);
		return;
	}
	if (zf_ring_newest(source.ring, &source.super, &source.stepped_over) < 0)
		source.super = NULL;
	zf_json_add_bool(args, "data", true);
	zf_json_add_bool(args, "hex", hex);
	zf_json_add_text(args, "path", "/dir/hard");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct zf_report_command *command = zf_report_find(names[i]);

		result = NULL;
		if (fs || command->need != ZF_NEED_FS)
			(void)zf_report_run(command, &source, args, &result);
		json_object_put(result);
	}
	for (enum zf_tree_id tree = ZF_TREE_ROOT; tree < ZF_TREE_COUNT; tree++) {
		result = NULL;
		zf_json_add_text(args, "tree", zf_report_tree_name(tree));
		(void)zf_report_run(zf_report_find("tree"), &source, args, &result);
		json_object_put(result);
	}
	if (source.super) {
		result = NULL;
		zf_json_add_u64(args, "address", source.super->root.address[0]);
		(void)zf_report_run(zf_report_find("node"), &source, args, &result);
		json_object_put(result);
	}
	json_object_put(args);
	zf_ring_close(source.ring);
}

/* ---- salvage ---- */

struct salvaged {
	struct zf_salvage *salvage;
	_Alignas(ZF_BLOCK_SIZE) uint8_t buf[ZF_EXTENT_MAX];
	enum zf_salvage_verdict verdicts[ZF_EXTENT_MAX / ZF_BLOCK_SIZE];
};

static int salvage_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct salvaged *salvaged = arg;
	const struct zf_disk_extent *extent = value;

	(void)len;
	if (key->type == ZF_KEY_EXTENT && extent->type == ZF_EXTENT_DATA)
		zf_salvage_read(salvaged->salvage, zf_le64_get(extent->address),
				zf_le32_get(extent->count), salvaged->buf, salvaged->verdicts);
	return 0;
}

static void salvage_all(struct zf_dev *dev, uint64_t generation)
{
	const struct zf_salvage_options options = {.generation = generation};
	struct salvaged *salvaged = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*salvaged));
	uint64_t ino = 0;
	bool lost;

	assert(salvaged);
	if (zf_salvage_open(dev, &options, NULL, &salvaged->salvage) == 0) {
		while ((ino = zf_salvage_next_inode(salvaged->salvage, ino + 1)) != 0)
			(void)zf_salvage_items(salvaged->salvage, ino, salvage_item, salvaged,
					       &lost);
		zf_salvage_close(salvaged->salvage);
	}
	free(salvaged);
}

static void use(struct sample *sample, bool writable)
{
	const struct zf_mount_options options = {.read_only = !writable};
	const struct zf_memory_options memory = {0};
	struct zf_fs *fs = NULL;
	struct zf_dev *dev;
	int r;

	r = zf_memory_open(sample->memory, &memory, NULL, &dev);
	assert(r == 0);
	if (zf_fs_mount(dev, &options, NULL, &fs) < 0)
		fs = NULL;
	if (!writable) {
		run_commands(dev, fs, false);
		run_commands(dev, fs, true);
	}
	if (!writable) {
		salvage_all(dev, 0);
		salvage_all(dev, sample->forge.super.generation - 1);
	}
	if (fs)
		list(fs, ZF_INO_ROOT, 0);
	if (fs && writable)
		change(fs);
	if (fs)
		(void)zf_fs_unmount(fs);
	zf_dev_close(dev);
}

/* Nodes are all that is left. */
static void use_without_superblock(struct sample *sample)
{
	const struct zf_memory_options memory = {0};
	struct zf_dev *dev;
	int r = zf_memory_open(sample->memory, &memory, NULL, &dev);

	assert(r == 0);
	for (uint32_t zone = 0; zone < 2; zone++)
		memset(forge_bytes(&sample->forge, zone * zf_dev_geometry(dev)->zone_size), 0,
		       zf_dev_geometry(dev)->zone_capacity);
	salvage_all(dev, 0);
	zf_dev_close(dev);
}

static void one_round(uint64_t round_seed)
{
	struct sample sample;
	struct zf_rng rng;

	zf_rng_seed(&rng, round_seed);
	sample_make(&sample, &(struct sample_options){
				     .node_size = zf_rng_chance(&rng, 50) ? 4096 : 0,
			     });
	damage(&sample, &rng);
	use(&sample, false);
	use(&sample, true);
	use_without_superblock(&sample);
	sample_free(&sample);
}

/* Without cmocka, which would catch the signals that the sanitizers report. */
int main(int argc, char **argv)
{
	uint64_t seed = (uint64_t)time(NULL), rounds = 60;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = strtoull(argv[i + 1], NULL, 0);
	}
	for (uint64_t i = 0; i < rounds; i++) {
		printf("round with seed %" PRIu64 " (replay with --seed and --rounds 1)\n",
		       seed + i);
		fflush(stdout);
		one_round(seed + i);
	}
	return 0;
}

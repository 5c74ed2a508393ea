/* SPDX-License-Identifier: MIT */
/*
 * Hostile devices (P7): for each mangling (check/lies/mangling.h) the test reads all files, runs
 * every command of zfusectl, runs the checker, salvages what can be read, mounts and changes the
 * filesystem, and at last salvages it without its superblock. Results do not matter: only a crash,
 * a leak or a hang fails the test.
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

#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/core/fs.h"
#include "lies/child.h"
#include "lies/image.h"
#include "lies/mangling.h"
#include "lies/salvage_all.h"
#include "superblock/ring.h"

static const struct zf_ctx root = {.may_wait = true};

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
	(void)zf_fs_rename(fs, &root, ZF_INO_ROOT, "clone", ZF_INO_ROOT, "data", 0, NULL);
	(void)zf_fs_unlink(fs, &root, ZF_INO_ROOT, "data");
	if (zf_fs_lookup(fs, &root, ZF_INO_ROOT, "dir", &attr) == 0) {
		(void)zf_fs_unlink(fs, &root, attr.ino, "hard");
		(void)zf_fs_rmdir(fs, &root, attr.ino, "sub");
		zf_fs_forget(fs, attr.ino, 1);
	}
	(void)zf_fs_grow(fs, 50);
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

/* ---- one mangling ---- */

static struct zf_dev *open_device(const struct places *places)
{
	struct zf_dev *dev;
	int r = zf_memory_open(places->forge->memory, NULL, NULL, &dev);

	assert(r == 0);
	return dev;
}

static void use(const struct places *places, bool writable)
{
	const struct zf_mount_options options = {.read_only = !writable};
	struct zf_dev *dev = open_device(places);
	struct zf_fs *fs = NULL;

	if (zf_fs_mount(dev, &options, NULL, &fs) < 0)
		fs = NULL;
	if (!writable) {
		run_commands(dev, fs, false);
		run_commands(dev, fs, true);
		salvage_all(dev, 0);
		salvage_all(dev, places->forge->super.generation - 1);
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
static void use_without_superblock(const struct places *places)
{
	struct zf_dev *dev = open_device(places);

	for (uint32_t zone = 0; zone < ZF_SUPER_ZONES; zone++)
		memset(forge_bytes(places->forge, zone * places->forge->zone_size), 0,
		       zf_dev_geometry(dev)->zone_capacity);
	salvage_all(dev, 0);
	zf_dev_close(dev);
}

struct round {
	const struct places *places;
	const struct mangling *mangling;
};

static void run_child(void *arg)
{
	const struct round *round = arg;

	lie_tell(round->places, round->mangling->lies, round->mangling->count);
	use(round->places, false);
	use(round->places, true);
	use_without_superblock(round->places);
}

static bool one_round(const struct places *places, uint64_t seed)
{
	struct mangling mangling;
	struct round round = {.places = places, .mangling = &mangling};
	char how[64];
	bool ended;

	mangling_make(places, seed, &mangling);
	ended = child_run(run_child, &round, how, sizeof(how));
	if (!ended) {
		printf("FAILED: --rounds 1 --seed %" PRIu64 ": %s\n", seed, how);
		mangling_print(&mangling);
	}
	mangling_free(&mangling);
	return ended;
}

/* Each seed is of one kind of image. */
static unsigned int run_kind(enum image_kind kind, uint64_t seed, uint64_t rounds)
{
	static struct places places;
	unsigned int failures = 0;
	struct forge forge;

	image_make(kind, &forge);
	places_find(&places, &forge);
	for (uint64_t i = 0; i < rounds; i++)
		if ((seed + i) % IMAGE_ALL_KINDS == kind)
			failures += !one_round(&places, seed + i);
	image_free(&forge);
	return failures;
}

int main(int argc, char **argv)
{
	uint64_t seed = (uint64_t)time(NULL), rounds = 60;
	unsigned int failures = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = strtoull(argv[i + 1], NULL, 0);
	}
	printf("seed %" PRIu64 " (replay with --seed)\n", seed);
	for (unsigned int kind = 0; kind < IMAGE_ALL_KINDS; kind++)
		failures += run_kind((enum image_kind)kind, seed, rounds);
	printf("%" PRIu64 " rounds, %u failures\n", rounds, failures);
	return failures > 0;
}

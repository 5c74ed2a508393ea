/* SPDX-License-Identifier: MIT */
/*
 * Short runs, each of which shows one thing: scripts/replays makes traces and pages of them.
 *
 *      scenes                               the scenes, one a line: name, title, what it shows
 *      scenes NAME[:VARIANT] TRACE [DATA]   plays one, and writes its trace (docs/trace.md) and what it wrote
 *
 * A variant does the same operations in another way, for comparison. Everything runs on the
 * simulator without threads, so that a scene has the same trace each time.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "fs/core/fs.h"
#include "fs/mount/format.h"
#include "fs/space/reclaim.h"
#include "sim/rng.h"
#include "sim/sim.h"
#include "trace/trace.h"

#define KIB	     UINT64_C(1024)
#define MIB	     (KIB * 1024)
#define BLOCK	     4096u
#define APPEND_LIMIT (16 * KIB)
#define FILES_MAX    100u
#define FILE_BYTES   (128 * KIB) /* of a file, at most */
#define EPOCH	     UINT64_C(1700000000000000000)

struct stage;

struct scene {
	const char *name, *title, *shows;
	const char *variant; /* NULL: there is none */
	struct zf_geometry geometry;
	unsigned int late_percent; /* of appends: others overtake them */
	bool crashes; /* the power is cut after prepare(), and the trace begins with the next mount */
	void (*prepare)(struct stage *stage); /* not in the trace; NULL: nothing */
	void (*play)(struct stage *stage);
};

struct stage {
	const struct scene *scene;
	bool is_variant;
	struct zf_sim *sim;
	struct zf_dev *dev;
	struct zf_fs *fs;
	struct zf_rng rng;
	int64_t now_ns;
	uint64_t files[FILES_MAX]; /* inodes */
	unsigned int count;	   /* of them, where a scene counts */
	uint8_t bytes[FILE_BYTES];
};

static const struct zf_report report = {zf_report_stderr, (void *)(uintptr_t)"scenes"};
static const struct zf_ctx ctx = {.may_wait = true, .no_atime = true};

static void must(int64_t result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "scenes: %s: %s\n", what, strerror((int)-result));
	exit(1);
}

/* ---- what can be done ---- */

static void make(struct stage *stage, unsigned int file)
{
	char name[16];
	struct zf_attr attr;

	snprintf(name, sizeof(name), "file %u", file);
	must(zf_fs_make(stage->fs, &ctx, ZF_INO_ROOT, name, S_IFREG | 0600, 0, NULL, &attr), name);
	zf_fs_forget(stage->fs, attr.ino, 1);
	stage->files[file] = attr.ino;
}

static void make_files(struct stage *stage, unsigned int first, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		make(stage, first + i);
}

static void remove_file(struct stage *stage, unsigned int file)
{
	char name[16];

	snprintf(name, sizeof(name), "file %u", file);
	must(zf_fs_unlink(stage->fs, &ctx, ZF_INO_ROOT, name), name);
}

/* Random bytes, which cannot be compressed. */
static void write_file(struct stage *stage, unsigned int file, uint64_t offset, uint64_t len)
{
	for (uint64_t i = 0; i < len; i += sizeof(uint64_t)) {
		uint64_t word = zf_rng_next(&stage->rng);

		memcpy(stage->bytes + i, &word, sizeof(word));
	}
	must(zf_fs_write(stage->fs, &ctx, stage->files[file], offset, stage->bytes, len, 0),
	     "write");
}

static void fsync_file(struct stage *stage, unsigned int file)
{
	must(zf_fs_fsync(stage->fs, &ctx, stage->files[file], false), "fsync");
}

/* Waits until the file's data has landed. */
static void land(struct stage *stage, unsigned int file)
{
	struct zf_extent_info extent;

	must(zf_fs_extents(stage->fs, &ctx, stage->files[file], 0, &extent, 1), "flush");
}

static void commit(struct stage *stage)
{
	must(zf_fs_syncfs(stage->fs, &ctx), "syncfs");
}

static void settle(struct stage *stage)
{
	must(zf_fs_settle(stage->fs), "commit");
}

/* ---- the scenes ---- */

static void play_first_write(struct stage *stage)
{
	make(stage, 0);
	write_file(stage, 0, 0, 5 * BLOCK);
	commit(stage);
}

/* The variant waits for each write, as a lock of the zone would have it. */
static void play_overtaking(struct stage *stage)
{
	make_files(stage, 0, 12);
	for (unsigned int i = 0; i < 24; i++) {
		write_file(stage, i % 12, i / 12 * APPEND_LIMIT, APPEND_LIMIT);
		if (stage->is_variant)
			land(stage, i % 12);
	}
	commit(stage);
}

#define HOLES_FIRST 20u /* of the files; those before are another scene's */
#define HOLES_FILES 60u
#define HOLES_LEFT  4u /* that stay, at either end */

/* Nodes that are split and merged within a transaction are never written. */
static void play_holes(struct stage *stage)
{
	make_files(stage, HOLES_FIRST, HOLES_FILES);
	for (unsigned int i = 0; i < HOLES_FILES; i++)
		write_file(stage, HOLES_FIRST + i, 0, BLOCK);
	for (unsigned int i = HOLES_LEFT; i < HOLES_FILES - HOLES_LEFT; i++) {
		land(stage, HOLES_FIRST + i);
		remove_file(stage, HOLES_FIRST + i);
	}
	commit(stage);
}

static void play_ring(struct stage *stage)
{
	make(stage, 0);
	for (unsigned int i = 0; i < 40; i++) {
		write_file(stage, 0, 0, BLOCK);
		commit(stage);
	}
}

static void prepare_file(struct stage *stage)
{
	make(stage, 0);
	write_file(stage, 0, 0, 64 * KIB);
	commit(stage);
}

/* The variant has no log: a commit makes everything durable. */
static void play_fsync(struct stage *stage)
{
	for (unsigned int i = 0; i < 6; i++) {
		write_file(stage, 0, zf_rng_below(&stage->rng, 16) * BLOCK, BLOCK);
		if (stage->is_variant)
			commit(stage);
		else
			fsync_file(stage, 0);
	}
}

static void prepare_crash(struct stage *stage)
{
	make_files(stage, 0, 3);
	commit(stage);
}

static void play_crash(struct stage *stage)
{
	for (unsigned int i = 0; i < 3; i++) {
		write_file(stage, i, 0, 2 * BLOCK);
		fsync_file(stage, i);
	}
	write_file(stage, 0, 0, 40 * KIB);
	land(stage, 0);
}

static void prepare_recovery(struct stage *stage)
{
	prepare_crash(stage);
	play_crash(stage);
}

/* What was made durable since the commit is in the log, and the rest is lost. */
static void play_recovery(struct stage *stage)
{
	struct zf_attr attr;

	must(zf_fs_getattr(stage->fs, &ctx, stage->files[2], &attr), "getattr");
	assert(attr.size == 2 * BLOCK);
}

#define FULL_PERCENT 80u
#define HOT_SHARE    8u /* one file in so many is written nearly all the time */

static unsigned int used_percent(const struct stage *stage)
{
	struct zf_statfs statfs;

	must(zf_fs_statfs(stage->fs, &statfs), "statfs");
	return (unsigned int)(100 - statfs.blocks_free * 100 / statfs.blocks);
}

static void overwrite(struct stage *stage, unsigned int writes)
{
	for (unsigned int i = 0; i < writes; i++) {
		bool is_hot = zf_rng_chance(&stage->rng, 90);
		uint64_t file = zf_rng_below(&stage->rng, stage->count / (is_hot ? HOT_SHARE : 1));
		uint64_t block = zf_rng_below(&stage->rng, FILE_BYTES / BLOCK / 4) * 4;

		write_file(stage, (unsigned int)file, block * BLOCK, 4 * BLOCK);
	}
}

static void reclaim(struct stage *stage)
{
	enum zf_reclaim_need need = stage->is_variant ? ZF_RECLAIM_URGENT : ZF_RECLAIM_IN_PEACE;

	must(zf_reclaim_one(stage->fs, need), "reclaim");
	settle(stage);
	settle(stage);
}

static void prepare_full(struct stage *stage)
{
	for (stage->count = 0; used_percent(stage) < FULL_PERCENT; stage->count++) {
		assert(stage->count < FILES_MAX);
		make(stage, stage->count);
		write_file(stage, stage->count, 0, FILE_BYTES);
		land(stage, stage->count);
	}
	commit(stage);
}

/* The variant takes the zones with the most garbage, whatever their age. */
static void play_reclaim(struct stage *stage)
{
	for (unsigned int i = 0; i < 12; i++) {
		overwrite(stage, 16);
		commit(stage);
		reclaim(stage);
	}
}

static void play_write_zeroes(struct stage *stage)
{
	make(stage, 0);
	must(zf_fs_fallocate(stage->fs, &ctx, stage->files[0], ZF_FALLOC_WRITE_ZEROES, 0, 64 * KIB),
	     "fallocate");
	fsync_file(stage, 0);
	for (unsigned int i = 0; i < 4; i++) {
		write_file(stage, 0, zf_rng_below(&stage->rng, 16) * BLOCK, BLOCK);
		fsync_file(stage, 0);
	}
}

/* The ring of zones of 1 MiB turns after 256 commits. */
static void play_all(struct stage *stage)
{
	play_overtaking(stage);
	play_holes(stage);
	for (unsigned int i = 0; i < 260; i++) {
		unsigned int file = (unsigned int)zf_rng_below(&stage->rng, 12);

		write_file(stage, file, zf_rng_below(&stage->rng, 16) * 4 * BLOCK, 8 * BLOCK);
		if (i % 4 == 0) {
			write_file(stage, file, 0, BLOCK);
			fsync_file(stage, file);
		}
		settle(stage);
	}
	for (unsigned int i = 0; i < 4; i++)
		reclaim(stage);
}

/* clang-format off */
#define DEVICE(zone, zones) .zone_size = (zone), .zone_capacity = (zone), .zone_count = (zones), \
	.append_limit = APPEND_LIMIT, .volatile_cache = true
static const struct scene scenes[] = {
	{.name = "first-write", .title = "A first write",
	 .shows = "one write, the append that it becomes, and the commit that names where it landed",
	 .geometry = {DEVICE(128 * KIB, 24)}, .play = play_first_write},
	{.name = "overtaking", .title = "Appends overtake each other",
	 .shows = "appends of one zone complete in another order than they were submitted, and each extent is where its completion says",
	 .variant = "one-by-one", .geometry = {DEVICE(MIB, 24)}, .late_percent = 30, .play = play_overtaking},
	{.name = "holes", .title = "A commit with holes",
	 .shows = "nodes that die before they are written leave holes in the stream, which zeroes fill",
	 .geometry = {DEVICE(MIB, 24)}, .play = play_holes},
	{.name = "ring", .title = "The ring turns",
	 .shows = "a zone of superblocks is full, so the other one is reset and takes the next",
	 .geometry = {DEVICE(64 * KIB, 32)}, .play = play_ring},
	{.name = "fsync", .title = "An fsync in one append",
	 .shows = "what is durable takes one append with FUA: record and data together",
	 .variant = "by-commit", .geometry = {DEVICE(128 * KIB, 24)}, .prepare = prepare_file, .play = play_fsync},
	{.name = "crash", .title = "A run that a power cut ends",
	 .shows = "three files are durable by the log alone, and more is on its way: cut the power at any step",
	 .geometry = {DEVICE(128 * KIB, 24)}, .prepare = prepare_crash, .play = play_crash},
	{.name = "recovery", .title = "The mount after that cut",
	 .shows = "a mount replays the records of the log, and finds what was promised",
	 .geometry = {DEVICE(128 * KIB, 24)}, .crashes = true, .prepare = prepare_recovery, .play = play_recovery},
	{.name = "reclaim", .title = "Reclaim at 80 %",
	 .shows = "zones are chosen, what is live in them moves, and their reset gives the garbage back",
	 .variant = "greedy", .geometry = {DEVICE(256 * KIB, 48)}, .prepare = prepare_full, .play = play_reclaim},
	{.name = "write-zeroes", .title = "Write-zeroes",
	 .shows = "a zeroed range of a conventional zone is overwritten in place: no extent changes",
	 .geometry = {DEVICE(128 * KIB, 32), .conventional = 6}, .play = play_write_zeroes},
	{.name = "all", .title = "All of it", .shows = "a longer run in zones of 1 MiB",
	 .geometry = {DEVICE(MIB, 40)}, .late_percent = 30, .play = play_all},
};
/* clang-format on */

/* ---- playing ---- */

static int64_t now(void *arg)
{
	struct stage *stage = arg;

	return stage->now_ns++;
}

static void mount(struct stage *stage, const struct zf_trace_about *trace, int fd)
{
	const struct zf_mount_options options = {
		.now_ns = now, .now_arg = stage, .trace = trace, .trace_fd = fd};

	must(zf_fs_mount(stage->dev, &options, &report, &stage->fs), "mount");
}

static void cut_the_power(struct stage *stage)
{
	zf_fs_abandon(stage->fs);
	zf_dev_close(stage->dev);
	zf_sim_crash(stage->sim, 1, ZF_SIM_CUT_DEVICE);
	must(zf_sim_open(stage->sim, &report, &stage->dev), "open");
}

static void begin(struct stage *stage, const struct zf_trace_about *trace, int fd)
{
	const struct scene *scene = stage->scene;
	const struct zf_format_options format = {
		.fsid = {2, 7}, .node_size = BLOCK, .now_ns = (int64_t)EPOCH, .dir_hash_seed = 5};

	zf_rng_seed(&stage->rng, 7);
	stage->now_ns = (int64_t)EPOCH;
	stage->sim = zf_sim_new(&scene->geometry, 11);
	zf_sim_set_late(stage->sim, ZF_IO_APPEND, scene->late_percent);
	must(zf_sim_open(stage->sim, &report, &stage->dev), "open");
	must(zf_fs_format(stage->dev, &format, &report), "format");
	mount(stage, scene->prepare ? NULL : trace, fd);
	if (scene->prepare)
		scene->prepare(stage);
	if (scene->crashes) {
		cut_the_power(stage);
		mount(stage, trace, fd);
	} else if (scene->prepare) {
		must(zf_fs_trace_start(stage->fs, fd, trace), "trace");
	}
}

/* A scene that a power cut ends is not unmounted. */
static void end(struct stage *stage)
{
	must(zf_trace_stop(NULL), "trace");
	zf_fs_abandon(stage->fs);
	zf_dev_close(stage->dev);
	zf_sim_free(stage->sim);
}

static int make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd < 0 ? -errno : 0, path);
	return fd;
}

static void play(const struct scene *scene, bool is_variant, const char *path, const char *data)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	char workload[64];
	const struct zf_trace_about trace = {
		.clock = ZF_TRACE_LOGICAL,
		.program = ZF_VERSION,
		.workload = workload,
		.has_data = data,
		.data_fd = data ? make_file(data) : -1,
	};

	must(stage ? 0 : -ENOMEM, "stage");
	snprintf(workload, sizeof(workload), "scenes %s%s%s", scene->name, is_variant ? ":" : "",
		 is_variant ? scene->variant : "");
	stage->scene = scene;
	stage->is_variant = is_variant;
	begin(stage, &trace, make_file(path));
	scene->play(stage);
	end(stage);
	free(stage);
}

static int list(void)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(scenes); i++)
		printf("%s\t%s\t%s\n", scenes[i].name, scenes[i].title, scenes[i].shows);
	return 0;
}

/* "name" or "name:variant". */
static const struct scene *find(const char *text, bool *ret_is_variant)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);

	*ret_is_variant = colon;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(scenes); i++) {
		const struct scene *scene = &scenes[i];

		if (strncmp(scene->name, text, len) == 0 && scene->name[len] == '\0' &&
		    (!colon || (scene->variant && strcmp(scene->variant, colon + 1) == 0)))
			return scene;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct scene *scene;
	bool is_variant;

	if (argc == 1)
		return list();
	scene = find(argv[1], &is_variant);
	if (!scene || argc < 3 || argc > 4) {
		fprintf(stderr, "usage: scenes [NAME[:VARIANT] TRACE [DATA]]\n");
		return 2;
	}
	play(scene, is_variant, argv[2], argc == 4 ? argv[3] : NULL);
	return 0;
}

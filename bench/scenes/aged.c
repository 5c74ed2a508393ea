/* SPDX-License-Identifier: MIT */
/* Scenes of a filesystem that is used for a while (bench/age), on the memory device. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "age/load.h"
#include "age/plan.h"
#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "fs/mount/format.h"
#include "fs/space/reclaim.h"
#include "io/memory.h"
#include "scenes.h"
#include "support.h"

#define EPOCH_NS   INT64_C(1767225600000000000)
#define CALL_NS	   1000000 /* that the clock without threads goes on with each write */
#define SEED	   1
#define LOOK_BYTES (256u << 10) /* written between two looks at the zones */

struct scene {
	uint64_t zone_bytes;
	uint32_t zones;
	double full;	     /* percent of what data can have */
	bool threads, files; /* files: many that come and go, else one that is overwritten */
	uint64_t commit_bytes;

	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_fs *fs;
	struct age_user user;
	struct age_load *load;
};

static char prefix[] = "scenes";
static const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};

static int64_t simulated_ns(void *arg)
{
	const struct scene *scene = arg;

	return EPOCH_NS + (int64_t)scene->user.calls * CALL_NS;
}

static void open_device(struct scene *scene, struct age_plan *ret_plan)
{
	const struct zf_geometry geometry = {
		.zone_size = scene->zone_bytes,
		.zone_capacity = scene->zone_bytes,
		.zone_count = scene->zones,
		.append_limit = 1 << 20,
	};

	age_plan(&geometry, scene->full, ret_plan);
	must(zf_memory_new(&geometry, &scene->memory), "memory");
	must(zf_memory_open(scene->memory, NULL, &report, &scene->dev), "memory");
}

static void mount(struct scene *scene)
{
	const struct zf_format_options format = {.fsid = {1}, .now_ns = EPOCH_NS};
	const struct zf_mount_options options = {
		.threads = scene->threads,
		.now_ns = scene->threads ? NULL : simulated_ns,
		.now_arg = scene,
	};

	must(zf_fs_format(scene->dev, &format, &report), "format");
	if (scene->threads)
		must(zf_dev_start_thread(scene->dev), "thread");
	must(zf_fs_mount(scene->dev, &options, &report, &scene->fs), "mount");
	age_user_init(&scene->user, scene->fs, SEED);
	scene->user.commit_bytes = scene->commit_bytes;
	scene->user.reclaim_bytes = scene->threads ? 0 : scene->zone_bytes / 4;
}

/* Fills the file. */
static void begin(struct scene *scene)
{
	struct age_plan plan;
	struct age_blocks_options blocks = {.step_bytes = AGE_PIECE};
	struct age_tree_options tree = {0};

	open_device(scene, &plan);
	mount(scene);
	blocks.bytes = tree.bytes = plan.bytes;
	tree.size_max = plan.bytes / 64;
	scene->load = scene->files ? age_tree_new(&scene->user, &tree)
				   : age_blocks_new(&scene->user, &blocks);
	must(scene->load ? 0 : -1, "load");
	must(scene->load->ops->fill(scene->load), "fill");
	must(zf_fs_syncfs(scene->fs, &scene->user.ctx), "syncfs");
}

static void step(struct scene *scene)
{
	must(scene->load->ops->step(scene->load), "write");
}

static void end(struct scene *scene)
{
	struct age_fragments fragments;

	must(scene->load->ops->verify(scene->load, &fragments), "verify");
	scene->load->ops->free(scene->load);
	must(zf_fs_unmount(scene->fs), "unmount");
	zf_dev_close(scene->dev);
	zf_memory_free(scene->memory);
}

/* ---- the life of the zones ---- */

/* For each zone its role, its written bytes, and its live bytes. */
static void print_zones(struct scene *scene)
{
	struct zf_alloc *alloc = zf_fs_alloc(scene->fs);

	printf("{\"user_bytes\": %" PRIu64 ", \"zone_bytes\": %" PRIu64 ", \"zones\": [",
	       scene->user.bytes, scene->zone_bytes);
	for (uint32_t z = 0; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone_info info;
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		must(zf_dev_report(scene->dev, z, 1, &info), "report");
		printf("%s[\"%s\", %" PRIu64 ", %" PRIu64 "]", z ? ", " : "",
		       zf_zone_role_name(zone.role), info.wp - info.start,
		       (uint64_t)zone.live << ZF_BLOCK_SHIFT);
	}
	printf("]}\n");
}

void scene_life(void)
{
	static struct scene scene = {
		.zone_bytes = 2 << 20, .zones = 64, .full = 70, .commit_bytes = 2 << 20};
	uint64_t bytes, seen;

	begin(&scene);
	bytes = scene.user.bytes + 2 * scene.zones * scene.zone_bytes;
	for (seen = 0; scene.user.bytes < bytes; step(&scene))
		if (scene.user.bytes - seen >= LOOK_BYTES) {
			print_zones(&scene);
			seen = scene.user.bytes;
		}
	end(&scene);
}

void scene_map(void)
{
	static struct scene scene = {.zone_bytes = 2 << 20,
				     .zones = 96,
				     .full = 80,
				     .files = true,
				     .commit_bytes = 6 << 20};
	uint64_t bytes;

	begin(&scene);
	bytes = scene.user.bytes + scene.zones * scene.zone_bytes * 3 / 2;
	while (scene.user.bytes < bytes)
		step(&scene);
	must(zf_fs_syncfs(scene.fs, &scene.user.ctx), "syncfs");
	print_zones(&scene);
	end(&scene);
}

/* ---- a burst ---- */

#define SAMPLE_NS	 UINT64_C(50000000)
#define SECOND_NS	 UINT64_C(1000000000)
#define CALM_WRITES	 1000u /* of 4 KiB, a second */
#define AGEING_TURNOVERS 1u

static const struct {
	const char *name;
	uint64_t seconds;
	unsigned int writes; /* a second; 0: as many as there can be */
} phases[] = {{"calm", 3, CALM_WRITES}, {"burst", 5, 0}, {"after", 7, CALM_WRITES}};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND_NS + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / SECOND_NS),
			      .tv_nsec = (long)(ns % SECOND_NS)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) != 0)
		;
}

static void print_sample(struct scene *scene, const char *phase, uint64_t ns)
{
	struct age_histogram *latency = &scene->user.latency;
	struct zf_reclaim_room room;

	zf_alloc_reclaim_room(zf_fs_alloc(scene->fs), &room);
	printf("{\"phase\": \"%s\", \"seconds\": %.3f, \"empty\": %u, \"target\": %u, \"writes\": "
	       "%" PRIu64 ", \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"max_ms\": %.4f}\n",
	       phase, (double)ns / 1e9, room.empty, room.target, latency->count,
	       (double)age_histogram_quantile(latency, 0.5) / 1e6,
	       (double)age_histogram_quantile(latency, 0.99) / 1e6, (double)latency->max / 1e6);
	*latency = (struct age_histogram){0};
}

static void run_phase(struct scene *scene, unsigned int phase, uint64_t zero_ns)
{
	uint64_t began = now_ns(), sampled = began, writes = 0;
	uint64_t until = began + phases[phase].seconds * SECOND_NS;

	for (uint64_t now = began; now < until; now = now_ns()) {
		if (now - sampled >= SAMPLE_NS) {
			print_sample(scene, phases[phase].name, now - zero_ns);
			sampled = now;
		}
		step(scene);
		writes++;
		if (phases[phase].writes > 0)
			sleep_until(began + writes * SECOND_NS / phases[phase].writes);
	}
}

void scene_burst(void)
{
	static struct scene scene = {
		.zone_bytes = 8 << 20, .zones = 128, .full = 80, .threads = true};
	uint64_t bytes, zero_ns;

	begin(&scene);
	bytes = scene.user.bytes + AGEING_TURNOVERS * scene.zones * scene.zone_bytes;
	while (scene.user.bytes < bytes)
		step(&scene);
	/* Does the work that ageing has left behind. */
	sleep_until(now_ns() + 5 * SECOND_NS);
	scene.user.latency = (struct age_histogram){0};
	zero_ns = now_ns();
	for (unsigned int phase = 0; phase < 3; phase++)
		run_phase(&scene, phase, zero_ns);
	end(&scene);
}

/* SPDX-License-Identifier: MIT */
/*
 * Ages a filesystem and says what that costs.
 *
 * Runs below FUSE, on the memory device or an image: fills the device to a level, lets a load write
 * until the written bytes are a given multiple of the device's size ("turnovers"), verifies all
 * data, and runs the checker. By default there are no threads: the same seed gives the same
 * history, and this program commits after so many bytes. With --threads the filesystem runs as when
 * mounted, and latencies mean something.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "age/load.h"
#include "age/pairs.h"
#include "age/plan.h"
#include "age/report.h"
#include "alloc/reclaim.h"
#include "base/bits.h"
#include "check/check.h"
#include "fs/mount/format.h"
#include "io/image.h"
#include "io/memory.h"
#include "superblock/ring.h"
#include "trace/trace.h"

#define LOOK_EVERY	64u /* operations */
#define EPOCH_NS	INT64_C(1700000000000000000)
#define LOOKS_OF_A_ZONE 4u	/* by reclaim, while it is written */
#define PAIR_ZONES	2u	/* written at once by either half of a pair */
#define CALL_NS		1000000 /* that the clock without threads goes on with each write */

enum load_kind {
	UNIFORM,
	ZIPF,
	SEQUENTIAL,
	MIX,
};

static struct {
	uint64_t size, zone, capacity, cache, dirty, commit_bytes, seed;
	uint32_t max_active, target, pairs;
	double full, turnovers, theta;
	enum load_kind load;
	const char *load_name, *image, *trace;
	bool threads, json;
} options = {.size = UINT64_C(8) << 30,
	     .zone = UINT64_C(64) << 20,
	     .cache = UINT64_C(512) << 20,
	     .commit_bytes = UINT64_C(300) << 20,
	     .seed = 1,
	     .full = 80,
	     .turnovers = 4,
	     .load_name = "uniform"};

static const struct zf_report report = {zf_report_stderr, (void *)(uintptr_t)"age"};
static struct zf_memory *memory;
static struct zf_dev *dev;
static struct zf_fs *fs;
static struct age_user user;
static struct age_traffic traffic;
static struct age_load *load;
static struct age_plan plan;

static void must(int r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "age: %s: %s\n", what, strerror(-r));
	exit(1);
}

/* ---- the filesystem ---- */

static void open_device(void)
{
	const struct zf_geometry geometry = {
		.zone_size = options.zone,
		.zone_capacity = options.capacity ? options.capacity : options.zone,
		.zone_count = (uint32_t)(options.size / options.zone),
		.max_open = options.max_active,
		.max_active = options.max_active,
		.append_limit = 1 << 20,
	};
	const struct zf_open_options image = {.lock_wait_ms = 10000};

	age_plan(&geometry, options.full, &plan);
	if (options.image) {
		must(zf_image_create(options.image, &geometry, true, &image, &report), "image");
		must(zf_image_open(options.image, &image, &report, &dev), "image");
	} else {
		must(zf_memory_new(&geometry, &memory), "memory");
		must(zf_memory_open(memory, NULL, &report, &dev), "memory");
	}
}

static int64_t simulated_ns(void *arg)
{
	return EPOCH_NS + (int64_t)user.calls * CALL_NS;
}

static void mount(void)
{
	const struct zf_format_options format = {.fsid = {1}, .now_ns = EPOCH_NS};
	const struct zf_mount_options mount_options = {
		.threads = options.threads,
		.cache_bytes = options.cache,
		.dirty_bytes = options.dirty,
		.now_ns = options.threads ? NULL : simulated_ns,
	};

	must(zf_fs_format(dev, &format, &report), "format");
	if (options.threads)
		must(zf_dev_start_thread(dev), "thread");
	must(zf_fs_mount(dev, &mount_options, &report, &fs), "mount");
	age_user_init(&user, fs, options.seed);
	user.commit_bytes = options.threads ? 0 : options.commit_bytes;
	user.reclaim_bytes = options.threads ? 0 : options.zone / LOOKS_OF_A_ZONE;
	if (options.target > 0)
		zf_alloc_set_reclaim_target(zf_fs_alloc(fs), options.target);
}

/* The trace begins with the state of the newly made filesystem. */
static void start_trace(void)
{
	const struct zf_trace_about about = {
		.clock = options.threads ? ZF_TRACE_MONOTONIC : ZF_TRACE_LOGICAL,
		.program = ZF_VERSION,
	};
	int fd = open(options.trace, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(fd < 0 ? -errno : 0, options.trace);
	must(zf_fs_trace_start(fs, fd, &about), "trace");
}

static uint64_t check(void)
{
	const struct zf_check_options check_options = {.data = true};
	const struct zf_super *super;
	struct zf_check_counts counts;
	unsigned int stepped_over;
	struct zf_ring *ring;

	must(zf_ring_open(dev, &report, &ring), "ring");
	must(zf_ring_newest(ring, &super, &stepped_over), "ring");
	must(zf_check_run(dev, super, &check_options, &report, &counts), "check");
	zf_ring_close(ring);
	return counts.errors;
}

/* ---- the load ---- */

static void make_load(void)
{
	const struct age_blocks_options blocks = {
		.bytes = plan.bytes,
		.theta = options.load == ZIPF ? options.theta : 0,
		.in_order = options.load == SEQUENTIAL,
		.step_bytes = AGE_PIECE,
	};
	const struct age_tree_options tree = {
		.bytes = plan.bytes,
		.size_max = zf_min_u64(UINT64_C(16) << 20, plan.bytes / 64),
	};

	load = options.load == MIX ? age_tree_new(&user, &tree) : age_blocks_new(&user, &blocks);
	must(load ? 0 : -ENOMEM, "load");
}

static void run_period(struct age_period *period, uint64_t bytes_end)
{
	struct age_totals before, after;

	age_sight_init(&period->sight);
	memset(&user.latency, 0, sizeof(user.latency));
	age_totals_get(fs, &user, &traffic, &before);
	for (uint64_t i = 0; user.bytes < bytes_end; i++) {
		must(load->ops->step(load), "write");
		if (i % LOOK_EVERY == 0)
			age_look(fs, &period->sight);
	}
	age_totals_get(fs, &user, &traffic, &after);
	age_totals_since(&after, &before, &period->totals);
}

static void fill(struct age_period *period)
{
	struct age_totals before, after;

	*period = (struct age_period){.name = "fill"};
	age_sight_init(&period->sight);
	age_totals_get(fs, &user, &traffic, &before);
	must(load->ops->fill(load), "fill");
	must(zf_fs_syncfs(fs, &user.ctx), "syncfs");
	age_look(fs, &period->sight);
	age_totals_get(fs, &user, &traffic, &after);
	age_totals_since(&after, &before, &period->totals);
}

/* A histogram is a period's own. */
static void add_up(struct age_period *all, const struct age_period *period)
{
	age_histogram_add(&all->totals.latency, &period->totals.latency);
	age_sight_add(&all->sight, &period->sight);
}

static void age(void)
{
	struct age_period *all = calloc(2, sizeof(*all)), *period;
	struct age_totals *ends = calloc(2, sizeof(*ends));
	struct age_histogram latency;
	uint64_t began = 0;

	must(all && ends ? 0 : -ENOMEM, "periods");
	period = all + 1;
	fill(period);
	age_report_period(period, false, options.json);
	*all = (struct age_period){.name = "all"};
	age_sight_init(&all->sight);
	age_totals_get(fs, &user, &traffic, &ends[0]);
	began = user.bytes;
	for (unsigned int n = 1; (double)(n - 1) < options.turnovers; n++) {
		double part = n < options.turnovers ? n : options.turnovers;

		*period = (struct age_period){.name = "turnover", .number = n};
		run_period(period, began + (uint64_t)(part * (double)options.size));
		age_report_period(period, options.load == UNIFORM, options.json);
		add_up(all, period);
	}
	must(zf_fs_syncfs(fs, &user.ctx), "syncfs");
	age_totals_get(fs, &user, &traffic, &ends[1]);
	latency = all->totals.latency;
	age_totals_since(&ends[1], &ends[0], &all->totals);
	all->totals.latency = latency;
	age_report_period(all, options.load == UNIFORM, options.json);
	free(ends);
	free(all);
}

/* ---- with reclaim and without ---- */

static void print_pair(unsigned int number, const struct age_pair *pair)
{
	if (options.json)
		printf("{\"period\": \"pair\", \"number\": %u, \"off_s\": %.4f, \"on_s\": %.4f}\n",
		       number, pair->off_s, pair->on_s);
	else
		printf("%-8s %3u %7.3f s without reclaim, %7.3f s with it: %.3f\n", "pair", number,
		       pair->off_s, pair->on_s, pair->on_s / pair->off_s);
	fflush(stdout);
}

static void run_pairs(void)
{
	for (unsigned int i = 1; i <= options.pairs; i++) {
		struct age_pair pair;

		must(age_pair_run(load, PAIR_ZONES * options.zone, i % 2, &pair), "write");
		print_pair(i, &pair);
	}
}

/* ---- what is left ---- */

static void print_plan(void)
{
	double part = (double)plan.bytes / (double)options.size * 100;

	if (options.json) {
		printf("{\"period\": \"plan\", \"load\": \"%s\", \"full\": %g, \"threads\": %s, "
		       "\"size\": "
		       "%" PRIu64 ", \"zone\": %" PRIu64 ", \"cache\": %" PRIu64
		       ", \"commit_bytes\": %" PRIu64 ", \"seed\": %" PRIu64 ", \"bytes\": %" PRIu64
		       ", \"data_bytes\": %" PRIu64 ", \"of_device\": %.2f}\n",
		       options.load_name, options.full, options.threads ? "true" : "false",
		       options.size, options.zone, options.cache, user.commit_bytes, options.seed,
		       plan.bytes, plan.data_bytes, part);
		return;
	}
	printf("%s, %.2f GiB: %g %% of the %.2f GiB that data can have (%u zones without %u, and "
	       "%u of "
	       "metadata), %.1f %% of the device; seed %" PRIu64 "\n",
	       options.load_name, (double)plan.bytes / (1 << 30), options.full,
	       (double)plan.data_bytes / (1 << 30), (unsigned int)(options.size / options.zone),
	       plan.fixed_zones, plan.meta_zones, part, options.seed);
}

static void print_end(const struct age_fragments *f, uint64_t errors)
{
	double extents = f->files ? (double)f->extents / (double)f->files : 0;
	double mean = f->extents ? (double)f->bytes / (double)f->extents / 1024 : 0;

	if (options.json)
		printf("{\"period\": \"end\", \"files\": %" PRIu64 ", \"extents\": %" PRIu64
		       ", \"file_bytes\": %" PRIu64
		       ", \"verified\": true, \"check_errors\": %" PRIu64 "}\n",
		       f->files, f->extents, f->bytes, errors);
	else
		printf("%" PRIu64
		       " files, %.1f extents each of %.1f KiB; all data as written; check: %" PRIu64
		       " errors\n",
		       f->files, extents, mean, errors);
}

static int finish(void)
{
	struct age_fragments fragments;
	uint64_t errors;

	must(load->ops->verify(load, &fragments), "verify");
	age_traffic_stop(&traffic);
	must(zf_fs_unmount(fs), "unmount");
	if (options.trace)
		must(zf_trace_stop(NULL), "trace");
	errors = check();
	print_end(&fragments, errors);
	load->ops->free(load);
	zf_dev_close(dev);
	zf_memory_free(memory);
	return errors ? 1 : 0;
}

/* ---- main ---- */

static void usage(FILE *to)
{
	fprintf(to, "usage: age [--size 8G] [--zone 64M] [--capacity BYTES] [--max-active N] "
		    "[--image FILE] [--trace FILE]\n"
		    "           [--cache 512M] [--dirty 64M] [--full PERCENT] [--load "
		    "uniform|zipf[:0.99]|seq|mix]\n"
		    "           [--turnovers N] [--seed N] [--target ZONES] [--commit-bytes 300M | "
		    "--threads [--pairs N]]\n"
		    "           [--format text|json]\n");
}

static void misused(void)
{
	usage(stderr);
	exit(2);
}

static uint64_t bytes_of(const char *text)
{
	static const char suffixes[] = "KMGT";
	char *end;
	uint64_t n = strtoull(text, &end, 10);
	const char *suffix = *end ? strchr(suffixes, *end) : NULL;

	if (end == text || (*end && (!suffix || end[1])))
		misused();
	return suffix ? n << 10 * (suffix - suffixes + 1) : n;
}

static double number_of(const char *text)
{
	char *end;
	double n = strtod(text, &end);

	if (end == text || *end || n <= 0)
		misused();
	return n;
}

static void parse_load(const char *text)
{
	options.load_name = text;
	if (strcmp(text, "uniform") == 0) {
		options.load = UNIFORM;
	} else if (strncmp(text, "zipf", 4) == 0 && (!text[4] || text[4] == ':')) {
		options.load = ZIPF;
		options.theta = text[4] ? number_of(text + 5) : 0.99;
	} else if (strcmp(text, "seq") == 0) {
		options.load = SEQUENTIAL;
	} else if (strcmp(text, "mix") == 0) {
		options.load = MIX;
	} else {
		misused();
	}
}

static void parse_option(int option, const char *value)
{
	switch (option) {
	case 's':
		options.size = bytes_of(value);
		break;
	case 'z':
		options.zone = bytes_of(value);
		break;
	case 'c':
		options.capacity = bytes_of(value);
		break;
	case 'a':
		options.max_active = (uint32_t)number_of(value);
		break;
	case 'i':
		options.image = value;
		break;
	case 'e':
		options.trace = value;
		break;
	case 'm':
		options.cache = bytes_of(value);
		break;
	case 'd':
		options.dirty = bytes_of(value);
		break;
	case 'f':
		options.full = number_of(value);
		break;
	case 'l':
		parse_load(value);
		break;
	case 't':
		options.turnovers = number_of(value);
		break;
	case 'g':
		options.target = (uint32_t)number_of(value);
		break;
	case 'r':
		options.seed = strtoull(value, NULL, 0);
		break;
	case 'b':
		options.commit_bytes = bytes_of(value);
		break;
	case 'p':
		options.pairs = (uint32_t)number_of(value);
		break;
	case 'T':
		options.threads = true;
		break;
	case 'o':
		options.json = strcmp(value, "json") == 0;
		break;
	case 'h':
		usage(stdout);
		exit(0);
	default:
		misused();
	}
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"size", required_argument, NULL, 's'},
		{"zone", required_argument, NULL, 'z'},
		{"capacity", required_argument, NULL, 'c'},
		{"max-active", required_argument, NULL, 'a'},
		{"image", required_argument, NULL, 'i'},
		{"trace", required_argument, NULL, 'e'},
		{"cache", required_argument, NULL, 'm'},
		{"dirty", required_argument, NULL, 'd'},
		{"full", required_argument, NULL, 'f'},
		{"load", required_argument, NULL, 'l'},
		{"turnovers", required_argument, NULL, 't'},
		{"target", required_argument, NULL, 'g'},
		{"seed", required_argument, NULL, 'r'},
		{"commit-bytes", required_argument, NULL, 'b'},
		{"pairs", required_argument, NULL, 'p'},
		{"threads", no_argument, NULL, 'T'},
		{"format", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", longs, NULL)) >= 0)
		parse_option(option, optarg);
	if (optind != argc || options.zone == 0 || options.size / options.zone < 16 ||
	    (options.pairs > 0 && !options.threads))
		misused();
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	open_device();
	mount();
	if (options.trace)
		start_trace();
	make_load();
	age_traffic_start(&traffic, fs);
	print_plan();
	age_report_head(options.json);
	age();
	run_pairs();
	return finish();
}

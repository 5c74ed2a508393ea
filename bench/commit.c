/* SPDX-License-Identifier: MIT */
/*
 * What a commit of many dirty items does to the operations beside it.
 *
 * Runs below FUSE, on the memory device or an image: four threads look up, make, write 4 KiB and
 * read 4 KiB, each at a fixed pace, while the transaction with the dirty items is committed, and in
 * other runs without that commit. The two kinds of runs alternate. A latency counts from the moment
 * at which the operation was due, so the latencies of the operations behind a waiting one include
 * that wait.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/bits.h"
#include "fs/mount/format.h"
#include "io/image.h"
#include "io/memory.h"
#include "support.h"
#include "txn/txn.h"

#define DIRECTORIES  50u
#define FILE_BYTES   (UINT64_C(64) << 20)
#define IO_BYTES     4096u
#define SAMPLES_MAX  (1u << 18) /* of one kind in one run */
#define WINDOW_NS    UINT64_C(250000000)
#define SETTLE_NS    UINT64_C(50000000) /* the threads run this long before the window opens */
#define COMMIT_NEVER UINT64_C(3600000)

enum kind {
	LOOKUP,
	CREATE,
	WRITE,
	READ,
	KINDS,
	ALL = KINDS,
};

static const char *const kind_names[] = {"lookup", "create", "write", "read", "all"};

struct options {
	unsigned int items, rounds;
	unsigned int pace;   /* operations per second of each thread */
	unsigned int spread; /* files for each one that changes */
	const char *image;
	uint64_t cache_bytes;
	bool json;
};

struct worker {
	pthread_t thread;
	enum kind kind;
	uint64_t random;
	uint64_t file; /* ino */
	uint32_t *us;  /* latencies of the operations that ended in the window */
	unsigned int count;
};

struct percentiles {
	double p50, p99, p999, max; /* ms */
};

struct run {
	struct percentiles of[KINDS + 1];
	double commit_ms;
	uint64_t nodes;
};

static struct options options = {.items = 50000,
				 .rounds = 10,
				 .pace = 4000,
				 .spread = 1,
				 .cache_bytes = UINT64_C(256) << 20};
static struct zf_fs *fs;
static struct zf_ctx ctx = {.may_wait = true};
static uint64_t directories[DIRECTORIES];
static uint64_t *files; /* options.items * options.spread of them */
static struct worker workers[KINDS];
static atomic_bool stopping;
static _Atomic uint64_t window_from, window_to; /* ns; 0: not yet */
static unsigned int made;			/* names that the create thread has used */
static char bytes[IO_BYTES];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* ---- the filesystem ---- */

static unsigned int file_count(void)
{
	return options.items * options.spread;
}

static void file_name(unsigned int i, char ret_name[32])
{
	snprintf(ret_name, 32, "file-%u", i);
}

static struct zf_dev *open_device(struct zf_memory **ret_memory)
{
	const struct zf_geometry geometry = {
		.zone_size = 64 << 20,
		.zone_capacity = 64 << 20,
		.zone_count = 64,
		.append_limit = 1 << 20,
	};
	const struct zf_open_options image = {.lock_wait_ms = 10000};
	struct zf_dev *dev;

	if (options.image) {
		must(zf_image_create(options.image, &geometry, true, &image, NULL), "create image");
		must(zf_image_open(options.image, &image, NULL, &dev), "open image");
	} else {
		must(zf_memory_new(&geometry, ret_memory), "memory");
		must(zf_memory_open(*ret_memory, NULL, NULL, &dev), "open memory");
	}
	return dev;
}

static uint64_t make_file(const char *name)
{
	uint64_t ino = make(fs, &ctx, ZF_INO_ROOT, name, S_IFREG | 0644);

	for (uint64_t at = 0; at < FILE_BYTES; at += IO_BYTES)
		must(zf_fs_write(fs, &ctx, ino, at, bytes, IO_BYTES, 0), "write");
	return ino;
}

static void populate(void)
{
	char name[32];

	files = calloc(file_count(), sizeof(*files));
	must(files ? 0 : -ENOMEM, "files");
	for (unsigned int i = 0; i < DIRECTORIES; i++) {
		snprintf(name, sizeof(name), "directory-%u", i);
		directories[i] = make(fs, &ctx, ZF_INO_ROOT, name, S_IFDIR | 0755);
	}
	for (unsigned int i = 0; i < file_count(); i++) {
		file_name(i, name);
		files[i] = make(fs, &ctx, directories[i % DIRECTORIES], name, S_IFREG | 0644);
	}
	workers[WRITE].file = make_file("written");
	workers[READ].file = make_file("read");
	must(zf_fs_syncfs(fs, &ctx), "syncfs");
}

/* One item of every file changes, in no order of the tree's. */
static void make_dirty(uint64_t *random)
{
	struct zf_setattr set = {.valid = ZF_SET_MODE};
	struct zf_attr attr;

	set.mode = 0600 | (uint32_t)(next_random(random) % 0100);
	for (unsigned int i = 0; i < options.items; i++) {
		uint64_t at = (uint64_t)i * 7919 % options.items * options.spread;

		must(zf_fs_setattr(fs, &ctx, files[at], &set, &attr), "setattr");
	}
}

/* ---- the operations beside it ---- */

static void operate(struct worker *worker)
{
	uint64_t r = next_random(&worker->random);
	uint64_t at = r % (FILE_BYTES / IO_BYTES) * IO_BYTES;
	struct zf_attr attr;
	char name[32], buf[IO_BYTES];

	switch (worker->kind) {
	case LOOKUP:
		r %= file_count();
		file_name((unsigned int)r, name);
		must(zf_fs_lookup(fs, &ctx, directories[r % DIRECTORIES], name, &attr), "lookup");
		zf_fs_forget(fs, attr.ino, 1);
		break;
	case CREATE:
		snprintf(name, sizeof(name), "new-%u", made++);
		make(fs, &ctx, directories[r % DIRECTORIES], name, S_IFREG | 0644);
		break;
	case WRITE:
		must(zf_fs_write(fs, &ctx, worker->file, at, bytes, IO_BYTES, 0), "write");
		break;
	case READ:
		must(zf_fs_read(fs, &ctx, worker->file, at, buf, IO_BYTES), "read");
		break;
	case KINDS:
		break;
	}
}

static void note(struct worker *worker, uint64_t due, uint64_t ended)
{
	uint64_t from = atomic_load(&window_from), to = atomic_load(&window_to);

	if (from == 0 || ended < from || (to != 0 && due > to) || worker->count == SAMPLES_MAX)
		return;
	worker->us[worker->count++] = (uint32_t)zf_min_u64((ended - due) / 1000, UINT32_MAX);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	uint64_t interval = UINT64_C(1000000000) / options.pace;
	uint64_t due = now_ns() + interval / KINDS * (uint64_t)worker->kind;

	while (!atomic_load(&stopping)) {
		sleep_until(due);
		operate(worker);
		note(worker, due, now_ns());
		due += interval;
	}
	return NULL;
}

/* ---- one run ---- */

static int compare(const void *a, const void *b)
{
	const uint32_t *l = a, *r = b;

	return *l < *r ? -1 : *l > *r;
}

static struct percentiles percentiles_of(uint32_t *us, unsigned int count)
{
	if (count == 0)
		return (struct percentiles){0};
	qsort(us, count, sizeof(*us), compare);
	return (struct percentiles){
		.p50 = us[count / 2] / 1e3,
		.p99 = us[(uint64_t)count * 99 / 100] / 1e3,
		.p999 = us[(uint64_t)count * 999 / 1000] / 1e3,
		.max = us[count - 1] / 1e3,
	};
}

static void evaluate(struct run *run)
{
	uint32_t *all = malloc(KINDS * SAMPLES_MAX * sizeof(*all));
	unsigned int count = 0;

	must(all ? 0 : -ENOMEM, "samples");
	for (enum kind k = 0; k < KINDS; k++) {
		memcpy(&all[count], workers[k].us, workers[k].count * sizeof(*all));
		count += workers[k].count;
		run->of[k] = percentiles_of(workers[k].us, workers[k].count);
	}
	run->of[ALL] = percentiles_of(all, count);
	free(all);
}

static struct run measure(bool commit, uint64_t *window_ns)
{
	struct zf_txn_stats before, after;
	struct run run = {0};
	uint64_t began;

	zf_txn_get_stats(zf_fs_txn(fs), &before);
	atomic_store(&window_from, 0);
	atomic_store(&window_to, 0);
	atomic_store(&stopping, false);
	for (enum kind k = 0; k < KINDS; k++) {
		workers[k].count = 0;
		must(-pthread_create(&workers[k].thread, NULL, work, &workers[k]), "thread");
		pthread_setname_np(workers[k].thread, kind_names[k]); /* for a profiler */
	}
	began = now_ns() + SETTLE_NS;
	sleep_until(began);
	began = now_ns();
	atomic_store(&window_from, began);
	if (commit) {
		must(zf_txn_commit(zf_fs_txn(fs), true), "commit");
		run.commit_ms = (double)(now_ns() - began) / 1e6;
		*window_ns = zf_max_u64(WINDOW_NS, now_ns() - began);
	}
	sleep_until(began + *window_ns);
	atomic_store(&window_to, began + *window_ns);
	atomic_store(&stopping, true);
	for (enum kind k = 0; k < KINDS; k++)
		pthread_join(workers[k].thread, NULL);
	zf_txn_get_stats(zf_fs_txn(fs), &after);
	run.nodes = after.nodes_written - before.nodes_written;
	if (!commit && after.commits != before.commits)
		must(-EBUSY, "a commit in a run without one: the cache is too small");
	evaluate(&run);
	/* The next run starts from nothing dirty. */
	must(zf_fs_syncfs(fs, &ctx), "syncfs");
	return run;
}

/* ---- the table ---- */

static int compare_doubles(const void *a, const void *b)
{
	const double *l = a, *r = b;

	return *l < *r ? -1 : *l > *r;
}

static double median(const struct run *runs, double (*of)(const struct run *run, enum kind kind),
		     enum kind kind)
{
	double *values = malloc(options.rounds * sizeof(*values)), r;

	must(values ? 0 : -ENOMEM, "values");
	for (unsigned int i = 0; i < options.rounds; i++)
		values[i] = of(&runs[i], kind);
	qsort(values, options.rounds, sizeof(values[0]), compare_doubles);
	r = (values[(options.rounds - 1) / 2] + values[options.rounds / 2]) / 2;
	free(values);
	return r;
}

#define FIELD(name, expression)                                                                    \
	static double name(const struct run *run, enum kind kind)                                  \
	{                                                                                          \
		return expression;                                                                 \
	}
FIELD(p50_of, run->of[kind].p50)
FIELD(p99_of, run->of[kind].p99)
FIELD(p999_of, run->of[kind].p999)
FIELD(max_of, run->of[kind].max)
FIELD(commit_of, run->commit_ms)
FIELD(nodes_of, (double)run->nodes)

static void print_text(const struct run *with, const struct run *without)
{
	printf("%u dirty items among %u files, %u runs of each kind, %u operations a second of "
	       "each; "
	       "medians\n"
	       "commit: %.0f nodes in %.1f ms\n\n"
	       "%-7s %38s %38s %9s\n%-7s",
	       options.items, file_count(), options.rounds, options.pace,
	       median(with, nodes_of, ALL), median(with, commit_of, ALL), "ms", "without a commit",
	       "with", "p99.9", "");
	for (unsigned int i = 0; i < 2; i++)
		printf("%11s %8s %8s %8s", "p50", "p99", "p99.9", "max");
	printf(" %9s\n", "more");
	for (enum kind k = 0; k <= KINDS; k++) {
		const struct run *const sides[] = {without, with};

		printf("%-7s", kind_names[k]);
		for (unsigned int i = 0; i < 2; i++)
			printf("%11.2f %8.2f %8.2f %8.2f", median(sides[i], p50_of, k),
			       median(sides[i], p99_of, k), median(sides[i], p999_of, k),
			       median(sides[i], max_of, k));
		printf(" %9.2f\n", median(with, p999_of, k) - median(without, p999_of, k));
	}
}

static void print_side(const char *name, const struct run *runs, enum kind k)
{
	printf("\"%s\": {\"p50\": %.3f, \"p99\": %.3f, \"p99.9\": %.3f, \"max\": %.3f}", name,
	       median(runs, p50_of, k), median(runs, p99_of, k), median(runs, p999_of, k),
	       median(runs, max_of, k));
}

static void print_json(const struct run *with, const struct run *without)
{
	printf("{\"items\": %u, \"files\": %u, \"rounds\": %u, \"pace\": %u, \"nodes\": %.0f, "
	       "\"commit_ms\": "
	       "%.3f",
	       options.items, file_count(), options.rounds, options.pace,
	       median(with, nodes_of, ALL), median(with, commit_of, ALL));
	for (enum kind k = 0; k <= KINDS; k++) {
		printf(", \"%s\": {", kind_names[k]);
		print_side("without", without, k);
		printf(", ");
		print_side("with", with, k);
		printf(", \"more_p99.9\": %.3f}",
		       median(with, p999_of, k) - median(without, p999_of, k));
	}
	printf("}\n");
}

/* ---- main ---- */

static void run_rounds(void)
{
	struct run *with = calloc(options.rounds, sizeof(*with));
	struct run *without = calloc(options.rounds, sizeof(*without));
	uint64_t random = 88172645463325252, window_ns = WINDOW_NS;

	must(with && without ? 0 : -ENOMEM, "runs");
	for (unsigned int i = 0; i < options.rounds; i++) {
		for (unsigned int turn = 0; turn < 2; turn++) {
			bool commit = (i + turn) % 2 == 0;

			make_dirty(&random);
			*(commit ? &with[i] : &without[i]) = measure(commit, &window_ns);
		}
	}
	if (options.json)
		print_json(with, without);
	else
		print_text(with, without);
	free(with);
	free(without);
}

static void usage(FILE *to)
{
	fprintf(to, "usage: commit [--items N] [--spread N] [--rounds N] [--pace N] "
		    "[--cache MIB] "
		    "[--image FILE] [--format text|json]\n");
}

static unsigned int number(const char *text)
{
	unsigned long n = strtoul(text, NULL, 10);

	if (n == 0 || n > 10000000) {
		usage(stderr);
		exit(2);
	}
	return (unsigned int)n;
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"items", required_argument, NULL, 'i'},
		{"rounds", required_argument, NULL, 'r'},
		{"pace", required_argument, NULL, 'p'},
		{"spread", required_argument, NULL, 's'},
		{"cache", required_argument, NULL, 'c'},
		{"image", required_argument, NULL, 'f'},
		{"format", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0) {
		switch (c) {
		case 'i':
			options.items = number(optarg);
			break;
		case 'r':
			options.rounds = number(optarg);
			break;
		case 'p':
			options.pace = number(optarg);
			break;
		case 's':
			options.spread = number(optarg);
			break;
		case 'c':
			options.cache_bytes = (uint64_t)number(optarg) << 20;
			break;
		case 'f':
			options.image = optarg;
			break;
		case 'o':
			options.json = strcmp(optarg, "json") == 0;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	const struct zf_format_options format = {.fsid = {1}};
	struct zf_mount_options mount = {.threads = true, .commit_ms = COMMIT_NEVER};
	struct zf_memory *memory = NULL;
	struct zf_dev *dev;

	parse(argc, argv);
	mount.cache_bytes = options.cache_bytes;
	memset(bytes, 0x5a, sizeof(bytes));
	dev = open_device(&memory);
	must(zf_fs_format(dev, &format, NULL), "format");
	must(zf_dev_start_thread(dev), "thread");
	must(zf_fs_mount(dev, &mount, NULL, &fs), "mount");
	for (enum kind k = 0; k < KINDS; k++) {
		workers[k].kind = k;
		workers[k].random = 0x9e3779b97f4a7c15u * (k + 1u);
		workers[k].us = malloc(SAMPLES_MAX * sizeof(*workers[k].us));
		must(workers[k].us ? 0 : -ENOMEM, "samples");
	}
	populate();
	run_rounds();
	must(zf_fs_unmount(fs), "unmount");
	zf_dev_close(dev);
	zf_memory_free(memory);
	for (enum kind k = 0; k < KINDS; k++)
		free(workers[k].us);
	free(files);
	return 0;
}

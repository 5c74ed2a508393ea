/* SPDX-License-Identifier: MIT */
#include "host/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/mount/format.h"
#include "host/files.h"
#include "host/record.h"
#include "io/image.h"
#include "sim/rng.h"

#define WORKERS	   4u
#define ROUNDS	   2u
#define WRITES	   350u /* of each worker in a round */
#define CELLS_MAX  64u
#define ZONE_SIZE  ((uint64_t)128 << 10)
#define ZONES	   80u
#define GROWN	   92u
#define IN_PLACE   1u /* this file lies in a conventional zone, if there are any */
#define SYNC_EVERY 25u
#define COMMIT_MS  20u

struct session {
	struct zf_dev *dev;
	struct zf_fs *fs;
	uint64_t inos[FILES];
	atomic_uint writes, working;
};

struct worker {
	struct session *session;
	struct zf_rng rng;
	uint32_t number;
	uint64_t *versions; /* of all files; each worker has files of its own */
};

static const struct zf_ctx ctx = {.may_wait = true};

static void tell(void *arg, enum zf_report_level level, const char *message)
{
	if (level == ZF_REPORT_ERROR)
		fprintf(stderr, "reported: %s\n", message);
}

static const struct zf_report report = {.fn = tell};

static void must(int64_t r, const char *what)
{
	if (r >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror((int)-r));
	abort();
}

static void note(enum note_type type, uint32_t file, uint64_t version)
{
	const struct note n = {.type = type, .file = file, .version = version};

	record_note(&n, sizeof(n));
}

/* ---- one worker ---- */

static void write_some(struct worker *w, uint32_t file, bool durable)
{
	uint32_t cells =
		1 + (uint32_t)zf_rng_below(&w->rng, zf_rng_chance(&w->rng, 30) ? CELLS_MAX : 8);
	uint32_t cell = (uint32_t)zf_rng_below(&w->rng, CELLS - cells + 1);
	uint64_t version = ++w->versions[file];
	const struct note n = {.type = NOTE_WRITES,
			       .file = file,
			       .version = version,
			       .cell = cell,
			       .cells = cells};
	char buf[CELLS_MAX * CELL_BYTES];

	cells_fill(buf, file, cell, cells, version);
	record_note(&n, sizeof(n));
	must(zf_fs_write(w->session->fs, &ctx, w->session->inos[file], (uint64_t)cell * CELL_BYTES,
			 buf, (size_t)cells * CELL_BYTES, durable ? ZF_WRITE_DSYNC : 0),
	     "write");
	note(NOTE_WRITTEN, file, version);
	if (durable)
		note(NOTE_DURABLE1, file, version);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	for (unsigned int i = 0; i < WRITES; i++) {
		uint32_t file = w->number + WORKERS * (uint32_t)zf_rng_below(&w->rng, 2);

		write_some(w, file, zf_rng_chance(&w->rng, 20));
		if (zf_rng_chance(&w->rng, 35)) {
			must(zf_fs_fsync(w->session->fs, &ctx, w->session->inos[file],
					 zf_rng_chance(&w->rng, 50)),
			     "fsync");
			note(NOTE_DURABLE, file, w->versions[file]);
		}
		atomic_fetch_add(&w->session->writes, 1);
	}
	atomic_fetch_sub(&w->session->working, 1);
	return NULL;
}

/* Runs beside the workers: calls syncfs, and grows the image half-way. */
static void watch(struct session *session, uint32_t grown)
{
	unsigned int next = SYNC_EVERY;
	uint64_t syncs = 0;

	while (atomic_load(&session->working) > 0) {
		unsigned int writes = atomic_load(&session->writes);

		if (writes < next) {
			usleep(200);
			continue;
		}
		next += SYNC_EVERY;
		note(NOTE_SYNCS, 0, ++syncs);
		must(zf_fs_syncfs(session->fs, &ctx), "syncfs");
		note(NOTE_SYNCED, 0, syncs);
		if (writes >= WORKERS * WRITES / 2 && grown) {
			must(zf_fs_grow(session->fs, grown), "grow");
			grown = 0;
		}
	}
}

/* ---- a session ---- */

static void open_file(struct session *session, uint32_t file)
{
	struct zf_attr attr;
	char name[8];
	int r;

	file_name(name, file);
	r = zf_fs_lookup(session->fs, &ctx, ZF_INO_ROOT, name, &attr);
	if (r == -ENOENT)
		r = zf_fs_make(session->fs, &ctx, ZF_INO_ROOT, name, S_IFREG | 0600, 0, NULL,
			       &attr);
	must(r, "making a file");
	session->inos[file] = attr.ino;
	if (file == IN_PLACE && attr.size == 0)
		must(zf_fs_fallocate(session->fs, &ctx, attr.ino, ZF_FALLOC_WRITE_ZEROES, 0,
				     CELLS * CELL_BYTES),
		     "fallocate");
}

static void start(struct session *session, const char *path)
{
	const struct zf_mount_options options = {.threads = true, .commit_ms = COMMIT_MS};
	const struct zf_open_options open_options = {.lock_wait_ms = 10000};

	*session = (struct session){};
	atomic_init(&session->working, WORKERS);
	must(zf_image_open(path, &open_options, &report, &session->dev), "opening");
	must(zf_dev_start_thread(session->dev), "starting a thread");
	must(zf_fs_mount(session->dev, &options, &report, &session->fs), "mounting");
	for (uint32_t i = 0; i < FILES; i++)
		open_file(session, i);
}

static void run(struct session *session, uint64_t seed, uint64_t versions[FILES], uint32_t grown)
{
	struct worker workers[WORKERS];
	pthread_t threads[WORKERS];

	for (uint32_t i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.session = session, .number = i, .versions = versions};
		zf_rng_seed(&workers[i].rng, seed + i);
		if (pthread_create(&threads[i], NULL, worker_main, &workers[i]) != 0)
			abort();
	}
	watch(session, grown);
	for (uint32_t i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
}

static void make(const char *path, uint32_t conventional)
{
	const struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = ZONE_SIZE,
		.zone_count = ZONES,
		.conventional = conventional,
		.append_limit = 128 << 10,
		.volatile_cache = true,
	};
	const struct zf_format_options format = {
		.node_size = 4096, .fsid = {8}, .dir_hash_seed = 42, .now_ns = 1000000000};
	const struct zf_open_options options = {};
	struct zf_dev *dev;

	must(zf_image_create(path, &geometry, false, &options, &report), "making an image");
	must(zf_image_open(path, &options, &report, &dev), "opening");
	must(zf_fs_format(dev, &format, &report), "making a filesystem");
	zf_dev_close(dev);
	note(NOTE_READY, 0, 0);
}

void work(const char *path, uint32_t conventional, uint64_t seed)
{
	uint64_t versions[FILES] = {};

	make(path, conventional);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct session session;

		start(&session, path);
		run(&session, seed + round * WORKERS, versions, round == 0 ? GROWN : 0);
		if (round + 1 < ROUNDS) {
			note(NOTE_GIVEN_UP, 0, 0);
			zf_fs_abandon(session.fs);
		} else {
			must(zf_fs_unmount(session.fs), "unmounting");
		}
		zf_dev_close(session.dev);
	}
}

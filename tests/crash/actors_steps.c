/* SPDX-License-Identifier: MIT */
/* The steps of an actor, and what is known after each. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "actors.h"
#include "base/bits.h"
#include "base/wakeup.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/space/reclaim.h"

static const struct zf_ctx waiting = {.may_wait = true};

#define SAY(actor, ...)                                                                            \
	do {                                                                                       \
		if (actors_verbose) {                                                              \
			fprintf(stderr, "%*s%u: ", (int)(actor)->no * 8, "", (actor)->no);         \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
		}                                                                                  \
	} while (0)

/* A new promise holds from now on, so this moment may be cut, too. */
static void promised(struct actor *actor)
{
	actors_moment(actor->world);
}

static bool fail(struct actor *actor, const char *what, int64_t value)
{
	fprintf(stderr, "actors: actor %u: %s (%" PRId64 ")\n", actor->no, what, value);
	actor->world->failed = true;
	return false;
}

/* False: the actor gives up. Without faults the only right error is -ENOSPC. */
static bool went_well(struct actor *actor, const char *what, int64_t r)
{
	struct world *world = actor->world;

	if (r >= 0)
		return true;
	SAY(actor, "%s: %s", what, strerror((int)-r));
	if (r == -ENOSPC)
		return false;
	world->events->errors++;
	/* ENOMEM loses nothing, and promised nothing. */
	if (r == -ENOMEM && actors_memory > 0)
		return true;
	world->hurt = true;
	if (!world->faulty)
		fail(actor, what, r);
	return false;
}

/* ---- blocks of files that all share ---- */

static bool owns(const struct actor *actor, unsigned int block)
{
	return block / RUN_BLOCKS % actor->world->actor_count == actor->no;
}

/* Draws a run of blocks that belongs to the actor. */
static unsigned int draw_run(struct actor *actor)
{
	unsigned int runs = FILE_BLOCKS / RUN_BLOCKS, run;

	do {
		run = (unsigned int)zf_rng_below(&actor->rng, runs);
	} while (!owns(actor, run * RUN_BLOCKS));
	return run * RUN_BLOCKS;
}

static bool write_some(struct actor *actor, unsigned int flags)
{
	struct world *world = actor->world;
	unsigned int file = (unsigned int)zf_rng_below(&actor->rng, FILES);
	unsigned int first = draw_run(actor), skip = (unsigned int)zf_rng_below(&actor->rng, 4);
	unsigned int count = 1 + (unsigned int)zf_rng_below(&actor->rng, RUN_BLOCKS - skip);
	struct block_known *known = &world->known.blocks[file][first += skip];
	uint8_t bytes[RUN_BLOCKS * ZF_BLOCK_SIZE];
	uint16_t versions[RUN_BLOCKS];
	ssize_t r;

	for (unsigned int i = 0; i < count; i++) {
		versions[i] = ++known[i].begun;
		actors_fill(actors_file_id(file, first + i), versions[i],
			    bytes + i * ZF_BLOCK_SIZE);
	}
	SAY(actor, "write file %u blocks %u+%u version %u%s", file, first, count, versions[0],
	    flags ? " durably" : "");
	r = zf_fs_write(world->fs, &waiting, world->files[file], first * ZF_BLOCK_SIZE, bytes,
			count * ZF_BLOCK_SIZE, flags);
	SAY(actor, "write: %zd", r);
	for (unsigned int i = 0; r > 0 && i < (size_t)r / ZF_BLOCK_SIZE; i++) {
		known[i].done = versions[i];
		if (flags & ZF_WRITE_DSYNC && !world->hurt)
			known[i].durable = versions[i];
	}
	if (r > 0 && flags & ZF_WRITE_DSYNC)
		promised(actor);
	return went_well(actor, "write", r);
}

static bool punch_some(struct actor *actor)
{
	struct world *world = actor->world;
	unsigned int file = (unsigned int)zf_rng_below(&actor->rng, FILES);
	unsigned int first = draw_run(actor);
	struct block_known *known = &world->known.blocks[file][first];
	uint16_t versions[RUN_BLOCKS];
	int r;

	for (unsigned int i = 0; i < RUN_BLOCKS; i++)
		versions[i] = known[i].punched = ++known[i].begun;
	SAY(actor, "punch file %u blocks %u+%u version %u", file, first, RUN_BLOCKS, versions[0]);
	r = zf_fs_fallocate(world->fs, &waiting, world->files[file],
			    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first * ZF_BLOCK_SIZE,
			    RUN_BLOCKS * ZF_BLOCK_SIZE);
	SAY(actor, "punch: %d", r);
	for (unsigned int i = 0; r == 0 && i < RUN_BLOCKS; i++)
		known[i].done = versions[i];
	return went_well(actor, "punch", r);
}

/* The oldest version that a read may find of a block. */
static uint16_t oldest_to_read(const struct world *world, const struct block_known *known)
{
	if (world->hurt)
		return 0;
	/* Data that could not be written is dropped before the next fsync says so. A filesystem
	 * that a failed commit made read-only drops everything that was not written yet. */
	if (world->lossy || zf_fs_is_read_only(world->fs))
		return known->durable;
	return known->done;
}

static bool read_some(struct actor *actor)
{
	struct world *world = actor->world;
	unsigned int file = (unsigned int)zf_rng_below(&actor->rng, FILES);
	unsigned int first =
		(unsigned int)zf_rng_below(&actor->rng, FILE_BLOCKS / RUN_BLOCKS) * RUN_BLOCKS;
	struct block_known before[RUN_BLOCKS], *known = &world->known.blocks[file][first];
	uint8_t bytes[RUN_BLOCKS * ZF_BLOCK_SIZE] = {0};
	ssize_t r;

	memcpy(before, known, sizeof(before));
	r = zf_fs_read(world->fs, &waiting, world->files[file], first * ZF_BLOCK_SIZE, bytes,
		       sizeof(bytes));
	for (unsigned int i = 0; r >= 0 && i < RUN_BLOCKS; i++) {
		uint16_t least = oldest_to_read(world, &before[i]);
		int version;

		if (!actors_is_right(&known[i], least, actors_file_id(file, first + i),
				     bytes + i * ZF_BLOCK_SIZE, &version))
			return fail(actor, "a read finds another version", version);
	}
	return went_well(actor, "read", r);
}

/* ---- syncs ---- */

struct promise {
	struct known known;
	uint64_t names_done;
};

static void begin_promise(const struct world *world, struct promise *promise)
{
	promise->known = world->known;
	promise->names_done = world->names_done;
}

static void promise_file(struct world *world, const struct promise *promise, unsigned int file)
{
	for (unsigned int b = 0; b < FILE_BLOCKS; b++) {
		struct block_known *known = &world->known.blocks[file][b];

		if (promise->known.blocks[file][b].done > known->durable)
			known->durable = promise->known.blocks[file][b].done;
	}
}

static void promise_names(struct world *world, const struct promise *promise)
{
	world->known.names_durable = zf_max_u64(world->known.names_durable, promise->names_done);
}

/* A data sync without a thread. */
struct later {
	struct zf_wakeup ended;
	struct zf_syncing *syncing;
};

static void note_ended(struct zf_syncing *syncing, bool served, void *arg)
{
	struct later *later = arg;

	(void)served;
	later->syncing = syncing;
	zf_wakeup_send(&later->ended);
}

/*
 * The thread that runs the sync when it is offered may be busy. Here it first waits for another
 * sync of the file.
 */
static int sync_later(struct actor *actor, uint64_t ino)
{
	struct zf_fs *fs = actor->world->fs;
	struct later later = {.syncing = NULL};
	int r;

	zf_wakeup_init(&later.ended);
	r = zf_fs_sync_later(fs, &waiting, ino, note_ended, &later);
	if (r == -EINPROGRESS) {
		if (zf_rng_chance(&actor->rng, 50))
			went_well(actor, "fdatasync", zf_fs_fsync(fs, &waiting, ino, true));
		zf_wakeup_wait(&later.ended);
		r = zf_fs_sync_later_end(later.syncing);
	}
	zf_wakeup_deinit(&later.ended);
	return r;
}

/*
 * As the daemon syncs: first a call that may only wait for a log record, or without a thread; then
 * one that may wait.
 */
static int sync_ino(struct actor *actor, uint64_t ino, bool data_only)
{
	const struct zf_ctx on_the_spot = {.may_wait_record = true};
	struct world *world = actor->world;
	int r = -EAGAIN;

	world->syncing++;
	if (zf_rng_chance(&actor->rng, 50))
		r = zf_fs_fsync(world->fs, &on_the_spot, ino, data_only);
	if (r == -EAGAIN && data_only && zf_rng_chance(&actor->rng, 50))
		r = sync_later(actor, ino);
	if (r == -EAGAIN)
		r = zf_fs_fsync(world->fs, &waiting, ino, data_only);
	world->syncing--;
	return r;
}

static bool sync_file(struct actor *actor)
{
	struct world *world = actor->world;
	unsigned int file = (unsigned int)zf_rng_below(&actor->rng, FILES);
	bool data_only = zf_rng_chance(&actor->rng, 60);
	struct promise promise;
	int r;

	begin_promise(world, &promise);
	SAY(actor, "%s file %u", data_only ? "fdatasync" : "fsync", file);
	r = sync_ino(actor, world->files[file], data_only);
	SAY(actor, "sync: %d", r);
	if (r == 0 && !world->hurt) {
		promise_file(world, &promise, file);
		if (!data_only)
			promise_names(world, &promise);
		promised(actor);
	}
	return went_well(actor, "fsync", r);
}

static bool sync_dir(struct actor *actor)
{
	struct world *world = actor->world;
	struct promise promise;
	int r;

	begin_promise(world, &promise);
	SAY(actor, "fsync dir: up to %" PRIu64, promise.names_done);
	r = sync_ino(actor, world->dir, false);
	SAY(actor, "fsync dir: %d", r);
	if (r == 0 && !world->hurt) {
		promise_names(world, &promise);
		promised(actor);
	}
	return went_well(actor, "fsync of the directory", r);
}

static bool sync_all(struct actor *actor)
{
	struct world *world = actor->world;
	struct promise promise;
	int r;

	begin_promise(world, &promise);
	SAY(actor, "syncfs");
	r = zf_fs_syncfs(world->fs, &waiting);
	SAY(actor, "syncfs: %d", r);
	if (r == 0 && !world->hurt) {
		for (unsigned int file = 0; file < FILES; file++)
			promise_file(world, &promise, file);
		promise_names(world, &promise);
		promised(actor);
	}
	return went_well(actor, "syncfs", r);
}

/* Syncs the trees alone: names become durable, data of files need not. */
static bool sync_trees(struct actor *actor)
{
	struct world *world = actor->world;
	struct promise promise;
	int r;

	begin_promise(world, &promise);
	SAY(actor, "sync of the trees");
	r = zf_txn_sync(world->fs->txn);
	SAY(actor, "sync of the trees: %d", r);
	if (r == 0 && !world->hurt) {
		promise_names(world, &promise);
		promised(actor);
	}
	return went_well(actor, "a sync of the trees", r);
}

/* ---- names ---- */

static struct names *last_names(struct actor *actor)
{
	return &actor->history[actor->history_count - 1];
}

static void name_of(const struct actor *actor, uint32_t seq, char ret_name[32])
{
	snprintf(ret_name, 32, "a%u.%u", actor->no, seq);
}

static struct named_known *named_of(struct actor *actor, uint64_t ino)
{
	struct known *known = &actor->world->known;

	for (unsigned int i = 0; i < known->actors[actor->no].named_count; i++)
		if (known->actors[actor->no].named[i].ino == ino)
			return &known->actors[actor->no].named[i];
	return NULL;
}

/* The state that the operation will lead to; it takes effect when the log numbers it. */
static struct names *begin_names(struct actor *actor)
{
	struct names *names = &actor->history[actor->history_count];

	*names = *last_names(actor);
	names->number = 0;
	actor->history_count++;
	actor->naming = true;
	return names;
}

static bool end_names(struct actor *actor, const char *what, int r)
{
	struct world *world = actor->world;

	actor->naming = false;
	if (last_names(actor)->number == 0) {
		actor->history_count--;
		return went_well(actor, what, r < 0 ? r : -EIO);
	}
	if (r == 0)
		world->names_done = zf_max_u64(world->names_done, last_names(actor)->number);
	SAY(actor, "%s: %d, number %" PRIu64, what, r, last_names(actor)->number);
	return went_well(actor, what, r);
}

static bool make_one(struct actor *actor)
{
	struct world *world = actor->world;
	uint32_t seq = actor->next_seq++;
	struct names *names = begin_names(actor);
	struct zf_attr attr;
	char name[32];
	int r;

	name_of(actor, seq, name);
	SAY(actor, "make %s", name);
	/* The inode number is known when the call returns, but a cut may find the file before. */
	names->names[names->count++] = (struct name){.seq = seq, .ino = 0};
	r = zf_fs_make(world->fs, &waiting, world->dir, name, S_IFREG | 0600, 0, NULL, &attr);
	if (r == 0) {
		unsigned int n = world->known.actors[actor->no].named_count++;

		names->names[names->count - 1].ino = attr.ino;
		world->known.actors[actor->no].named[n] = (struct named_known){.ino = attr.ino};
		zf_fs_forget(world->fs, attr.ino, 1);
	}
	return end_names(actor, "make", r);
}

static bool write_named(struct actor *actor, uint64_t ino)
{
	struct world *world = actor->world;
	struct named_known *known = named_of(actor, ino);
	unsigned int count = 1 + (unsigned int)zf_rng_below(&actor->rng, NAMED_BLOCKS);
	uint8_t bytes[NAMED_BLOCKS * ZF_BLOCK_SIZE];
	ssize_t r;

	for (unsigned int b = 0; b < count; b++)
		actors_fill(actors_named_id(ino, b), 1, bytes + b * ZF_BLOCK_SIZE);
	known->begun = (uint8_t)count;
	SAY(actor, "write ino %" PRIu64 ": %u blocks", ino, count);
	r = zf_fs_write(world->fs, &waiting, ino, 0, bytes, count * ZF_BLOCK_SIZE, 0);
	return went_well(actor, "write of a file with a name", r);
}

static bool sync_named(struct actor *actor, uint64_t ino)
{
	struct world *world = actor->world;
	struct named_known *known = named_of(actor, ino);
	struct promise promise;
	int r;

	begin_promise(world, &promise);
	SAY(actor, "fsync ino %" PRIu64, ino);
	r = sync_ino(actor, ino, false);
	SAY(actor, "fsync ino %" PRIu64 ": %d", ino, r);
	if (r == 0 && !world->hurt) {
		known->durable = known->begun;
		promise_names(world, &promise);
		promised(actor);
	}
	return went_well(actor, "fsync of a file with a name", r);
}

/* Renames to a new name, or over another file. */
static bool rename_one(struct actor *actor, unsigned int from, int over)
{
	struct world *world = actor->world;
	struct names *names = begin_names(actor);
	struct name *source = &names->names[from];
	char old_name[32], new_name[32];
	int r;

	name_of(actor, source->seq, old_name);
	if (over < 0) {
		source->seq = actor->next_seq++;
		name_of(actor, source->seq, new_name);
	} else {
		source->seq = names->names[over].seq;
		name_of(actor, source->seq, new_name);
		source->whole = named_of(actor, source->ino)->begun;
		names->names[over] = names->names[--names->count];
	}
	SAY(actor, "rename %s to %s", old_name, new_name);
	r = zf_fs_rename(world->fs, &waiting, world->dir, old_name, world->dir, new_name, 0, NULL);
	return end_names(actor, "rename", r);
}

/* Does the unlink lead back to an earlier state? After a cut the two would look the same. */
static bool leads_back(const struct actor *actor, unsigned int i)
{
	struct names names = actor->history[actor->history_count - 1];

	names.names[i] = names.names[--names.count];
	for (unsigned int j = 0; j < actor->history_count; j++)
		if (actors_same_names(&actor->history[j], &names))
			return true;
	return false;
}

static bool unlink_one(struct actor *actor, unsigned int i)
{
	struct world *world = actor->world;
	struct names *names = begin_names(actor);
	char name[32];

	name_of(actor, names->names[i].seq, name);
	names->names[i] = names->names[--names->count];
	SAY(actor, "unlink %s", name);
	return end_names(actor, "unlink", zf_fs_unlink(world->fs, &waiting, world->dir, name));
}

/* Makes a file, writes it, and renames it over another: with or without an fsync. */
static bool replace_one(struct actor *actor)
{
	uint64_t ino;

	if (!make_one(actor))
		return false;
	ino = last_names(actor)->names[last_names(actor)->count - 1].ino;
	if (!write_named(actor, ino))
		return false;
	if (zf_rng_chance(&actor->rng, 30) && !sync_named(actor, ino))
		return false;
	if (zf_fs_close(actor->world->fs, &waiting, ino) < 0)
		return false;
	return rename_one(actor, last_names(actor)->count - 1, 0);
}

static bool change_names(struct actor *actor)
{
	const struct names *names = last_names(actor);
	unsigned int i = (unsigned int)zf_rng_below(&actor->rng, names->count);
	bool may_make = actor->world->known.actors[actor->no].named_count < NAMED_MAX &&
			names->count < NAMES_MAX && actor->history_count + 3 < HISTORY_MAX;

	if (actor->history_count + 3 >= HISTORY_MAX)
		return true;
	if (may_make && zf_rng_chance(&actor->rng, 40))
		return replace_one(actor);
	if (may_make && zf_rng_chance(&actor->rng, 50))
		return make_one(actor);
	if (names->count > 1 && !leads_back(actor, i) && zf_rng_chance(&actor->rng, 50))
		return unlink_one(actor, i);
	return rename_one(actor, i, -1);
}

/* ---- what goes on beside them ---- */

static bool flush_all(struct actor *actor)
{
	SAY(actor, "flush");
	(void)zf_data_flush_all(actor->world->fs, false);
	return true;
}

static bool commit(struct actor *actor)
{
	SAY(actor, "commit");
	return went_well(actor, "commit", zf_txn_commit(actor->world->fs->txn, true));
}

static bool reclaim(struct actor *actor)
{
	struct world *world = actor->world;
	uint32_t zones = zf_dev_geometry(world->dev)->zone_count;
	uint32_t zone_no = (uint32_t)zf_rng_below(&actor->rng, zones);
	int r = -EBUSY;

	/* Most zones cannot be victims; errors of the device reach the owners of the data. */
	for (uint32_t i = 0; i < zones && r == -EBUSY; i++)
		r = zf_reclaim_zone(world->fs, (zone_no + i) % zones);
	SAY(actor, "reclaim from zone %u on: %d", zone_no, r);
	return true;
}

/* ---- an actor ---- */

static bool write_plainly(struct actor *actor)
{
	return write_some(actor, 0);
}

static bool write_durably(struct actor *actor)
{
	bool r;

	actor->world->syncing++;
	r = write_some(actor, ZF_WRITE_DSYNC);
	actor->world->syncing--;
	return r;
}

bool actors_step(struct actor *actor)
{
	static const struct {
		unsigned int percent[PROFILES];
		bool (*run)(struct actor *actor);
	} kinds[] = {
		{{25, 18, 18, 20}, write_plainly}, {{10, 28, 8, 4}, write_durably},
		{{3, 2, 2, 4}, punch_some},	   {{23, 36, 14, 18}, sync_file},
		{{14, 4, 34, 10}, change_names},   {{6, 6, 10, 4}, sync_dir},
		{{2, 0, 2, 2}, sync_all},	   {{3, 1, 3, 3}, sync_trees},
		{{5, 1, 3, 5}, flush_all},	   {{3, 1, 3, 5}, commit},
		{{3, 1, 1, 20}, reclaim},	   {{3, 2, 2, 5}, read_some},
	};
	unsigned int n = (unsigned int)zf_rng_below(&actor->rng, 100);

	for (size_t i = 0;; i++) {
		unsigned int percent = kinds[i].percent[actor->world->profile];

		if (n < percent)
			return kinds[i].run(actor);
		n -= percent;
	}
}

/* SPDX-License-Identifier: MIT */
#include "fs/mount/scrubber.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc/zone.h"
#include "alloc/zone_format.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/vector.h"
#include "fs/core/inode.h"
#include "fs/core/wake.h"

/* After this many bytes the scrub makes a commit to store its place. */
#define PLACE_BYTES (UINT64_C(4) << 30)

/* The scrub's share of the time while others use the device: one part in SHARE. */
#define SHARE 32u
/*
 * The limits of a pause: long enough to notice other users of the device, and short enough that
 * pausing or cancelling a scrub does not wait long.
 */
#define PAUSE_MS_MIN 10u
#define PAUSE_MS_MAX 10000u

struct damage {
	struct zf_scrub_error error;
	char *path; /* NULL: not known */
};

/* Both change while others use the filesystem. */
struct traffic {
	uint64_t device_bytes, memory_bytes;
};

struct zf_scrubber {
	/* Under fs->health_lock. */
	struct zf_scrub_record record;
	uint64_t number;	 /* of this scrub: a step of an earlier one changes nothing */
	struct zf_vector damage; /* struct damage */

	/* Used only by the thread that makes steps. */
	uint64_t row_number;	/* the scrub whose steps are made in a row; 0: none */
	uint64_t row_ns;	/* when the row began, ... */
	uint64_t row_active_ms; /* ... how long the scrub had run before, ... */
	uint64_t row_bytes;	/* ... and what was verified since */
	uint64_t stored_bytes;	/* verified when the place was last stored by a commit of its own */
	struct traffic before;	/* at the beginning of the last pause */
	uint64_t owed_ns;	/* the pause that is due, once it is long enough */
	bool others;		/* others used the device in the last pause */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Seconds since 1970, and never 0. */
static uint64_t now_s(struct zf_fs *fs)
{
	return zf_max_u64(1, (uint64_t)zf_fs_now(fs).seconds);
}

/* ---- life ---- */

int zf_scrubber_init(struct zf_fs *fs, const struct zf_scrub_record *record)
{
	fs->scrubber = calloc(1, sizeof(*fs->scrubber));
	if (!fs->scrubber)
		return -ENOMEM;
	fs->scrubber->record = *record;
	fs->scrubber->number = 1;
	fs->scrubber->damage = ZF_VECTOR(struct damage);
	atomic_store(&fs->scrubbed.finished_at, record->completed);
	return 0;
}

static void forget_damage(struct zf_scrubber *scrubber)
{
	ZF_VECTOR_FOREACH (&scrubber->damage, struct damage, damage)
		free(damage->path);
	zf_vector_deinit(&scrubber->damage);
	scrubber->damage = ZF_VECTOR(struct damage);
}

void zf_scrubber_deinit(struct zf_fs *fs)
{
	if (!fs->scrubber)
		return;
	forget_damage(fs->scrubber);
	free(fs->scrubber);
	fs->scrubber = NULL;
}

/* ---- states ---- */

/* Makes a change of state durable, and wakes the scrubber's thread. */
static int store(struct zf_fs *fs)
{
	int r = zf_txn_commit(fs->txn, true);

	zf_wake_scrub(fs);
	/* If there was no space for this commit, the next commit stores the change. */
	return r == -ENOSPC ? 0 : r;
}

int zf_scrubber_start(struct zf_fs *fs, uint64_t rate)
{
	struct zf_scrubber *scrubber = fs->scrubber;
	enum zf_scrub_state state;

	zf_mutex_lock(&fs->health_lock);
	state = scrubber->record.state;
	if (state != ZF_SCRUB_RUNNING && state != ZF_SCRUB_PAUSED) {
		scrubber->record = (struct zf_scrub_record){
			.state = ZF_SCRUB_RUNNING,
			.rate = rate,
			.started = now_s(fs),
			.completed = scrubber->record.completed,
		};
		scrubber->number++;
		forget_damage(scrubber);
	}
	zf_mutex_unlock(&fs->health_lock);
	if (state == ZF_SCRUB_RUNNING || state == ZF_SCRUB_PAUSED)
		return state == ZF_SCRUB_RUNNING ? -EBUSY : -EEXIST;
	return store(fs);
}

/* Changes the state to `to`, if it is `from` or `or_from`. -ENOENT: it is neither. */
static int change(struct zf_fs *fs, enum zf_scrub_state from, enum zf_scrub_state or_from,
		  enum zf_scrub_state to)
{
	struct zf_scrub_record *record = &fs->scrubber->record;
	bool may;

	zf_mutex_lock(&fs->health_lock);
	may = record->state == from || record->state == or_from;
	if (may) {
		record->state = to;
		record->ended = to == ZF_SCRUB_CANCELLED ? now_s(fs) : 0;
	}
	zf_mutex_unlock(&fs->health_lock);
	return may ? store(fs) : -ENOENT;
}

int zf_scrubber_pause(struct zf_fs *fs)
{
	return change(fs, ZF_SCRUB_RUNNING, ZF_SCRUB_RUNNING, ZF_SCRUB_PAUSED);
}

int zf_scrubber_resume(struct zf_fs *fs)
{
	return change(fs, ZF_SCRUB_PAUSED, ZF_SCRUB_PAUSED, ZF_SCRUB_RUNNING);
}

int zf_scrubber_cancel(struct zf_fs *fs)
{
	return change(fs, ZF_SCRUB_RUNNING, ZF_SCRUB_PAUSED, ZF_SCRUB_CANCELLED);
}

/* ---- asking ---- */

void zf_scrubber_get(struct zf_fs *fs, struct zf_scrub_record *ret_record)
{
	zf_mutex_lock(&fs->health_lock);
	*ret_record = fs->scrubber->record;
	zf_mutex_unlock(&fs->health_lock);
}

uint64_t zf_scrubber_live_bytes(struct zf_fs *fs)
{
	uint64_t blocks = 0;

	for (uint32_t z = 2; z < zf_alloc_zone_count(fs->alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(fs->alloc, z, &zone);
		blocks += zone.role == ZF_ROLE_OVERWRITE ? 0 : zone.live + zone.system_live;
	}
	return blocks << ZF_BLOCK_SHIFT;
}

int zf_scrubber_get_damage(struct zf_fs *fs, size_t index, struct zf_scrub_error *ret_error,
			   char **ret_path)
{
	struct zf_scrubber *scrubber = fs->scrubber;
	const struct damage *damage = NULL;

	*ret_path = NULL;
	zf_mutex_lock(&fs->health_lock);
	if (index < scrubber->damage.count) {
		damage = zf_vector_at(&scrubber->damage, index);
		*ret_error = damage->error;
		*ret_path = damage->path ? strdup(damage->path) : NULL;
	}
	zf_mutex_unlock(&fs->health_lock);
	return damage ? 0 : -ENOENT;
}

/* ---- damage ---- */

char *zf_scrubber_tell(struct zf_fs *fs, const struct zf_scrub_error *error)
{
	char path[PATH_MAX], escaped[ZF_ESCAPE_SIZE(PATH_MAX)] = "";
	bool known = !error->is_node && zf_fs_path(fs, error->ino, path, sizeof(path)) == 0;

	if (known)
		zf_escape(path, strlen(path), escaped);
	if (error->is_node)
		zf_report(&fs->report, error->repaired ? ZF_REPORT_WARNING : ZF_REPORT_ERROR,
			  "scrub: the copy of a node at %" PRIu64 " is damaged%s", error->address,
			  error->repaired ? ", and was written anew from a good one" : "");
	else
		zf_report_corrupt(&fs->report, "data", error->address,
				  "inode %" PRIu64 "%s%s%s at offset %" PRIu64 ": %" PRIu64
				  " bytes cannot be read or do not match their checksums",
				  error->ino, known ? " (" : "", escaped, known ? ")" : "",
				  error->offset, error->len);
	return known ? strdup(path) : NULL;
}

/* A step, and the scrub that it belongs to. */
struct making {
	struct zf_fs *fs;
	uint64_t number;
	struct zf_scrub_place place;
	uint64_t errors, repaired;
};

static void take_error(void *arg, const struct zf_scrub_error *error)
{
	struct making *making = arg;
	struct zf_scrubber *scrubber = making->fs->scrubber;
	struct damage damage = {.error = *error, .path = zf_scrubber_tell(making->fs, error)};
	bool taken;

	making->errors += !error->repaired;
	making->repaired += error->repaired;
	zf_mutex_lock(&making->fs->health_lock);
	taken = scrubber->number == making->number &&
		scrubber->damage.count < ZF_SCRUBBER_DAMAGE_MAX &&
		zf_vector_push(&scrubber->damage, &damage) == 0;
	zf_mutex_unlock(&making->fs->health_lock);
	if (!taken)
		free(damage.path);
}

/* ---- pace ---- */

/*
 * Returns what the device has read and written so far for all users, and what waits to be written.
 */
static struct traffic traffic(struct zf_fs *fs)
{
	struct zf_dev_stats stats;

	zf_dev_get_stats(fs->dev, &stats);
	return (struct traffic){
		.device_bytes = stats.read_bytes + stats.append_bytes + stats.write_bytes,
		.memory_bytes = atomic_load(&fs->flush.used_bytes),
	};
}

/*
 * Compares memory, too, because a writer is answered from memory and may use the device later than
 * the next pause.
 */
static bool is_same(const struct traffic *a, const struct traffic *b)
{
	return a->device_bytes == b->device_bytes && a->memory_bytes == b->memory_bytes;
}

/*
 * Returns the pause after which the scrub has kept `rate` on average since the row of steps began.
 */
static uint64_t pause_by_rate(const struct zf_scrubber *scrubber, uint64_t rate, uint64_t now)
{
	double due_ns = (double)scrubber->row_bytes / (double)rate * 1e9;
	double left_ms = (due_ns - (double)(now - scrubber->row_ns)) / 1e6;

	if (left_ms <= 0)
		return 0;
	return left_ms > PAUSE_MS_MAX ? PAUSE_MS_MAX : (uint64_t)left_ms + 1;
}

static uint64_t pause_for_others(struct zf_scrubber *scrubber, uint64_t took_ns)
{
	uint64_t owed_ms;

	scrubber->owed_ns += scrubber->others ? took_ns * (SHARE - 1) : took_ns / 4;
	owed_ms = scrubber->owed_ns / 1000000;
	if (owed_ms < PAUSE_MS_MIN)
		return 0;
	scrubber->owed_ns = 0;
	return zf_min_u64(owed_ms, PAUSE_MS_MAX);
}

/*
 * Begins a row of steps: at the mount, and when a scrub is resumed. Earlier steps do not count for
 * the pace.
 */
static void begin_row(struct zf_scrubber *scrubber, const struct zf_scrub_record *record,
		      uint64_t number, uint64_t now)
{
	scrubber->row_number = number;
	scrubber->row_ns = now;
	scrubber->row_active_ms = record->active_ms;
	scrubber->row_bytes = 0;
	scrubber->stored_bytes = record->data_bytes + record->node_bytes;
	scrubber->owed_ns = 0;
	scrubber->others = true;
}

/* ---- steps ---- */

/*
 * Adds the result of the step to the scrub, unless another scrub began meanwhile. Returns whether
 * the step was the last one.
 */
static bool take_step(struct making *making, const struct zf_scrub_step *step, int result)
{
	uint64_t row_ms = (now_ns() - making->fs->scrubber->row_ns) / 1000000;
	struct zf_fs *fs = making->fs;
	struct zf_scrub_record *record = &fs->scrubber->record;
	bool finished = false;

	zf_mutex_lock(&fs->health_lock);
	if (fs->scrubber->number == making->number && record->state != ZF_SCRUB_CANCELLED) {
		record->data_bytes += step->data_bytes;
		record->node_bytes += step->node_bytes;
		record->skipped += step->skipped;
		record->errors += making->errors;
		record->repaired += making->repaired;
		record->active_ms = fs->scrubber->row_active_ms + row_ms;
		record->place = making->place;
		finished = result == 0;
		if (result < 0 && record->state == ZF_SCRUB_RUNNING)
			record->state = ZF_SCRUB_PAUSED;
		if (finished) {
			record->state = ZF_SCRUB_FINISHED;
			record->ended = record->completed = now_s(fs);
			record->place = (struct zf_scrub_place){0};
		}
	}
	zf_mutex_unlock(&fs->health_lock);
	return finished;
}

/* Makes a commit that stores the place, when it is time for that. */
static void store_step(struct zf_fs *fs, uint64_t verified, bool now)
{
	struct zf_scrubber *scrubber = fs->scrubber;

	if (!now && verified - scrubber->stored_bytes < PLACE_BYTES)
		return;
	scrubber->stored_bytes = verified;
	/* If the filesystem has become read-only, the scrub goes on without storing its place. */
	(void)zf_txn_commit(fs->txn, true);
}

static bool is_running(struct zf_fs *fs, struct zf_scrub_record *ret_record, uint64_t *ret_number)
{
	zf_mutex_lock(&fs->health_lock);
	*ret_record = fs->scrubber->record;
	*ret_number = fs->scrubber->number;
	zf_mutex_unlock(&fs->health_lock);
	return ret_record->state == ZF_SCRUB_RUNNING;
}

static int make_step(struct zf_fs *fs, const struct zf_scrub_record *record, uint64_t number)
{
	struct making making = {.fs = fs, .number = number, .place = record->place};
	struct zf_scrub_step step = {.error = take_error, .arg = &making};
	uint64_t verified = record->data_bytes + record->node_bytes;
	int r = zf_scrub_step(fs, true, &making.place, &step);
	bool finished;

	/* After an error the place stays, so the next step verifies what this one has left out. */
	if (r < 0)
		making.place = record->place;
	finished = take_step(&making, &step, r);
	fs->scrubber->row_bytes += step.data_bytes + step.node_bytes;
	verified += step.data_bytes + step.node_bytes;
	store_step(fs, verified, finished || r < 0);
	if (r < 0)
		zf_report(&fs->report, ZF_REPORT_ERROR,
			  "the scrub has paused: %s; `zfusectl scrub resume` continues it",
			  strerror(-r));
	return r;
}

int zf_scrubber_step(struct zf_fs *fs, uint64_t *ret_wait_ms)
{
	struct zf_scrubber *scrubber = fs->scrubber;
	uint64_t number, began = now_ns(), ended;
	const struct traffic now = traffic(fs);
	struct zf_scrub_record record;
	bool running = is_running(fs, &record, &number);

	if (running && scrubber->row_number != number)
		begin_row(scrubber, &record, number, began);
	else if (scrubber->owed_ns == 0)
		scrubber->others = !is_same(&now, &scrubber->before);
	if (!running || make_step(fs, &record, number) <= 0) {
		scrubber->row_number = 0;
		return 0;
	}
	ended = now_ns();
	scrubber->before = traffic(fs);
	*ret_wait_ms = record.rate ? pause_by_rate(scrubber, record.rate, ended)
				   : pause_for_others(scrubber, ended - began);
	return 1;
}

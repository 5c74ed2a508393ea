/* SPDX-License-Identifier: MIT */
/* A schedule of several actors: its mount, its faults, and the moments at which it is cut. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "actors.h"
#include "base/bits.h"
#include "fs/map/extent_edit.h"
#include "fs/core/inode.h"
#include "fs/space/reclaim.h"
#include "io/dev_ops.h"
#include "log/log_internal.h"
#include "support/fibers.h"
#include "txn/txn_internal.h"

#define KIB		  UINT64_C(1024)
#define COMMIT_MS	  5000u

#define PERSISTENT_FAULTS 200u /* more commands of a kind than any schedule issues */

bool actors_verbose;

static void print_if_verbose(void *arg, enum zf_report_level level, const char *message)
{
	if (actors_verbose)
		zf_report_stderr(arg, level, message);
}

const struct zf_report actors_report = {print_if_verbose, (void *)(uintptr_t)"actors"};

static struct world *now; /* the schedule that runs */

static struct actor *this_actor(void)
{
	for (unsigned int i = 0; now && i < now->actor_count; i++)
		if (now->actors[i].fiber == fibers_self() && !now->actors[i].over)
			return &now->actors[i];
	return NULL;
}

/* ---- moments that are kept ---- */

/* Each candidate is kept with the same chance. */
static void offer_cut(struct world *world)
{
	unsigned int at = world->cut_count;

	world->candidates++;
	if (at == CUTS_MAX) {
		at = (unsigned int)zf_rng_below(&world->rng, world->candidates);
		if (at >= CUTS_MAX)
			return;
		zf_sim_free(world->cuts[at].sim);
	} else {
		world->cut_count++;
	}
	world->cuts[at] = (struct kept_cut){.sim = zf_sim_clone(world->sim), .known = world->known};
}

static void count_records(struct world *world)
{
	const struct zf_log *log = world->fs->log;
	const struct record *record;
	unsigned int under_way = 0;
	bool overtaken = false;

	TAILQ_FOREACH (record, &log->records, link) {
		overtaken |= record->completed && under_way > 0;
		under_way += !record->completed;
	}
	world->events->two_records += under_way > 1;
	world->events->overtaken += overtaken;
	world->events->record_in_commit += under_way > 0 && world->fs->txn->frozen;
	world->events->shared_flush +=
		world->dev->flushing.served && world->dev->flushing.served->next;
}

void actors_moment(struct world *world)
{
	if (!world->running)
		return;
	count_records(world);
	offer_cut(world);
}

static void observe(void *arg, const struct zf_sim *sim)
{
	actors_moment(arg);
}

/* As soon as the log has numbered an operation, a cut may show it. */
static void took_effect(struct actor *actor, uint64_t number)
{
	actor->history[actor->history_count - 1].number = number;
	actor->world->known.actors[actor->no].took_effect = actor->history_count;
}

static void copied(void *arg)
{
	struct world *world = arg;

	zf_fibers_point();
	world->events->swap_beside_fsync += world->syncing > 0;
}

/* ---- the library's functions that are watched (linked with --wrap) ---- */

void __real_zf_log_add(struct zf_log *log, struct zf_log_body *body, uint64_t mark);
void __wrap_zf_log_add(struct zf_log *log, struct zf_log_body *body, uint64_t mark);
void __real_zf_close_announce(struct zf_inode *inode);
void __wrap_zf_close_announce(struct zf_inode *inode);
int __real_zf_dev_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		       unsigned int iovcnt);
int __wrap_zf_dev_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		       unsigned int iovcnt);
uint64_t __real_zf_dev_write_mark(struct zf_dev *dev);
uint64_t __wrap_zf_dev_write_mark(struct zf_dev *dev);

/* The log's lock is held when the number is given, so no other fiber may go on in between here. */
void __wrap_zf_log_add(struct zf_log *log, struct zf_log_body *body, uint64_t mark)
{
	struct actor *actor = this_actor();

	zf_fibers_hold();
	__real_zf_log_add(log, body, mark);
	if (actor && actor->naming && !actor->announcing)
		took_effect(actor, log->number);
	zf_fibers_release();
}

void __wrap_zf_close_announce(struct zf_inode *inode)
{
	struct actor *actor = this_actor();

	if (actor)
		actor->announcing = true;
	__real_zf_close_announce(inode);
	if (actor)
		actor->announcing = false;
}

int __wrap_zf_dev_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		       unsigned int iovcnt)
{
	zf_fibers_point();
	return __real_zf_dev_read(dev, addr, iov, iovcnt);
}

/* The mark is read without a lock, so another fiber may go on here. */
uint64_t __wrap_zf_dev_write_mark(struct zf_dev *dev)
{
	zf_fibers_point();
	return __real_zf_dev_write_mark(dev);
}

/* ---- no memory ---- */

unsigned int actors_memory;

static struct zf_rng memory_rng; /* separate, so that missing memory does not change the draws */

/* Not without background threads: an unmount, which is then alone, would try again and again. */
static bool is_short(struct zf_extent_editor *editor)
{
	return actors_memory > 0 && zf_extent_editor_inode(editor)->fs->background &&
	       zf_rng_below(&memory_rng, actors_memory) == 0;
}

int __real_zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
			 uint64_t *ret_len);
int __wrap_zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
			 uint64_t *ret_len);
int __real_zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len);
int __wrap_zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len);

/* take_lent is set only when data lands. */
int __wrap_zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
			 uint64_t *ret_len)
{
	if (editor->take_lent && is_short(editor))
		return -ENOMEM;
	return __real_zf_extent_put(editor, extent, ret_len);
}

int __wrap_zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len)
{
	return is_short(editor) ? -ENOMEM : __real_zf_extent_put_inline(editor, bytes, len);
}

/* ---- preparing ---- */

static void begin_known(struct world *world, const struct base *base)
{
	struct known *known = &world->known;

	world->dir = base->dir;
	for (unsigned int file = 0; file < FILES; file++) {
		world->files[file] = base->files[file];
		for (unsigned int b = 0; b < FILE_BLOCKS_MIN + 16 * file; b++)
			known->blocks[file][b] = (struct block_known){1, 1, 1};
	}
	for (unsigned int i = 0; i < ACTORS_MAX; i++) {
		struct actor *actor = &world->actors[i];

		actor->history[0] = (struct names){
			.count = 1, .names = {{.seq = 0, .ino = base->named[i], .whole = 1}}};
		actor->history_count = 1;
		actor->next_seq = 1;
		known->actors[i].took_effect = 1;
		known->actors[i].named_count = 1;
		known->actors[i].named[0] = (struct named_known){base->named[i], 1, 1};
	}
}

/* ---- a schedule ---- */

unsigned int actors_steps_max;

static void add_fault(struct world *world, enum zf_io_op op, uint64_t nth)
{
	const struct zf_sim_fault fault = {
		.op = op,
		.nth = nth,
		.error = -EIO,
		.moves_pointer = zf_rng_chance(&world->rng, 50),
		.loses_cache = op == ZF_IO_FLUSH && zf_rng_chance(&world->rng, 50),
	};

	if (actors_verbose)
		fprintf(stderr, "fault: op %d, number %" PRIu64 "\n", op, nth);
	zf_sim_add_fault(world->sim, &fault);
	world->events->faults++;
	world->faulty = true;
}

static uint64_t draw_nth(struct world *world)
{
	return 1 + zf_rng_below(&world->rng, 20);
}

/* Another append makes up for one that fails, so no data is lost. */
static void add_mild_faults(struct world *world)
{
	unsigned int others = (unsigned int)zf_rng_below(&world->rng, 3);

	add_fault(world, ZF_IO_APPEND, draw_nth(world));
	for (unsigned int i = 0; i < others; i++)
		add_fault(world, zf_rng_chance(&world->rng, 50) ? ZF_IO_WRITE : ZF_IO_FLUSH,
			  draw_nth(world));
}

/* Some commands in a row fail, or all from one on. */
static void add_severe_faults(struct world *world)
{
	static const enum zf_io_op ops[] = {ZF_IO_APPEND, ZF_IO_APPEND, ZF_IO_WRITE, ZF_IO_FLUSH};
	enum zf_io_op op = ops[zf_rng_below(&world->rng, ZF_ARRAY_SIZE(ops))];
	unsigned int count = zf_rng_chance(&world->rng, 50)
				     ? 2 + (unsigned int)zf_rng_below(&world->rng, 4)
				     : PERSISTENT_FAULTS;
	uint64_t first = draw_nth(world);

	world->lossy = true;
	for (unsigned int i = 0; i < count; i++)
		add_fault(world, op, first + i);
}

static void add_faults(struct world *world)
{
	if (zf_rng_chance(&world->rng, 60))
		return;
	if (zf_rng_chance(&world->rng, 50))
		add_severe_faults(world);
	else
		add_mild_faults(world);
}

static bool has_work(void *arg)
{
	struct zf_dev *dev = arg;

	return atomic_load(&dev->in_flight) > 0 || atomic_load(&dev->stopping);
}

static void device_waits(struct zf_dev *dev)
{
	zf_fibers_wait_until("something in flight", has_work, dev);
}

static int mount(struct world *world)
{
	const struct zf_mount_options options = {.threads = true,
						 .cache_bytes = 256 * KIB,
						 .dirty_bytes = world->dirty_bytes,
						 .commit_ms = COMMIT_MS};
	int r;

	actors_must(zf_sim_open(world->sim, &actors_report, &world->dev));
	actors_must(zf_dev_start_thread(world->dev));
	/* A slow device has many commands in flight. */
	if (zf_rng_chance(&world->rng, 50))
		zf_fibers_set_weight((unsigned int)world->dev->thread, 1);
	r = zf_fs_mount(world->dev, &options, &actors_report, &world->fs);
	if (r == 0) {
		world->fs->reclaim->copied = copied;
		world->fs->reclaim->copied_arg = world;
	}
	return r;
}

static void *actor_main(void *arg)
{
	struct actor *actor = arg;

	actor->fiber = fibers_self();
	for (unsigned int i = 0; i < actor->steps && !actor->world->failed; i++)
		if (!actors_step(actor))
			break;
	actor->over = true;
	return NULL;
}

static void run_actors(struct world *world)
{
	unsigned int fibers[ACTORS_MAX];
	unsigned int steps = 3 + (unsigned int)zf_rng_below(&world->rng, STEPS_MAX - 2);

	if (actors_steps_max > 0 && steps > actors_steps_max)
		steps = actors_steps_max;
	for (unsigned int i = 0; i < world->actor_count; i++) {
		struct actor *actor = &world->actors[i];
		char name[32];

		actor->steps = steps;
		zf_rng_seed(&actor->rng, zf_rng_next(&world->rng));
		snprintf(name, sizeof(name), "actor %u", i);
		fibers[i] = zf_fibers_spawn(name, actor_main, actor);
	}
	for (unsigned int i = 0; i < world->actor_count; i++)
		zf_fibers_join(fibers[i]);
}

/* All that was done is durable now; keeps the last cut. */
static void promise_all(struct world *world)
{
	struct known *known = &world->known;

	for (unsigned int i = 0; i < FILES * FILE_BLOCKS; i++)
		known->blocks[i / FILE_BLOCKS][i % FILE_BLOCKS].durable =
			known->blocks[i / FILE_BLOCKS][i % FILE_BLOCKS].done;
	for (unsigned int i = 0; i < ACTORS_MAX * NAMED_MAX; i++)
		known->actors[i / NAMED_MAX].named[i % NAMED_MAX].durable =
			known->actors[i / NAMED_MAX].named[i % NAMED_MAX].begun;
	known->names_durable = world->names_done;
	world->cuts[world->cut_count++] =
		(struct kept_cut){.sim = zf_sim_clone(world->sim), .known = *known};
}

static void unmount(struct world *world)
{
	bool abandon = zf_rng_chance(&world->rng, 70);
	int r = 0;

	if (abandon)
		zf_fs_abandon(world->fs);
	else
		r = zf_fs_unmount(world->fs);
	world->running = false;
	world->events->faults -= zf_sim_faults_left(world->sim);
	if (r < 0 && !world->faulty)
		world->failed = true;
	zf_dev_close(world->dev);
	if (!abandon && r == 0 && !world->hurt)
		promise_all(world);
}

static bool judge_cuts(struct world *world)
{
	bool ok = !world->failed;

	for (unsigned int i = 0; ok && i < world->cut_count; i++) {
		ok = actors_judge(world, &world->cuts[i], world->seed * CUTS_MAX + i);
		if (!ok)
			fprintf(stderr, "actors: in cut %u of seed %" PRIu64 "\n", i, world->seed);
		world->events->cuts++;
	}
	for (unsigned int i = 0; i < world->cut_count; i++)
		zf_sim_free(world->cuts[i].sim);
	return ok;
}

static void prepare(struct world *world, uint64_t seed, struct events *events)
{
	const struct base *base;

	memset(world, 0, sizeof(*world));
	world->seed = seed;
	world->events = events;
	zf_rng_seed(&world->rng, seed);
	zf_rng_seed(&memory_rng, seed);
	base = actors_base((unsigned int)zf_rng_below(&world->rng, BASES));
	world->sim = zf_sim_clone(base->sim);
	zf_sim_set_thread(world->sim, device_waits);
	world->dirty_bytes = (zf_rng_chance(&world->rng, 50) ? 256 : 16) * KIB;
	world->profile = (unsigned int)zf_rng_below(&world->rng, PROFILES);
	world->actor_count = 2 + (unsigned int)zf_rng_below(&world->rng, ACTORS_MAX - 1);
	for (unsigned int i = 0; i < ACTORS_MAX; i++)
		world->actors[i] = (struct actor){.world = world, .no = i};
	begin_known(world, base);
}

static void run(struct world *world)
{
	zf_fibers_begin(zf_rng_next(&world->rng));
	actors_must(mount(world));
	add_faults(world);
	zf_sim_observe(world->sim, observe, world);
	world->running = true;
	run_actors(world);
	unmount(world);
	world->events->schedules = 1;
	world->events->switches = zf_fibers_switches();
	world->events->stalls = zf_fibers_stalls();
	zf_fibers_end();
}

bool actors_run(uint64_t seed, struct events *events)
{
	static struct world world;
	struct events these = {0};
	bool ok;

	prepare(&world, seed, &these);
	now = &world;
	run(&world);
	now = NULL;
	zf_sim_free(world.sim);
	ok = judge_cuts(&world);
	if (these.stalls > 0 && !world.faulty) {
		fprintf(stderr, "actors: a wake-up is missing: time alone ended a wait\n");
		ok = false;
	}
	for (size_t i = 0; i < sizeof(these) / sizeof(uint64_t); i++)
		((uint64_t *)events)[i] += ((const uint64_t *)&these)[i];
	return ok;
}

/* SPDX-License-Identifier: MIT */
/* Runs a workload on the simulator, and keeps the state at each command. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "base/bits.h"
#include "explore.h"
#include "fs/mount/format.h"
#include "fs/core/inode.h"
#include "fs/space/reclaim.h"

#define KIB UINT64_C(1024)

/* The share of crowded records among those at random; and the most that filling leaves free. */
#define CROWDED_PERCENT	 15u
#define CROWDED_LEFT_MAX (384 * KIB)

bool explore_verbose;

static void print_if_verbose(void *arg, enum zf_report_level level, const char *message)
{
	if (explore_verbose)
		zf_report_stderr(arg, level, message);
}

const struct zf_report explore_report = {print_if_verbose, (void *)(uintptr_t)"crash"};

/* The preparation is the same for all sequences; it, and filling a device, is not cut each time. */
static bool is_prelude(const struct record *record)
{
	if (record->options.script)
		return false;
	return record->options.name.length > 0 ? !sequence_is_prepared(&record->sequence)
					       : record->crowded && !record->filled;
}

static void keep_cut(void *arg, const struct zf_sim *sim)
{
	struct record *record = arg;

	if (is_prelude(record))
		return;
	if (record->cut_count == record->cut_room) {
		record->cut_room = record->cut_room * 2 + 64;
		record->cuts = realloc(record->cuts, record->cut_room * sizeof(*record->cuts));
		assert(record->cuts);
	}
	record->cuts[record->cut_count++] =
		(struct cut){.sim = zf_sim_clone(sim), .op = record->count};
}

/* Draws a geometry among the smallest devices. */
static struct zf_geometry draw_geometry(struct zf_rng *rng)
{
	struct zf_geometry geometry = {
		.zone_size = 128 * KIB,
		.zone_capacity = zf_rng_chance(rng, 50) ? 128 * KIB : 100 * KIB,
		.zone_count = 24 + (uint32_t)zf_rng_below(rng, 40),
		.append_limit = zf_rng_chance(rng, 50) ? 16 * KIB : 64 * KIB,
		.volatile_cache = zf_rng_chance(rng, 90),
	};

	/* The smallest zone that holds 16 nodes: zones are soon full, and soon empty again. */
	if (zf_rng_chance(rng, 30))
		geometry.zone_size = geometry.zone_capacity = 64 * KIB;
	if (zf_rng_chance(rng, 50))
		geometry.max_active = geometry.max_open = 8 + (uint32_t)zf_rng_below(rng, 5);
	if (zf_rng_chance(rng, 10))
		geometry.conventional = 1 + (uint32_t)zf_rng_below(rng, 6);
	return geometry;
}

/* So few zones that writes soon find no empty one. */
static struct zf_geometry draw_crowded(struct zf_rng *rng)
{
	struct zf_geometry geometry = {
		.zone_size = 64 * KIB,
		.zone_capacity = 64 * KIB,
		.zone_count = 20 + (uint32_t)zf_rng_below(rng, 6),
		.append_limit = zf_rng_chance(rng, 50) ? 16 * KIB : 64 * KIB,
		.volatile_cache = true,
	};

	if (zf_rng_chance(rng, 50))
		geometry.max_active = geometry.max_open = 8 + (uint32_t)zf_rng_below(rng, 5);
	return geometry;
}

/* Some devices complete some commands long after others. */
static unsigned int draw_late_percent(struct zf_rng *rng)
{
	static const unsigned int percents[] = {0, 0, 30, 70};

	return percents[zf_rng_below(rng, ZF_ARRAY_SIZE(percents))];
}

static int format(struct zf_dev *dev, struct zf_rng *rng, uint8_t copies)
{
	uint8_t drawn = zf_rng_chance(rng, 30) ? 2 : 1;
	const struct zf_format_options options = {
		.label = "crash",
		.fsid = {3, 2, 1},
		.node_size = 4096,
		.metadata_copies = copies ? copies : drawn,
		.now_ns = WORKLOAD_EPOCH_NS,
		.dir_hash_seed = zf_rng_next(rng),
	};

	return zf_fs_format(dev, &options, &explore_report);
}

static int mount(struct record *record, struct zf_dev *dev)
{
	const struct zf_mount_options options = {
		.cache_bytes = 256 * KIB,
		.dirty_bytes = 256 * KIB,
		.now_ns = workload_now,
		.now_arg = &record->workload,
		.trace = record->options.trace,
		.trace_fd = record->options.trace_fd,
	};
	struct zf_fs *fs;
	int r = zf_fs_mount(dev, &options, &explore_report, &fs);

	if (r == 0)
		workload_remounted(&record->workload, fs);
	return r;
}

/* ---- where operations come from ---- */

struct source {
	uint32_t at; /* in the script */
	struct {
		uint64_t was, is;
	} *inos; /* of the inodes that the script's operations made */
	uint32_t ino_count;
};

/* Valid until the next call. There is always room for one more, the unmount. */
static struct zf_op *next_room(struct record *record)
{
	uint32_t had = record->room;

	if (record->count + 1 >= record->room) {
		record->room = record->room * 2 + 64;
		record->ops = realloc(record->ops, record->room * sizeof(*record->ops));
		assert(record->ops);
		memset(record->ops + had, 0, (record->room - had) * sizeof(*record->ops));
	}
	return &record->ops[record->count];
}

static bool makes_inode(const struct zf_op *op)
{
	return op->result == 0 && (op->kind == OP_MAKE || op->kind == OP_TMPFILE ||
				   (op->kind == OP_RENAME && (op->flags & RENAME_WHITEOUT)));
}

/* Replaces *ino by its number in this run. False: the operation that made it is left out. */
static bool find_ino(const struct script *script, const struct source *source, uint64_t *ino)
{
	for (uint32_t i = 0; i < source->ino_count; i++) {
		if (source->inos[i].was == *ino) {
			*ino = source->inos[i].is;
			return true;
		}
	}
	for (uint32_t i = 0; i < script->count; i++) {
		if (makes_inode(&script->ops[i]) && script->ops[i].attr.ino == *ino)
			return false;
	}
	return true; /* the root, or a number that never existed */
}

/* False: the operation needs one of those that were left out. */
static bool still_makes_sense(struct workload *w, struct zf_op *op)
{
	const struct oracle_inode *inode = oracle_find(w->oracle, op->ino);

	if (op->ino && !inode)
		return false;
	switch (op->kind) {
	case OP_FORGET:
		return inode->held > 0;
	case OP_FREEZE:
		return w->commit == COMMIT_NONE;
	case OP_COMMIT_WRITE:
		return w->commit == COMMIT_FROZEN;
	case OP_COMMIT_FINISH:
		return w->commit == COMMIT_WRITTEN;
	default:
		break;
	}
	if (w->commit == COMMIT_NONE)
		return true;
	op->may_wait = workload_goes_to_log(op);
	return !workload_has_to_wait(w, op);
}

static bool next_of_script(struct record *record, struct source *source, struct zf_op *ret_op)
{
	const struct script *script = record->options.script;

	while (source->at < script->count) {
		uint32_t i = source->at++;

		if (!script->keep[i])
			continue;
		*ret_op = script->ops[i];
		record->workload.number = ret_op->number;
		if (find_ino(script, source, &ret_op->dir) &&
		    find_ino(script, source, &ret_op->dir2) &&
		    find_ino(script, source, &ret_op->ino) &&
		    find_ino(script, source, &ret_op->from_ino) &&
		    still_makes_sense(&record->workload, ret_op))
			return true;
	}
	return false;
}

static bool is_full_enough(const struct record *record)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(record->workload.fs), &space);
	return space.available <= record->fill_left;
}

/* Fills the device with files of some writes each; at last a syncfs makes them durable. */
static void next_fill(struct record *record, struct zf_op *ret_op)
{
	static const char *const names[] = {"fill 0", "fill 1", "fill 2", "fill 3",
					    "fill 4", "fill 5", "fill 6", "fill 7"};
	unsigned int writes = 4, at = record->count % (1 + writes),
		     file = record->count / (1 + writes);

	*ret_op = (struct zf_op){.number = ++record->workload.number, .may_wait = true};
	if (file >= ZF_ARRAY_SIZE(names) || is_full_enough(record)) {
		ret_op->kind = OP_SYNCFS;
		record->filled = true;
	} else if (at == 0) {
		ret_op->kind = OP_MAKE;
		ret_op->dir = ZF_INO_ROOT;
		ret_op->name = names[file];
		ret_op->mode = S_IFREG | 0600;
	} else {
		ret_op->kind = OP_WRITE;
		ret_op->ino = record->ops[file * (1 + writes)].attr.ino;
		ret_op->len = 24 * KIB;
		ret_op->offset = (at - 1) * ret_op->len;
	}
}

static bool next_op(struct record *record, struct source *source, struct zf_op *ret_op)
{
	if (record->options.script)
		return next_of_script(record, source, ret_op);
	if (record->crowded && !record->filled) {
		next_fill(record, ret_op);
		return true;
	}
	if (record->options.name.length > 0) {
		*ret_op = (struct zf_op){.number = record->workload.number + 1};
		if (!sequence_next(&record->sequence, ret_op))
			return false;
		record->workload.number++;
		return true;
	}
	if (record->count >= record->options.ops)
		return false;
	workload_draw(&record->workload, ret_op);
	return true;
}

static void op_ran(struct record *record, struct source *source, const struct zf_op *op)
{
	const struct script *script = record->options.script;

	if (script) {
		if (makes_inode(op)) {
			source->inos[source->ino_count].was = script->ops[source->at - 1].attr.ino;
			source->inos[source->ino_count++].is = op->attr.ino;
		}
	} else if (record->options.name.length > 0) {
		sequence_ran(&record->sequence, op);
		record->infeasible |= op->result < 0;
	}
}

/* ---- running ---- */

static bool is_device_error(int64_t result)
{
	return result == -EIO || result == -EROFS || result == -ENXIO || result == -EUCLEAN;
}

static const struct zf_ctx ctx = {.may_wait = true, .no_atime = true};

static bool may_fail(const struct record *record)
{
	return record->options.fault || record->options.within;
}

/* Such an operation may have been done in part, because content of files is not atomic. */
static bool may_be_half_done(const struct zf_op *op)
{
	switch (op->kind) {
	case OP_WRITE:
		return op->durable || (op->flags & ZF_WRITE_DSYNC);
	case OP_SETATTR:
		return op->set.valid & ZF_SET_SIZE;
	case OP_COPY:
	case OP_FALLOCATE:
		return true;
	default:
		return false;
	}
}

/* Memory may have run out in the middle of a transaction, not only in this operation. */
static bool memory_hurt(const struct record *record, const struct zf_op *op)
{
	return (op->result == -ENOMEM && may_be_half_done(op)) ||
	       zf_fs_is_read_only(record->workload.fs);
}

/*
 * The operation took effect, and memory ran out when it was made durable: its answer is an error,
 * too. The operation's time in ctime shows that it took effect.
 */
static bool was_done(const struct record *record, const struct zf_op *op)
{
	struct zf_attr attr;

	return op->durable &&
	       zf_fs_getattr(record->workload.fs, &ctx, op->dir ? op->dir : op->ino, &attr) == 0 &&
	       workload_op_of_time(&attr.ctime) == op->number;
}

/* Counts the operation as a success without a promise, and without a reference to its inode. */
static void note_done(struct record *record, struct zf_op *op)
{
	struct zf_fs *fs = record->workload.fs;

	op->durable = op->hold = false;
	op->result = 0;
	if (op->ino)
		zf_fs_getattr(fs, &ctx, op->ino, &op->attr);
	else if (zf_fs_lookup(fs, &ctx, op->dir, op->name, &op->attr) == 0)
		zf_fs_forget(fs, op->attr.ino, 1);
}

/* Memory ran out: checks that everything is as it was before. */
static bool check_unchanged(struct record *record, const struct zf_op *op)
{
	struct workload *workload = &record->workload;

	if (workload_compare(workload->fs, workload->oracle))
		return true;
	fprintf(stderr, "not all is as it was before ");
	workload_print(stderr, op);
	return false;
}

/* True: go on. After an error of the device the oracle cannot predict the answers any more: then
 * each success is only applied to it. */
static bool run_op(struct record *record, struct zf_op *op, bool *ret_ok)
{
	workload_run(&record->workload, op);
	record->told_durable |=
		record->hurt && op->result == 0 && (op->kind == OP_FSYNC || op->kind == OP_SYNCFS);
	if (may_fail(record) && is_device_error(op->result) && !record->hurt)
		record->hurt = (int)op->result;
	if (record->options.within && !record->hurt && memory_hurt(record, op))
		record->hurt = -ENOMEM;
	if (record->options.within && op->result < 0 && was_done(record, op))
		note_done(record, op);
	if (record->options.within && op->result == -ENOMEM)
		*ret_ok = (record->hurt || check_unchanged(record, op)) && *ret_ok;
	else if (!record->hurt)
		*ret_ok = workload_check(&record->workload, op) && *ret_ok;
	else if (op->result >= 0)
		oracle_apply(record->workload.oracle, op);
	return *ret_ok;
}

struct runner {
	struct record *record;
	struct source *source;
	unsigned int left;   /* operations after the first error */
	unsigned int beside; /* operations that are still to run beside the reclaim ... */
	uint32_t reclaim;    /* ... that runs: its index */
	bool ok;
};

/* Draws ops[count], unless it has been drawn. False: no operation is left. */
static bool draw_next(struct runner *runner)
{
	struct record *record = runner->record;
	struct zf_op *op = next_room(record);

	if (!record->drawn)
		record->drawn = next_op(record, runner->source, op);
	return record->drawn;
}

/* False: that was the last operation. */
static bool run_next(struct runner *runner)
{
	struct record *record = runner->record;
	uint32_t index = record->count;
	struct zf_op op = record->ops[index];
	bool ok;

	record->drawn = false;
	if (op.kind == OP_RECLAIM) {
		runner->reclaim = index;
		runner->beside = op.flags;
	}
	ok = run_op(record, &op, &runner->ok);
	record->ops[index] = op;
	op_ran(record, runner->source, &op);
	/* Not after a reclaim beside which others ran: run_beside() has counted it. */
	if (record->count == index)
		record->count++;
	runner->left -= record->hurt != 0 && runner->left > 0;
	return ok && !record->infeasible && runner->left > 0;
}

static void tell_within(const struct record *record, bool in)
{
	if (record->options.within)
		record->options.within(in);
}

/* Runs when a reclaim has copied, but not swapped yet. It counts as over, as nothing shows it. */
static void run_beside(void *arg)
{
	struct runner *runner = arg;
	struct record *record = runner->record;
	struct zf_reclaim *reclaim = record->workload.fs->reclaim;

	/* Some operations make room by a reclaim of their own. */
	reclaim->copied = NULL;
	tell_within(record, false);
	if (record->count == runner->reclaim)
		record->count++;
	while (runner->beside > 0 && draw_next(runner) &&
	       record->ops[record->count].kind != OP_RECLAIM) {
		runner->beside--;
		if (!run_next(runner))
			runner->beside = 0;
	}
	reclaim->copied = run_beside;
	tell_within(record, true);
}

static bool run_ops(struct record *record, struct source *source)
{
	struct runner runner = {.record = record, .source = source, .left = 8, .ok = true};

	record->workload.beside = run_beside;
	record->workload.beside_arg = &runner;
	while (draw_next(&runner) && run_next(&runner))
		;
	return runner.ok;
}

/* The last operation of every record: an unmount, written down as a syncfs. */
static bool finish(struct record *record)
{
	struct workload *workload = &record->workload;
	struct zf_op *op = next_room(record);
	int r = workload_finish_commit(workload), unmounted;

	zf_reclaim_get_stats(workload->fs, &record->reclaimed);
	record->read_only = zf_fs_is_read_only(workload->fs);
	tell_within(record, true);
	unmounted = zf_fs_unmount(workload->fs);
	tell_within(record, false);
	*op = (struct zf_op){.kind = OP_SYNCFS, .number = ++workload->number};
	op->result = r < 0 ? r : unmounted;
	record->count++;
	if (op->result < 0 && !may_fail(record))
		fprintf(stderr, "the unmount failed\n");
	return op->result == 0 || may_fail(record);
}

static void keep_cut_after_fault(void *arg, const struct zf_sim *sim)
{
	struct record *record = arg;

	if (zf_sim_faults_left(sim) < record->faults &&
	    record->since_strike++ % record->options.cut_every == 0)
		keep_cut(record, sim);
}

/* A command meets at most one fault, so each repeated fault strikes a later command. */
static void add_faults(struct record *record, struct zf_sim *sim)
{
	const struct record_options *options = &record->options;

	for (uint32_t i = 0; i <= options->repeats; i++)
		zf_sim_add_fault(sim, options->fault);
	if (options->second)
		zf_sim_add_fault(sim, options->second);
	record->faults = zf_sim_faults_left(sim);
	if (options->cut_every)
		zf_sim_observe(sim, keep_cut_after_fault, record);
}

static bool run_mounted(struct record *record, struct source *source, struct zf_sim *sim,
			struct zf_dev *dev)
{
	bool ok;

	if (record->options.plant)
		lie_begin(dev, record->options.plant->lie);
	record->workload.within = record->options.within;
	if (record->options.fault)
		add_faults(record, sim);
	else if (!record->options.within)
		zf_sim_observe(sim, keep_cut, record);
	ok = run_ops(record, source);
	if (ok && !record->infeasible)
		ok = finish(record);
	else
		zf_fs_abandon(record->workload.fs);
	record->struck = zf_sim_faults_left(sim) < record->faults;
	zf_sim_observe(sim, NULL, NULL);
	return ok;
}

/* Different runs of one seed get different seeds. */
static void seed_of_record(const struct record_name *name, struct zf_rng *rng)
{
	zf_rng_seed(rng, name->seed);
	if (name->length > 0)
		zf_rng_seed(rng, zf_rng_next(rng) ^ name->number ^ (uint64_t)name->length << 56);
}

/* Draws from a seed of its own, so that records that are not crowded stay the same. */
static void draw_crowd(struct record *record)
{
	const struct record_name *name = &record->options.name;
	struct zf_rng rng;

	zf_rng_seed(&rng, ~name->seed);
	record->crowded = name->length == 0 && zf_rng_chance(&rng, CROWDED_PERCENT);
	record->fill_left = zf_rng_below(&rng, CROWDED_LEFT_MAX);
}

static void source_begin(const struct record_options *options, struct record *record,
			 struct source *source)
{
	*source = (struct source){0};
	sequence_begin(&record->sequence, options->name.length, options->name.number);
	if (options->script) {
		source->inos = calloc(options->script->count + 1, sizeof(*source->inos));
		assert(source->inos);
	}
}

bool record_run(struct record *record, const struct record_options *options)
{
	struct zf_geometry geometry;
	struct source source;
	struct zf_sim *sim;
	struct zf_dev *dev;
	struct zf_rng rng;
	bool ok;

	*record = (struct record){.options = *options};
	source_begin(options, record, &source);
	seed_of_record(&options->name, &rng);
	draw_crowd(record);
	workload_init(&record->workload, zf_rng_next(&rng),
		      record->crowded ? &workload_crowded : &workload_crash);
	record->workload.verbose = explore_verbose;
	geometry = record->crowded ? draw_crowded(&rng) : draw_geometry(&rng);
	record->in_place = geometry.conventional > 0;
	sim = zf_sim_new(&geometry, zf_rng_next(&rng));
	zf_sim_set_late(sim, ZF_SIM_ANY_OP, draw_late_percent(&rng));
	if (zf_sim_open(sim, &explore_report, &dev) < 0)
		abort();
	ok = format(dev, &rng, options->copies) == 0 && mount(record, dev) == 0;
	if (ok)
		ok = run_mounted(record, &source, sim, dev);
	zf_dev_close(dev);
	if (options->trace)
		ok = zf_trace_stop(NULL) == 0 && ok;
	record->end = sim;
	free(source.inos);
	return ok;
}

void record_free(struct record *record)
{
	for (uint32_t i = 0; i < record->cut_count; i++)
		zf_sim_free(record->cuts[i].sim);
	zf_sim_free(record->end);
	free(record->cuts);
	free(record->ops);
	workload_deinit(&record->workload);
}

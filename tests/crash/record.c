/* SPDX-License-Identifier: MIT */
/* A workload on the simulator, with the state at each command kept. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "explore.h"
#include "fs/format.h"

#define KIB UINT64_C(1024)

bool explore_verbose;

static void print_if_verbose(void *arg, enum zf_report_level level, const char *message)
{
	if (explore_verbose)
		zf_report_stderr(arg, level, message);
}

const struct zf_report explore_report = {print_if_verbose, (void *)(uintptr_t) "crash"};

static void keep_cut(void *arg, const struct zf_sim *sim)
{
	struct record *record = arg;

	if (record->cut_count == record->cut_room) {
		record->cut_room = record->cut_room * 2 + 64;
		record->cuts = realloc(record->cuts, record->cut_room * sizeof(*record->cuts));
		assert(record->cuts);
	}
	record->cuts[record->cut_count++] =
		(struct cut){.sim = zf_sim_clone(sim), .op = record->count};
}

/* Geometries differ from run to run, as far as the smallest devices go. */
static struct zf_geometry draw_geometry(struct zf_rng *rng)
{
	struct zf_geometry geometry = {
		.zone_size = 128 * KIB,
		.zone_capacity = zf_rng_chance(rng, 50) ? 128 * KIB : 100 * KIB,
		.zone_count = 24 + (uint32_t)zf_rng_below(rng, 40),
		.append_limit = zf_rng_chance(rng, 50) ? 16 * KIB : 64 * KIB,
		.volatile_cache = zf_rng_chance(rng, 90),
	};

	if (zf_rng_chance(rng, 50))
		geometry.max_active = geometry.max_open = 8 + (uint32_t)zf_rng_below(rng, 5);
	if (zf_rng_chance(rng, 10))
		geometry.conventional = 1 + (uint32_t)zf_rng_below(rng, 6);
	return geometry;
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
	};
	struct zf_fs *fs;
	int r = zf_fs_mount(dev, &options, &explore_report, &fs);

	if (r == 0)
		workload_remounted(&record->workload, fs);
	return r;
}

static bool is_device_error(int64_t result)
{
	return result == -EIO || result == -EROFS || result == -ENXIO || result == -EUCLEAN;
}

/* True: go on. After an error of the device the oracle no longer knows: what the calls answer is
 * written down. */
static bool run_op(struct record *record, struct zf_op *op, bool *ret_ok)
{
	workload_run(&record->workload, op);
	if (record->options.fault && is_device_error(op->result) && !record->hurt)
		record->hurt = (int)op->result;
	if (!record->hurt)
		*ret_ok = workload_check(&record->workload, op);
	else if (op->result >= 0)
		oracle_apply(record->workload.oracle, op);
	return *ret_ok;
}

static bool run_ops(struct record *record)
{
	unsigned int left = 8; /* operations after the first error */
	bool ok = true;

	while (record->count < record->options.ops && left > 0) {
		struct zf_op *op = &record->ops[record->count];

		workload_draw(&record->workload, op);
		if (!run_op(record, op, &ok))
			return false;
		record->count++;
		left -= record->hurt != 0;
	}
	return true;
}

/* The last operation of every record: an unmount, written down as a syncfs. */
static bool finish(struct record *record)
{
	struct workload *workload = &record->workload;
	struct zf_op *op = &record->ops[record->count];
	int r = workload_finish_commit(workload), unmounted = zf_fs_unmount(workload->fs);

	*op = (struct zf_op){.kind = OP_SYNCFS, .number = ++workload->number};
	op->result = r < 0 ? r : unmounted;
	record->count++;
	if (op->result < 0 && !record->options.fault)
		fprintf(stderr, "the unmount failed\n");
	return op->result == 0 || record->options.fault;
}

static bool run_mounted(struct record *record, struct zf_sim *sim, struct zf_dev *dev)
{
	bool ok;

	if (record->options.plant)
		lie_begin(dev, record->options.plant->lie);
	if (record->options.fault)
		zf_sim_add_fault(sim, record->options.fault);
	else
		zf_sim_observe(sim, keep_cut, record);
	ok = run_ops(record);
	if (ok)
		ok = finish(record);
	else
		zf_fs_abandon(record->workload.fs);
	record->struck = zf_sim_faults_left(sim) == 0;
	zf_sim_observe(sim, NULL, NULL);
	return ok;
}

bool record_run(struct record *record, const struct record_options *options)
{
	struct zf_geometry geometry;
	struct zf_sim *sim;
	struct zf_dev *dev;
	struct zf_rng rng;
	bool ok;

	*record = (struct record){.options = *options};
	zf_rng_seed(&rng, options->seed);
	workload_init(&record->workload, zf_rng_next(&rng), &workload_crash);
	record->workload.verbose = explore_verbose;
	record->ops = calloc(options->ops + 1, sizeof(*record->ops));
	assert(record->ops);
	geometry = draw_geometry(&rng);
	sim = zf_sim_new(&geometry, zf_rng_next(&rng));
	if (zf_sim_open(sim, &explore_report, &dev) < 0)
		abort();
	ok = format(dev, &rng, options->copies) == 0 && mount(record, dev) == 0;
	if (ok)
		ok = run_mounted(record, sim, dev);
	zf_dev_close(dev);
	record->end = sim;
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

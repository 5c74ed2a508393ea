/* SPDX-License-Identifier: MIT */
/*
 * The crash explorer's command line; scripts/crash builds and runs it.
 *
 *      crash [--cuts N] [--minutes N] [--seed S] [--jobs N] [--records N] [--ops N] [--samples N]
 *            [--sequences LENGTH [--from N]] [--plant BUG] [--shrink SECONDS]
 *      crash --repeat RECORD[:CUT:VARIANT[:CUT:VARIANT[:CUT:VARIANT]]] [--keep OPS]
 *            [--trace FILE [--trace-data FILE]] ...
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "explore.h"

#define JOBS_MAX 64u

struct arguments {
	uint64_t cuts, seed, records, from, minutes;
	unsigned int ops, samples, jobs, sequences, shrink;
	const struct plant *plant;
	const char *repeat, *keep, *trace, *trace_data;

	unsigned int job; /* of a child */
	time_t deadline;  /* 0: none */
};

static const struct plant *parse_plant(const char *name)
{
	const struct plant *plant = plant_find(name);

	if (plant)
		return plant;
	fprintf(stderr, "crash: no such bug can be planted here: %s. There are:", name);
	for (unsigned int i = 0; i < plant_count; i++)
		fprintf(stderr, " %s", plants[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

static bool take_number(struct arguments *arguments, const char *name, const char *value)
{
	const struct {
		const char *name;
		uint64_t *wide;
		unsigned int *narrow;
	} numbers[] = {
		{"--cuts", &arguments->cuts, NULL},
		{"--minutes", &arguments->minutes, NULL},
		{"--seed", &arguments->seed, NULL},
		{"--records", &arguments->records, NULL},
		{"--from", &arguments->from, NULL},
		{"--ops", NULL, &arguments->ops},
		{"--samples", NULL, &arguments->samples},
		{"--jobs", NULL, &arguments->jobs},
		{"--sequences", NULL, &arguments->sequences},
		{"--shrink", NULL, &arguments->shrink},
	};

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(numbers); i++) {
		if (strcmp(name, numbers[i].name) != 0)
			continue;
		if (numbers[i].wide)
			*numbers[i].wide = strtoull(value, NULL, 0);
		else
			*numbers[i].narrow = (unsigned int)strtoul(value, NULL, 0);
		return true;
	}
	return false;
}

static bool take_argument(struct arguments *arguments, const char *name, const char *value)
{
	if (strcmp(name, "--plant") == 0)
		arguments->plant = parse_plant(value);
	else if (strcmp(name, "--repeat") == 0)
		arguments->repeat = value;
	else if (strcmp(name, "--keep") == 0)
		arguments->keep = value;
	else if (strcmp(name, "--trace") == 0)
		arguments->trace = value;
	else if (strcmp(name, "--trace-data") == 0)
		arguments->trace_data = value;
	else
		return take_number(arguments, name, value);
	return true;
}

static void parse(int argc, char **argv, struct arguments *arguments)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && take_argument(arguments, argv[i], argv[i + 1]))
			continue;
		fprintf(stderr, "crash: unknown or incomplete: %s\n", argv[i]);
		exit(2);
	}
	if (arguments->jobs < 1 || arguments->jobs > JOBS_MAX)
		arguments->jobs = 1;
	/* A given time limit is the only limit. */
	if (arguments->minutes)
		arguments->cuts = UINT64_MAX / 2;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- which records ---- */

static uint64_t power(uint64_t base, unsigned int exponent)
{
	uint64_t r = 1;

	while (exponent-- > 0)
		r *= base;
	return r;
}

/*
 * Chooses record i of a run. Half of the records are the sequences of one operation in turn, until
 * all had their turn. The others are longer sequences, half of them with a reclaim, and operations
 * at random: few, many, and now and then so many that zones are emptied and written again.
 */
static void choose_mixed(uint64_t i, struct record_options *options)
{
	struct record_name *name = &options->name;

	if (i % 2 == 0 && i / 2 < sequence_base()) {
		name->length = 1;
		name->number = i / 2;
		return;
	}
	switch (i % 32) {
	case 31:
		options->ops *= 4;
		break;
	case 15:
		options->ops *= 2;
		break;
	case 1:
	case 9:
	case 17:
	case 25:
		break;
	case 3:
	case 19:
		options->ops /= 4;
		break;
	default:
		name->length = i % 3 == 0 ? 3 + (unsigned int)(i % 4) : 2;
		name->number = i / 2 % 2 ? sequence_draw_reclaim(name->seed, name->length)
					 : sequence_draw(name->seed, name->length);
		break;
	}
}

/* False: there is no record i. */
static bool choose_record(const struct arguments *arguments, uint64_t i,
			  struct record_options *options)
{
	*options = (struct record_options){
		.name.seed = arguments->seed, .ops = arguments->ops, .plant = arguments->plant};
	if (i >= arguments->records)
		return false;
	if (arguments->sequences > 0) {
		options->name.length = arguments->sequences;
		options->name.number = arguments->from + i;
		return options->name.number < power(sequence_base(), arguments->sequences);
	}
	options->name.seed += i;
	choose_mixed(i, options);
	return true;
}

/* ---- one job: every jobs-th record ---- */

static bool is_over(const struct arguments *arguments, const struct tally *tally)
{
	return tally->cuts >= arguments->cuts / arguments->jobs + 1 ||
	       (arguments->deadline && time(NULL) >= arguments->deadline);
}

static void work(const void *arg, struct verdict *verdict)
{
	const struct arguments *arguments = arg;
	const struct explore_limits limits = {.cuts = arguments->cuts / arguments->jobs + 1,
					      .samples = arguments->samples,
					      .deadline = arguments->deadline};
	struct record_options options;

	verdict->ok = true;
	for (uint64_t i = arguments->job; verdict->ok && !is_over(arguments, &verdict->tally) &&
					  choose_record(arguments, i, &options);
	     i += arguments->jobs)
		verdict->ok = explore(&options, &limits, &verdict->tally, &verdict->failed);
}

/* Finds the options that a record's name does not contain. */
static void find_options(const struct arguments *arguments, const struct cut_name *failed,
			 struct record_options *options)
{
	if (failed->record.length > 0 || failed->record.seed < arguments->seed ||
	    !choose_record(arguments, failed->record.seed - arguments->seed, options))
		*options =
			(struct record_options){.ops = arguments->ops, .plant = arguments->plant};
	options->name = failed->record;
}

static void tell_failure(const struct arguments *arguments, const struct verdict *verdict)
{
	struct record_options options;

	find_options(arguments, &verdict->failed, &options);
	shrink_say_how_to_repeat(&options, &verdict->failed, NULL);
	if (arguments->shrink > 0)
		shrink(&options, &verdict->failed, arguments->shrink);
}

static void add_up(struct tally *sum, const struct tally *tally)
{
	sum->records += tally->records;
	sum->judged += tally->judged;
	sum->cuts += tally->cuts;
	sum->nested += tally->nested;
	sum->deepest += tally->deepest;
}

static int run(struct arguments *arguments)
{
	struct child children[JOBS_MAX];
	struct verdict verdict;
	struct tally sum = {0};
	uint64_t began = now_ms();
	bool ok = true;

	for (arguments->job = 0; arguments->job < arguments->jobs; arguments->job++)
		children[arguments->job] = child_start(work, arguments, false);
	for (unsigned int i = 0; i < arguments->jobs; i++) {
		child_end(&children[i], &verdict);
		add_up(&sum, &verdict.tally);
		if (!verdict.ok)
			tell_failure(arguments, &verdict);
		ok = ok && verdict.ok;
	}
	printf("%" PRIu64 " distinct cuts (%" PRIu64 " during recovery, %" PRIu64
	       " of them during a recovery's recovery) of %" PRIu64 " records, %" PRIu64
	       " a second: %s\n",
	       sum.cuts, sum.nested, sum.deepest, sum.records,
	       sum.cuts * 1000 / (now_ms() - began + 1), ok ? "all is well" : "FAILED");
	return ok ? 0 : 1;
}

/* ---- repeating one ---- */

static bool open_file(const char *path, int *ret_fd)
{
	*ret_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (*ret_fd < 0)
		fprintf(stderr, "crash: %s: %s\n", path, strerror(errno));
	return *ret_fd >= 0;
}

/* The trace notes the seed of the record, and the arguments that repeat it. */
static bool open_trace(const struct arguments *arguments, const struct cut_name *name,
		       struct zf_trace_about *trace, struct record_options *options)
{
	static char workload[CUT_NAME_TEXT_MAX + 32];

	snprintf(workload, sizeof(workload), "crash --ops %u --repeat %s", arguments->ops,
		 arguments->repeat);
	*trace = (struct zf_trace_about){
		.clock = ZF_TRACE_LOGICAL,
		.program = ZF_VERSION,
		.workload = workload,
		.seed = name->record.seed,
		.has_data = arguments->trace_data != NULL,
	};
	options->trace = trace;
	return open_file(arguments->trace, &options->trace_fd) &&
	       (!trace->has_data || open_file(arguments->trace_data, &trace->data_fd));
}

static int repeat(const struct arguments *arguments)
{
	struct record_options options = {.ops = arguments->ops, .plant = arguments->plant};
	struct zf_trace_about trace;
	struct cut_name name;
	bool ok;

	if (!cut_name_parse(arguments->repeat, &name)) {
		fprintf(stderr, "crash: not a cut: %s\n", arguments->repeat);
		return 2;
	}
	if (arguments->trace && !open_trace(arguments, &name, &trace, &options))
		return 1;
	explore_verbose = true;
	ok = arguments->keep ? shrink_repeat(&options, &name, arguments->keep)
			     : explore_one(&options, &name);
	if (ok)
		printf("all is well\n");
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.cuts = 20000,
		.seed = (uint64_t)time(NULL),
		.records = UINT64_MAX,
		.ops = 150,
		.samples = 16,
		.jobs = 1,
		.shrink = 60,
	};

	setlinebuf(stdout);
	parse(argc, argv, &arguments);
	plant_begin(arguments.plant);
	if (arguments.trace && (!arguments.repeat || arguments.keep)) {
		fprintf(stderr, "crash: --trace is for --repeat, without --keep\n");
		return 2;
	}
	if (arguments.trace_data && !arguments.trace) {
		fprintf(stderr, "crash: --trace-data is for --trace\n");
		return 2;
	}
	if (arguments.repeat)
		return repeat(&arguments);
	if (arguments.minutes)
		arguments.deadline = time(NULL) + (time_t)arguments.minutes * 60;
	printf("seed %" PRIu64 "\n", arguments.seed);
	return run(&arguments);
}

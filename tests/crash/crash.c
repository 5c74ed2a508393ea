/* SPDX-License-Identifier: MIT */
/*
 * The crash explorer's command line; scripts/crash builds and runs it.
 *
 *      crash [--cuts N] [--seed S] [--ops N] [--variants N] [--jobs N] [--records N] [--plant BUG]
 *      crash --repeat SEED:CUT:VARIANT[:NESTED:VARIANT]
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "explore.h"

struct arguments {
	uint64_t cuts, seed, records;
	unsigned int ops, variants, jobs;
	const struct plant *plant;
	const char *repeat;
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

static bool take_argument(struct arguments *arguments, const char *name, const char *value)
{
	if (strcmp(name, "--cuts") == 0)
		arguments->cuts = strtoull(value, NULL, 0);
	else if (strcmp(name, "--seed") == 0)
		arguments->seed = strtoull(value, NULL, 0);
	else if (strcmp(name, "--records") == 0)
		arguments->records = strtoull(value, NULL, 0);
	else if (strcmp(name, "--ops") == 0)
		arguments->ops = (unsigned int)strtoul(value, NULL, 0);
	else if (strcmp(name, "--variants") == 0)
		arguments->variants = (unsigned int)strtoul(value, NULL, 0);
	else if (strcmp(name, "--jobs") == 0)
		arguments->jobs = (unsigned int)strtoul(value, NULL, 0);
	else if (strcmp(name, "--plant") == 0)
		arguments->plant = parse_plant(value);
	else if (strcmp(name, "--repeat") == 0)
		arguments->repeat = value;
	else
		return false;
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
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Every jobs-th record. */
static int work(const struct arguments *arguments, unsigned int job)
{
	struct record_options options = {.ops = arguments->ops, .plant = arguments->plant};
	uint64_t most = arguments->cuts / arguments->jobs + 1, began = now_ms();
	struct tally tally = {0};
	bool ok = true;

	for (uint64_t i = job; ok && i < arguments->records && tally.cuts < most;
	     i += arguments->jobs) {
		options.seed = arguments->seed + i;
		ok = explore(&options, arguments->variants, most, &tally);
	}
	printf("%" PRIu64 " cuts (%" PRIu64 " of them during recovery) of %" PRIu64
	       " workloads, %" PRIu64 " a second: %s\n",
	       tally.cuts, tally.nested, tally.records, tally.cuts * 1000 / (now_ms() - began + 1),
	       ok ? "all is well" : "FAILED");
	return ok ? 0 : 1;
}

static int repeat(const struct arguments *arguments)
{
	const struct record_options options = {.ops = arguments->ops, .plant = arguments->plant};
	struct cut_name name;

	if (!cut_name_parse(arguments->repeat, &name)) {
		fprintf(stderr, "crash: not a cut: %s\n", arguments->repeat);
		return 2;
	}
	explore_verbose = true;
	if (!explore_one(&options, &name))
		return 1;
	printf("all is well\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.cuts = 20000,
		.seed = (uint64_t)time(NULL),
		.records = UINT64_MAX,
		.ops = 150,
		.variants = 2,
		.jobs = 1,
	};
	int failed = 0, status;

	setlinebuf(stdout);
	parse(argc, argv, &arguments);
	plant_begin(arguments.plant);
	if (arguments.repeat)
		return repeat(&arguments);
	printf("seed %" PRIu64 "\n", arguments.seed);
	if (arguments.jobs <= 1)
		return work(&arguments, 0);
	for (unsigned int job = 0; job < arguments.jobs; job++) {
		if (fork() == 0)
			exit(work(&arguments, job));
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

/* SPDX-License-Identifier: MIT */
/*
 * The command line of several actors (actors.h); `scripts/crash --actors` builds and runs it.
 *
 *      actors [--schedules N] [--minutes N] [--seed S] [--jobs N] [--memory N] [--plant BUG]
 *      actors --repeat SEED [--steps N] [--memory N] [--plant BUG]
 *
 * Schedules have the seeds S, S + 1, ... A failure (an assertion or a deadlock, too) prints its
 * seed, which is all that a repeat needs, and the smallest number of steps with which it still
 * fails.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "actors.h"
#include "base/bits.h"
#include "explore.h"
#include "support/fibers.h"

#define JOBS_MAX     64u
#define HANG_SECONDS 60u

struct arguments {
	uint64_t schedules, seed, minutes, repeat, jobs;
	const struct plant *plant;
	bool repeats;
	time_t deadline; /* 0: none */
};

/* The progress of a child, in shared memory, so that it outlives the child. */
struct progress {
	uint64_t seed; /* of the schedule that runs */
	bool failed;
	struct events events;
};

static void usage(const char *what)
{
	fprintf(stderr, "actors: unknown or incomplete: %s\n", what);
	exit(2);
}

static void take(struct arguments *arguments, const char *name, const char *value)
{
	uint64_t number = strtoull(value, NULL, 0);

	if (strcmp(name, "--schedules") == 0)
		arguments->schedules = number;
	else if (strcmp(name, "--minutes") == 0)
		arguments->minutes = number;
	else if (strcmp(name, "--seed") == 0)
		arguments->seed = number;
	else if (strcmp(name, "--jobs") == 0 && number > 0 && number <= JOBS_MAX)
		arguments->jobs = number;
	else if (strcmp(name, "--steps") == 0)
		actors_steps_max = (unsigned int)number;
	else if (strcmp(name, "--memory") == 0)
		actors_memory = (unsigned int)number;
	else if (strcmp(name, "--plant") == 0 && plant_find(value))
		arguments->plant = plant_find(value);
	else if (strcmp(name, "--repeat") == 0) {
		arguments->repeat = number;
		arguments->repeats = true;
	} else {
		usage(name);
	}
}

static void parse(int argc, char **argv, struct arguments *arguments)
{
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc)
			usage(argv[i]);
		take(arguments, argv[i], argv[i + 1]);
	}
	if (arguments->minutes > 0) {
		arguments->schedules = UINT64_MAX / 2;
		arguments->deadline = time(NULL) + (time_t)arguments->minutes * 60;
	}
}

/* ---- a job: every jobs-th schedule ---- */

static bool is_over(const struct arguments *arguments)
{
	return arguments->deadline && time(NULL) >= arguments->deadline;
}

static void work(const struct arguments *arguments, uint64_t job, struct progress *progress)
{
	for (uint64_t i = job; i < arguments->schedules && !is_over(arguments);
	     i += arguments->jobs) {
		progress->seed = arguments->seed + i;
		alarm(HANG_SECONDS);
		if (!actors_run(progress->seed, &progress->events)) {
			progress->failed = true;
			return;
		}
	}
	actors_forget();
}

static pid_t start(const struct arguments *arguments, uint64_t job, struct progress *progress)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid > 0)
		return pid;
	work(arguments, job, progress);
	fflush(NULL);
	_exit(progress->failed);
}

/* ---- what came of it ---- */

static void add_up(struct events *sum, const struct events *events)
{
	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		((uint64_t *)sum)[i] += ((const uint64_t *)events)[i];
}

static bool tell_events(const struct events *sum)
{
	const struct {
		const char *name;
		uint64_t count;
	} must_be[] = {
		{"two records in flight", sum->two_records},
		{"a record overtaken by the next", sum->overtaken},
		{"a record beside a commit", sum->record_in_commit},
		{"reclaim's swap beside an fsync", sum->swap_beside_fsync},
		{"a flush shared by two", sum->shared_flush},
		{"faults that struck", sum->faults},
	};
	bool all = true;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(must_be); i++) {
		printf("%12" PRIu64 "  %s\n", must_be[i].count, must_be[i].name);
		all = all && must_be[i].count > 0;
	}
	printf("%12" PRIu64 "  recoveries cut, too\n", sum->recoveries);
	printf("%12" PRIu64 "  errors that an actor was told\n", sum->errors);
	printf("%12" PRIu64 "  waits that time alone could end\n", sum->stalls);
	printf("%12" PRIu64 "  switches between threads\n", sum->switches);
	return all;
}

static uint64_t wall_ms(void)
{
	struct timeval tv;

	gettimeofday(&tv, NULL);
	return (uint64_t)tv.tv_sec * 1000 + (uint64_t)tv.tv_usec / 1000;
}

/* ---- a failure ---- */

/* Does the seed also fail if no actor takes more than so many steps? */
static bool fails_within(uint64_t seed, unsigned int steps)
{
	struct events events = {0};
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		alarm(HANG_SECONDS);
		actors_steps_max = steps;
		_exit(actors_run(seed, &events) ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status != 0;
}

static void tell_failure(const struct arguments *arguments, uint64_t seed, bool died)
{
	unsigned int steps = 1;

	while (steps < STEPS_MAX && !fails_within(seed, steps))
		steps++;
	printf("FAILED%s. Again: scripts/crash --actors --repeat %" PRIu64 " --steps %u",
	       died ? " (it died)" : "", seed, steps);
	if (actors_memory > 0)
		printf(" --memory %u", actors_memory);
	if (arguments->plant)
		printf(" --plant %s", arguments->plant->name);
	printf("\n");
}

static int run(const struct arguments *arguments)
{
	size_t size = arguments->jobs * sizeof(struct progress);
	struct progress *progress =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct events sum = {0};
	uint64_t began = wall_ms();
	pid_t pids[JOBS_MAX];
	bool ok = true;
	int status;

	if (progress == MAP_FAILED)
		abort();
	printf("seed %" PRIu64 "\n", arguments->seed);
	for (uint64_t i = 0; i < arguments->jobs; i++)
		pids[i] = start(arguments, i, &progress[i]);
	for (uint64_t i = 0; i < arguments->jobs; i++) {
		waitpid(pids[i], &status, 0);
		add_up(&sum, &progress[i].events);
		if (status == 0)
			continue;
		ok = false;
		tell_failure(arguments, progress[i].seed, WIFSIGNALED(status));
	}
	printf("%" PRIu64 " schedules, %" PRIu64 " cuts, %" PRIu64 " schedules a second: %s\n",
	       sum.schedules, sum.cuts, sum.schedules * 1000 / (wall_ms() - began + 1),
	       ok ? "all is well" : "FAILED");
	/* A few schedules need not show every event. */
	if (!tell_events(&sum) && ok && sum.schedules >= 1000) {
		printf("something never happened: the schedules are too tame\n");
		ok = false;
	}
	munmap(progress, size);
	return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {.schedules = 2000, .seed = (uint64_t)time(NULL), .jobs = 1};
	struct events events = {0};

	setlinebuf(stdout);
	/* Freed memory is soon wanted again, so it is not given back to the kernel. */
	mallopt(M_MMAP_THRESHOLD, 16 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	parse(argc, argv, &arguments);
	plant_begin(arguments.plant);
	if (!arguments.repeats)
		return run(&arguments);
	actors_verbose = true;
	zf_fibers_trace();
	if (!actors_run(arguments.repeat, &events))
		return 1;
	printf("all is well\n");
	return 0;
}

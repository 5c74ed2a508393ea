/* SPDX-License-Identifier: MIT */
/*
 * The real image file: its requests to the host are recorded, and for each cut of the recording one
 * of the files that may be found then is made. Acknowledged data must be in it.
 *
 *      test_host [--seed N] [--cuts N]                 records and judges; prints its seed. Twice:
 *                                                      without and with conventional zones
 *      test_host --replay FILE --cut N [--seed N]      judges one cut of a recording; if that
 *                                                      fails, the file made for the cut stays
 *
 * Threads make each recording different, so a failure leaves the recording itself, unless the
 * failure is expected (--keep-nothing): in $ZFUSE_TEST_EVIDENCE, or in the current directory.
 */
#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "host/cuts.h"
#include "host/files.h"
#include "host/judge.h"
#include "host/record.h"
#include "host/work.h"

#define CUTS	      75u
#define JUDGE_SECONDS 60u
#define KILL_PERCENT  25u

static struct history history;

struct run {
	struct recording recording;
	uint64_t seed, cut; /* cut: of a replay, else 0 */
	uint32_t conventional;
	unsigned int cuts;
	bool keeps_nothing;
	char path[256], attribute[32];
};

/* ---- the promises at a cut ---- */

/* Reads the notes of the events [from, to). */
static void read_notes(const struct recording *recording, uint64_t from, uint64_t to)
{
	for (; from < to; from++) {
		const struct event *event = recording_event(recording, from);

		if (event->type == EVENT_NOTE)
			history_note(&history, (const void *)event_bytes(event));
	}
}

static uint64_t first_cut(const struct recording *recording)
{
	for (uint64_t i = 0; i < recording->count; i++) {
		const struct event *event = recording_event(recording, i);
		const struct note *note = (const void *)event_bytes(event);

		if (event->type == EVENT_NOTE && note->type == NOTE_READY)
			return i + 1;
	}
	abort();
}

/* ---- one cut ---- */

/* Judges in a child, which may crash or hang. */
static bool is_right(const struct run *run, bool restarted)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		alarm(JUDGE_SECONDS);
		host_set(restarted, run->attribute);
		_exit(judge(run->path, &history.promises) ? 0 : 1);
	}
	assert(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		fprintf(stderr, "killed by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Makes the file of a cut: the same one for the same recording, seed and event. */
static enum cut_kind draw_cut(struct run *run, const struct cuts *cuts, uint64_t at)
{
	enum cut_kind kind;
	struct zf_rng rng;

	zf_rng_seed(&rng, run->seed * 1000003 + at);
	kind = zf_rng_chance(&rng, KILL_PERCENT) ? CUT_KILL : CUT_HOST;
	cuts_make(cuts, kind, &rng, run->path, run->attribute);
	return kind;
}

static bool judge_cut(struct run *run, const struct cuts *cuts, uint64_t at)
{
	enum cut_kind kind = draw_cut(run, cuts, at);

	if (is_right(run, kind == CUT_HOST))
		return true;
	draw_cut(run, cuts, at); /* anew, because judging has mounted and changed the file */
	fprintf(stderr, "wrong after %s before event %" PRIu64 " of %" PRIu64 "\n",
		kind == CUT_KILL ? "a kill" : "a stop of the host", at, run->recording.count);
	return false;
}

/* ---- all of them ---- */

static int compare_cuts(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Returns the event of the first cut that was wrong, or 0. */
static uint64_t judge_cuts(struct run *run, const uint64_t *at, unsigned int count)
{
	struct cuts *cuts = cuts_new(&run->recording);
	uint64_t from = 0, wrong = 0;

	for (unsigned int i = 0; i < count && wrong == 0; i++) {
		cuts_advance(cuts, at[i]);
		read_notes(&run->recording, from, at[i]);
		from = at[i];
		if (!judge_cut(run, cuts, at[i]))
			wrong = at[i];
	}
	cuts_free(cuts);
	return wrong;
}

static uint64_t judge_all(struct run *run)
{
	uint64_t first = first_cut(&run->recording);
	uint64_t *at = calloc(run->cuts, sizeof(*at)), wrong;
	struct zf_rng rng;

	assert(at);
	zf_rng_seed(&rng, run->seed);
	for (unsigned int i = 0; i < run->cuts; i++)
		at[i] = first + zf_rng_below(&rng, run->recording.count - first + 1);
	qsort(at, run->cuts, sizeof(*at), compare_cuts);
	wrong = judge_cuts(run, at, run->cuts);
	free(at);
	return wrong;
}

/* ---- */

/* A kind of request that does not occur would not be tested. */
static void count_events(const struct recording *recording)
{
	uint64_t writes[2] = {}, syncs = 0, holes = 0, stores = 0;

	for (uint64_t i = 0; i < recording->count; i++) {
		const struct event *event = recording_event(recording, i);

		writes[event->durable != 0] += event->type == EVENT_WRITE;
		syncs += event->type == EVENT_SYNC;
		holes += event->type == EVENT_HOLE;
		stores += event->type == EVENT_STORE;
	}
	printf("# %zu MiB, events: %" PRIu64 " writes, %" PRIu64 " durable ones, %" PRIu64
	       " syncs, %" PRIu64 " holes, %" PRIu64 " stores\n",
	       recording->len >> 20, writes[0], writes[1], syncs, holes, stores);
	assert(writes[0] > 0 && writes[1] > 0 && syncs > 0 && holes > 0);
}

static void record(struct run *run)
{
	unlink(run->path);
	host_set(false, "");
	record_begin();
	work(run->path, run->conventional, run->seed);
	record_end();
	recording_take(&run->recording);
	recording_index(&run->recording);
	count_events(&run->recording);
}

static const char *directory(const char *variable, const char *otherwise)
{
	const char *value = getenv(variable);

	return value ? value : otherwise;
}

static int record_and_judge(struct run *run)
{
	char path[256];
	uint64_t wrong;

	printf("# seed %" PRIu64 ", %u conventional zones, %u cuts\n", run->seed, run->conventional,
	       run->cuts);
	record(run);
	wrong = judge_all(run);
	unlink(run->path);
	if (wrong == 0 || run->keeps_nothing)
		return wrong != 0;
	snprintf(path, sizeof(path), "%s/zfuse-host-%" PRIu64 "-%u.recording",
		 directory("ZFUSE_TEST_EVIDENCE", "."), run->seed, run->conventional);
	recording_save(&run->recording, path);
	fprintf(stderr, "again: test_host --replay %s --seed %" PRIu64 " --cut %" PRIu64 "\n", path,
		run->seed, wrong);
	return 1;
}

static int replay(struct run *run, const char *path)
{
	recording_load(&run->recording, path);
	if (judge_cuts(run, &run->cut, 1) != 0) {
		fprintf(stderr, "found: %s\n", run->path);
		return 1;
	}
	unlink(run->path);
	return 0;
}

static struct run run_of(int argc, char **argv, const char **ret_recording)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},	  {"cuts", required_argument, NULL, 'c'},
		{"cut", required_argument, NULL, 'a'},	  {"replay", required_argument, NULL, 'r'},
		{"keep-nothing", no_argument, NULL, 'k'}, {},
	};
	struct run run = {.cuts = CUTS, .seed = (uint64_t)time(NULL)};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 's')
			run.seed = strtoull(optarg, NULL, 10);
		else if (c == 'c')
			run.cuts = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'a')
			run.cut = strtoull(optarg, NULL, 10);
		else if (c == 'r')
			*ret_recording = optarg;
		else if (c == 'k')
			run.keeps_nothing = true;
		else
			exit(2);
	}
	snprintf(run.path, sizeof(run.path), "%s/zfuse-host-%d.img",
		 directory("TMPDIR", "/dev/shm"), getpid());
	return run;
}

int main(int argc, char **argv)
{
	static const uint32_t conventional[] = {0, 4};
	const char *recording = NULL;
	struct run run = run_of(argc, argv, &recording);
	int failed = 0;

	if (recording)
		return replay(&run, recording);
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(conventional); i++) {
		run.conventional = conventional[i];
		memset(&history, 0, sizeof(history));
		failed |= record_and_judge(&run);
		free(run.recording.events);
	}
	return failed;
}

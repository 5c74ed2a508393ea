/* SPDX-License-Identifier: MIT */
#include "gc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/json.h"
#include "interrupt.h"
#include "json_out.h"
#include "meter.h"
#include "table.h"
#include "target.h"
#include "text.h"

/*
 * An emptied zone comes back after two commits. The third is for what the first two moved
 * themselves.
 */
#define SETTLES_MAX 3u
/* The pause before a busy daemon is asked again. A thread that waits for space may reclaim long. */
#define BUSY_MS 20

/* ---- asking ---- */

static int ask(struct zf_target *target, const char *command, const char *key, bool value,
	       struct json_object **ret_answer)
{
	struct json_object *args = json_object_new_object();
	int r;

	if (key)
		zf_json_add_bool(args, key, value);
	r = zf_target_run(target, zf_report_find(command), args, NULL, ret_answer);
	json_object_put(args);
	return r;
}

static void replace(struct json_object **object, struct json_object *with)
{
	json_object_put(*object);
	*object = with;
}

static uint64_t room(struct json_object *status, const char *key)
{
	return zf_text_u64(zf_text_member(status, "room"), key);
}

static uint64_t done(struct json_object *status, const char *key)
{
	return zf_text_u64(zf_text_member(status, "reclaim"), key);
}

/* ---- a run ---- */

struct run {
	struct zf_target *target;
	const struct zf_args *args;
	struct json_object *before, *now; /* the status */
	struct zf_meter meter;
};

static uint64_t since(const struct run *run, const char *key)
{
	return done(run->now, key) - done(run->before, key);
}

/* Commits until no emptied zone waits for a commit, at most SETTLES_MAX times. */
static int settle(struct run *run)
{
	struct json_object *answer;
	int r = 0;

	for (unsigned int i = 0; i < SETTLES_MAX && r == 0; i++) {
		r = ask(run->target, "gc_settle", NULL, false, &answer);
		if (r < 0)
			return r;
		replace(&run->now, answer);
		if (room(answer, "coming") == 0)
			break;
	}
	return r;
}

/* Repeats the request while another thread of the daemon is reclaiming. */
static int step(struct run *run)
{
	const struct timespec pause = {.tv_nsec = BUSY_MS * 1000000};
	bool all = run->args->options[ZF_OPTION_ALL].given;
	struct json_object *answer;
	int r;

	while ((r = ask(run->target, "gc_step", "all", all, &answer)) == 0) {
		replace(&run->now, answer);
		if (zf_interrupted() || strcmp(zf_text_string(answer, "outcome"), "busy") != 0)
			break;
		nanosleep(&pause, NULL);
	}
	return r;
}

/* 1: a victim was taken; 0: there is no victim, or no space for its live data; -errno. */
static int take_victim(struct run *run)
{
	int r = 0;

	/* If there is no space to move data to, commits give back the zones emptied so far. */
	for (unsigned int i = 0; i < 2 && r == 0; i++) {
		const char *outcome;

		r = step(run);
		if (r < 0)
			return r;
		outcome = zf_text_string(run->now, "outcome");
		if (strcmp(outcome, "no room") != 0)
			return strcmp(outcome, "victim") == 0;
		r = settle(run);
	}
	return r;
}

/*
 * Takes at most as many victims as there were zones, because processes that write meanwhile always
 * make new garbage.
 */
static int take_victims(struct run *run)
{
	const struct zf_arg *zones = &run->args->options[ZF_OPTION_ZONES];
	uint64_t most = room(run->before, "zones");
	int r = 1;

	for (uint64_t i = 0; i < most && r > 0 && !zf_interrupted(); i++) {
		if (zones->given && since(run, "emptied") >= zones->number)
			break;
		r = take_victim(run);
		zf_meter_update(&run->meter, since(run, "emptied"), zones->number);
	}
	return r < 0 ? r : 0;
}

static struct json_object *describe_run(const struct run *run)
{
	static const char *const counters[] = {"victims", "emptied", "moved_bytes"};
	struct json_object *result = json_object_new_object();

	for (unsigned int i = 0; i < 3; i++)
		zf_json_add_u64(result, counters[i], since(run, counters[i]));
	zf_json_add_bool(result, "interrupted", zf_interrupted());
	zf_json_add(result, "room_before", json_object_get(zf_text_member(run->before, "room")));
	zf_json_add(result, "room", json_object_get(zf_text_member(run->now, "room")));
	return result;
}

static int run_now(struct zf_target *target, const struct zf_args *args,
		   struct json_object **ret_result)
{
	struct run run = {.target = target, .args = args};
	int r, settled;

	zf_interrupt_catch();
	r = ask(target, "gc_status", NULL, false, &run.before);
	if (r < 0)
		return r;
	run.now = json_object_get(run.before);
	zf_meter_init(&run.meter, args, "zones");
	r = take_victims(&run);
	settled = settle(&run);
	zf_meter_end(&run.meter);
	*ret_result = describe_run(&run);
	json_object_put(run.before);
	json_object_put(run.now);
	return r < 0 ? r : settled;
}

/* ---- as text ---- */

static const char *explain_state(struct json_object *status)
{
	const char *state = zf_text_string(status, "state");
	bool paused = json_object_get_boolean(zf_text_member(status, "paused"));

	if (strcmp(state, "off") == 0)
		return "off: the filesystem is read-only";
	if (strcmp(state, "working") == 0)
		return paused ? "paused in the background; a writer waits for space" : "working";
	return paused ? "paused; a writer that waits for space reclaims all the same" : "idle";
}

static void add_room(struct zf_table *table, struct json_object *status)
{
	struct json_object *object = zf_text_member(status, "room");
	char size[ZF_TEXT_SIZE_MAX];

	zf_table_add(table, "room");
	zf_table_add(table,
		     "%" PRIu64 " empty zones of %" PRIu64 ", %" PRIu64 " coming with commits",
		     zf_text_u64(object, "empty"), zf_text_u64(object, "zones"),
		     zf_text_u64(object, "coming"));
	zf_table_add(table, "reclaim starts");
	zf_table_add(table, "below %" PRIu64 " empty zones", zf_text_u64(object, "target"));
	zf_table_add(table, "reclaimable");
	zf_table_add(table, "%s", zf_text_size(zf_text_u64(object, "reclaimable_bytes"), size));
}

static void add_done(struct zf_table *table, struct json_object *status)
{
	char moved[ZF_TEXT_SIZE_MAX], live[ZF_TEXT_SIZE_MAX], changed[ZF_TEXT_SIZE_MAX];
	struct json_object *object = zf_text_member(status, "reclaim");

	zf_table_add(table, "victims");
	zf_table_add(table,
		     "%" PRIu64 " zones, %" PRIu64 " emptied, %" PRIu64 " stuck; %" PRIu64
		     " of metadata",
		     zf_text_u64(object, "victims"), zf_text_u64(object, "emptied"),
		     zf_text_u64(object, "stuck"), zf_text_u64(object, "meta_victims"));
	zf_table_add(table, "moved");
	zf_table_add(table, "%s of %s live bytes; %s overwritten during the move",
		     zf_text_size(zf_text_u64(object, "moved_bytes"), moved),
		     zf_text_size(zf_text_u64(object, "live_bytes"), live),
		     zf_text_size(zf_text_u64(object, "changed_bytes"), changed));
	zf_table_add(table, "write amplification");
	zf_table_add(table, "%.3f",
		     json_object_get_double(zf_text_member(object, "write_amplification")));
	zf_table_add(table, "waits for room");
	zf_table_add(table, "%" PRIu64 ", %.3f s in all", zf_text_u64(object, "waits"),
		     (double)zf_text_u64(object, "wait_ns") / 1e9);
}

static void print_status(struct json_object *status)
{
	static const struct zf_table_column columns[] = {{NULL, false}, {NULL, false}};
	struct json_object *zone = zf_text_member(status, "zone");
	struct zf_table table;

	zf_table_init(&table, columns, 2);
	zf_table_add(&table, "state");
	zf_table_add(&table, "%s%s%s", explain_state(status), zone ? ", at zone " : "",
		     zone ? json_object_get_string(zone) : "");
	add_room(&table, status);
	add_done(&table, status);
	zf_table_print(&table, stdout);
	zf_table_deinit(&table);
}

static void print_run(struct json_object *result)
{
	struct json_object *before = zf_text_member(result, "room_before");
	struct json_object *now = zf_text_member(result, "room");
	uint64_t victims = zf_text_u64(result, "victims");
	char size[ZF_TEXT_SIZE_MAX];

	if (victims == 0 && !zf_interrupted())
		puts("no zone was worth it");
	else
		printf("%" PRIu64 " of %" PRIu64 " zones emptied, %s moved\n",
		       zf_text_u64(result, "emptied"), victims,
		       zf_text_size(zf_text_u64(result, "moved_bytes"), size));
	printf("empty zones: %" PRIu64 ", before %" PRIu64 "; %" PRIu64 " more with commits\n",
	       zf_text_u64(now, "empty"), zf_text_u64(before, "empty"), zf_text_u64(now, "coming"));
	printf("reclaimable: %s", zf_text_size(zf_text_u64(now, "reclaimable_bytes"), size));
	printf(", before %s\n", zf_text_size(zf_text_u64(before, "reclaimable_bytes"), size));
}

static int print(const struct zf_args *args, struct json_object *result)
{
	struct zf_json_out json = {.out = stdout};

	if (zf_args_json(args))
		zf_json_out_result(&json, result);
	else if (args->id == ZF_COMMAND_GC_RUN)
		print_run(result);
	else
		print_status(result);
	return zf_args_flush(args);
}

/* ---- doing it ---- */

static int act(struct zf_target *target, const struct zf_args *args,
	       struct json_object **ret_result)
{
	if (args->id == ZF_COMMAND_GC_RUN)
		return run_now(target, args, ret_result);
	if (args->id == ZF_COMMAND_GC_STATUS)
		return ask(target, "gc_status", NULL, false, ret_result);
	return ask(target, "gc_pause", "paused", args->id == ZF_COMMAND_GC_PAUSE, ret_result);
}

int zf_gc_main(const struct zf_args *args)
{
	static char prefix[] = "zfusectl gc";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	struct json_object *result = NULL;
	struct zf_target target;
	int status = ZF_EXIT_OK, r;

	if (zf_target_open(args->operands[0], false, &report, &target) < 0)
		return ZF_EXIT_PROBLEMS;
	r = act(&target, args, &result);
	if (result)
		status = print(args, result);
	if (zf_interrupted())
		zf_report(&report, ZF_REPORT_WARNING, "interrupted");
	json_object_put(result);
	zf_target_close(&target);
	return r < 0 || zf_interrupted() ? ZF_EXIT_PROBLEMS : status;
}

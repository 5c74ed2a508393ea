/* SPDX-License-Identifier: MIT */
#include "scrub.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "ctl/json.h"
#include "interrupt.h"
#include "json_out.h"
#include "meter.h"
#include "target.h"
#include "text.h"

#define SECOND_NS INT64_C(1000000000)

struct scrub {
	struct zf_target *target;
	const struct zf_args *args;
	struct zf_meter meter;
	int64_t start_ns;
	uint64_t data_bytes, node_bytes, live_bytes, skipped;
	uint64_t errors, repaired; /* damaged places not repaired; nodes written anew */
	struct json_object *damage;
	uint64_t seen; /* damaged places that were printed */
	bool stopped;  /* another command has paused or cancelled it, or an error ended it */
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* ---- damage ---- */

void zf_scrub_print_damage(struct json_object *error)
{
	const char *path = zf_text_string(error, "path"), *tree = zf_text_string(error, "tree");
	uint64_t address = zf_text_u64(error, "address"), bytes = zf_text_u64(error, "bytes");

	if (*tree)
		printf("node of the %s tree at device address %" PRIu64 ": damaged%s\n", tree,
		       address,
		       json_object_get_boolean(zf_text_member(error, "repaired"))
			       ? ", repaired from a good one"
			       : "");
	else if (*path)
		printf("%s: %" PRIu64 " bytes at offset %" PRIu64
		       " are damaged (device address %" PRIu64 ")\n",
		       path, bytes, zf_text_u64(error, "offset"), address);
	else
		printf("inode %" PRIu64 ": %" PRIu64 " bytes at offset %" PRIu64
		       " are damaged (device address %" PRIu64 ")\n",
		       zf_text_u64(error, "ino"), bytes, zf_text_u64(error, "offset"), address);
}

static void take_damage(struct scrub *scrub, struct json_object *damage)
{
	for (size_t i = 0; damage && i < json_object_array_length(damage); i++) {
		struct json_object *error = json_object_array_get_idx(damage, i);

		scrub->repaired += json_object_get_boolean(zf_text_member(error, "repaired")) != 0;
		if (zf_args_json(scrub->args))
			zf_json_push(scrub->damage, json_object_get(error));
		else
			zf_scrub_print_damage(error);
	}
}

/* ---- steps ---- */

static void count(struct scrub *scrub, struct json_object *answer)
{
	scrub->data_bytes += zf_text_u64(answer, "data_bytes");
	scrub->node_bytes += zf_text_u64(answer, "node_bytes");
	scrub->skipped += zf_text_u64(answer, "skipped");
	scrub->errors += zf_text_u64(answer, "errors");
	if (zf_text_member(answer, "live_bytes"))
		scrub->live_bytes = zf_text_u64(answer, "live_bytes");
	take_damage(scrub, zf_text_member(answer, "damage"));
	zf_meter_update(&scrub->meter, scrub->data_bytes + scrub->node_bytes, scrub->live_bytes);
}

/* Waits until the average rate since the beginning is at most --rate. A signal ends the wait. */
static void keep_rate(const struct scrub *scrub)
{
	const struct zf_arg *rate = &scrub->args->options[ZF_OPTION_RATE];
	double bytes = (double)(scrub->data_bytes + scrub->node_bytes);
	int64_t left;

	if (!rate->given)
		return;
	left = scrub->start_ns + (int64_t)(bytes / (double)rate->number * 1e9) - now_ns();
	if (left > 0 && !zf_interrupted())
		nanosleep(&(struct timespec){left / SECOND_NS, left % SECOND_NS}, NULL);
}

/* One step. 1: there is more, from *place on. */
static int step(struct scrub *scrub, struct json_object **place)
{
	struct json_object *request = json_object_new_object(), *answer = NULL;
	int r;

	zf_json_add_bool(request, "repair", true);
	if (*place)
		zf_json_add(request, "place", *place);
	*place = NULL;
	r = zf_target_run(scrub->target, zf_report_find("scrub_step"), request, NULL, &answer);
	json_object_put(request);
	if (r < 0)
		return r;
	count(scrub, answer);
	*place = json_object_get(zf_text_member(answer, "place"));
	json_object_put(answer);
	return *place != NULL;
}

static int run(struct scrub *scrub)
{
	struct json_object *place = NULL;
	int r;

	do {
		r = step(scrub, &place);
		keep_rate(scrub);
	} while (r > 0 && !zf_interrupted() && !ferror(stdout));
	json_object_put(place);
	return r < 0 ? r : 0;
}

/* ---- the scrub of a writable mount ---- */

#define POLL_MS_MIN 10
#define POLL_MS_MAX 500

static int ask(struct scrub *scrub, const char *command, struct json_object *request,
	       struct json_object **ret_status)
{
	int r = zf_target_run(scrub->target, zf_report_find(command), request, NULL, ret_status);

	json_object_put(request);
	return r;
}

static bool is_in_state(struct json_object *status, const char *state)
{
	return strcmp(zf_text_string(status, "state"), state) == 0;
}

static int read_only(struct scrub *scrub, bool *ret_read_only)
{
	struct json_object *status = NULL;
	int r = ask(scrub, "status", NULL, &status);

	*ret_read_only = json_object_get_boolean(zf_text_member(status, "read_only"));
	json_object_put(status);
	return r;
}

/* Starts a scrub, resumes a paused one, or joins the one that runs. */
static int begin(struct scrub *scrub)
{
	const struct zf_arg *rate = &scrub->args->options[ZF_OPTION_RATE];
	struct json_object *status = NULL, *request;
	int r = ask(scrub, "scrub_status", NULL, &status);
	bool running = is_in_state(status, "running"), paused = is_in_state(status, "paused");

	json_object_put(status);
	if (r < 0 || running)
		return r;
	request = json_object_new_object();
	if (rate->given && !paused)
		zf_json_add_u64(request, "rate", rate->number);
	r = ask(scrub, paused ? "scrub_resume" : "scrub_start", request, &status);
	json_object_put(status);
	return r;
}

/* Takes the news from the status. 1: the scrub goes on; 0: it has ended. */
static int look(struct scrub *scrub)
{
	struct json_object *request = json_object_new_object(), *status = NULL, *damage;
	int r;

	zf_json_add_u64(request, "from", scrub->seen);
	r = ask(scrub, "scrub_status", request, &status);
	if (r < 0)
		return r;
	damage = zf_text_member(status, "damage");
	take_damage(scrub, damage);
	scrub->seen += damage ? json_object_array_length(damage) : 0;
	scrub->data_bytes = zf_text_u64(status, "data_bytes");
	scrub->node_bytes = zf_text_u64(status, "node_bytes");
	scrub->skipped = zf_text_u64(status, "skipped");
	scrub->errors = zf_text_u64(status, "errors");
	scrub->repaired = zf_text_u64(status, "repaired");
	zf_meter_update(&scrub->meter, zf_text_u64(status, "done_bytes"),
			zf_text_u64(status, "total_bytes"));
	r = is_in_state(status, "running");
	scrub->stopped = !r && !is_in_state(status, "finished");
	json_object_put(status);
	return r;
}

/* An interrupted scrub is paused, and the next `zfusectl scrub` resumes it. */
static int run_mounted(struct scrub *scrub)
{
	struct json_object *status = NULL;
	long ms = POLL_MS_MIN;
	int r = begin(scrub);

	while (r == 0 && (r = look(scrub)) > 0 && !zf_interrupted() && !ferror(stdout)) {
		nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
		ms = ms * 2 < POLL_MS_MAX ? ms * 2 : POLL_MS_MAX;
		r = 0;
	}
	if (r <= 0)
		return r;
	r = ask(scrub, "scrub_pause", NULL, &status);
	json_object_put(status);
	return r;
}

static int scrub_target(struct scrub *scrub)
{
	bool only_readable = true;
	int r = scrub->target->mounted ? read_only(scrub, &only_readable) : 0;

	if (r < 0)
		return r;
	return only_readable ? run(scrub) : run_mounted(scrub);
}

/* ---- the result ---- */

static void print_text(const struct scrub *scrub, bool whole)
{
	char data[ZF_TEXT_SIZE_MAX], nodes[ZF_TEXT_SIZE_MAX];

	printf("verified: %s of data, %s of metadata\n", zf_text_size(scrub->data_bytes, data),
	       zf_text_size(scrub->node_bytes, nodes));
	if (scrub->skipped > 0)
		printf("not verified: %" PRIu64 " places whose metadata cannot be read\n",
		       scrub->skipped);
	if (scrub->errors + scrub->repaired > 0)
		printf("damaged places: %" PRIu64 ", repaired: %" PRIu64 "\n",
		       scrub->errors + scrub->repaired, scrub->repaired);
	else
		puts(whole ? "no damage" : "no damage in what was verified");
}

static void print_json(const struct scrub *scrub)
{
	struct zf_json_out json = {.out = stdout};
	struct json_object *result = json_object_new_object();

	zf_json_add_u64(result, "data_bytes", scrub->data_bytes);
	zf_json_add_u64(result, "node_bytes", scrub->node_bytes);
	zf_json_add_u64(result, "skipped", scrub->skipped);
	zf_json_add_u64(result, "errors", scrub->errors);
	zf_json_add_u64(result, "repaired", scrub->repaired);
	zf_json_add_bool(result, "interrupted", zf_interrupted());
	zf_json_add(result, "damage", json_object_get(scrub->damage));
	zf_json_out_result(&json, result);
	json_object_put(result);
}

int zf_scrub_main(const struct zf_args *args)
{
	static char prefix[] = "zfusectl scrub";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	struct scrub scrub = {.args = args, .start_ns = now_ns()};
	struct zf_target target;
	bool whole;
	int status, r;

	if (zf_target_open(args->operands[0], false, &report, &target) < 0)
		return ZF_EXIT_PROBLEMS;
	scrub.target = &target;
	scrub.damage = json_object_new_array();
	zf_interrupt_catch();
	zf_meter_init(&scrub.meter, args, "bytes");
	r = scrub_target(&scrub);
	zf_meter_end(&scrub.meter);
	if (scrub.stopped && !zf_interrupted())
		zf_report(&report, ZF_REPORT_WARNING,
			  "the scrub was paused or cancelled: see `zfusectl scrub status`");
	whole = r == 0 && !zf_interrupted() && !scrub.stopped && scrub.skipped == 0;
	if (zf_args_json(args))
		print_json(&scrub);
	else
		print_text(&scrub, whole);
	status = zf_args_flush(args);
	if (zf_interrupted())
		zf_report(&report, ZF_REPORT_WARNING, "interrupted");
	json_object_put(scrub.damage);
	zf_target_close(&target);
	return !whole || scrub.errors > 0 ? ZF_EXIT_PROBLEMS : status;
}

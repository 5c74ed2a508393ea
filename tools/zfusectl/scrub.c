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
	uint64_t errors, repaired; /* damaged places: that stay so; nodes that were written anew */
	struct json_object *damage;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* ---- damage ---- */

static void print_damage(struct json_object *error)
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
			print_damage(error);
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

/* Until no more than --rate has been read since the beginning. A signal ends the wait. */
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

/* 1: there is more, from *place on. */
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
	r = run(&scrub);
	zf_meter_end(&scrub.meter);
	whole = r == 0 && !zf_interrupted() && scrub.skipped == 0;
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

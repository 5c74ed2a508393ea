/* SPDX-License-Identifier: MIT */
/* Explores every cut of a record, all or some of its outcomes, and cuts during their recovery. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"

/*
 * The variants of a cut. Numbers below VARIANT_BLOCKS are its outcomes if it has at most
 * OUTCOMES_MAX, and else some outcomes that are drawn. From VARIANT_BLOCKS on the outcome is drawn
 * block by block; from VARIANT_HOST on the power of the host is cut.
 */
#define OUTCOMES_MAX   64u
#define VARIANT_BLOCKS 1000u
#define VARIANT_HOST   2000u

#define NESTED_MAX     512u
/* How many cuts of one recovery are explored, by depth; NESTED_PERCENT of the first recoveries. */
static const unsigned int nested_each[CUT_DEPTH] = {2, 1, 0};
#define NESTED_PERCENT 40u

struct cut_name explore_now;

/* ---- names ---- */

static int format_record(const struct record_name *name, char *to, size_t room)
{
	if (name->length == 0)
		return snprintf(to, room, "%" PRIu64, name->seed);
	return snprintf(to, room, "%" PRIu64 "/%u/%" PRIu64, name->seed, name->length,
			name->number);
}

void cut_name_format(const struct cut_name *name, char *ret_text)
{
	int n = format_record(&name->record, ret_text, CUT_NAME_TEXT_MAX);

	for (unsigned int i = 0; i < name->depth; i++)
		n += snprintf(ret_text + n, CUT_NAME_TEXT_MAX - (size_t)n, ":%u:%u",
			      name->at[i].cut, name->at[i].variant);
}

/* Parses a number and moves *text behind it. */
static bool take_number(const char **text, uint64_t *ret_number)
{
	char *end;

	*ret_number = strtoull(*text, &end, 10);
	if (end == *text)
		return false;
	*text = end;
	return true;
}

static bool parse_record(const char **text, struct record_name *name)
{
	uint64_t length;

	if (!take_number(text, &name->seed))
		return false;
	if (**text != '/')
		return true;
	++*text;
	if (!take_number(text, &length) || length == 0 || *(*text)++ != '/')
		return false;
	name->length = (unsigned int)length;
	return take_number(text, &name->number);
}

bool cut_name_parse(const char *text, struct cut_name *ret_name)
{
	struct cut_name name = {0};
	uint64_t cut, variant;

	if (!parse_record(&text, &name.record))
		return false;
	while (*text == ':' && name.depth < CUT_DEPTH) {
		text++;
		if (!take_number(&text, &cut) || *text++ != ':' || !take_number(&text, &variant))
			return false;
		name.at[name.depth].cut = (uint32_t)cut;
		name.at[name.depth++].variant = (uint32_t)variant;
	}
	*ret_name = name;
	return *text == '\0';
}

static uint64_t seed_of(const struct cut_name *name)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, name->record.seed ^ name->record.number << 16);
	for (unsigned int i = 0; i < name->depth; i++)
		zf_rng_seed(&rng, zf_rng_next(&rng) ^ name->at[i].cut ^
					  (uint64_t)name->at[i].variant << 32);
	return zf_rng_next(&rng);
}

/* ---- one record being explored ---- */

struct explorer {
	const struct record *record;
	const struct explore_limits *limits;
	struct tally *tally;
	struct seen seen;
	const struct record_options *trace; /* traces the recovery from a state ...; NULL: none */
	unsigned int trace_depth;	    /* ... after so many cuts */
};

/* The commands of one recovery. */
struct nest {
	struct zf_sim *sims[NESTED_MAX];
	uint32_t count;
};

static void keep_nested(void *arg, const struct zf_sim *sim)
{
	struct nest *nest = arg;

	if (nest->count < NESTED_MAX)
		nest->sims[nest->count++] = zf_sim_clone(sim);
}

static void nest_clear(struct nest *nest)
{
	for (uint32_t i = 0; i < nest->count; i++)
		zf_sim_free(nest->sims[i]);
	nest->count = 0;
}

static const char *text_of(const struct cut_name *name)
{
	static char text[CUT_NAME_TEXT_MAX];

	cut_name_format(name, text);
	return text;
}

/* ---- one state ---- */

static void draw_judgement(struct zf_rng *rng, uint32_t variant, struct judgement *judgement)
{
	*judgement = (struct judgement){
		.host = variant >= VARIANT_HOST,
		.full = zf_rng_chance(rng, 25),
		.go_on = zf_rng_chance(rng, 10),
	};
	if (zf_rng_chance(rng, 50))
		judgement->second_cut = zf_rng_next(rng) | 1;
}

static void crash(struct zf_sim *sim, uint32_t variant, struct zf_rng *rng)
{
	uint64_t seed = zf_rng_next(rng);

	if (variant >= VARIANT_HOST)
		zf_sim_crash(sim, seed, ZF_SIM_CUT_HOST);
	else if (variant >= VARIANT_BLOCKS)
		zf_sim_crash(sim, seed, ZF_SIM_CUT_DEVICE);
	else if (zf_sim_outcomes(sim, OUTCOMES_MAX) <= OUTCOMES_MAX)
		zf_sim_crash_nth(sim, variant);
	else
		zf_sim_crash_some(sim, seed);
}

/* Not if the state has been judged already, unless more has been promised by now. */
static bool is_worth_it(struct explorer *explorer, const struct cut_name *name,
			const struct zf_sim *sim)
{
	const struct record *record = explorer->record;
	uint32_t promised = promised_at(record, record->cuts[name->at[0].cut].op);
	enum seen_before before = seen_note(&explorer->seen, zf_sim_digest(sim), promised);
	struct tally *tally = explorer->tally;

	if (before == SEEN)
		return false;
	tally->judged++;
	if (before == SEEN_NEVER) {
		tally->cuts++;
		tally->nested += name->depth > 1;
		tally->deepest += name->depth > 2;
	}
	return true;
}

/* Leaves `before` as it is, and crashes a clone of it. */
static bool judge_state(struct explorer *explorer, const struct cut_name *name,
			const struct zf_sim *before, struct nest *nest)
{
	uint32_t op = explorer->record->cuts[name->at[0].cut].op;
	uint32_t variant = name->at[name->depth - 1].variant;
	struct zf_sim *sim = zf_sim_clone(before);
	struct judgement judgement;
	struct zf_rng rng;
	bool ok = true;

	explore_now = *name;
	child_watch();
	zf_rng_seed(&rng, seed_of(name));
	crash(sim, variant, &rng);
	draw_judgement(&rng, variant, &judgement);
	judgement.observe = keep_nested;
	judgement.observe_arg = nest;
	if (explorer->trace && explorer->trace_depth == name->depth) {
		judgement.trace = explorer->trace->trace;
		judgement.trace_fd = explorer->trace->trace_fd;
	}
	if (is_worth_it(explorer, name, sim))
		ok = judge(explorer->record, op, sim, &judgement);
	zf_sim_free(sim);
	return ok;
}

static bool explore_state(struct explorer *explorer, const struct cut_name *name,
			  const struct zf_sim *before, struct cut_name *ret_failed);

/* Some cuts of the recovery, spread over it. */
static bool explore_nest(struct explorer *explorer, const struct cut_name *name,
			 const struct nest *nest, struct cut_name *ret_failed)
{
	struct cut_name inner = *name;
	struct zf_rng rng;
	bool ok = true;

	if (nest->count == 0)
		return true;
	zf_rng_seed(&rng, seed_of(name) + 1);
	if (name->depth == 1 && !zf_rng_chance(&rng, NESTED_PERCENT))
		return true;
	inner.depth++;
	for (uint32_t i = 0; ok && i < nested_each[name->depth - 1]; i++) {
		uint32_t cut = (uint32_t)zf_rng_below(&rng, nest->count);
		uint64_t outcomes = zf_sim_outcomes(nest->sims[cut], OUTCOMES_MAX);

		inner.at[name->depth].cut = cut;
		inner.at[name->depth].variant = (uint32_t)zf_rng_below(&rng, outcomes);
		if (zf_rng_chance(&rng, 25))
			inner.at[name->depth].variant += VARIANT_BLOCKS;
		ok = explore_state(explorer, &inner, nest->sims[cut], ret_failed);
	}
	return ok;
}

/* Explores the state, and some states after cuts of its recovery. */
static bool explore_state(struct explorer *explorer, const struct cut_name *name,
			  const struct zf_sim *before, struct cut_name *ret_failed)
{
	struct nest nest = {.count = 0};
	bool ok = judge_state(explorer, name, before, &nest);

	if (!ok)
		*ret_failed = *name;
	else if (name->depth < CUT_DEPTH)
		ok = explore_nest(explorer, name, &nest, ret_failed);
	nest_clear(&nest);
	return ok;
}

/* ---- all of them ---- */

static bool is_over(const struct explorer *explorer)
{
	const struct explore_limits *limits = explorer->limits;

	return explorer->tally->cuts >= limits->cuts ||
	       (limits->deadline && time(NULL) >= limits->deadline);
}

static bool explore_variant(struct explorer *explorer, uint32_t cut, uint32_t variant,
			    struct cut_name *ret_failed)
{
	struct cut_name name = {
		.record = explorer->record->options.name, .depth = 1, .at = {{cut, variant}}};

	if (is_over(explorer))
		return true;
	return explore_state(explorer, &name, explorer->record->cuts[cut].sim, ret_failed);
}

static bool explore_cut(struct explorer *explorer, uint32_t cut, struct cut_name *ret_failed)
{
	uint64_t outcomes = zf_sim_outcomes(explorer->record->cuts[cut].sim, OUTCOMES_MAX);
	unsigned int tried = (unsigned int)outcomes, drawn = 1;
	bool ok = true;

	if (outcomes > OUTCOMES_MAX)
		tried = drawn = explorer->limits->samples;
	for (uint32_t i = 0; ok && i < tried; i++)
		ok = explore_variant(explorer, cut, i, ret_failed);
	for (uint32_t i = 0; ok && i < drawn; i++)
		ok = explore_variant(explorer, cut, VARIANT_BLOCKS + i, ret_failed);
	if (ok && cut % 4 == 0)
		ok = explore_variant(explorer, cut, VARIANT_HOST, ret_failed);
	return ok;
}

bool explore(const struct record_options *options, const struct explore_limits *limits,
	     struct tally *tally, struct cut_name *ret_failed)
{
	struct record record;
	struct explorer explorer = {.record = &record, .limits = limits, .tally = tally};
	bool ok;

	explore_now = *ret_failed = (struct cut_name){.record = options->name};
	child_watch();
	ok = record_run(&record, options);
	tally->records += !record.infeasible;
	for (uint32_t i = 0; ok && !record.infeasible && i < record.cut_count; i++)
		ok = explore_cut(&explorer, limits->backwards ? record.cut_count - 1 - i : i,
				 ret_failed);
	tally->failures += !ok;
	seen_clear(&explorer.seen);
	record_free(&record);
	return ok;
}

/* ---- repeating one of them ---- */

static bool find_again(struct explorer *explorer, const struct cut_name *name, unsigned int depth,
		       const struct zf_sim *before)
{
	struct nest nest = {.count = 0};
	struct cut_name outer = *name;
	bool ok, verbose = explore_verbose;

	outer.depth = depth;
	explore_verbose = verbose && depth == name->depth;
	ok = judge_state(explorer, &outer, before, &nest);
	explore_verbose = verbose;
	if (!ok)
		fprintf(stderr, "it is %s that fails\n", text_of(&outer));
	if (ok && depth < name->depth) {
		ok = name->at[depth].cut < nest.count;
		if (ok)
			ok = find_again(explorer, name, depth + 1, nest.sims[name->at[depth].cut]);
		else
			fprintf(stderr, "the recovery has %u cuts only\n", nest.count);
	}
	nest_clear(&nest);
	return ok;
}

/* `trace` NULL: no trace. */
static bool repeat_cut(const struct record *record, const struct cut_name *name,
		       const struct record_options *trace)
{
	const struct explore_limits limits = {.cuts = UINT64_MAX};
	struct tally tally = {0};
	struct explorer explorer = {
		.record = record,
		.limits = &limits,
		.tally = &tally,
		.trace = trace,
		.trace_depth = name->depth,
	};
	bool ok;

	if (name->at[0].cut >= record->cut_count) {
		fprintf(stderr, "there are %u cuts only\n", record->cut_count);
		return false;
	}
	ok = find_again(&explorer, name, 1, record->cuts[name->at[0].cut].sim);
	seen_clear(&explorer.seen);
	return ok;
}

bool explore_one(const struct record_options *options, const struct cut_name *name)
{
	const struct explore_limits limits = {.cuts = UINT64_MAX, .samples = 16};
	struct record_options named = *options;
	struct tally tally = {0};
	struct cut_name failed;
	struct record record;
	bool ok;

	named.name = name->record;
	if (name->depth > 0)
		named.trace = NULL;
	if (name->depth == 0 && !options->trace) {
		ok = explore(&named, &limits, &tally, &failed);
		if (!ok)
			fprintf(stderr, "it is %s that fails\n", text_of(&failed));
		return ok;
	}
	ok = record_run(&record, &named);
	if (ok && name->depth > 0)
		ok = repeat_cut(&record, name, options->trace ? options : NULL);
	record_free(&record);
	return ok;
}

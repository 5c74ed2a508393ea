/* SPDX-License-Identifier: MIT */
/* Every cut of a record, and cuts during the recovery from them. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"

#define NESTED_MAX  512u
#define NESTED_EACH 4u /* cuts of one recovery that are explored */

/* ---- names ---- */

void cut_name_print(FILE *out, const struct cut_name *name)
{
	fprintf(out, "%" PRIu64 ":%u:%u", name->seed, name->cut, name->variant);
	if (name->nested)
		fprintf(out, ":%u:%u", name->nested, name->nested_variant);
}

bool cut_name_parse(const char *text, struct cut_name *ret_name)
{
	struct cut_name name = {0};
	int n = sscanf(text, "%" SCNu64 ":%u:%u:%u:%u", &name.seed, &name.cut, &name.variant,
		       &name.nested, &name.nested_variant);

	if (n != 3 && n != 5)
		return false;
	*ret_name = name;
	return true;
}

static uint64_t seed_of(const struct cut_name *name)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, name->seed ^ (uint64_t)name->cut << 32 ^ (uint64_t)name->variant << 8 ^
				  (uint64_t)name->nested << 48 ^ name->nested_variant);
	return zf_rng_next(&rng);
}

static bool say_how_to_repeat(const struct record *record, const struct cut_name *name)
{
	const struct record_options *options = &record->options;

	fprintf(stderr, "to repeat: scripts/crash%s%s --ops %u --repeat ",
		options->plant ? " --plant " : "", options->plant ? options->plant->name : "",
		options->ops);
	cut_name_print(stderr, name);
	fprintf(stderr, "\n");
	return false;
}

/* ---- one cut ---- */

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

static void draw_judgement(struct zf_rng *rng, struct judgement *judgement)
{
	*judgement = (struct judgement){
		.host = zf_rng_chance(rng, 20),
		.full = zf_rng_chance(rng, 25),
		.go_on = zf_rng_chance(rng, 10),
	};
	if (zf_rng_chance(rng, 50))
		judgement->second_cut = zf_rng_next(rng) | 1;
}

/* Consumes nothing: crashes a clone of `before`. */
static bool judge_cut(const struct record *record, const struct cut_name *name,
		      const struct zf_sim *before, struct nest *nest)
{
	uint32_t op = record->cuts[name->cut].op;
	struct zf_sim *sim = zf_sim_clone(before);
	struct judgement judgement;
	struct zf_rng rng;
	bool ok;

	zf_rng_seed(&rng, seed_of(name));
	draw_judgement(&rng, &judgement);
	if (nest) {
		judgement.observe = keep_nested;
		judgement.observe_arg = nest;
	}
	zf_sim_crash(sim, zf_rng_next(&rng), judgement.host ? ZF_SIM_CUT_HOST : ZF_SIM_CUT_DEVICE);
	ok = judge(record, op, sim, &judgement);
	zf_sim_free(sim);
	return ok || say_how_to_repeat(record, name);
}

static void nest_clear(struct nest *nest)
{
	for (uint32_t i = 0; i < nest->count; i++)
		zf_sim_free(nest->sims[i]);
	nest->count = 0;
}

/* The cut, and some of those of its recovery. */
static bool explore_cut(const struct record *record, const struct cut_name *name,
			struct tally *tally)
{
	struct nest nest = {.count = 0};
	struct cut_name inner = *name;
	struct zf_rng rng;
	bool ok = judge_cut(record, name, record->cuts[name->cut].sim, &nest);

	tally->cuts++;
	zf_rng_seed(&rng, seed_of(name) + 1);
	for (uint32_t i = 0; ok && i < NESTED_EACH && i < nest.count; i++) {
		inner.nested = 1 + (uint32_t)zf_rng_below(&rng, nest.count);
		inner.nested_variant = i;
		ok = judge_cut(record, &inner, nest.sims[inner.nested - 1], NULL);
		tally->cuts++;
		tally->nested++;
	}
	nest_clear(&nest);
	tally->failures += !ok;
	return ok;
}

/* ---- all of them ---- */

static bool record_or_say(struct record *record, const struct record_options *options)
{
	if (record_run(record, options))
		return true;
	fprintf(stderr, "to repeat: scripts/crash --ops %u --seed %" PRIu64 " --records 1\n",
		options->ops, options->seed);
	return false;
}

bool explore(const struct record_options *options, unsigned int variants, uint64_t most,
	     struct tally *tally)
{
	struct cut_name name = {.seed = options->seed};
	struct record record;
	bool ok = record_or_say(&record, options);

	tally->records++;
	tally->failures += !ok;
	for (name.cut = 0; ok && name.cut < record.cut_count; name.cut++) {
		for (name.variant = 0; ok && name.variant < variants; name.variant++) {
			if (tally->cuts < most)
				ok = explore_cut(&record, &name, tally);
		}
	}
	record_free(&record);
	return ok;
}

bool explore_one(const struct record_options *options, const struct cut_name *name)
{
	struct record_options named = *options;
	struct cut_name outer = *name;
	struct nest nest = {.count = 0};
	struct record record;
	bool ok, verbose = explore_verbose;

	named.seed = name->seed;
	outer.nested = outer.nested_variant = 0;
	ok = record_or_say(&record, &named);
	if (ok && name->cut >= record.cut_count) {
		fprintf(stderr, "there are %u cuts only\n", record.cut_count);
		ok = false;
	}
	explore_verbose = verbose && !name->nested;
	if (ok)
		ok = judge_cut(&record, &outer, record.cuts[name->cut].sim, &nest);
	explore_verbose = verbose;
	if (ok && name->nested) {
		assert(name->nested <= nest.count);
		ok = judge_cut(&record, name, nest.sims[name->nested - 1], NULL);
	}
	nest_clear(&nest);
	record_free(&record);
	return ok;
}

/* SPDX-License-Identifier: MIT */
/*
 * The checker finds every lie that contradicts another byte of the disk, and no lie at all crashes,
 * hangs or surprises a mount.
 *
 * Each field of each structure on the images of image.h (as the tables of fields list them) is set
 * wrong in every way that lie.h knows, one at a time, with all checksums made right up to the
 * superblock; trial.h describes the trial. An image that the checker finds in order must mount and
 * work, and the field must be listed in docs/format.md among those that a checker cannot know.
 *
 *      test_lies [--repair] [--all] [--seed N] [--one-in N] [--only TEXT] [--failures N]
 *      test_lies --manglings N [--seed N] [--failures N]
 *
 * With --repair each lie that is found is repaired instead; mend.h describes the right outcomes.
 *
 * With --manglings N manglings are drawn (mangling.h), each from a seed of its own, and tried in
 * both ways.
 *
 * Without --all one lie in 20 is drawn (with the address sanitizer, one in 100). --only: all lies
 * whose description contains TEXT.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "file.h"
#include "image.h"
#include "known.h"
#include "mend.h"
#include "mangling.h"
#include "trial.h"

#ifdef __SANITIZE_ADDRESS__
#define ONE_IN 100
#else
#define ONE_IN 20
#endif

static struct {
	uint64_t seed;
	uint64_t one_in;
	uint64_t manglings;
	const char *only;
	unsigned int failures_max; /* so many are printed */
	bool verbose;
	bool repair;
} options = {.one_in = ONE_IN, .failures_max = 40};

static struct {
	uint64_t structures, fields, lies, manglings;
	uint64_t outcomes[TRIAL_OUTCOMES];
	uint64_t mended[MEND_OUTCOMES];
	unsigned int failures;
} counts;

static struct zf_rng rng;

/* ---- judging ---- */

static void tell(enum image_kind kind, const struct lie *lie, const struct trial_result *result,
		 const char *verdict)
{
	if (counts.failures > options.failures_max)
		return;
	printf("%s: %s image: %s: %s %s: %s\n", verdict, image_kind_name(kind), lie->place->where,
	       lie->field->name, lie->text, trial_outcome_name(result->outcome));
	if (result->text[0])
		printf("    %s\n", result->text);
}

static void judge(enum image_kind kind, const struct lie *lie, const struct trial_result *result)
{
	bool listed = result->outcome == TRIAL_UNKNOWN &&
		      known_has(lie->place->structure, lie->field->name);

	counts.lies++;
	counts.outcomes[result->outcome]++;
	if (result->outcome == TRIAL_FOUND || result->outcome == TRIAL_FOUND_DATA || listed) {
		if (options.verbose)
			tell(kind, lie, result, "as it should be");
		return;
	}
	counts.failures++;
	tell(kind, lie, result, "FAILED");
}

static void judge_mended(enum image_kind kind, const struct lie *lie,
			 const struct mend_result *result)
{
	bool failed = result->outcome >= MEND_REPAIR_FAILED;

	counts.lies++;
	counts.mended[result->outcome]++;
	counts.failures += failed;
	if ((!failed && !options.verbose) || counts.failures > options.failures_max)
		return;
	printf("%s: %s image: %s: %s %s: %s, %u files changed or gone\n",
	       failed ? "FAILED" : "as it should be", image_kind_name(kind), lie->place->where,
	       lie->field->name, lie->text, mend_outcome_name(result->outcome), result->touched);
	if (result->text[0])
		printf("    %s\n", result->text);
}

/* ---- telling lies ---- */

static void try_lie(enum image_kind kind, const struct places *places, const struct lie *lie)
{
	struct trial_result result;
	struct mend_result mended;

	if (options.repair) {
		mend_run(places, lie, 1, &mended);
		judge_mended(kind, lie, &mended);
		return;
	}
	trial_run(places, lie, 1, &result);
	judge(kind, lie, &result);
}

static bool is_drawn(const struct lie *lie)
{
	char text[512];

	if (!options.only)
		return zf_rng_below(&rng, options.one_in) == 0;
	snprintf(text, sizeof(text), "%s: %s %s", lie->place->where, lie->field->name, lie->text);
	return strstr(text, options.only) != NULL;
}

static void try_element(enum image_kind kind, const struct places *places,
			const struct place *place, const struct zf_field *field,
			unsigned int element)
{
	struct lie lies[LIES_MAX];
	unsigned int n = lie_make(places, place, field, element, &rng, lies);

	for (unsigned int i = 0; i < n; i++) {
		if (is_drawn(&lies[i]))
			try_lie(kind, places, &lies[i]);
		free(lies[i].bytes);
	}
}

static void try_place(enum image_kind kind, const struct places *places, const struct place *place)
{
	counts.structures++;
	counts.fields += place->field_count;
	for (unsigned int f = 0; f < place->field_count; f++)
		for (unsigned int e = 0; e < lie_elements(&place->fields[f]); e++)
			try_element(kind, places, place, &place->fields[f], e);
}

/* ---- manglings ---- */

static void tell_mangling(const struct mangling *mangling, const char *outcome, const char *text,
			  bool failed)
{
	counts.failures += failed;
	if ((!failed && !options.verbose) || counts.failures > options.failures_max)
		return;
	printf("%s: --manglings 1 --seed %" PRIu64 ": %s\n", failed ? "FAILED" : "as it should be",
	       mangling->seed, outcome);
	mangling_print(mangling);
	if (text[0])
		printf("    %s\n", text);
}

static void mend_mangling(const struct places *places, const struct mangling *mangling)
{
	struct mend_result mended;

	mend_run(places, mangling->lies, mangling->count, &mended);
	counts.mended[mended.outcome]++;
	tell_mangling(mangling, mend_outcome_name(mended.outcome), mended.text,
		      mended.outcome >= MEND_REPAIR_FAILED);
}

/* Repairs only what the checker finds; otherwise the trial has mounted and used the image. */
static void try_mangling(const struct places *places, uint64_t seed)
{
	struct trial_result result;
	struct mangling mangling;

	mangling_make(places, seed, &mangling);
	trial_run(places, mangling.lies, mangling.count, &result);
	counts.manglings++;
	counts.outcomes[result.outcome]++;
	tell_mangling(&mangling, trial_outcome_name(result.outcome), result.text,
		      result.outcome >= TRIAL_REFUSED);
	if (result.outcome == TRIAL_FOUND)
		mend_mangling(places, &mangling);
	mangling_free(&mangling);
}

/* The seed determines the kind of image. One in four is in a file, because that is slower. */
static void try_manglings(enum image_kind kind, const struct places *places)
{
	for (uint64_t i = 0; i < options.manglings; i++) {
		uint64_t seed = options.seed + i;
		bool in_file = seed / IMAGE_ALL_KINDS % 4 == 3;

		if (seed % IMAGE_ALL_KINDS == kind && in_file == (places->file != NULL))
			try_mangling(places, seed);
	}
}

/* ---- images ---- */

/* The image without a lie must be in order, or no finding would mean anything. */
static bool is_in_order(enum image_kind kind, const struct places *places)
{
	struct trial_result result;

	trial_run(places, NULL, 0, &result);
	if (result.outcome == TRIAL_UNKNOWN)
		return true;
	printf("FAILED: %s image, without a lie: %s\n    %s\n", image_kind_name(kind),
	       trial_outcome_name(result.outcome), result.text);
	counts.failures++;
	return false;
}

/* Tries the places from the `first` on. */
static void try_places(enum image_kind kind, const struct places *places, unsigned int first)
{
	if (!is_in_order(kind, places))
		return;
	if (options.manglings > 0) {
		try_manglings(kind, places);
		return;
	}
	for (unsigned int i = first; i < places->count; i++)
		try_place(kind, places, &places->place[i]);
}

static void try_image(enum image_kind kind)
{
	static struct places places;
	unsigned int first;
	struct forge forge;
	struct file file;

	image_make(kind, &forge);
	places_find(&places, &forge);
	mend_begin(&places);
	try_places(kind, &places, 0);
	file_make(&forge, &file);
	first = places.count;
	places_find_trailer(&places, &file);
	try_places(kind, &places, first);
	file_free(&file);
	mend_end();
	image_free(&forge);
}

/* ---- the program ---- */

static void take_options(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"all", no_argument, NULL, 'a'},
		{"seed", required_argument, NULL, 's'},
		{"one-in", required_argument, NULL, 'n'},
		{"only", required_argument, NULL, 'o'},
		{"failures", required_argument, NULL, 'f'},
		{"verbose", no_argument, NULL, 'v'},
		{"repair", no_argument, NULL, 'r'},
		{"manglings", required_argument, NULL, 'm'},
		{0},
	};
	int c;

	options.seed = (uint64_t)time(NULL);
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (c == 'a')
			options.one_in = 1;
		else if (c == 's')
			options.seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			options.one_in = strtoull(optarg, NULL, 0);
		else if (c == 'o')
			options.only = optarg;
		else if (c == 'f')
			options.failures_max = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'r')
			options.repair = true;
		else if (c == 'm')
			options.manglings = strtoull(optarg, NULL, 0);
		else if (c == 'v')
			options.verbose = true;
		else
			exit(2);
	}
	if (options.one_in == 0)
		exit(2);
}

static void tell_outcomes(void)
{
	for (unsigned int o = 0; o < TRIAL_OUTCOMES; o++)
		printf("  %8" PRIu64 " %s\n", counts.outcomes[o],
		       trial_outcome_name((enum trial_outcome)o));
}

static void tell_mended(void)
{
	for (unsigned int o = 0; o < MEND_OUTCOMES; o++)
		printf("  %8" PRIu64 " %s\n", counts.mended[o],
		       mend_outcome_name((enum mend_outcome)o));
}

static void tell_counts(void)
{
	if (options.manglings > 0)
		printf("%" PRIu64 " manglings:\n", counts.manglings);
	else
		printf("%" PRIu64 " structures, %" PRIu64 " fields, %" PRIu64 " lies:\n",
		       counts.structures, counts.fields, counts.lies);
	if (!options.repair)
		tell_outcomes();
	if (options.repair || options.manglings > 0)
		tell_mended();
	printf("%u failures\n", counts.failures);
}

int main(int argc, char **argv)
{
	const char *doc = getenv("ZF_FORMAT_DOC");

	take_options(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!doc) {
		fprintf(stderr, "ZF_FORMAT_DOC must name docs/format.md\n");
		return 2;
	}
	known_read(doc);
	zf_rng_seed(&rng, options.seed);
	printf("seed %" PRIu64 " (replay with --seed)\n", options.seed);
	for (unsigned int kind = 0; kind < (options.manglings ? IMAGE_ALL_KINDS : IMAGE_KINDS);
	     kind++)
		try_image((enum image_kind)kind);
	if (options.one_in == 1 && !options.only && !options.repair && options.manglings == 0)
		counts.failures += known_tell_unneeded();
	tell_counts();
	return counts.failures > 0;
}

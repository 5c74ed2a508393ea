/* SPDX-License-Identifier: MIT */
#include "mend.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "child.h"
#include "file.h"
#include "io/image.h"
#include "io/memory.h"
#include "repair/fixture.h"

/* Files of one leaf: a lie about a leaf may cost what the leaf has, and no more. */
#define TOUCHED_MAX_LEAF 90u
/* Files of one item: the file that it is about, and others that the lie makes it name. */
#define TOUCHED_MAX 3u

static struct mend_result *result; /* shared with the parent process */
static struct zf_vector truth;	   /* struct listed */

static int open_device(const struct places *places, struct zf_dev **ret_dev)
{
	const struct zf_open_options options = {0};

	if (places->file)
		return zf_image_open(places->file->path, &options, NULL, ret_dev);
	return zf_memory_open(places->forge->memory, NULL, NULL, ret_dev);
}

void mend_begin(const struct places *places)
{
	struct zf_dev *dev;
	int r = zf_memory_open(places->forge->memory, NULL, NULL, &dev);

	assert(r == 0);
	r = listing_make(dev, &truth);
	assert(r == 0);
	zf_dev_close(dev);
}

void mend_end(void)
{
	zf_vector_deinit(&truth);
}

/* ---- judging ---- */

struct trial {
	const struct places *places;
	const struct lie *lies;
	unsigned int count;
};

/* A lie about bytes of the log made them a record of a newer version, which a repair leaves. */
static bool is_newer_by_lie(const struct trial *trial)
{
	if (!strstr(result->text, "of a kind that this version of zfuse does not know"))
		return false;
	for (unsigned int i = 0; i < trial->count; i++)
		if (strstr(trial->lies[i].place->where, "in the log") &&
		    lie_is_wide(&trial->lies[i]))
			return true;
	return false;
}

static enum mend_outcome no_repair(const struct trial *trial)
{
	bool nothing_found = strstr(result->text, "nothing of the fs tree (names") != NULL;

	if (is_newer_by_lie(trial))
		return MEND_GIVEN_UP;
	for (unsigned int i = 0; i < trial->count; i++) {
		const struct lie *lie = &trial->lies[i];

		if (lie_may_be_given_up(lie) || (nothing_found && lie_hides_nodes(lie)))
			return MEND_GIVEN_UP;
	}
	return MEND_REPAIR_FAILED;
}

/* How many files may differ. The log counts as one leaf: without it, files are as of the commit. */
static unsigned int touched_max(const struct lie *lie)
{
	const char *structure = lie->place->structure, *field = lie->field->name;

	if (lie->rotten)
		return TOUCHED_MAX_LEAF;
	/* Nothing else tells where the log begins, or after which reset of its zone. */
	if (strncmp(field, "log_", 4) == 0 || strcmp(field, "op_number") == 0 ||
	    strstr(structure, "zone table"))
		return TOUCHED_MAX_LEAF;
	if (strcmp(structure, "zf_disk_super") == 0 && lie_is_wide(lie))
		return TOUCHED_MAX_LEAF;
	if (strstr(structure, "log") || strstr(structure, "node") || strstr(structure, "item") ||
	    strstr(structure, "packing"))
		return TOUCHED_MAX_LEAF;
	return TOUCHED_MAX;
}

static enum mend_outcome compare(struct zf_dev *dev, const struct trial *trial)
{
	unsigned int allowed = 0;
	struct zf_vector after;
	int r = listing_make(dev, &after);

	if (r < 0)
		return MEND_REFUSED;
	result->touched = listing_compare(&truth, &after, false);
	zf_vector_deinit(&after);
	if (result->touched == 0)
		return MEND_WHOLE;
	for (unsigned int i = 0; i < trial->count; i++)
		allowed += touched_max(&trial->lies[i]);
	return result->touched <= allowed ? MEND_TOUCHED : MEND_LOST;
}

/* A lie made a zone offline: no repair brings its data back, and reading it must fail. */
static bool is_lost_by_lie(const struct trial *trial, uint64_t errors)
{
	if (fixture_count_said("expected one that is not offline") < errors)
		return false;
	for (unsigned int i = 0; i < trial->count; i++) {
		const struct lie *lie = &trial->lies[i];

		if (strstr(lie->place->where, "zone table") &&
		    (strcmp(lie->field->name, "cond") == 0 || lie_is_wide(lie)))
			return true;
	}
	return false;
}

/*
 * Two kinds of errors may be left. A log of a newer version waits for a program that knows it. And
 * an image whose header lies stays another device than the filesystem was made for.
 */
static enum mend_outcome errors_are_left(const struct trial *trial, uint64_t errors)
{
	fixture_first_message(result->text, sizeof(result->text));
	if (is_lost_by_lie(trial, errors))
		return MEND_GIVEN_UP;
	if (strstr(result->text, "log record") || strstr(result->text, ", the device's"))
		return no_repair(trial) == MEND_GIVEN_UP ? MEND_GIVEN_UP : MEND_ERRORS;
	return MEND_ERRORS;
}

static enum mend_outcome mend(struct zf_dev *dev, const struct trial *trial)
{
	struct zf_repair_counts counts;
	uint64_t errors;
	int r;

	if (fixture_errors(dev) == 0)
		return MEND_NOTHING;
	r = fixture_repair(dev, &counts);
	fixture_first_message(result->text, sizeof(result->text));
	if (r < 0) {
		if (result->text[0] == '\0')
			snprintf(result->text, sizeof(result->text), "%s", strerror(-r));
		return no_repair(trial);
	}
	errors = fixture_errors(dev);
	if (errors > 0)
		return errors_are_left(trial, errors);
	return compare(dev, trial);
}

/* ---- one trial ---- */

static void run_child(void *arg)
{
	const struct trial *trial = arg;
	struct zf_dev *dev;

	lie_tell(trial->places, trial->lies, trial->count);
	if (trial->places->file)
		file_write_own(trial->places->file);
	if (open_device(trial->places, &dev) < 0) {
		result->outcome = no_repair(trial);
	} else {
		result->outcome = mend(dev, trial);
		zf_dev_close(dev);
	}
	if (trial->places->file)
		unlink(trial->places->file->path);
}

void mend_run(const struct places *places, const struct lie *lies, unsigned int count,
	      struct mend_result *ret_result)
{
	struct trial trial = {.places = places, .lies = lies, .count = count};
	char text[64];

	if (!result)
		result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(result != MAP_FAILED);
	*result = (struct mend_result){.outcome = MEND_CRASHED};
	if (child_run(run_child, &trial, text, sizeof(text))) {
		*ret_result = *result;
		return;
	}
	*ret_result = (struct mend_result){.outcome = MEND_CRASHED};
	snprintf(ret_result->text, sizeof(ret_result->text), "%s", text);
}

const char *mend_outcome_name(enum mend_outcome outcome)
{
	static const char *const names[MEND_OUTCOMES] = {
		[MEND_NOTHING] = "nothing to repair",
		[MEND_WHOLE] = "repaired, with all files",
		[MEND_TOUCHED] = "repaired, without the object that the lie changed",
		[MEND_GIVEN_UP] = "left alone",
		[MEND_REPAIR_FAILED] = "cannot be repaired",
		[MEND_LOST] = "repaired, and other files are lost",
		[MEND_ERRORS] = "repaired, and errors are left",
		[MEND_REFUSED] = "repaired, but the mount fails",
		[MEND_CRASHED] = "crashed, or took too much time or memory",
	};

	return names[outcome];
}

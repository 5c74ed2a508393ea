/* SPDX-License-Identifier: MIT */
/*
 * A failure is found after hundreds of operations, most of which have nothing to do with it. This
 * file leaves such operations out: halves of them, quarters, and so on down to single ones, as long
 * as any cut of the rest still fails ("Simplifying and Isolating Failure-Inducing Input", Zeller
 * and Hildebrandt, 2002).
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "explore.h"

#define TRY_SECONDS 10u
#define KEEP_TEXT   4096u

struct shrinker {
	struct record_options options; /* with the script */
	struct script script;
	bool *keep;
	uint32_t kept;
	struct cut_name failed;
	time_t deadline;
};

static time_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* ---- the list of operations kept ---- */

static void format_keep(const bool *keep, uint32_t count, char *ret_text)
{
	size_t at = 0;

	ret_text[0] = '\0';
	for (uint32_t i = 0, end; i < count; i = end + 1) {
		for (end = i; end < count && keep[end];)
			end++;
		if (end > i)
			at += (size_t)snprintf(ret_text + at, KEEP_TEXT - at,
					       end > i + 1 ? "%s%u-%u" : "%s%u", at ? "," : "",
					       i + 1, end);
	}
}

static bool parse_keep(const char *text, bool *keep, uint32_t count)
{
	while (*text) {
		char *end;
		unsigned long from = strtoul(text, &end, 10), to = from;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		if (from == 0 || to < from || to > count || (*end && *end != ','))
			return false;
		for (unsigned long i = from; i <= to; i++)
			keep[i - 1] = true;
		text = *end ? end + 1 : end;
	}
	return true;
}

void shrink_say_how_to_repeat(const struct record_options *options, const struct cut_name *name,
			      const char *keep)
{
	char text[CUT_NAME_TEXT_MAX];

	cut_name_format(name, text);
	fprintf(stderr, "to repeat: scripts/crash%s%s --ops %u%s%s --repeat %s\n",
		options->plant ? " --plant " : "", options->plant ? options->plant->name : "",
		options->ops, keep ? " --keep " : "", keep ? keep : "", text);
}

/* ---- does it still fail? ---- */

static void try(const void *arg, struct verdict *verdict)
{
	const struct record_options *options = arg;
	const struct explore_limits limits = {.cuts = UINT64_MAX,
					      .samples = 8,
					      .backwards = true,
					      .deadline = time(NULL) + TRY_SECONDS};

	child_set_patience(TRY_SECONDS);
	verdict->ok = explore(options, &limits, &verdict->tally, &verdict->failed);
}

static bool still_fails(struct shrinker *s)
{
	struct child child = child_start(try, &s->options, true);
	struct verdict verdict;

	child_end(&child, &verdict);
	/* A wrong answer of an operation and a promise broken by a cut are different failures. */
	if (verdict.ok || (verdict.failed.depth > 0) != (s->failed.depth > 0))
		return false;
	s->failed = verdict.failed;
	return true;
}

static bool is_idle(const struct zf_op *op)
{
	switch (op->kind) {
	case OP_READ:
	case OP_READLINK:
	case OP_READDIR:
	case OP_GETXATTR:
	case OP_SEEK:
		return true;
	default:
		return op->result < 0;
	}
}

/* Leaves out `count` kept operations from the nth on. False: the rest does not fail. */
static bool try_without(struct shrinker *s, uint32_t n, uint32_t count)
{
	struct cut_name failed = s->failed;
	bool *before = calloc(s->script.count, sizeof(*before));
	uint32_t kept = s->kept;
	bool fails;

	assert(before);
	memcpy(before, s->keep, s->script.count * sizeof(*before));
	for (uint32_t i = 0, k = 0; i < s->script.count; i++) {
		if (!before[i] || k++ < n || k > n + count)
			continue;
		s->keep[i] = false;
		s->kept--;
	}
	fails = still_fails(s);
	if (!fails) {
		memcpy(s->keep, before, s->script.count * sizeof(*before));
		s->kept = kept;
		s->failed = failed;
	}
	free(before);
	return fails;
}

static void leave_out(struct shrinker *s)
{
	for (uint32_t size = s->kept / 2; size > 0; size /= 2) {
		bool smaller = false;

		for (uint32_t n = s->kept; n > 0 && now() < s->deadline;) {
			n = n > size ? n - size : 0;
			smaller |= try_without(s, n, size);
		}
		/* Single operations are tried until none can be left out any more. */
		if (size == 1 && smaller && now() < s->deadline)
			size = 2;
	}
}

/* Operations without effect can mostly be left out all at once. */
static void leave_out_idle(struct shrinker *s)
{
	bool *before = calloc(s->script.count + 1, sizeof(*before));
	struct cut_name failed = s->failed;
	uint32_t kept = s->kept;

	assert(before);
	memcpy(before, s->keep, s->script.count * sizeof(*before));
	for (uint32_t i = 0; i < s->script.count; i++) {
		if (!s->keep[i] || !is_idle(&s->script.ops[i]))
			continue;
		s->keep[i] = false;
		s->kept--;
	}
	if (!still_fails(s)) {
		memcpy(s->keep, before, s->script.count * sizeof(*before));
		s->kept = kept;
		s->failed = failed;
	}
	free(before);
}

/* ---- telling it ---- */

/* Prints one path of the inode, if it has a name. */
static bool print_path(struct oracle *oracle, uint64_t ino, unsigned int depth)
{
	for (unsigned int i = 0; depth < 8 && i < oracle->count; i++) {
		const struct oracle_inode *dir = oracle->all[i];

		for (unsigned int e = 0; e < dir->entry_count; e++) {
			if (dir->entries[e].ino != ino)
				continue;
			if (dir->ino != ZF_INO_ROOT)
				print_path(oracle, dir->ino, depth + 1);
			fprintf(stderr, "/%.20s", dir->entries[e].name);
			return true;
		}
	}
	return false;
}

static void print_ops(const struct record *record, uint32_t count)
{
	struct oracle *oracle = oracle_new(false, WORKLOAD_EPOCH_NS);

	for (uint32_t i = 0; i < count && record->ops[i].number > 0; i++) {
		const struct zf_op *op = &record->ops[i];

		fprintf(stderr, "  ");
		if (op->ino && op->ino != ZF_INO_ROOT && print_path(oracle, op->ino, 0))
			fprintf(stderr, ": ");
		workload_print(stderr, op);
		oracle_apply(oracle, op);
	}
	oracle_free(oracle);
}

/* Prints at which operation of the list the power is cut. */
static void print_cut(const struct record *record, const struct cut_name *failed)
{
	const struct cut *cut = &record->cuts[failed->at[0].cut];
	unsigned int command = 1;

	if (failed->depth == 0 || failed->at[0].cut >= record->cut_count)
		return;
	for (uint32_t i = 0; i < failed->at[0].cut; i++)
		command += record->cuts[i].op == cut->op;
	fprintf(stderr, "the power goes in op %u, at its command %u%s\n",
		record->ops[cut->op].number, command,
		failed->depth > 2   ? ", in the recovery from that, and in the next one"
		: failed->depth > 1 ? ", and in the recovery from that"
				    : "");
}

static void tell(struct shrinker *s)
{
	struct record record;
	char keep[KEEP_TEXT];

	bool ok = record_run(&record, &s->options);

	format_keep(s->keep, s->script.count, keep);
	fprintf(stderr, "of %u operations %u are enough:\n", s->script.count, s->kept);
	/* The operation with the wrong answer is at ops[count]. */
	print_ops(&record, ok ? record.count : record.count + 1);
	print_cut(&record, &s->failed);
	shrink_say_how_to_repeat(&s->options, &s->failed, keep);
	record_free(&record);
}

/* ---- all of it ---- */

static void record_only(const void *arg, struct verdict *verdict)
{
	struct record record;

	record_run(&record, arg);
	record_free(&record);
	verdict->ok = true;
}

/* A process that dies before the first cut cannot report its operations. */
static bool can_be_recorded(const struct record_options *options)
{
	struct child child = child_start(record_only, options, true);
	struct verdict verdict;

	child_end(&child, &verdict);
	return verdict.ok;
}

static void shrinker_begin(struct shrinker *s, const struct record_options *options,
			   const struct record *record, bool ok)
{
	*s = (struct shrinker){.options = *options};
	/* Without the final unmount, but with an operation that was answered wrongly. */
	s->script = (struct script){.ops = record->ops,
				    .count = ok ? record->count - 1 : record->count + 1};
	s->keep = calloc(s->script.count + 1, sizeof(*s->keep));
	assert(s->keep);
	s->script.keep = s->keep;
	s->options.script = &s->script;
}

void shrink(const struct record_options *options, const struct cut_name *failed,
	    unsigned int seconds)
{
	struct shrinker s;
	struct record record;

	if (!can_be_recorded(options))
		return;
	shrinker_begin(&s, options, &record, record_run(&record, options));
	s.failed = *failed;
	s.deadline = now() + (time_t)seconds;
	s.kept = s.script.count;
	if (failed->depth > 0 && failed->at[0].cut < record.cut_count)
		s.kept = (uint32_t)zf_min_u64(s.kept, record.cuts[failed->at[0].cut].op + 1);
	memset(s.keep, true, s.kept * sizeof(*s.keep));
	if (still_fails(&s)) {
		leave_out_idle(&s);
		leave_out(&s);
		tell(&s);
	}
	free(s.keep);
	record_free(&record);
}

bool shrink_repeat(const struct record_options *options, const struct cut_name *name,
		   const char *keep)
{
	struct record_options named = *options;
	struct shrinker s;
	struct record record;
	bool ok, verbose = explore_verbose;

	named.name = name->record;
	explore_verbose = false;
	ok = record_run(&record, &named);
	explore_verbose = verbose;
	shrinker_begin(&s, &named, &record, ok);
	ok = parse_keep(keep, s.keep, s.script.count);
	if (ok)
		ok = explore_one(&s.options, name);
	else
		fprintf(stderr, "no such operations: %s\n", keep);
	free(s.keep);
	record_free(&record);
	return ok;
}

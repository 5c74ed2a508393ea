/* SPDX-License-Identifier: MIT */
/*
 * The Nth allocation fails, for every N: alone, or with all that follow until the operation ends.
 * This is done in workloads of the explorer, with their unmount, and in the mounts that recover
 * from cuts of them.
 *
 *      test_memory [--seed S] [--workloads N] [--step N] [--verbose]
 *      test_memory --seed S [--mount M] --nth N [--lasting] [--verbose]       one of them again
 *
 * Right answers. ENOMEM: nothing has changed, except content of the file that was to be changed, or
 * a change that was made and did not become durable. EROFS: the filesystem turns read-only when
 * memory runs out in the middle of a transaction, because a transaction cannot be undone there. All
 * that was acknowledged is there in the end, and after a cut; and the library has freed all memory
 * that it allocated.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "explore.h"
#include "fs/core/fs_format.h"
#include "memory.h"

#define KIB		 UINT64_C(1024)
#define OPS		 120u
#define MOUNTS		 3u  /* mounts after each workload whose recovery runs out of memory */
#define PATIENCE_SECONDS 60u /* with a sanitizer, on a busy machine */

static struct {
	uint64_t seed, nth;
	bool lasting;
	uint64_t mount; /* number of the mount; 0: the workload */
	uint64_t workloads, step;
} at = {.seed = 1, .workloads = 4, .step = 1};

/* Shared with the children. */
static struct tallied {
	uint64_t runs, told, hurt, mounts, refused;
} *tally;

/* ---- a process that dies says where ---- */

static void say_where(void)
{
	fprintf(stderr, "wrong with --seed %" PRIu64 " --mount %" PRIu64 " --nth %" PRIu64 "%s\n",
		at.seed, at.mount, at.nth, at.lasting ? " --lasting" : "");
}

static void die(int sig)
{
	say_where();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void watch(void)
{
	static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(deadly); i++)
		signal(deadly[i], die);
}

enum outcome {
	RIGHT,
	WRONG,
	NOT_STRUCK, /* and right: there are no more allocations */
	WRONG_NOT_STRUCK,
};

static enum outcome say(bool ok, bool struck)
{
	if (!ok)
		say_where();
	if (struck)
		return ok ? RIGHT : WRONG;
	return ok ? NOT_STRUCK : WRONG_NOT_STRUCK;
}

/* Runs in a child process, so that a failed assertion is a finding, and not the end. */
static enum outcome in_child(enum outcome (*run)(const void *arg), const void *arg)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(PATIENCE_SECONDS);
		_exit((int)run(arg));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	return WIFEXITED(status) ? (enum outcome)WEXITSTATUS(status) : WRONG;
}

static bool is_right(enum outcome outcome)
{
	return outcome == RIGHT || outcome == NOT_STRUCK;
}

/* Each allocation in turn, or every `step`th one: which ones depends on the seed. */
static bool fail_each(enum outcome (*run)(const void *arg), const void *arg, bool lasting,
		      uint64_t step)
{
	enum outcome outcome = RIGHT;
	bool ok = true;

	at.lasting = lasting;
	for (at.nth = 1 + at.seed % step; outcome == RIGHT || outcome == WRONG; at.nth += step) {
		outcome = in_child(run, arg);
		ok = ok && is_right(outcome);
	}
	return ok;
}

/* ---- operations that are seldom drawn ---- */

enum {
	DIR = 1001,
	BIG,
	COPY,
	SMALL,
	LINKED,
	SYMLINK,
};

#define BLOCK	  UINT64_C(4096)
#define PIECES	  40u /* extents of a file: more than one transaction drops or shares */
#define FILE_MODE (S_IFREG | 0644)
#define PUNCH	  (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define MADE(n)	  .attr = {.ino = (n)}, .hold = true

static const struct zf_op listed[] = {
	{OP_MAKE, .dir = ZF_INO_ROOT, .name = "copy", .mode = FILE_MODE, MADE(COPY)},
	{OP_COPY, .from_ino = BIG, .ino = COPY, .len = 2 * PIECES * BLOCK},
	{OP_SETXATTR, .ino = BIG, .name = "user.small", .len = 20},
	{OP_SETXATTR, .ino = BIG, .name = "user.large", .len = 16000},
	{OP_GETXATTR, .ino = BIG, .name = "user.large", .len = ZF_XATTR_VALUE_MAX},
	{OP_FSYNC, .ino = BIG},
	{OP_SETXATTR, .ino = BIG, .name = "user.large", .len = 9000},
	{OP_MAKE, .dir = ZF_INO_ROOT, .name = "d", .mode = S_IFDIR | 0755, MADE(DIR)},
	{OP_MAKE, .dir = DIR, .name = "small", .mode = FILE_MODE, MADE(SMALL)},
	{OP_WRITE, .ino = SMALL, .len = 700},
	{OP_FREEZE},
	{OP_WRITE, .ino = SMALL, .offset = 100, .len = 700, .flags = ZF_WRITE_DSYNC},
	{OP_COMMIT_WRITE},
	{OP_COMMIT_FINISH},
	{OP_LINK, .ino = SMALL, .dir = ZF_INO_ROOT, .name = "k"},
	{OP_MAKE, .dir = DIR, .name = "s", .mode = S_IFLNK | 0777, .target = "../copy",
	 MADE(SYMLINK)},
	{OP_READDIR, .ino = DIR, .len = 2},
	{OP_FALLOCATE, .ino = BIG, .offset = BLOCK, .len = 30 * BLOCK, .flags = PUNCH},
	{OP_FALLOCATE, .ino = BIG, .len = 9000, .flags = FALLOC_FL_ZERO_RANGE},
	{OP_FALLOCATE, .ino = COPY, .len = 5 * BLOCK, .flags = ZF_FALLOC_WRITE_ZEROES},
	{OP_WRITE, .ino = COPY, .offset = BLOCK, .len = 2 * BLOCK, .flags = ZF_WRITE_DSYNC},
	{OP_READ, .ino = COPY, .len = 20 * BLOCK},
	{OP_MAKE, .dir = ZF_INO_ROOT, .name = "new", .mode = FILE_MODE, MADE(LINKED)},
	{OP_WRITE, .ino = LINKED, .len = 6000},
	{OP_RENAME, .dir = ZF_INO_ROOT, .name = "new", .dir2 = DIR, .name2 = "small"},
	{OP_FSYNC, .ino = LINKED},
	{OP_RECLAIM, .ino = COPY},
	{OP_SETATTR, .ino = BIG, .set = {.valid = ZF_SET_SIZE, .size = 5000}},
	{OP_FSYNC, .ino = COPY},
	{OP_REMOVEXATTR, .ino = BIG, .name = "user.large"},
	{OP_UNLINK, .dir = ZF_INO_ROOT, .name = "copy"},
	{OP_FORGET, .ino = COPY},
	{OP_STEP},
	{OP_SETATTR, .ino = BIG, .set = {.valid = ZF_SET_SIZE}},
	{OP_RECLAIM},
	{OP_SYNCFS},
};

#define LISTED_OPS (3 + PIECES + ZF_ARRAY_SIZE(listed))

/* Lists operations that make a file of many pieces and change it. */
static void list_ops(struct zf_op *op)
{
	uint32_t number = 0;

	*op++ = (struct zf_op){OP_MAKE, .dir = ZF_INO_ROOT, .name = "big", .mode = FILE_MODE,
			       MADE(BIG)};
	for (unsigned int i = 0; i < PIECES; i++)
		*op++ = (struct zf_op){OP_WRITE, .ino = BIG, .offset = 2 * i * BLOCK, .len = BLOCK};
	*op++ = (struct zf_op){OP_SYNCFS};
	*op++ = (struct zf_op){OP_STEP};
	memcpy(op, listed, sizeof(listed));
	for (op -= 3 + PIECES; number < LISTED_OPS; op++) {
		op->number = ++number;
		op->may_wait = true;
	}
}

/* Even seeds run the list; odd seeds draw their operations. */
static const struct script *script_of(uint64_t seed)
{
	static struct zf_op ops[LISTED_OPS];
	static bool keep[LISTED_OPS];
	static const struct script script = {ops, keep, LISTED_OPS};

	list_ops(ops);
	memset(keep, true, sizeof(keep));
	return seed % 2 == 0 ? &script : NULL;
}

/* ---- a workload ---- */

/* Judges the device after the workload, as it is or after a cut. */
static bool judge_end(const struct record *record, uint64_t crash_seed)
{
	const struct judgement judgement = {.full = true, .go_on = true, .second_cut = crash_seed};
	struct zf_sim *sim = zf_sim_clone(record->end);
	bool ok;

	if (crash_seed)
		zf_sim_crash(sim, crash_seed, ZF_SIM_CUT_DEVICE);
	ok = judge(record, record->count, sim, &judgement);
	zf_sim_free(sim);
	return ok;
}

static bool has_told(const struct record *record)
{
	for (uint32_t i = 0; i < record->count; i++) {
		if (record->ops[i].result == -ENOMEM)
			return true;
	}
	return false;
}

/* The library has freed everything that it allocated since `before`. */
static bool holds_nothing(int64_t before)
{
	if (memory_held() != before)
		fprintf(stderr, "%" PRId64 " pieces are left\n", memory_held() - before);
	return memory_held() == before;
}

static enum outcome run(const void *arg)
{
	const struct record_options options = {.name.seed = at.seed,
					       .ops = OPS,
					       .script = script_of(at.seed),
					       .within = memory_within};
	int64_t held = memory_held();
	struct record record;
	bool ok, struck;

	memory_begin(at.nth, at.lasting);
	ok = record_run(&record, &options);
	struck = memory_end();
	ok = ok && judge_end(&record, 0) && judge_end(&record, at.seed);
	tally->runs += struck;
	tally->told += has_told(&record);
	tally->hurt += record.hurt != 0;
	record_free(&record);
	return say(holds_nothing(held) && ok, struck);
}

/* ---- a mount that recovers ---- */

static int64_t now(void *arg)
{
	return workload_time(*(const uint32_t *)arg);
}

/* 0, or the error of the mount. */
static int mount_once(const struct record *record, struct zf_sim *sim)
{
	uint32_t clock = record->workload.number;
	const struct zf_mount_options options = {
		.cache_bytes = 256 * KIB,
		.dirty_bytes = 256 * KIB,
		.now_ns = now,
		.now_arg = &clock,
	};
	struct zf_dev *dev;
	struct zf_fs *fs;
	int r;

	if (zf_sim_open(sim, &explore_report, &dev) < 0)
		abort();
	memory_within(true);
	r = zf_fs_mount(dev, &options, &explore_report, &fs);
	memory_within(false);
	if (r == 0)
		zf_fs_abandon(fs);
	zf_dev_close(dev);
	return r;
}

struct recovery {
	const struct record *record;
	const struct cut *cut;
};

static enum outcome recover(const void *arg)
{
	const struct recovery *recovery = arg;
	const struct judgement judgement = {.full = true};
	int64_t held = memory_held();
	struct zf_sim *sim = zf_sim_clone(recovery->cut->sim);
	bool ok, struck;
	int r;

	zf_sim_crash(sim, at.seed, ZF_SIM_CUT_DEVICE);
	memory_begin(at.nth, at.lasting);
	r = mount_once(recovery->record, sim);
	struck = memory_end();
	ok = r == 0 || r == -ENOMEM;
	if (!ok)
		fprintf(stderr, "the mount says %d\n", r);
	tally->mounts += struck;
	tally->refused += r < 0;
	zf_sim_crash(sim, at.nth, ZF_SIM_CUT_DEVICE);
	ok = judge(recovery->record, recovery->cut->op, sim, &judgement) && ok;
	zf_sim_free(sim);
	return say(holds_nothing(held) && ok, struck);
}

/* Mounts after one of the cuts; `number`: 1 to MOUNTS. */
static bool mount_one(const struct record *record, uint64_t number, bool all)
{
	const struct recovery recovery = {record,
					  &record->cuts[record->cut_count * number / (MOUNTS + 1)]};
	bool ok;

	at.mount = number;
	if (!all)
		return is_right(recover(&recovery));
	ok = fail_each(recover, &recovery, false, 1);
	return fail_each(recover, &recovery, true, 1) && ok;
}

/*
 * Mount number `only`, or (0) all: every allocation fails in turn, because a mount has few. With
 * --step only the last mount.
 */
static bool mounts(uint64_t only)
{
	const struct record_options options = {
		.name.seed = at.seed, .ops = OPS, .script = script_of(at.seed)};
	uint64_t first = at.step > 1 ? MOUNTS : 1;
	struct record record;
	bool ok = record_run(&record, &options);

	for (uint64_t i = only ? only : first; i <= (only ? only : MOUNTS); i++)
		ok = mount_one(&record, i, !only) && ok;
	at.mount = 0;
	record_free(&record);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t only = 0;
	bool ok = true;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";

		if (strcmp(argv[i], "--seed") == 0)
			at.seed = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--workloads") == 0)
			at.workloads = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--step") == 0)
			at.step = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--nth") == 0)
			only = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--mount") == 0)
			at.mount = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--lasting") == 0)
			at.lasting = true;
		else if (strcmp(argv[i], "--verbose") == 0)
			explore_verbose = true;
	}
	watch();
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (tally == MAP_FAILED)
		abort();
	if (only) {
		at.nth = only;
		return !(at.mount ? mounts(at.mount) : is_right(run(NULL)));
	}
	for (uint64_t i = 0; i < at.workloads; i++, at.seed++)
		ok = fail_each(run, NULL, false, at.step) & fail_each(run, NULL, true, at.step) &
		     mounts(0) & ok;
	printf("%" PRIu64 " runs met it, %" PRIu64 " told, %" PRIu64 " were hurt; %" PRIu64
	       " mounts, %" PRIu64 " refused\n",
	       tally->runs, tally->told, tally->hurt, tally->mounts, tally->refused);
	/* Without answers of ENOMEM, hurt runs and refused mounts the test would show nothing. */
	return !ok || tally->told == 0 || tally->hurt == 0 || tally->refused == 0;
}

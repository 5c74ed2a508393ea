/* SPDX-License-Identifier: MIT */
/*
 * Hostile images, through the programs (P7): manglings (check/lies/mangling.h) are written to a
 * file, and every program that reads images is run on it. No program may crash or hang. If
 * fsck.zfuse calls an image clean, or has repaired it, a second fsck.zfuse must find it clean, and
 * a mount must be able to write to it.
 *
 *      test_programs BINDIR [--seed N] [--manglings N] [--mounts N] [--traces N]
 *
 * BINDIR: the directory of the build. --mounts N: one mangling in N is mounted (default 0: none).
 * --traces N: N times a trace and its data are damaged, and the programs that read them are run.
 */
#include <assert.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lies/child.h"
#include "lies/file.h"
#include "lies/image.h"
#include "programs.h"

/* ---- one image ---- */

/* At times the file's end is missing, with the header or more, or something follows it. */
static bool cut_file(struct zf_rng *rng, uint64_t size)
{
	uint64_t to = zf_rng_chance(rng, 50) ? zf_rng_below(rng, size) : size;

	if (!zf_rng_chance(rng, 3))
		return false;
	if (to == size)
		to = zf_rng_chance(rng, 50) ? size - 1 - zf_rng_below(rng, 16384)
					    : size + 1 + zf_rng_below(rng, 16384);
	return truncate(programs_image, (off_t)to) == 0;
}

static bool may_be_given_up(const struct mangling *mangling)
{
	for (unsigned int i = 0; i < mangling->count; i++)
		if (lie_may_be_given_up(&mangling->lies[i]) || lie_hides_nodes(&mangling->lies[i]))
			return true;
	return false;
}

/* True: the image is in order now. */
static bool check_and_repair(const struct mangling *mangling, bool is_cut)
{
	int before = programs_fsck("-n"), repaired, after;

	if (before != 0 && before != 4 && before != 8)
		programs_fail("fsck.zfuse -n: status %d\n%s\n", before, programs_said);
	repaired = programs_fsck("-y");
	if (before == 0 && repaired != 0)
		programs_fail("fsck.zfuse -y of what is clean: status %d\n%s\n", repaired,
			      programs_said);
	if (repaired != 0 && repaired != 1) {
		if (!is_cut && !may_be_given_up(mangling))
			programs_fail("fsck.zfuse -y: status %d\n%s\n", repaired, programs_said);
		programs_shared->left++;
		return false;
	}
	programs_shared->clean += before == 0;
	programs_shared->repaired += before != 0;
	after = before == 0 ? 0 : programs_fsck("-n");
	if (after != 0)
		programs_fail("fsck.zfuse -n after -y: status %d\n%s\n", after, programs_said);
	return after == 0;
}

struct trial {
	struct places *places;
	const struct mangling *mangling;
};

static void try_it(void *arg)
{
	const struct trial *trial = arg;
	struct zf_rng rng;
	bool mounts, changes, is_cut, sound;

	zf_rng_seed(&rng, trial->mangling->seed + 1);
	mounts = programs_options.mounts > 0 && zf_rng_below(&rng, programs_options.mounts) == 0;
	changes = zf_rng_chance(&rng, 30);
	lie_tell(trial->places, trial->mangling->lies, trial->mangling->count);
	file_write_own(trial->places->file);
	snprintf(programs_image, sizeof(programs_image), "%s", trial->places->file->path);
	is_cut = cut_file(&rng, trial->places->file->size);
	programs_restore(&rng);
	programs_look(&rng);
	programs_look_at_something(trial->places, &rng);
	if (mounts && zf_rng_chance(&rng, 50))
		programs_mount(false);
	sound = check_and_repair(trial->mangling, is_cut);
	if (mounts && sound)
		programs_mount(true);
	if (changes)
		programs_change(&rng, sound);
	if (zf_rng_chance(&rng, 10))
		programs_make_anew();
	unlink(programs_image);
}

static void try_mangling(struct places *places, uint64_t seed)
{
	struct mangling mangling;
	struct trial trial = {.places = places, .mangling = &mangling};
	char how[64];
	bool ended;

	mangling_make(places, seed, &mangling);
	programs_shared->failed = false;
	programs_shared->text[0] = '\0';
	programs_shared->manglings++;
	ended = child_run(try_it, &trial, how, sizeof(how));
	if (!programs_report("--manglings", seed, ended, how))
		mangling_print(&mangling);
	mangling_free(&mangling);
}

static void try_images(enum image_kind kind)
{
	static struct places places;
	struct forge forge;
	struct file file;

	image_make(kind, &forge);
	places_find(&places, &forge);
	file_make(&forge, &file);
	places_find_trailer(&places, &file);
	for (uint64_t i = 0; i < programs_options.manglings; i++)
		if ((programs_options.seed + i) % IMAGE_ALL_KINDS == kind)
			try_mangling(&places, programs_options.seed + i);
	file_free(&file);
	image_free(&forge);
}

/* ---- the program ---- */

static void take_options(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"seed", required_argument, NULL, 's'},
		{"manglings", required_argument, NULL, 'n'},
		{"mounts", required_argument, NULL, 'm'},
		{"traces", required_argument, NULL, 't'},
		{0},
	};
	int c;

	programs_options.seed = (uint64_t)time(NULL);
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (c == 's')
			programs_options.seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			programs_options.manglings = strtoull(optarg, NULL, 0);
		else if (c == 'm')
			programs_options.mounts = strtoull(optarg, NULL, 0);
		else if (c == 't')
			programs_options.traces = strtoull(optarg, NULL, 0);
		else
			exit(2);
	}
	if (optind + 1 != argc)
		exit(2);
	programs_options.bin = argv[optind];
}

static bool can_mount(void)
{
	if (geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0)
		return true;
	printf("skipped: --mounts needs root and /dev/fuse\n");
	return false;
}

static void make_paths(void)
{
	const char *directory = getenv("TMPDIR");
	int pid = (int)getpid();

	directory = directory ? directory : "/tmp";
	snprintf(programs_image, sizeof(programs_image), "%.200s/programs-%d-image", directory,
		 pid);
	snprintf(programs_scratch, sizeof(programs_scratch), "%.200s/programs-%d-restored",
		 directory, pid);
	snprintf(programs_mountpoint, sizeof(programs_mountpoint), "%.200s/programs-%d-mnt",
		 directory, pid);
	mkdir(programs_mountpoint, 0700);
}

int main(int argc, char **argv)
{
	take_options(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %" PRIu64 " (replay with --seed)\n", programs_options.seed);
	programs_shared = mmap(NULL, sizeof(*programs_shared), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(programs_shared != MAP_FAILED);
	if (programs_options.mounts > 0 && !can_mount())
		return 77;
	make_paths();
	programs_try_traces();
	for (unsigned int kind = 0; kind < IMAGE_ALL_KINDS; kind++)
		try_images((enum image_kind)kind);
	rmdir(programs_mountpoint);
	printf("%" PRIu64 " manglings and %" PRIu64 " traces, %" PRIu64 " programs, %" PRIu64
	       " mounts: %" PRIu64 " clean, %" PRIu64 " repaired, %" PRIu64 " left alone\n",
	       programs_shared->manglings, programs_shared->traces, programs_shared->programs,
	       programs_shared->mounts, programs_shared->clean, programs_shared->repaired,
	       programs_shared->left);
	printf("%u failures\n", programs_failures);
	return programs_failures > 0;
}

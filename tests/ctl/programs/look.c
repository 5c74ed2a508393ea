/* SPDX-License-Identifier: MIT */
#include "programs.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "lies/file.h"

#define ARGS_MAX 12u

/* Each command gets programs_image and perhaps another operand. */
static const char *const looks[][5] = {
	{"super"},
	{"zones"},
	{"zones", "--map"},
	{"tree", "--tree", "root"},
	{"tree", "--tree", "fs", "--format=json"},
	{"tree", "--tree", "summary", "--format=dot"},
	{"tree", "--tree", "share"},
	{"tree", "--tree", "zone"},
	{"log"},
	{"log", "--format=json"},
	{"df"},
	{"status"},
	{"check", "--data"},
	{"scrub", "status"},
	{"scrub"},
	{"device", "stats"},
	{"label"},
};

void programs_look(struct zf_rng *rng)
{
	const char *const *words = looks[zf_rng_below(rng, ZF_ARRAY_SIZE(looks))];
	const char *args[ARGS_MAX] = {ZFUSECTL};
	unsigned int count = 1;

	while (*words)
		args[count++] = *words++;
	args[count] = programs_image;
	(void)programs_run(args);
}

void programs_look_at_something(const struct places *places, struct zf_rng *rng)
{
	static const char *const paths[] = {"/data", "/dir/hard", "/clone", "/zeroes", "/inline"};
	const char *path = paths[zf_rng_below(rng, ZF_ARRAY_SIZE(paths))];
	const struct place_node *node = &places->node[zf_rng_below(rng, places->node_count)];
	char number[32];

	switch (zf_rng_below(rng, 6)) {
	case 0:
		(void)programs_run(
			(const char *const[]){ZFUSECTL, "file", programs_image, path, NULL});
		break;
	case 1:
		snprintf(number, sizeof(number), "%" PRIu64, zf_rng_below(rng, 80));
		(void)programs_run(
			(const char *const[]){ZFUSECTL, "path", programs_image, number, NULL});
		break;
	case 2:
		snprintf(number, sizeof(number), "%" PRIu64,
			 zf_rng_below(rng, places->file->trailer.table_offset));
		(void)programs_run(
			(const char *const[]){ZFUSECTL, "resolve", programs_image, number, NULL});
		break;
	case 3:
		(void)programs_run(
			(const char *const[]){"tools/udev/zfuse_id", programs_image, NULL});
		break;
	case 4:
		(void)programs_run((const char *const[]){MKFS, "--dry-run", programs_image, NULL});
		break;
	default:
		snprintf(number, sizeof(number), "%" PRIu64, node->address[0]);
		(void)programs_run(
			(const char *const[]){ZFUSECTL, "node", programs_image, number, NULL});
	}
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	(void)info;
	(void)type;
	(void)ftw;
	return remove(path);
}

void programs_restore(struct zf_rng *rng)
{
	if (zf_rng_chance(rng, 80)) {
		(void)programs_run((const char *const[]){ZFUSECTL, "restore", "--dry-run",
							 programs_image, NULL});
		return;
	}
	(void)programs_run(
		(const char *const[]){ZFUSECTL, "restore", programs_image, programs_scratch, NULL});
	nftw(programs_scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void programs_change(struct zf_rng *rng, bool sound)
{
	switch (zf_rng_below(rng, 3)) {
	case 0:
		(void)programs_run(
			(const char *const[]){ZFUSECTL, "label", programs_image, "new", NULL});
		break;
	case 1:
		(void)programs_run((const char *const[]){ZFUSECTL, "grow", "--size", "12M",
							 programs_image, NULL});
		break;
	default:
		(void)programs_run((const char *const[]){ZFUSECTL, "image", "export",
							 programs_image, programs_scratch, NULL});
		unlink(programs_scratch);
	}
	if (sound && programs_fsck("-n") != 0)
		programs_fail("fsck.zfuse -n after a change:\n%s\n", programs_said);
}

void programs_make_anew(void)
{
	if (programs_run((const char *const[]){MKFS, "-f", "--node-size", "4096", programs_image,
					       NULL}) != 0)
		return;
	if (programs_fsck("-n") != 0)
		programs_fail("fsck.zfuse -n after mkfs.zfuse:\n%s\n", programs_said);
}

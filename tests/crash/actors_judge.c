/* SPDX-License-Identifier: MIT */
/* Mounts the device that a cut of several actors left, and compares it with what is known, as
 * actors.h says. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actors.h"
#include "base/bits.h"
#include "check/check.h"
#include "superblock/ring.h"

#define KIB		  UINT64_C(1024)

#define RECOVERY_COMMANDS 12u /* a recovery is cut at one of the first 12; most have fewer */

static const struct zf_ctx ctx = {.may_wait = true, .no_atime = true};

/* ---- what blocks hold ---- */

void actors_fill(uint32_t id, uint32_t version, uint8_t *ret_block)
{
	uint64_t word = ((uint64_t)id << 32 | version) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	uint64_t words[ZF_BLOCK_SIZE / 8] = {id, version};

	for (size_t i = 2; i < ZF_ARRAY_SIZE(words); i++)
		words[i] = word * (i + 1);
	memcpy(ret_block, words, ZF_BLOCK_SIZE);
}

static int version_of(uint32_t id, const uint8_t *block)
{
	static const uint8_t zeroes[ZF_BLOCK_SIZE];
	uint8_t expected[ZF_BLOCK_SIZE];
	uint64_t words[2];

	if (memcmp(block, zeroes, sizeof(zeroes)) == 0)
		return 0;
	memcpy(words, block, sizeof(words));
	if (words[0] != id || words[1] > UINT16_MAX)
		return -1;
	actors_fill(id, (uint32_t)words[1], expected);
	return memcmp(block, expected, sizeof(expected)) == 0 ? (int)words[1] : -1;
}

bool actors_is_right(const struct block_known *known, uint16_t least, uint32_t id,
		     const uint8_t *block, int *ret_version)
{
	int version = *ret_version = version_of(id, block);

	return version <= known->begun &&
	       (version >= least || (version == 0 && known->punched >= least));
}

uint32_t actors_file_id(unsigned int file, unsigned int block)
{
	return 1 + file * FILE_BLOCKS + block;
}

uint32_t actors_named_id(uint64_t ino, unsigned int block)
{
	return (uint32_t)(UINT64_C(1) << 31 | ino << 4 | block);
}

/* ---- what is found ---- */

struct found {
	const struct world *world;
	const struct known *known;
	struct zf_fs *fs;
	uint64_t files[FILES];
	struct names names[ACTORS_MAX];
};

static bool complain(const char *what, int64_t value)
{
	fprintf(stderr, "actors: %s (%" PRId64 ")\n", what, value);
	return false;
}

static bool note_name(struct found *found, const struct zf_dirent *entry)
{
	unsigned int no, seq;
	struct names *names;

	if (sscanf(entry->name, "file%u", &no) == 1 && no < FILES) {
		found->files[no] = entry->ino;
		return true;
	}
	if (sscanf(entry->name, "a%u.%u", &no, &seq) != 2 || no >= ACTORS_MAX)
		return strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0 ||
		       complain(entry->name, -1);
	names = &found->names[no];
	if (names->count == NAMES_MAX)
		return complain("an actor has too many names", no);
	names->names[names->count++] = (struct name){.seq = seq, .ino = entry->ino};
	return true;
}

static bool list(struct found *found)
{
	struct zf_dirent entries[16];
	struct zf_attr dir;
	uint64_t cookie = 0;
	int n = zf_fs_lookup(found->fs, &ctx, ZF_INO_ROOT, "dir", &dir);

	if (n < 0)
		return complain("the directory cannot be found", n);
	while ((n = zf_fs_readdir(found->fs, &ctx, dir.ino, cookie, entries,
				  ZF_ARRAY_SIZE(entries))) > 0) {
		for (int i = 0; i < n; i++)
			if (!note_name(found, &entries[i]))
				return false;
		cookie = entries[n - 1].cookie;
	}
	return n == 0 || complain("the directory cannot be read", n);
}

/* ---- names ---- */

static bool has_name(const struct names *names, const struct name *name)
{
	for (unsigned int i = 0; i < names->count; i++)
		if (names->names[i].seq == name->seq && names->names[i].ino == name->ino)
			return true;
	return false;
}

bool actors_same_names(const struct names *a, const struct names *b)
{
	if (a->count != b->count)
		return false;
	for (unsigned int i = 0; i < a->count; i++)
		if (!has_name(b, &a->names[i]))
			return false;
	return true;
}

/* Which state of the actor's history the names found are; -1: none. */
static int find_state(const struct found *found, unsigned int no)
{
	const struct actor *actor = &found->world->actors[no];

	for (unsigned int i = found->known->actors[no].took_effect; i-- > 0;)
		if (actors_same_names(&actor->history[i], &found->names[no]))
			return (int)i;
	return -1;
}

static void tell_names(const char *what, const struct names *names)
{
	fprintf(stderr, "  %s %" PRIu64 ":", what, names->number);
	for (unsigned int i = 0; i < names->count; i++)
		fprintf(stderr, " %u=%" PRIu64, names->names[i].seq, names->names[i].ino);
	fprintf(stderr, "\n");
}

static bool complain_names(const struct found *found, unsigned int no, const char *what)
{
	const struct actor *actor = &found->world->actors[no];

	fprintf(stderr, "actors: names of actor %u: %s; durable up to %" PRIu64 "\n", no, what,
		found->known->names_durable);
	for (unsigned int i = 0; i < found->known->actors[no].took_effect; i++)
		tell_names("operation", &actor->history[i]);
	tell_names("found", &found->names[no]);
	return false;
}

static bool judge_named(const struct found *found, unsigned int no, const struct name *name)
{
	static const struct named_known none;
	const struct named_known *known = &none;
	uint8_t bytes[NAMED_BLOCKS * ZF_BLOCK_SIZE];
	ssize_t len = zf_fs_read(found->fs, &ctx, name->ino, 0, bytes, sizeof(bytes));
	unsigned int least, blocks = (unsigned int)(len / ZF_BLOCK_SIZE);

	for (unsigned int i = 0; i < found->known->actors[no].named_count; i++)
		if (found->known->actors[no].named[i].ino == name->ino)
			known = &found->known->actors[no].named[i];
	if (len < 0)
		return complain("a file of a name cannot be read", len);
	least = name->whole > known->durable ? name->whole : known->durable;
	if (len % ZF_BLOCK_SIZE != 0 || blocks > known->begun)
		return complain("a file of a name has what was not written", len);
	if (blocks < least)
		return complain(name->whole > blocks ? "a file that was renamed over another is "
						       "not whole"
						     : "what was synced of a file is lost",
				(int64_t)name->ino);
	for (unsigned int b = 0; b < blocks; b++) {
		int version = version_of(actors_named_id(name->ino, b), bytes + b * ZF_BLOCK_SIZE);

		/* A block that could not be written is a hole, and an actor got the error. */
		if (version != 1 && (version != 0 || b < least || !found->world->faulty))
			return complain("a file of a name has a wrong block", b);
	}
	return true;
}

static bool judge_names(const struct found *found)
{
	uint64_t last = 0, missing = UINT64_MAX;

	for (unsigned int no = 0; no < ACTORS_MAX; no++) {
		const struct actor *actor = &found->world->actors[no];
		int state = find_state(found, no);

		if (state < 0)
			return complain_names(found, no, "not a state that there was");
		last = zf_max_u64(last, actor->history[state].number);
		if ((unsigned int)state + 1 < found->known->actors[no].took_effect)
			missing = zf_min_u64(missing, actor->history[state + 1].number);
		if (missing <= found->known->names_durable)
			return complain_names(found, no, "what was durable is lost");
		for (unsigned int i = 0; i < actor->history[state].count; i++)
			if (!judge_named(found, no, &actor->history[state].names[i]))
				return false;
	}
	return last < missing ||
	       complain("an operation is there without one before it", (int64_t)missing);
}

/* ---- files that all share ---- */

static bool judge_file(const struct found *found, unsigned int file)
{
	static uint8_t bytes[FILE_BLOCKS * ZF_BLOCK_SIZE];
	ssize_t len = zf_fs_read(found->fs, &ctx, found->files[file], 0, bytes, sizeof(bytes));

	if (len < 0)
		return complain("a file cannot be read", len);
	memset(bytes + len, 0, sizeof(bytes) - (size_t)len);
	for (unsigned int b = 0; b < FILE_BLOCKS; b++) {
		const struct block_known *known = &found->known->blocks[file][b];
		int version;

		if (actors_is_right(known, known->durable, actors_file_id(file, b),
				    bytes + b * ZF_BLOCK_SIZE, &version))
			continue;
		fprintf(stderr,
			"actors: block %u of file %u has version %d; durable %u, begun %u\n", b,
			file, version, known->durable, known->begun);
		return false;
	}
	return true;
}

/* ---- the steps ---- */

static bool check(struct zf_dev *dev)
{
	const struct zf_check_options options = {.data = true};
	const struct zf_super *super;
	struct zf_check_counts counts = {0};
	struct zf_ring *ring;
	unsigned int stepped_over;
	int r = zf_ring_open(dev, &actors_report, &ring);

	if (r < 0)
		return complain("the ring cannot be opened", r);
	r = zf_ring_newest(ring, &super, &stepped_over);
	if (r == 0)
		r = zf_check_run(dev, super, &options, &actors_report, &counts);
	zf_ring_close(ring);
	if (r < 0)
		return complain("the checker cannot run", r);
	return counts.errors == 0 || complain("the checker found errors", (int64_t)counts.errors);
}

static bool judge_mounted(const struct world *world, const struct kept_cut *cut, struct zf_fs *fs)
{
	struct found found = {.world = world, .known = &cut->known, .fs = fs};
	bool ok = list(&found) && judge_names(&found);

	for (unsigned int file = 0; ok && file < FILES; file++)
		ok = judge_file(&found, file);
	return ok;
}

static void crash(struct zf_sim *sim, uint64_t seed)
{
	if (seed % 2)
		zf_sim_crash_some(sim, seed);
	else
		zf_sim_crash(sim, seed, ZF_SIM_CUT_DEVICE);
}

/* The command at which the recovery is cut. */
struct recovery {
	uint64_t commands; /* left until that one */
	struct zf_sim *sim;
};

static void keep(void *arg, const struct zf_sim *sim)
{
	struct recovery *recovery = arg;

	if (--recovery->commands == 0)
		recovery->sim = zf_sim_clone(sim);
}

/* The simulator after a cut. */
static bool judge_state(const struct world *world, const struct kept_cut *cut, struct zf_sim *sim,
			bool full, struct recovery *recovery)
{
	const struct zf_mount_options options = {.cache_bytes = 256 * KIB,
						 .dirty_bytes = 256 * KIB};
	struct zf_dev *dev;
	struct zf_fs *fs;
	bool ok;
	int r = zf_sim_open(sim, &actors_report, &dev);

	if (r < 0)
		return complain("the device cannot be opened", r);
	zf_sim_observe(sim, keep, recovery);
	r = zf_fs_mount(dev, &options, &actors_report, &fs);
	zf_sim_observe(sim, NULL, NULL);
	ok = r == 0 || complain("mounting fails", r);
	if (ok) {
		ok = judge_mounted(world, cut, fs);
		zf_fs_abandon(fs);
		if (ok && full)
			ok = check(dev);
	}
	zf_dev_close(dev);
	return ok;
}

/* Every fourth recovery is cut as well. */
bool actors_judge(const struct world *world, const struct kept_cut *cut, uint64_t seed)
{
	struct recovery recovery = {.commands = seed % 4 ? 0 : 1 + seed / 4 % RECOVERY_COMMANDS};
	struct recovery none = {0};
	struct zf_sim *sim = zf_sim_clone(cut->sim);
	bool ok;

	crash(sim, seed);
	ok = judge_state(world, cut, sim, seed % 16 == 1, &recovery);
	zf_sim_free(sim);
	if (!recovery.sim)
		return ok;
	if (ok) {
		crash(recovery.sim, seed / 4);
		ok = judge_state(world, cut, recovery.sim, seed % 16 == 0, &none) ||
		     complain("after a cut of the recovery", seed);
		world->events->recoveries++;
	}
	zf_sim_free(recovery.sim);
	return ok;
}

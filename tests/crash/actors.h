/* SPDX-License-Identifier: MIT */
/*
 * Several actors at once, with cuts and faults, all from one seed.
 *
 * explore.h has one actor, so two records of the log are never in flight at once in it. Here a
 * *schedule* is a threaded mount on the simulator, with two to five actors beside the mount's own
 * threads; support/fibers.h draws from the seed who goes on. At some commands, and at some answers,
 * a clone of the device is kept with what is promised by then; when all is over, each is cut,
 * mounted and judged.
 *
 * What is right is exact, because of each thing one actor alone decides:
 *
 *  - Files that all share: each block belongs to one actor, who gives it version after version, and
 *    everybody syncs all files. A block that is found has a version that was begun by then, and not
 *    one before that which was made durable.
 *  - Names in one directory: each belongs to one actor, who makes, renames (over others, too) and
 *    removes them. No state of an actor's names comes back. The log numbers operations in the order
 *    in which they took effect (zf_log_add()); what is found is all of them up to one number (P2),
 *    and none that was acknowledged before a sync began is missing (P1).
 *  - Files of those names: each is written once, block by block. What is found is a prefix of it,
 *    at least what was synced; all of it, if it came by a rename over another.
 *
 * A read during the schedule finds each block as it was written last.
 */
#ifndef ZF_TESTS_ACTORS_H
#define ZF_TESTS_ACTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/core/fs.h"
#include "sim/rng.h"
#include "sim/sim.h"

#define ACTORS_MAX   5u
#define FILES	     3u	 /* that all share */
#define FILE_BLOCKS  48u /* of each */
#define RUN_BLOCKS   4u	 /* so many in a row belong to one actor */
#define NAMES_MAX    3u	 /* of one actor */
#define NAMED_MAX    24u /* files that one actor makes */
#define NAMED_BLOCKS 3u	 /* of each, at most */
#define HISTORY_MAX  64u /* operations on names of one actor */
#define STEPS_MAX    14u /* of one actor */
#define CUTS_MAX     8u	 /* of one schedule */

/* ---- what is known, and copied for each cut ---- */

/* Versions of a block: 0 is a hole; so is the one that the newest punch made. */
struct block_known {
	uint16_t begun, done, durable, punched;
};

/* Blocks of a file with a name of its own. */
struct named_known {
	uint64_t ino;
	uint8_t begun, durable;
};

struct known {
	struct block_known blocks[FILES][FILE_BLOCKS];
	struct {
		unsigned int took_effect; /* states of its history */
		unsigned int named_count;
		struct named_known named[NAMED_MAX];
	} actors[ACTORS_MAX];
	uint64_t names_durable; /* all operations up to this number are */
};

struct name {
	uint32_t seq;
	uint64_t ino;
	uint8_t whole; /* blocks that it must have: it came by a rename over another file */
};

/* The names of one actor after one of its operations. */
struct names {
	uint64_t number; /* of the operation; 0: it has not taken effect */
	unsigned int count;
	struct name names[NAMES_MAX];
};

struct kept_cut {
	struct zf_sim *sim;
	struct known known;
};

struct actor {
	struct world *world;
	unsigned int no;
	const void *fiber;
	struct zf_rng rng;
	unsigned int steps;
	bool naming, announcing, over;
	uint32_t next_seq;
	struct names history[HISTORY_MAX]; /* [0]: in the beginning */
	unsigned int history_count;
};

/* How often what happened that is looked for. */
struct events {
	uint64_t schedules, cuts, switches;
	uint64_t stalls;	    /* zf_fibers_stalls() */
	uint64_t recoveries;	    /* cut, too */
	uint64_t two_records;	    /* in flight at once, when a command was issued */
	uint64_t overtaken;	    /* a record had completed, and not the one before it */
	uint64_t record_in_commit;  /* in flight while a commit was being written */
	uint64_t swap_beside_fsync; /* reclaim swapped while somebody was in fsync */
	uint64_t shared_flush;	    /* a flush served two */
	uint64_t faults;	    /* that struck */
	uint64_t errors;	    /* that an actor was told */
};

struct world {
	uint64_t seed;
	struct zf_sim *sim;
	struct zf_dev *dev;
	struct zf_fs *fs;
	uint64_t dir, files[FILES];
	struct zf_rng rng;
	uint64_t dirty_bytes; /* an option of the mount */
	unsigned int profile; /* of what actors do */
	unsigned int actor_count;
	struct actor actors[ACTORS_MAX];
	struct known known;
	uint64_t names_done;  /* the highest number of an operation that was answered */
	bool faulty;	      /* faults strike */
	bool lossy;	      /* so many that data may be lost before anybody is told */
	bool hurt;	      /* an actor was told an error */
	unsigned int syncing; /* actors in fsync */
	struct kept_cut cuts[CUTS_MAX + 1]; /* the last: unmounted */
	unsigned int cut_count;
	unsigned int candidates; /* for a cut, so far */
	bool running;		 /* cuts are kept */
	bool failed;
	struct events *events;
};

extern bool actors_verbose;
/* No actor does more than so many things; 0: drawn alone. */
extern unsigned int actors_steps_max;
/* Of so many times that data is to land, it finds no memory once; 0: never. Then ENOMEM is right.
 */
extern unsigned int actors_memory;

/* One schedule, its cuts judged. False: a promise is broken, told on stderr. */
bool actors_run(uint64_t seed, struct events *events);
/* What schedules begin with is kept from one to the next; until this. */
void actors_forget(void);

/* ---- shared by its files ---- */

extern const struct zf_report actors_report; /* prints if actors_verbose */

#define BASES		8u
#define FILE_BLOCKS_MIN 8u /* of the first file that all share; of each other 16 more */

struct base {
	struct zf_sim *sim;
	uint64_t dir, files[FILES], named[ACTORS_MAX];
};

const struct base *actors_base(unsigned int i);
void actors_must(int64_t r); /* the preparations cannot fail */

/* What actors do differs from schedule to schedule. */
#define PROFILES 4u

/* One thing that an actor does; false: it gives up. */
bool actors_step(struct actor *actor);
/* This moment counts, and may be kept to be cut. */
void actors_moment(struct world *world);

/* What a block holds: `id` says whose. */
void actors_fill(uint32_t id, uint32_t version, uint8_t *ret_block);
/*
 * May a block be found like this, if it is to have version `least` or a later one? *ret_version:
 * the one that it has, 0 for zeroes, -1: none.
 */
bool actors_is_right(const struct block_known *known, uint16_t least, uint32_t id,
		     const uint8_t *block, int *ret_version);
uint32_t actors_file_id(unsigned int file, unsigned int block);
uint32_t actors_named_id(uint64_t ino, unsigned int block);

bool actors_same_names(const struct names *a, const struct names *b);

bool actors_judge(const struct world *world, const struct kept_cut *cut, uint64_t seed);

#endif
